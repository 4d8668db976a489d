"""Sessions and logs under `~/.bantam`: which there are, and how one is found, read, saved and gone on with.

Folders are 0700 and files 0600, whatever the umask. Links are not followed, and no id leaves its folder.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bantam.core import messages, tree
from bantam.core.base.problem import Problem
from bantam.core.base.record import dataclass
from bantam.core.base.settings import Config
from bantam.core.events import UserSaid
from bantam.core.messages import Messages
from bantam.core.past.history import Past
from bantam.core.past.lines import read, words
from bantam.core.window import context
from bantam.shell.disk import files, log
from bantam.shell.disk.files import StoreError, Wall
from bantam.shell.disk.log import Log

AUTOSAVE = "autosave"
BEGINNING_BYTES = 1_000_000  # of a log, to find the first words in
GLIMPSE_BYTES = 32_768  # of a session or a log, where its words are wanted at once
_SUMMARY = r'{"id": "[^"]*", "created": "[^"]*", "summary": ("(?:[^"\\]|\\.)*")'  # as `save` writes it
_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"


@dataclass(frozen=True)
class Saved:
    """What `/list` shows of a session; `count` is that of its messages, or None for a log, which is not read whole."""

    id: str
    created: str
    count: int | None
    summary: str


@dataclass(frozen=True)
class Resumed:
    """Where a run goes on from: the log of a run that ended somehow, or else a conversation."""

    id: str
    log: Log
    past: Past | None
    messages: Messages
    notice: str = ""


class Store:
    """What is kept under `root`; ids and dates are of the clock `wall`."""

    def __init__(self, root: Path, wall: Wall) -> None:
        self.sessions, self.logs = root / "sessions", root / "logs"
        self._root, self._wall = root, wall

    def new_log(self, config: Config, system: str, started: str = "") -> Log:
        return Log(self.logs, self.sessions, config, system, self._wall, started)

    # --- saving

    def save_new(self, said: Messages, summary: str) -> str:
        """Keep a conversation as a new session; returns its id."""
        files.private(self._root, self.sessions)
        for id in log.fresh_ids(self.logs, self._wall()):
            try:
                os.close(files.create(self.sessions / f"{id}.json"))  # reserves the name among all instances
            except FileExistsError:
                continue
            except OSError as problem:
                raise files.failed("save", self.sessions, problem) from None
            self.save(id, said, summary)
            return id
        raise AssertionError

    def save(self, id: str, said: Messages, summary: str) -> None:
        """Write a session, whole or not at all."""
        files.private(self._root, self.sessions)
        record = {
            "id": id,
            "created": files.stamp(self._wall()),
            "summary": summary,
            "messages": [*said],
        }
        path = self.sessions / f"{id}.json"
        try:
            files.write_whole(path, json.dumps(record, ensure_ascii=False).encode(errors="replace"), 0o600)
        except OSError as problem:
            raise files.failed("save", path, problem) from None

    def autosave(self, said: Messages) -> None:
        """Keep a copy of the conversation."""
        self.save(AUTOSAVE, said, first_words(said))

    def tidy(self) -> str:
        """At a start: away with what killed saves left, and with an autosave that is none; returns where to.

        A cut file, another program's, a folder: its bytes are kept. Only its ends are looked at, for a session may
        be large.
        """
        path = self.sessions / f"{AUTOSAVE}.json"
        try:
            files.sweep(self.sessions)
            if _looks_whole(path):
                return ""
            for id in log.fresh_ids(self.sessions, self._wall()):
                aside = self.sessions / f"{AUTOSAVE}-broken-{id}.json"
                if not aside.exists():
                    path.rename(aside)
                    return str(aside)
        except FileNotFoundError:
            pass
        except OSError as problem:
            raise files.failed("save", path, problem) from None
        return ""

    # --- finding

    def saved(self) -> list[Saved]:
        """All sessions that can be read, newest first."""
        found = []
        for path in _files(self.sessions, "*.json"):
            try:
                found.append(_row(path))
            except StoreError:
                continue
        return sorted(found, key=lambda saved: (saved.created, saved.id), reverse=True)

    def runs(self) -> list[Saved]:
        """The runs that have a log, newest first."""
        found = [_log_row(path) for path in _files(self.logs, "*.jsonl")]
        return sorted((row for row in found if row), key=lambda row: (row.created, row.id), reverse=True)

    def ids(self) -> list[str]:
        """The ids that `/load` takes: sessions, then logs."""
        return [p.stem for p in (*_files(self.sessions, "*.json"), *_files(self.logs, "*.jsonl"))]

    def words(self, id: str) -> str:
        """A few words about a session or a log, if they stand in its beginning; "" otherwise."""
        try:
            with open(files.open_regular(self.sessions / f"{id}.json"), "rb") as file:
                found = re.match(_SUMMARY, file.read(GLIMPSE_BYTES).decode(errors="replace"))
            return context.summary_line(json.loads(found[1])) if found else ""
        except (OSError, ValueError):
            row = _log_row(self.logs / f"{id}.jsonl", GLIMPSE_BYTES)
            return row.summary if row else ""

    def find(self, wanted: str, logs_only: bool = False) -> str | Problem:
        """The id that is `wanted`, or the only one that begins so."""
        if not re.fullmatch(_ID, wanted):
            return Problem(f"{wanted[:60]!r} is no session id; /list shows them")
        places = ((self.sessions, "*.json"), (self.logs, "*.jsonl"))  # what was saved on purpose first
        for folder, pattern in places[logs_only:]:
            known = sorted(path.stem for path in _files(folder, pattern))
            if wanted in known:
                return wanted
            begun = [id for id in known if id.startswith(wanted)]
            if len(begun) == 1:
                return begun[0]
            if begun:
                return Problem(f"{wanted} is the beginning of several sessions: {', '.join(begun[:10])}")
        return Problem(f"there is no session {wanted}; /list shows them")

    # --- reading

    def load(self, id: str) -> tuple[Messages, str]:
        """The messages of a session or a log as the file has them, and what could not be read. Raises StoreError."""
        path = self.sessions / f"{id}.json"
        if path.exists() or path.is_symlink():
            return tuple(_session(path)["messages"]), ""
        past = log.read(self.logs / f"{id}.jsonl")
        return tree.conversation(past.session), past.problem and f"the log {id} {past.problem}"

    def row(self, id: str) -> Saved:
        """What `/list ID` shows. Raises StoreError."""
        path = self.sessions / f"{id}.json"
        if path.exists() or path.is_symlink():
            return _row(path)
        past = log.read(self.logs / f"{id}.jsonl")
        said = tree.conversation(past.session)
        begun = _log_row(self.logs / f"{id}.jsonl")
        told = first_words(said) + (f"  [{words(past.damage)}]" if past.damage.count else "")
        return Saved(id, begun.created if begun else "", len(said) - 1, told)

    def resume(self, wanted: str, config: Config, system: str) -> Resumed | Problem:
        """What `--resume` goes on from: `wanted`, or what was written to last. Runs that still live are left alone."""
        if wanted:
            id = self.find(wanted)
            if isinstance(id, Problem):
                return Problem(f"--resume: {id.text}")
            try:
                return self._resumed(id, config, system)
            except StoreError as problem:
                return Problem(f"--resume: {problem}")
        for id in self._newest():
            try:
                found = self._resumed(id, config, system)
            except StoreError:
                continue
            if any(messages.role_of(m) != "system" for m in found.messages if isinstance(m, Mapping)):
                return found
        return Problem(f"--resume: nothing was kept yet under {self._root}")

    def _newest(self) -> Iterator[str]:
        found = [*_files(self.logs, "*.jsonl"), *_files(self.sessions, "*.json")]
        times = {path: _written(path) for path in found if path.stem != AUTOSAVE}
        yield from (path.stem for path in sorted(times, key=lambda path: times[path], reverse=True))
        yield AUTOSAVE  # a copy, and so the last resort

    def _resumed(self, id: str, config: Config, system: str) -> Resumed:
        fresh = self.new_log(config, system)
        path = self.sessions / f"{id}.json"
        if path.exists() or path.is_symlink():
            return Resumed(id, fresh, None, tuple(_session(path)["messages"]))
        past = fresh.go_on(id)
        said = tree.conversation(past.session)
        if not past.damage.count:
            return Resumed(id, fresh, past, said)
        where = self.logs / f"{id}.jsonl"
        notice = f"the log {where} {past.problem}; it stays as it is, and nothing is added to it"
        return Resumed(id, fresh, None, said, notice)


def first_words(said: Messages) -> str:
    """The first thing the user said, as a summary without a model."""
    return context.summary_line(next((messages.text_of(m) for m in said if messages.role_of(m) == "user"), ""))


def _session(path: Path) -> Mapping[str, Any]:
    try:
        record = json.loads(files.read_regular(path))
    except (OSError, ValueError, RecursionError) as problem:
        raise log.unreadable(path, problem) from None
    if isinstance(record, list):
        record = {"messages": record}
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        raise StoreError(f"cannot read {path}: it is not a saved session")
    return record


def _row(path: Path) -> Saved:
    record = _session(path)
    count = sum(messages.role_of(m) != "system" for m in record["messages"] if isinstance(m, dict))
    words = context.summary_line(str(record.get("summary") or ""))
    return Saved(path.stem, str(record.get("created") or ""), count, words)


def _log_row(path: Path, most: int = BEGINNING_BYTES) -> Saved | None:
    """A log by its header and the first thing that was said; None for what is no log."""
    try:
        with open(files.open_regular(path), "rb") as file:
            head, *rest = files.lines(file.read(most))
        created = json.loads(head)["created"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    told = (line.told[1] for line in read(rest, 2) if line.told)
    first = next((event.text for event in told if isinstance(event, UserSaid)), "")
    return Saved(path.stem, str(created), None, context.summary_line(first))


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


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        return [p for p in folder.glob(pattern) if re.fullmatch(_ID, p.stem) and p.is_file() and not p.is_symlink()]
    except OSError:
        return []
