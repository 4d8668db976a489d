"""`-o FILE`: the final answer in a file too, whole or not at all.

A device, a named pipe or `/dev/stdout` cannot be replaced, so it is written to.
"""

import os
import stat
from pathlib import Path

from bantam.core.words import status
from bantam.front.show.tell import complain
from bantam.shell.disk import files

STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")  # names of what is open, be it a file


def problem(name: str) -> str | None:
    """Why the answer could not be written there, as far as this can be known before anything runs."""
    try:
        why = _problem(name)
    except OSError as failed:
        why = failed.strerror or str(failed)
    return None if why is None else f"-o {name}: {why}"


def _problem(name: str) -> str | None:
    if name in ("", "-"):
        return "a file name is missing"
    path = Path(name)
    if path.is_dir() or name.endswith("/"):
        return "Is a directory"
    places = [path]
    if not _is_stream(path):
        folder = path.resolve().parent
        if not folder.is_dir():
            return f"there is no folder {folder}"
        places = [folder, path] if path.exists() else [folder]
    for place in places:
        if not os.access(place, os.W_OK):
            return "Permission denied" if place.exists() else "No such file"
    return None


def write(name: str, answer: str) -> int:
    """Write the answer as standard output gets it; returns the exit status, and says what went wrong."""
    path = Path(name)
    data = (answer if answer.endswith("\n") else answer + "\n").encode(errors="replace")
    try:
        if _is_stream(path):
            _append(path, data)
        else:
            path = path.resolve()  # a link stays one
            files.write_whole(path, data, _mode(path))
    except BrokenPipeError:
        return status.READER_GONE
    except OSError as failed:
        complain(f"cannot write {name}: {failed.strerror or failed}")
        return status.FAILED
    return 0


def _is_stream(path: Path) -> bool:
    return os.path.abspath(path).startswith(STREAMS) or (path.exists() and not path.is_file())


def _append(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY), "wb", buffering=0) as file:
        while data:
            data = data[file.write(data) :]


def _mode(path: Path) -> int:
    """The mode that a file keeps, or what the umask gives a new one."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0o077)
        os.umask(mask)
        return 0o666 & ~mask
