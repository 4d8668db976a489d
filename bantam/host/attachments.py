"""What goes along with the next message: files that were named before it, and those that it names itself."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bantam.core.base.problem import Problem
from bantam.host.place import Place

Part = Mapping[str, Any]
Parts = tuple[Part, ...]
AROUND = ",.;:!?)]}'\""  # signs that may follow a path in a sentence


def read(place: Place, names: Sequence[str]) -> Parts | Problem:
    """The parts that files become, or what is wrong with the first that cannot go."""
    parts: list[Part] = []
    for name in names:
        part = _part(_path(place, name), name)
        if isinstance(part, Problem):
            return part
        parts.append(part)
    return tuple(parts)


class Attachments:
    """Those of one conversation. `mentions`: `@path` in what is said names a file, since a person types it."""

    def __init__(self, place: Place, waiting: Parts = ()) -> None:
        self._place, self._waiting = place, waiting
        self.mentions = False

    def add(self, name: str) -> Problem | None:
        """Have a file go along with the next message."""
        parts = read(self._place, (name,))
        if isinstance(parts, Problem):
            return parts
        self._waiting += parts
        return None

    def take(self, text: str) -> Parts | Problem:
        """What goes along with this text, once; with a problem nothing goes, and what waits goes on waiting."""
        named = read(self._place, self._mentioned(text)) if self.mentions else ()
        if isinstance(named, Problem):
            return named
        waiting, self._waiting = self._waiting, ()
        return waiting + named

    def give_back(self, parts: Parts) -> None:
        """They went nowhere, since what they were to go with was not said."""
        self._waiting = parts + self._waiting

    def _mentioned(self, text: str) -> list[str]:
        """The files that a text names. What is no file and has no `/` is a word, such as the name of somebody."""
        from bantam.core.words import attach

        found = []
        for name in attach.mentions(text):
            tried = next((n for n in (name, name.rstrip(AROUND)) if n and _path(self._place, n).is_file()), None)
            if tried is not None or "/" in name.rstrip(AROUND):
                found.append(tried or name)
        return found


def _path(place: Place, name: str) -> Path:
    """The file that a user's name for it means; `~` is the user's home."""
    return place.user_home / name.removeprefix("~/") if name.startswith("~/") else place.path(name)


def _part(path: Path, name: str) -> Mapping[str, Any] | Problem:
    """The content part that a file becomes, or one line that says why it becomes none. `name` is what the user said.

    Never more of it is read than could go, and nothing is waited for.
    """
    from bantam.core.words import attach  # seldom needed

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return Problem(f"{name} is no file; nothing was attached")
            return attach.part(name, file.read(attach.BYTES_MAX + 1))
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else None
        return Problem(f"cannot read {name}: {why or problem}; nothing was attached")
