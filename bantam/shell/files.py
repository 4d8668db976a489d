"""Files for the user alone: made 0600 whatever the umask, replaced whole or not at all, never through a link."""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

SPARE_S = 3600.0  # age of a temporary file that nobody will finish


class StoreError(Exception):
    """A file could not be written or read; the text is one line for the user."""


def failed(what: str, path: Path, problem: OSError) -> StoreError:
    return StoreError(f"cannot {what} under {path}: {problem.strerror or problem}")


def write_whole(path: Path, data: bytes, mode: int) -> None:
    """Replace a file by a new one: temporary file, flush to disk, rename. Raises OSError; no half is ever seen."""
    spare = path.with_name(f".bantam-{os.urandom(8).hex()}.tmp")  # a process id would not do: containers share homes
    fd = create(spare, mode=mode)
    try:
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        spare.replace(path)
    except BaseException:
        spare.unlink(missing_ok=True)
        raise


def sweep(folder: Path) -> None:
    """Remove the temporary files of saves that were killed: a save takes moments, not an hour."""
    for spare in folder.glob(".*.tmp"):
        with suppress(OSError):
            if time.time() - spare.lstat().st_mtime > SPARE_S:
                spare.unlink()


def create(path: Path, flags: int = 0, mode: int = 0o600) -> int:
    """A new file to write to. Raises FileExistsError where there is one already."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | flags, mode)
    os.fchmod(fd, mode)
    return fd


def lock(fd: int) -> bool:
    """Hold an open file until it is closed; False if another process holds it, or has removed it.

    True where locks do not exist. Only who holds a file removes it, so its name is its own as long as it is held.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
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
