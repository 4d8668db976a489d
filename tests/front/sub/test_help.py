"""`bantam help`, in a pipe and on a terminal, with pagers of all kinds."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bantam.core.words import status
from bantam.host import topics
from tests.program import Place, Reply, place, serving
from tests.pty_helpers import Bantam, plain

FIRST, LAST = "# Keys", "[pexpect](pexpect.md)."
needs_less = pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")


def test_in_a_pipe_a_topic_is_its_file(tmp_path: Path) -> None:
    here = Place(tmp_path)
    here.environment["PAGER"] = "no-such-pager"
    ran = here.run("help", "json", "events")
    assert (ran.status, ran.out, ran.err) == (0, (topics.MANUAL / "json-events.md").read_text(), "")
    assert here.run("help").out == topics.text("")
    assert here.run("-C", ".", "help", "keys").out == (topics.MANUAL / "keys.md").read_text()


@pytest.mark.parametrize("words", [["exit", "status"], ["ctrl+c"], ["--input"], ["-p"], ["-c", "KEY=VALUE"]])
def test_what_is_no_topic_is_looked_for_in_all(tmp_path: Path, words: list[str]) -> None:
    ran = Place(tmp_path).run("help", *words)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith(f"There is no topic {' '.join(words).lower()}. These speak of it:\n\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["help", "pipe"], "did you mean pipes?"),
        (["help", "xyzzy"], "bantam help lists them"),
        (["-q", "help"], "help takes no -q"),
        (["--schema", "x", "help"], "help takes no --schema"),
    ],
)
def test_what_cannot_be_shown_is_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    ran = Place(tmp_path).run(*arguments)
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    assert words in ran.err


def test_help_of_help_is_the_usage(tmp_path: Path) -> None:
    ran = Place(tmp_path).run("help", "--help")
    assert (ran.status, ran.out.startswith("usage: bantam")) == (0, True)


def test_a_prompt_file_of_that_name_is_asked_by_its_path(tmp_path: Path) -> None:
    with serving([Reply("pelican")]) as fake:
        here = place(tmp_path, fake)
        (here.work / "help").write_text("Help me.")
        assert here.run("help").out == topics.text("")
        assert here.run("-q", "./help").out == "pelican\n"


def test_nobody_reads_the_pipe_any_more(tmp_path: Path) -> None:
    here = Place(tmp_path)
    read, write = os.pipe()
    os.close(read)
    ran = subprocess.run(
        here.command("help"), stdout=write, stderr=subprocess.PIPE, env=here.environment, check=False, timeout=60
    )
    os.close(write)
    assert (ran.returncode, ran.stderr) == (status.READER_GONE, b"")


# --- on a terminal


def shown(folder: Path, topic: str = "keys", setting: str = "", **environment: str) -> tuple[int, str]:
    """The exit status, and what a terminal of 24 lines showed."""
    through = f'{setting}; exec "$@" help {topic}' if setting else f'exec "$@" help {topic}'
    helped = Bantam(folder, "http://127.0.0.1:9/v1", through, **environment)
    try:
        return helped.end(), plain(helped.all)
    finally:
        helped.stop()


@pytest.mark.parametrize("pager", ["", " ", "cat"])
def test_with_no_pager_a_terminal_gets_the_text(tmp_path: Path, pager: str) -> None:
    assert shown(tmp_path, PAGER=pager) == (0, topics.manual()["keys"])


def test_a_pager_gets_the_text_with_its_arguments(tmp_path: Path) -> None:
    code, text = shown(tmp_path, PAGER="sed 's/^/> /' | cat")
    assert (code, text) == (0, "".join(f"> {line}" for line in topics.manual()["keys"].splitlines(True)))


@pytest.mark.parametrize("pager", ["no-such-pager", "/dev/null"])
def test_a_pager_that_cannot_be_started_is_done_without(tmp_path: Path, pager: str) -> None:
    code, text = shown(tmp_path, PAGER=pager)
    assert code == 0
    assert text.endswith(topics.manual()["keys"])


@pytest.mark.parametrize("pager", ["true", "head -1", "exit 3"])
def test_a_reader_of_a_pager_that_leaves_early_is_no_failure(tmp_path: Path, pager: str) -> None:
    code, text = shown(tmp_path, "config", PAGER=pager)
    assert (code, "Traceback" in text, LAST in text) == (0, False, False)


def test_without_less_and_without_a_pager_it_is_printed(tmp_path: Path) -> None:
    assert shown(tmp_path, setting=f"unset PAGER; PATH={tmp_path}") == (0, topics.manual()["keys"])
    assert shown(tmp_path, setting="unset PAGER", TERM="dumb") == (0, topics.manual()["keys"])


@needs_less
def test_less_shows_what_does_not_fit_and_leaves_when_told(tmp_path: Path) -> None:
    helped = Bantam(tmp_path, "http://127.0.0.1:9/v1", 'unset PAGER; exec "$@" help config')
    try:
        helped.expect("# Configuration")
        helped.send("G")
        helped.expect("SSL_CERT_FILE")
        helped.send("q")
        assert helped.end() == 0
    finally:
        helped.stop()


def test_an_interrupt_is_the_pagers(tmp_path: Path) -> None:
    """The pager reads its keys from the terminal; whoever started it waits for it, whatever is pressed."""
    pager = (
        'cat >/dev/null; trap "echo still here" INT; echo ready; read key </dev/tty; read key </dev/tty; echo "$key"'
    )
    helped = Bantam(tmp_path, "http://127.0.0.1:9/v1", 'exec "$@" help keys', PAGER=pager)
    try:
        helped.expect("ready")
        helped.send("\x03")
        helped.expect("still here")
        helped.send("over\r")
        helped.expect("over\r\nover")
        assert helped.end() == 0
    finally:
        helped.stop()
