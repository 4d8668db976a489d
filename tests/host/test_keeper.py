"""One cause, one warning: whatever it is that cannot be kept, and whoever is the first to notice."""

import errno
from pathlib import Path

import pytest

from bantam.host import place
from bantam.host.keeper import Causes
from bantam.host.place import Clock
from bantam.shell.disk.files import StoreError
from tests.program import Place, Reply, serving
from tests.program import place as program_in
from tests.pty_helpers import Bantam

HERE = place.at(Path("/work"), {"HOME": "/home/me"}, Clock(lambda: 0.0, lambda: 0.0))
HOME = Path("/home/me/.bantam")
WAYS = ("a file in its place", "a file above it", "no such device")


def problem(path: Path, number: int) -> StoreError:
    return StoreError(f"cannot save under {path}: why", path, number)


def test_a_cause_is_said_once_and_what_else_it_means_alone() -> None:
    causes = Causes(HERE)
    first = problem(HOME / "logs", errno.EEXIST)
    assert causes.words(first, "unsaved") == f"{first}; unsaved"
    for number in (errno.EEXIST, errno.ENOTDIR, errno.ENOENT):
        assert causes.words(problem(HOME / "sessions", number), "unsaved") == ""
    assert causes.words(problem(Path("/home/me/tape"), errno.ENOENT), "the tape is cut") == "the tape is cut"
    assert causes.words(problem(Path("/home/me/.bantam_history"), errno.ENOENT), "not typed", minor=True) == ""
    assert causes.answer(problem(HOME / "sessions", errno.ENOENT)) == "nothing was saved"


def test_another_cause_or_another_place_is_said_too() -> None:
    causes = Causes(HERE)
    for number, path in ((errno.ENOSPC, HOME), (errno.EACCES, HOME), (errno.EACCES, Path("/else/tape"))):
        assert causes.words(problem(path, number), "unsaved").startswith("cannot save")


def test_a_minor_thing_that_comes_first_hides_nothing() -> None:
    causes = Causes(HERE)
    assert causes.words(problem(Path("/home/me/.bantam_history"), errno.EACCES), "not typed", minor=True)
    assert causes.words(problem(HOME / "logs", errno.EROFS), "unsaved") == "unsaved"


def test_what_was_asked_for_is_answered_each_time() -> None:
    causes = Causes(HERE)
    first = problem(HOME, errno.EACCES)
    assert [causes.answer(first) for _ in range(3)] == [str(first), "nothing was saved", "nothing was saved"]
    unread = StoreError("cannot read x: it is not a saved session")
    assert [causes.answer(unread) for _ in range(2)] == [str(unread)] * 2


def homes(folder: Path, way: str) -> dict[str, str]:
    """An environment whose home cannot be written: root, who tests in a container, may write any that exists."""
    (folder / "file").write_text("in the way")
    named = {WAYS[0]: f"{folder}/file", WAYS[1]: f"{folder}/file/x", WAYS[2]: "/proc/x"}[way]
    return {"BANTAM_HOME": named}


def told(lines: str) -> list[str]:
    """The lines about what cannot be kept, whatever their words."""
    words = ("cannot", "unsaved", "not kept", "nothing was saved")
    return [line for line in lines.splitlines() if any(word in line for word in words)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("front", ["-p", "file", "lines", "--json", "--input", "--record"])
def test_every_front_end_says_once_that_its_home_cannot_be_written(front: str, way: str, tmp_path: Path) -> None:
    with serving([Reply("pelican")]) as fake:
        here = program_in(tmp_path, fake)
        here.environment |= homes(tmp_path, way)
        out = asked(here, front)
    (line,) = told(out)
    assert "cannot save under" in line
    assert "; the conversation goes on unsaved" in line


def asked(here: Place, front: str) -> str:
    """All that a run of two turns, or of one, writes."""
    (here.work / "f").write_text("one")
    match front:
        case "-p":
            ran = here.run("-p", "one")
        case "lines":
            ran = here.run(piped="one\ntwo\n/list\n")
        case "--input":
            ran = here.run("--input", "json", piped='{"prompt":"one"}\n{"prompt":"two"}\n')
        case "--record":
            ran = here.run("--record", "tape", "f")
        case _:
            ran = here.run(*([front] if front == "--json" else []), "f")
    assert ran.status == 0, ran
    assert "pelican" in ran.out
    return ran.out + ran.err


@pytest.mark.parametrize("way", WAYS)
def test_save_is_answered_and_does_not_say_the_cause_again(way: str, tmp_path: Path) -> None:
    with serving([Reply("pelican")]) as fake:
        here = program_in(tmp_path, fake)
        here.environment |= homes(tmp_path, way)
        ran = here.run(piped="one\n/save\ntwo\n")
    first, answer = told(ran.err)
    assert first.endswith("; the conversation goes on unsaved")
    assert answer == "nothing was saved"
    assert ran.status == 1


@pytest.mark.parametrize("home", ["HOME", "BANTAM_HOME"])
def test_on_a_terminal_one_line_stands_for_the_log_the_copies_and_the_history(home: str, tmp_path: Path) -> None:
    with serving([Reply("pelican")]) as fake:
        bantam = Bantam(tmp_path, fake.endpoint, **{home: "/proc/x"})
        bantam.prompt()
        shown = bantam.ask("one") + bantam.ask("two")
        bantam.leave()
    assert (shown.count("cannot"), shown.count("unsaved"), shown.count("not kept")) == (1, 1, 0)


def test_on_a_terminal_a_history_that_alone_cannot_be_written_is_said(tmp_path: Path) -> None:
    with serving([Reply("pelican")]) as fake:
        bantam = Bantam(tmp_path, fake.endpoint, HOME="/proc/x", BANTAM_HOME=str(tmp_path / "kept"))
        bantam.prompt()
        shown = bantam.ask("one") + bantam.ask("two")
        bantam.leave()
    assert (shown.count("cannot"), shown.count("unsaved"), shown.count("not kept")) == (1, 0, 1)
