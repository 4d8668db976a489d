"""Reads a file that goes along with a message. Never more of it than could go."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bantam.core.base.problem import Problem
from bantam.core.words import attach


def read(path: Path, name: str) -> Mapping[str, Any] | Problem:
    """The content part that a file becomes, or one line that says why it becomes none. `name` is what the user said."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return Problem(f"{name} is no file; nothing was attached")
            return attach.part(name, file.read(attach.BYTES_MAX + 1))
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else None
        return Problem(f"cannot read {name}: {why or problem}; nothing was attached")
