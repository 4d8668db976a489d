"""Where a conversation stands: all that it would otherwise have from the process it runs in.

Two conversations in one process share nothing but what their places share.
"""

import os
import pwd
from collections.abc import Callable, Mapping
from pathlib import Path

from bantam.core.base.record import dataclass


@dataclass(frozen=True)
class Clock:
    """`seconds` only goes forward, from anywhere; `wall` are seconds of the epoch."""

    seconds: Callable[[], float]
    wall: Callable[[], float]


@dataclass(frozen=True)
class Place:
    """Commands run in `folder`, and model.cfg and system.txt are found there; `home` has sessions, logs and trust.

    `environ` is Bantam's own environment: commands get it without keys. `user_home` is what `~` means.
    """

    folder: Path
    home: Path
    user_home: Path
    environ: Mapping[str, str]
    clock: Clock

    def path(self, name: str) -> Path:
        """The file that a name means here."""
        return self.folder / name


def at(folder: Path, environ: Mapping[str, str], clock: Clock) -> Place:
    """A place whose homes are those that the environment names: BANTAM_HOME, or `.bantam` in HOME.

    Where HOME is empty or missing, it is what the system knows.
    """
    user_home = folder / (environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    named = environ.get("BANTAM_HOME")
    return Place(folder, folder / named if named else user_home / ".bantam", user_home, environ, clock)
