"""The event log of one run: one JSON line an event, written as it happens. The file is made with the first.

It is locked as long as the run lives, so that nobody goes on with a run that has not ended.
"""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bantam.core.base.settings import Config
from bantam.core.events import Event
from bantam.core.past import history
from bantam.core.past.history import Past
from bantam.shell.disk import files
from bantam.shell.disk.files import StoreError, Wall

WAITING_BYTES_MAX = 16_000_000  # of events that a full disk did not take


class Log:
    """`folder` has the logs; no id is used that a file of `sessions` has. Ids are times of the clock `wall`."""

    def __init__(
        self, folder: Path, sessions: Path, config: Config, system: str, wall: Wall, started: str = ""
    ) -> None:
        self._folder, self._sessions, self._wall = folder, sessions, wall
        self._config, self._system, self._started = config, system, started
        self._fd: int | None = None
        self._size = 0
        self._waiting: list[bytes] = []
        self._is_over = False
        self.id = ""

    def append(self, now: float, event: Event) -> None:
        """Add one event. Raises StoreError; what the disk did not take is written with a later event."""
        if self._is_over:
            return
        self._waiting.append(files.json_line(history.line(now, event)))
        data = b"".join(self._waiting)
        try:
            self._fd = self._open() if self._fd is None else self._fd
            self._write(self._fd, data)
        except (OSError, StoreError) as problem:
            if len(data) > WAITING_BYTES_MAX:  # a log with a gap could not be read, so it ends here
                self._is_over, self._waiting = True, []
            raise files.failed("log", self._folder, problem) if isinstance(problem, OSError) else problem from None
        self._waiting.clear()

    def go_on(self, id: str) -> Past:
        """Take the log of a run that has ended, and what it tells. Raises StoreError.

        A damaged one is only read: events go into a new one.
        """
        path = self._folder / f"{id}.jsonl"
        try:
            fd = files.open_regular(path, os.O_RDWR | os.O_APPEND)
        except OSError as problem:
            raise unreadable(path, problem) from None
        try:
            if not files.lock(fd):
                raise StoreError(f"{id} is still open in another Bantam")
            with open(fd, "rb", closefd=False) as file:
                data = file.read()
            past = history.fold(files.lines(data))
            whole = data.rfind(b"\n") + 1
            if past.damage.count:
                os.close(fd)  # it stays as it is, for whoever can read more in it
                return past
            if whole < len(data):
                os.ftruncate(fd, whole)
        except (OSError, ValueError, TypeError, RecursionError) as problem:
            os.close(fd)
            raise unreadable(path, problem) from None
        except StoreError:
            os.close(fd)
            raise
        self._fd, self._size, self.id = fd, whole, id
        return past

    def close(self) -> None:
        """Let go of the file; another run may go on with it now."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._is_over = None, True

    def _open(self) -> int:
        files.private(self._folder.parent, self._folder)
        self._make_room()
        for id in fresh_ids(self._sessions, self._wall()):
            path = self._folder / f"{id}.jsonl"
            try:
                fd = files.create(path, os.O_APPEND)
            except FileExistsError:
                continue
            if not files.lock(fd):  # between the two, a run that makes room took it
                os.close(fd)
                continue
            self.id = id
            created = files.stamp(self._wall())
            try:
                header = history.header(id, created, self._started, self._system, self._config)
                self._write(fd, files.json_line(header))
            except OSError:
                path.unlink(missing_ok=True)  # each event tries again; their files would drive out real logs
                os.close(fd)
                raise
            return fd
        raise AssertionError

    def _write(self, fd: int, data: bytes) -> None:
        try:
            files.write_all(fd, data)
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, self._size)  # no half of a line
            raise
        self._size += len(data)

    def _make_room(self) -> None:
        """Remove the oldest logs; not those of runs that still live."""
        old = sorted(self._folder.glob("*.jsonl"), key=lambda path: path.stem)
        for path in old[: max(0, len(old) + 1 - max(1, self._config.logs_keep))]:
            with suppress(OSError):
                fd = files.open_regular(path)
                try:
                    if files.lock(fd):
                        path.unlink()
                finally:
                    os.close(fd)


def read(path: Path) -> Past:
    """What a log tells. Raises StoreError."""
    try:
        return history.fold(files.lines(files.read_regular(path)))
    except (OSError, ValueError, TypeError, RecursionError) as problem:
        raise unreadable(path, problem) from None


def unreadable(path: Path, problem: Exception) -> StoreError:
    why = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
    return StoreError(f"cannot read {path}: {why}")


def fresh_ids(other: Path, seconds: float) -> Iterator[str]:
    """The second of that time, then the same with -1, -2, …; none that a file of the `other` folder has."""
    now = files.stamp(seconds, "%Y%m%d-%H%M%S")
    for number in itertools.count():
        id = f"{now}-{number}" if number else now
        if not any((other / f"{id}{kind}").exists() for kind in (".json", ".jsonl")):
            yield id
