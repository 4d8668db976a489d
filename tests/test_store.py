"""Sessions and logs on a real disk."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import messages, tree
from bantam.core.config import Problem
from bantam.core.events import CommandEnded, Event, Interrupted, ModelChunks, ModelEnded, UserSaid
from bantam.core.settings import Config
from bantam.shell.store import Log, Store, StoreError, fold, write_whole

SAID = (messages.system("s"), messages.user("hello there"), messages.assistant("hi"))
CALL = {"index": 0, "id": "c", "function": {"name": "shell_exec", "arguments": '{"command": "ls"}'}}
EVENTS: tuple[Event, ...] = (
    UserSaid("hi \ud83e"),
    ModelChunks((1,), ({"choices": [{"delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]},)),
    ModelEnded((1,), marked=True),
    CommandEnded((2,), 0, "out"),
    Interrupted(),
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_session_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    id = store.save_new(SAID, "greetings")
    assert store.load(id) == SAID
    assert [(s.id, s.count, s.summary) for s in store.saved()] == [(id, 2, "greetings")]


def test_sessions_of_one_second_get_different_ids(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert len({store.save_new(SAID, "") for _ in range(5)}) == 5


@pytest.mark.parametrize("mask", [0o022, 0o000, 0o077, 0o777])
def test_only_the_user_may_read_what_is_kept(tmp_path: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        store = Store(tmp_path / "home")
        store.autosave(SAID)
        (store.sessions / "autosave.json").chmod(0o644)
        store.autosave(SAID)
        Log(store, Config(), "s").append(0, UserSaid("x"))
    finally:
        os.umask(old)
    assert [mode(p) for p in (tmp_path / "home", store.sessions, store.logs)] == [0o700] * 3
    assert [mode(p) for p in (*store.sessions.iterdir(), *store.logs.iterdir())] == [0o600] * 2


def test_an_id_is_found_by_a_unique_beginning(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for id in ("20260101-000000", "20260102-000000"):
        store.save(id, SAID, "")
    assert store.find("20260101") == "20260101-000000"
    ambiguous = store.find("2026")
    assert isinstance(ambiguous, Problem)
    assert "20260101-000000, 20260102-000000" in ambiguous.text


def test_the_beginning_of_a_session_is_not_confused_with_the_log_of_its_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = Log(store, Config(), "s")
    log.append(0, UserSaid("x"))
    store.save("20990101-000000", SAID, "")
    assert store.find("20") == "20990101-000000"
    assert store.find(log.id) == log.id


@pytest.mark.parametrize(
    "id", ["../x", "../../etc/hostname", "/etc/hostname", "a/../../x", "..", "", "a\0b", "x" * 300, "-rf", "none"]
)
def test_no_id_leaves_the_folder(tmp_path: Path, id: str) -> None:
    store = Store(tmp_path)
    store.autosave(SAID)
    (tmp_path / "x.json").write_text(json.dumps({"messages": []}))
    assert isinstance(store.find(id), Problem)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    store.autosave(SAID)
    (tmp_path / "secret.json").write_text(json.dumps({"messages": [{"role": "user", "content": "secret"}]}))
    (store.sessions / "link.json").symlink_to(tmp_path / "secret.json")
    assert isinstance(store.find("link"), Problem)
    with pytest.raises(StoreError):
        store.load("link")


@pytest.mark.parametrize("data", [b"", b"{", b"\0" * 5000, b'{"messages": 3}', b"3", b"[" * 100_000, b"\xff"])
def test_a_broken_session_is_one_line_and_no_crash(tmp_path: Path, data: bytes) -> None:
    store = Store(tmp_path)
    store.autosave(SAID)
    (store.sessions / "autosave.json").write_bytes(data)
    with pytest.raises(StoreError, match=r"cannot read .*autosave\.json"):
        store.load("autosave")
    assert store.saved() == []


def test_an_unwritable_home_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot save"):
        Store(tmp_path / "file" / "home").autosave(SAID)


def test_a_file_is_replaced_whole_and_leaves_no_spare(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"one", 0o600)
    write_whole(tmp_path / "a", b"two", 0o640)
    assert (tmp_path / "a").read_bytes() == b"two"
    assert mode(tmp_path / "a") == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def logged(folder: Path, keep: int = 200) -> tuple[Store, Log]:
    store = Store(folder)
    log = Log(store, Config(logs_keep=keep), "s")
    for at, event in enumerate(EVENTS):
        log.append(at / 10, event)
    return store, log


def stepped(count: int) -> Any:
    session = tree.start(Config(), "s")
    for event in EVENTS[:count]:
        session, _ = tree.step(session, event, 0.0)
    return session


def test_a_log_folds_to_the_session_that_wrote_it(tmp_path: Path) -> None:
    store, log = logged(tmp_path)
    lines = (store.logs / f"{log.id}.jsonl").read_bytes().splitlines()
    assert fold(lines) == stepped(len(EVENTS))
    assert store.load(log.id) == tree.conversation(stepped(len(EVENTS)))


@given(st.data())
def test_a_log_cut_anywhere_loses_at_most_the_unfinished_event(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    store, log = logged(tmp_path_factory.mktemp("log"))
    whole = (store.logs / f"{log.id}.jsonl").read_bytes()
    start = whole.index(b"\n") + 1
    cut = data.draw(st.integers(start, len(whole)))
    finished = whole[:cut].count(b"\n") - 1
    got = fold(whole[:cut].splitlines())
    assert got in (stepped(finished), stepped(min(finished + 1, len(EVENTS))))


def test_old_logs_go_and_the_newest_stay(tmp_path: Path) -> None:
    for _ in range(5):
        store, _ = logged(tmp_path, keep=3)
    assert len(list(store.logs.iterdir())) == 3


def test_a_file_that_cannot_be_replaced_leaves_no_spare(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "a", b"one", 0o600)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    store.sessions.mkdir(parents=True, mode=0o755)
    store.autosave(SAID)
    assert [mode(p) for p in (tmp_path / "home", store.sessions)] == [0o700] * 2


def test_no_log_is_made_before_something_happens(tmp_path: Path) -> None:
    Log(Store(tmp_path / "home"), Config(), "s")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "data", [b"", b'{"id": "autosave", "messages": [{"ro', b"\0" * 5000, b"[]", b'{"messages": 3}', None]
)
def test_a_broken_autosave_is_put_aside_and_not_lost(tmp_path: Path, data: bytes | None) -> None:
    store = Store(tmp_path)
    place = store.sessions / "autosave.json"
    store.sessions.mkdir(parents=True)
    if data is None:
        place.mkdir()
    else:
        place.write_bytes(data)
    aside = Path(store.autosave(SAID))
    assert aside.is_dir() if data is None else aside.read_bytes() == data
    assert store.load("autosave") == SAID
    assert store.autosave(SAID) == ""
    assert Store(tmp_path).autosave(SAID) == ""
