"""Sessions and logs on a real disk."""

import json
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bantam.core import messages
from bantam.core.base.problem import Problem
from bantam.core.base.settings import Config
from bantam.core.events import Interrupted, UserSaid
from bantam.shell.disk import files
from bantam.shell.disk.files import StoreError, write_whole
from bantam.shell.disk.store import GLIMPSE_BYTES, Resumed
from tests.kept import Store

SAID = (messages.system("s"), messages.user("hello there"), messages.assistant("hi"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_session_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    store = Store(tmp_path / "home")
    id = store.save_new(SAID, "greetings")
    assert store.load(id) == (SAID, "")
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
        store.new_log(Config(), "s").append(0, UserSaid("x"))
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


def test_the_words_of_a_session_or_a_log_are_those_of_its_beginning(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save("saved", (*SAID, {"role": "user", "content": "x" * 10 * GLIMPSE_BYTES}), 'all "about"\\ it é')
    log = store.new_log(Config(), "s")
    log.append(0, UserSaid("first words"))
    (store.sessions / "broken.json").write_text('{"id": "broken", "created": "", "summary": "cut')
    assert store.words("saved") == 'all "about"\\ it é'
    assert store.words(log.id) == "first words"
    assert store.words("broken") == store.words("none") == ""


def test_the_beginning_of_a_session_is_not_confused_with_the_log_of_its_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    log = store.new_log(Config(), "s")
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
    Store(tmp_path / "home").new_log(Config(), "s")
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
    aside = Path(store.tidy())
    assert aside.is_dir() if data is None else aside.read_bytes() == data
    store.autosave(SAID)
    assert store.load("autosave") == (SAID, "")
    assert store.tidy() == Store(tmp_path).tidy() == ""


def test_what_killed_saves_left_is_swept_and_a_save_at_work_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.autosave(SAID)
    left, busy = (store.sessions / f".bantam-{n}.tmp" for n in "ab")
    left.write_bytes(b"{")
    fd = files.create(busy)
    assert files.lock(fd)
    store.tidy()
    assert sorted(p.name for p in store.sessions.iterdir()) == [busy.name, "autosave.json"]
    os.close(fd)
    store.tidy()
    assert [p.name for p in store.sessions.iterdir()] == ["autosave.json"]


def test_a_save_is_never_swept_away_whenever_it_begins(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        over = threading.Event()
        sweeping = [pool.submit(_sweep_until, over, tmp_path) for _ in range(2)]
        try:
            for _ in range(300):
                write_whole(tmp_path / "a", b"one", 0o600)
        finally:
            over.set()
        assert all(sweeper.result() is None for sweeper in sweeping)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def _sweep_until(over: threading.Event, folder: Path) -> None:
    while not over.is_set():
        files.sweep(folder)


def test_a_name_as_long_as_names_may_be_can_be_replaced(tmp_path: Path) -> None:
    write_whole(tmp_path / ("n" * 255), b"one", 0o600)
    assert (tmp_path / ("n" * 255)).read_bytes() == b"one"


# --- which one --resume takes


def test_the_newest_is_resumed_and_a_run_that_lives_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert isinstance(store.resume("", Config(), "s"), Problem)
    store.autosave(SAID)
    assert resumed(store).id == "autosave"
    saved = store.save_new(SAID, "")
    os.utime(store.sessions / f"{saved}.json", (1, 1))
    old, new = (finished(store, word) for word in ("one", "two"))
    os.utime(store.logs / f"{old}.jsonl", (2, 2))
    found = resumed(store)
    assert (found.id, found.messages[1]["content"]) == (new, "two")
    assert resumed(store).id == old  # for `found` holds the other one
    busy = store.resume(new, Config(), "s")
    assert busy == Problem(f"--resume: {new} is still open in another Bantam")
    found.log.close()
    assert resumed(store, new).id == new
    assert resumed(store, saved).messages == SAID


def test_a_log_without_a_word_is_not_what_is_resumed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    told = finished(store, "x")
    os.utime(store.logs / f"{told}.jsonl", (1, 1))
    log = store.new_log(Config(), "s")
    log.append(0, Interrupted())
    log.close()
    assert resumed(store).id == told


def resumed(store: Store, wanted: str = "") -> Resumed:
    found = store.resume(wanted, Config(), "s")
    assert isinstance(found, Resumed)
    return found


def finished(store: Store, word: str) -> str:
    """The id of a run that has ended."""
    log = store.new_log(Config(), "s")
    log.append(0, UserSaid(word))
    log.close()
    return log.id


def test_past_runs_are_listed_by_their_first_words(tmp_path: Path) -> None:
    store = Store(tmp_path)
    id = finished(store, "hello\nworld")
    (store.logs / "broken.jsonl").write_text("{")
    (row,) = store.runs()
    assert (row.id, row.count, row.summary) == (id, None, "hello world")
    assert store.row(id).count == 1
