"""Files for the user alone: made 0600 whatever the umask, replaced whole or not at all, never through a link."""

import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

Wall = Callable[[], float]
"""A clock: seconds of the epoch."""


class StoreError(Exception):
    """A file could not be written or read; the text is one line for the user.

    `path` and `number`, the system's, are the cause of what could not be written; 0 where it was something else.
    """

    def __init__(self, text: str, path: Path = Path(), number: int = 0) -> None:
        super().__init__(text)
        self.path, self.number = path, number


def failed(what: str, path: Path, problem: OSError) -> StoreError:
    return StoreError(f"cannot {what} under {path}: {problem.strerror or problem}", path, problem.errno or 0)


def stamp(seconds: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time of the epoch as people here would write it."""
    return time.strftime(form, time.localtime(seconds))


def write_whole(path: Path, data: bytes, mode: int) -> None:
    """Replace a file by a new one: temporary file, flush to disk, rename. Raises OSError; no half is ever seen."""
    spare, fd = _spare(path.parent, mode)
    try:
        try:
            write_all(fd, data)
            os.fsync(fd)
            spare.replace(path)
        finally:
            os.close(fd)
    except BaseException:
        spare.unlink(missing_ok=True)
        raise


def _spare(folder: Path, mode: int) -> tuple[Path, int]:
    """A temporary file that is held, so that nobody sweeps it away; each has a name that no other ever had."""
    while True:
        spare = folder / f".bantam-{os.urandom(8).hex()}.tmp"  # a process id would not do: containers share homes
        fd = create(spare, mode=mode)
        if lock(fd):
            return spare, fd
        os.close(fd)  # a sweep was faster, and removes it


def sweep(folder: Path) -> None:
    """Remove the temporary files of saves that were killed; one that is being written is held."""
    for spare in folder.glob(".*.tmp"):
        with suppress(OSError):
            fd = os.open(spare, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if lock(fd, otherwise=False):
                    spare.unlink()
            finally:
                os.close(fd)


def create(path: Path, flags: int = 0, mode: int = 0o600) -> int:
    """A new file to write to. Raises FileExistsError where there is one already."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | flags, mode)
    os.fchmod(fd, mode)
    return fd


def lock(fd: int, otherwise: bool = True) -> bool:
    """Hold an open file until it is closed; False if another process holds it, or has removed it.

    `otherwise` is the answer of a file system without locks. Only who holds a file removes it, so it has its name
    as long as it is held.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return otherwise
    return os.fstat(fd).st_nlink > 0


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """An existing file, no link and no device. Raises OSError."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("not a regular file")
    return fd


def read_regular(path: Path) -> bytes:
    with open(open_regular(path), "rb") as file:
        return file.read()


def private(*folders: Path) -> None:
    """Make the folders, for the user alone. Raises StoreError."""
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if stat.S_IMODE(folder.stat().st_mode) != 0o700:
                folder.chmod(0o700)
        except OSError as problem:
            raise failed("save", folder, problem) from None


def json_line(value: Any) -> bytes:
    """A JSON value as one line, with its end."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace") + b"\n"


def write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def lines(data: bytes) -> Iterator[bytes]:
    """The lines of a file, each with its end; only LF ends one."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end
