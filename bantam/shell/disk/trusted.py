"""Which endpoint the user trusts with the key, folder by folder: lines that are only appended, the last one counts."""

import json
import os
from pathlib import Path

from bantam.shell.disk import files
from bantam.shell.disk.files import StoreError

FILE = "trusted.jsonl"


def endpoint_of(home: Path, folder: Path) -> str:
    """The endpoint that the lines in `home` trust for a folder; "" for none. What cannot be read trusts nobody."""
    try:
        data = files.read_regular(home / FILE)
    except OSError:
        return ""
    found = ""
    for line in files.lines(data):
        try:
            where, endpoint = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        if where == _name(folder):
            found = str(endpoint)
    return found


def remember(home: Path, folder: Path, endpoint: str) -> None:
    """Trust an endpoint for a folder; "" to trust none any more. Raises StoreError."""
    path = home / FILE
    files.private(home)
    line = json.dumps([_name(folder), endpoint]).encode() + b"\n"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(fd, 0o600)
            files.write_all(fd, line)
        finally:
            os.close(fd)
    except OSError as problem:
        raise files.failed("save", path, problem) from None


def _name(folder: Path) -> str:
    return os.fsencode(folder.resolve()).decode(errors="replace")


__all__ = ["StoreError", "endpoint_of", "remember"]
