"""The place of this process: its folder, environment and clock. Nothing below the front ends asks for them."""

import os
import time
from pathlib import Path

from bantam.core.base.problem import Problem
from bantam.host import place
from bantam.host.place import Clock, Place

CLOCK = Clock(time.monotonic, time.time)


def here() -> Place:
    """Where this process stands now."""
    return place.at(_folder(), os.environ, CLOCK)


def work_in(folder: str) -> Problem | None:
    """Work in another folder (`-C`)."""
    try:
        os.chdir(folder)
    except OSError as problem:
        return Problem(f"-C {folder}: {problem.strerror or problem}")
    return None


def _folder() -> Path:
    """The working folder, by the name that the user knows it by, be there a link in that."""
    named = os.environ.get("PWD", "")
    try:
        if os.path.isabs(named) and named == os.path.normpath(named) and os.path.samefile(named, "."):
            return Path(named)
        return Path.cwd()
    except OSError:  # it was removed, or is beyond what may be read
        return Path()
