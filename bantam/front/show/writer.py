"""How the bytes of whoever shows a run get out: of `Screen` for people, of `JsonLines` for programs."""

import errno
import os
import select
import time
from collections.abc import Callable

from bantam.core.words import status, wrap
from bantam.front.show.tell import columns
from bantam.host.watcher import Watcher


class Writer(Watcher):
    """Shows a run. `unwritable` is called once, with an exit status, when standard output takes nothing any more.

    `lost` is that status from then on, and 0 before.
    """

    def __init__(self, out: int = 1) -> None:
        self.unwritable: Callable[[int], None] = lambda status: None
        self.lost = 0
        self.created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        """When the run began, on the wall clock."""
        self._out = out

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
            line = f"bantam: cannot write to standard output: {problem.strerror}"
            self._raw(2, wrap.laid(line, columns(2)) + "\n")
        self.unwritable(self.lost)
