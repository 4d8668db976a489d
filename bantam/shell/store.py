"""Sessions and logs under `~/.bantam`: snapshots written whole or not at all, logs only appended to.

Folders are 0700 and files 0600, whatever the umask. Links are not followed, and no id leaves its folder.
"""

import itertools
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bantam.core import codec, context, messages, tree
from bantam.core.config import Problem
from bantam.core.events import Event
from bantam.core.messages import Messages
from bantam.core.record import dataclass
from bantam.core.settings import Config
from bantam.core.state import Session

AUTOSAVE = "autosave"
LOG_VERSION = 1
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class StoreError(Exception):
    """A file could not be written or read; the text is one line for the user."""


@dataclass(frozen=True)
class Saved:
    """What `/list` shows of a session."""

    id: str
    created: str
    count: int
    summary: str


def home() -> Path:
    """Where everything is kept: BANTAM_HOME, or `.bantam` in HOME."""
    return Path(os.environ.get("BANTAM_HOME") or Path.home() / ".bantam")


class Store:
    def __init__(self, root: Path) -> None:
        self.sessions, self.logs = root / "sessions", root / "logs"
        self._root = root
        self._autosaved = False

    def save_new(self, said: Messages, summary: str) -> str:
        """Keep a conversation as a new session; returns its id."""
        _folder(self._root, self.sessions)
        for id in _fresh_ids(self.logs):
            try:
                os.close(_create(self.sessions / f"{id}.json"))  # reserves the name among all instances
            except FileExistsError:
                continue
            except OSError as problem:
                raise _failed("save", self.sessions, problem) from None
            self.save(id, said, summary)
            return id
        raise AssertionError

    def save(self, id: str, said: Messages, summary: str) -> None:
        """Write a session, whole or not at all."""
        _folder(self._root, self.sessions)
        record = {
            "id": id,
            "created": time.strftime("%Y-%m-%d %H:%M:%S"),
            "summary": summary,
            "messages": said,
        }
        path = self.sessions / f"{id}.json"
        try:
            write_whole(path, json.dumps(record, ensure_ascii=False).encode(errors="replace"), 0o600)
        except OSError as problem:
            raise _failed("save", path, problem) from None

    def autosave(self, said: Messages) -> str:
        """Keep a copy of the conversation; returns where something that was no autosave was put, or nothing."""
        aside = "" if self._autosaved else self._set_aside()
        self._autosaved = True
        self.save(AUTOSAVE, said, first_words(said))
        return aside

    def _set_aside(self) -> str:
        """Move away what is not ours at the autosave's place, once a run: a cut file, another program's, a folder.

        Only its ends are looked at, for a session may be large.
        """
        path = self.sessions / f"{AUTOSAVE}.json"
        try:
            if _looks_whole(path):
                return ""
            _folder(self._root, self.sessions)
            for id in _fresh_ids(self.sessions):
                aside = self.sessions / f"{AUTOSAVE}-broken-{id}.json"
                if not aside.exists():
                    path.rename(aside)
                    return str(aside)
        except FileNotFoundError:
            pass
        except OSError as problem:
            raise _failed("save", path, problem) from None
        return ""

    def saved(self) -> list[Saved]:
        """All sessions that can be read, newest first."""
        found = []
        for path in _files(self.sessions, "*.json"):
            try:
                record = _session(path)
            except StoreError:
                continue
            count = sum(messages.role_of(m) != "system" for m in record["messages"] if isinstance(m, dict))
            words = context.summary_line(str(record.get("summary") or ""))
            found.append(Saved(path.stem, str(record.get("created") or ""), count, words))
        return sorted(found, key=lambda saved: (saved.created, saved.id), reverse=True)

    def ids(self) -> list[str]:
        """The ids that `/load` takes: sessions, then logs."""
        return [p.stem for p in (*_files(self.sessions, "*.json"), *_files(self.logs, "*.jsonl"))]

    def find(self, wanted: str) -> str | Problem:
        """The id that is `wanted`, or the only one that begins so."""
        if not _ID.fullmatch(wanted):
            return Problem(f"{wanted[:60]!r} is no session id; /list shows them")
        for folder, pattern in ((self.sessions, "*.json"), (self.logs, "*.jsonl")):  # what was saved on purpose first
            known = sorted(path.stem for path in _files(folder, pattern))
            if wanted in known:
                return wanted
            begun = [id for id in known if id.startswith(wanted)]
            if len(begun) == 1:
                return begun[0]
            if begun:
                return Problem(f"{wanted} is the beginning of several sessions: {', '.join(begun[:10])}")
        return Problem(f"there is no session {wanted}; /list shows them")

    def load(self, id: str) -> Messages:
        """The messages of a session or a log, as the file has them. Raises StoreError."""
        path = self.sessions / f"{id}.json"
        if path.exists() or path.is_symlink():
            return tuple(_session(path)["messages"])
        log = self.logs / f"{id}.jsonl"
        try:
            session = fold(_read(log).splitlines())
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as problem:
            raise StoreError(f"cannot read {log}: {problem}") from None
        return tree.conversation(session)


class Log:
    """The events of one run, one JSON line each, written as they happen. The file is made with the first."""

    def __init__(self, store: Store, config: Config, system: str) -> None:
        self._store, self._config, self._system = store, config, system
        self._fd: int | None = None
        self.id = ""

    def append(self, now: float, event: Event) -> None:
        """Add one event. Raises StoreError; what was written before stays."""
        try:
            if self._fd is None:
                self._fd = self._open()
            _write_all(self._fd, _line([round(now, 6), codec.encode(event)]))
        except OSError as problem:
            raise _failed("log", self._store.logs, problem) from None

    def _open(self) -> int:
        folder = self._store.logs
        _folder(folder.parent, folder)
        old = sorted(_files(folder, "*.jsonl"), key=lambda path: path.name)
        for path in old[: max(0, len(old) + 1 - max(1, self._config.logs_keep))]:
            path.unlink(missing_ok=True)
        for id in _fresh_ids(self._store.sessions):
            try:
                fd = _create(folder / f"{id}.jsonl", os.O_APPEND)
            except FileExistsError:
                continue
            self.id = id
            header = {"bantam_log": LOG_VERSION, "id": id, "created": time.strftime("%Y-%m-%d %H:%M:%S")}
            _write_all(fd, _line(header | {"system": self._system, "config": codec.encode(self._config)}))
            return fd
        raise AssertionError


def fold(lines: list[bytes]) -> Session:
    """The session that a log's lines tell of; an unfinished last line does not count. Raises ValueError."""
    if not lines:
        raise ValueError("it is empty")
    header = json.loads(lines[0])
    if not isinstance(header, dict) or header.get("bantam_log") != LOG_VERSION:
        raise ValueError("it is not a log of this version")
    session = tree.start(codec.decode(header["config"]), header["system"])
    for at, line in enumerate(lines[1:], 2):
        try:
            now, event = json.loads(line)
        except ValueError:
            if at == len(lines):
                break
            raise
        session, _ = tree.step(session, codec.decode(event), now)
    return session


def first_words(said: Messages) -> str:
    """The first thing the user said, as a summary without a model."""
    return context.summary_line(next((messages.text_of(m) for m in said if messages.role_of(m) == "user"), ""))


def write_whole(path: Path, data: bytes, mode: int) -> None:
    """Replace a file by a new one: temporary file, flush to disk, rename. Raises OSError; no half is ever seen."""
    spare = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    spare.unlink(missing_ok=True)
    fd = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        try:
            os.fchmod(fd, mode)
            _write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        spare.replace(path)
    except BaseException:
        spare.unlink(missing_ok=True)
        raise


def _session(path: Path) -> Mapping[str, Any]:
    try:
        record = json.loads(_read(path))
    except (OSError, ValueError, RecursionError) as problem:
        raise StoreError(f"cannot read {path}: {problem}") from None
    if isinstance(record, list):
        record = {"messages": record}
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        raise StoreError(f"cannot read {path}: it is not a saved session")
    return record


def _looks_whole(path: Path) -> bool:
    """Whether a file begins and ends as `save` writes it. Raises OSError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    try:
        info = os.fstat(fd)
        whole = stat.S_ISREG(info.st_mode) and info.st_size > 20
        return whole and os.pread(fd, 8, 0) == b'{"id": "' and os.pread(fd, 2, info.st_size - 2) == b"]}"
    finally:
        os.close(fd)


def _read(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("not a regular file")
        return file.read()


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        return [p for p in folder.glob(pattern) if _ID.fullmatch(p.stem) and p.is_file() and not p.is_symlink()]
    except OSError:
        return []


def _folder(*folders: Path) -> None:
    """Make the folders, for the user alone."""
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if stat.S_IMODE(folder.stat().st_mode) != 0o700:
                folder.chmod(0o700)
        except OSError as problem:
            raise _failed("save", folder, problem) from None


def _fresh_ids(other: Path) -> Iterator[str]:
    """The present second, then the same with -1, -2, …; none that a file of the `other` folder has."""
    now = time.strftime("%Y%m%d-%H%M%S")
    for number in itertools.count():
        id = f"{now}-{number}" if number else now
        if not any((other / f"{id}{kind}").exists() for kind in (".json", ".jsonl")):
            yield id


def _create(path: Path, flags: int = 0) -> int:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | flags, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace") + b"\n"


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _failed(what: str, path: Path, problem: OSError) -> StoreError:
    return StoreError(f"cannot {what} under {path}: {problem.strerror or problem}")
