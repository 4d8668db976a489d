"""The user's own editor on a draft: $VISUAL, $EDITOR, or one that the system has.

Whatever goes wrong with it is one line, and the draft stays as it was.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from shutil import which

from bantam.core.base.problem import Problem

KNOWN = ("editor", "nano", "pico", "vi", "emacs")
KEPT = "the text stays as it was"


def edit(text: str, environ: Mapping[str, str]) -> str | Problem:
    """What the editor makes of a text. Waits for its end; the terminal must be its own meanwhile."""
    found = command(environ)
    if isinstance(found, Problem):
        return found
    path = ""
    try:
        data = text.encode(errors="surrogateescape")
        fd, path = tempfile.mkstemp(prefix="bantam-", suffix=".md")
        with open(fd, "wb") as file:
            file.write(data)
        return _run(found, path) or _read(path, data, text)
    except (OSError, UnicodeEncodeError) as why:
        return Problem(f"cannot edit it elsewhere: {getattr(why, 'strerror', None) or why}; {KEPT}")
    finally:
        with suppress(OSError):
            os.unlink(path)


def command(environ: Mapping[str, str]) -> list[str] | Problem:
    """The words of the command that edits: the user's own, be it wrong, before any other."""
    for name in ("VISUAL", "EDITOR"):
        if environ.get(name, "").strip():
            try:
                return shlex.split(environ[name])
            except ValueError as why:
                return Problem(f"{name}={environ[name]} cannot be read: {why}; {KEPT}")
    found = next((path for name in KNOWN if (path := which(name, path=environ.get("PATH")))), None)
    return [found] if found else Problem(f"there is no editor: EDITOR names one; {KEPT}")


def _run(words: list[str], path: str) -> Problem | None:
    try:
        code = subprocess.call([*words, path])
    except OSError as why:
        return Problem(f"cannot start the editor {words[0]}: {why.strerror or why}; {KEPT}")
    if code < 0:
        return Problem(f"the editor {words[0]} was ended by signal {-code}; {KEPT}")
    return Problem(f"the editor {words[0]} ended with status {code}; {KEPT}") if code else None


def _read(path: str, before: bytes, text: str) -> str | Problem:
    """What stands in the file now; the text itself where that is what was written."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as why:
        return Problem(f"the editor left no text: {why.strerror or why}; {KEPT}")
    if data == before:
        return text
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    except UnicodeDecodeError:
        return Problem(f"the editor left a text that is not UTF-8; {KEPT}")
