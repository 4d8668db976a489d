"""Whoever shows a run, and how its bytes get out: `Screen` for people, `JsonLines` for programs."""

import errno
import os
import select
import time
from collections.abc import Callable

from bantam.core import status
from bantam.core.effects import Emit
from bantam.core.events import Event


class Watcher:
    """Shows a run. `unwritable` is called once, with an exit status, when standard output takes nothing any more.

    `lost` is that status from then on, and 0 before.
    """

    def __init__(self, out: int = 1) -> None:
        self.unwritable: Callable[[int], None] = lambda status: None
        self.lost = 0
        self.created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        """When the run began, on the wall clock."""
        self._out = out

    def hear(self, now: float, event: Event) -> None:
        """An event happens, `now` seconds after the start; its outputs are shown next."""

    def show(self, emit: Emit) -> None:
        """One output."""
        raise NotImplementedError

    def say(self, text: str, style: str = "", error: bool = False) -> None:
        """A line of the front end's own, such as what a command answers."""
        raise NotImplementedError

    def recolor(self, color: str) -> None:
        """Follow the `color` setting."""

    def end(self, reason: str, code: int, session: str | None) -> None:
        """The run is over, with this exit status and this log; nothing more is shown."""

    def _raw(self, fd: int, text: str) -> None:
        data = memoryview(text.encode(errors="replace"))
        if fd == self._out and self.lost:
            return
        while data:
            try:
                data = data[os.write(fd, data) :]
            except BlockingIOError:
                select.select([], [fd], [])
            except OSError as problem:
                if fd == self._out:
                    self._give_up(problem)
                return

    def _give_up(self, problem: OSError) -> None:
        """A reader or a terminal that went away is no error; a full disk is."""
        quiet = problem.errno in (errno.EPIPE, errno.EIO)
        self.lost = status.READER_GONE if quiet else status.FAILED
        if not quiet:
            self._raw(2, f"bantam: cannot write to standard output: {problem.strerror}\n")
        self.unwritable(self.lost)
