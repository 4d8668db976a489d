"""The log of a run on a real disk: written as things happen, gone on with, and kept by one run at a time."""

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bantam.core import tree
from bantam.core.base.settings import Config
from bantam.core.events import CommandEnded, Event, Interrupted, ModelChunks, ModelEnded, UserSaid
from bantam.core.state import Session
from bantam.shell.disk import log
from bantam.shell.disk.files import StoreError
from tests.kept import Log

CALL = {"index": 0, "id": "c", "function": {"name": "shell_exec", "arguments": '{"command": "ls"}'}}
EVENTS: tuple[Event, ...] = (
    UserSaid("hi \ud83e"),
    ModelChunks((1,), ({"choices": [{"delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]},)),
    ModelEnded((1,), marked=True),
    CommandEnded((2,), 0, "out"),
    Interrupted(),
)


def fresh(folder: Path, keep: int = 200) -> Log:
    return Log(folder / "logs", folder / "sessions", Config(logs_keep=keep), "s")


def logged(folder: Path, keep: int = 200) -> Log:
    made = fresh(folder, keep)
    for at, event in enumerate(EVENTS):
        made.append(at / 10, event)
    return made


def stepped(count: int) -> Session:
    session = tree.start(Config(), "s")
    for event in EVENTS[:count]:
        session, _ = tree.step(session, event, 0.0)
    return session


def path_of(folder: Path, made: Log) -> Path:
    return folder / "logs" / f"{made.id}.jsonl"


def test_a_log_folds_to_the_session_that_wrote_it(tmp_path: Path) -> None:
    past = log.read(path_of(tmp_path, logged(tmp_path)))
    assert (past.session, past.now, past.events, past.problem) == (stepped(5), 0.4, 5, "")


def test_no_log_is_made_before_something_happens(tmp_path: Path) -> None:
    fresh(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_old_logs_go_and_the_newest_and_those_of_living_runs_stay(tmp_path: Path) -> None:
    living = logged(tmp_path, keep=3)
    for _ in range(5):
        logged(tmp_path, keep=3).close()
    kept = list((tmp_path / "logs").iterdir())
    assert path_of(tmp_path, living) in kept
    assert len(kept) == 4


def test_a_new_log_is_kept_however_many_runs_make_room_at_once(tmp_path: Path) -> None:
    def run(_: int) -> list[bool]:
        kept = []
        for _ in range(30):
            made = fresh(tmp_path, keep=1)
            made.append(0.0, UserSaid("hi"))
            kept.append(path_of(tmp_path, made).exists())
            made.close()
        return kept

    with ThreadPoolExecutor(8) as pool:
        assert all(all(kept) for kept in pool.map(run, range(8)))


def test_a_run_goes_on_in_its_own_log_and_without_its_unfinished_line(tmp_path: Path) -> None:
    first = logged(tmp_path)
    first.close()
    path = path_of(tmp_path, first)
    with path.open("ab") as file:
        file.write(b'[0.5,{"type":"User')
    second = fresh(tmp_path)
    assert second.go_on(first.id).session == stepped(5)
    second.append(0.6, UserSaid("again"))
    second.close()
    past = log.read(path)
    assert (past.events, past.now, past.problem) == (6, 0.6, "")
    assert tree.conversation(past.session)[-1]["content"] == "again"


def test_a_run_that_lives_is_not_gone_on_with(tmp_path: Path) -> None:
    first = logged(tmp_path)
    with pytest.raises(StoreError, match="still open in another Bantam"):
        fresh(tmp_path).go_on(first.id)
    first.append(0.5, UserSaid("still here"))
    assert log.read(path_of(tmp_path, first)).events == 6


def test_nothing_is_added_to_a_damaged_log(tmp_path: Path) -> None:
    first = logged(tmp_path)
    first.close()
    path = path_of(tmp_path, first)
    whole = path.read_bytes() + b"garbage\n"
    path.write_bytes(whole)
    second = fresh(tmp_path)
    past = second.go_on(first.id)
    assert past.session == stepped(5)
    assert past.problem == "is damaged in line 7 (not JSON): 6 of its 7 lines are kept"
    second.append(0.1, UserSaid("elsewhere"))
    assert second.id != first.id
    assert path.read_bytes() == whole


@pytest.mark.parametrize("data", [b"", b"\n", b"3\n", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_log_is_one_line_and_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "x.jsonl").write_bytes(data)
    with pytest.raises(StoreError, match=r"cannot read .*x\.jsonl"):
        fresh(tmp_path).go_on("x")
    assert (tmp_path / "logs" / "x.jsonl").read_bytes() == data


def test_what_a_full_disk_did_not_take_is_written_later(tmp_path: Path) -> None:
    made = fresh(tmp_path)
    made.append(0.0, UserSaid("first"))
    size = path_of(tmp_path, made).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))  # a file system without more room
    try:
        for word in ("second", "third"):
            with pytest.raises(StoreError, match="cannot log under"):
                made.append(0.1, UserSaid(word))
            assert path_of(tmp_path, made).stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    made.append(0.2, UserSaid("fourth"))
    past = log.read(path_of(tmp_path, made))
    assert past.events == 4
    assert past.session.agents[()].queued == tuple(map(UserSaid, ("second", "third", "fourth")))


def test_a_disk_that_is_full_from_the_start_costs_no_old_log(tmp_path: Path) -> None:
    old = logged(tmp_path)
    old.close()
    made = fresh(tmp_path, keep=3)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        for word in ("first", "second", "third", "fourth"):
            with pytest.raises(StoreError, match="cannot log under"):
                made.append(0.1, UserSaid(word))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / "logs").iterdir()) == [path_of(tmp_path, old)]
    made.append(0.2, UserSaid("fifth"))
    assert log.read(path_of(tmp_path, made)).events == 5


def test_a_log_that_misses_too_much_ends(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")  # a file where the folder should be
    made = fresh(tmp_path)
    with pytest.raises(StoreError):
        made.append(0.0, UserSaid("x" * log.WAITING_BYTES_MAX))
    (tmp_path / "logs").unlink()
    made.append(0.1, UserSaid("y"))
    assert not (tmp_path / "logs").exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    first = logged(tmp_path)
    first.close()
    (tmp_path / "logs" / "link.jsonl").symlink_to(path_of(tmp_path, first))
    with pytest.raises(StoreError):
        fresh(tmp_path).go_on("link")
    assert os.path.islink(tmp_path / "logs" / "link.jsonl")
