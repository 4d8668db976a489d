"""`bantam help`: the manual. On a terminal through a pager, as git and man do; elsewhere as it is."""

import os
import signal
from collections.abc import Mapping, Sequence

from bantam.core.base.problem import Problem
from bantam.core.words import status
from bantam.core.words.wrap import Page, laid
from bantam.front.show.tell import columns, tell
from bantam.host import topics

PLAIN = ("", "cat")  # values of PAGER that ask for none
LESS = ("less", "-FRX")  # quit where all fits on the screen, keep colours, leave the text there
NO_PAGER = (126, 127)  # what sh says of a program that cannot be started (POSIX, 2.8.2)


def run(words: Sequence[str], environ: Mapping[str, str]) -> int | Problem:
    """Show a topic, the list of topics, or the topics that speak of something."""
    shown = topics.text(" ".join(words))
    if isinstance(shown, Problem):
        return shown
    told = laid(Page(shown), columns(1))  # as wide as the terminal is now, which no pager will ask
    command = pager(environ) if os.isatty(1) else ()
    if command and _paged(command, told.encode(errors="replace")):
        return status.DONE
    return tell(told.removesuffix("\n"))


def pager(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command of the user's pager; () for none. `less` is no help on a terminal that can do nothing."""
    wanted = environ.get("PAGER")
    if wanted is None:
        return () if environ.get("TERM", "dumb") == "dumb" else LESS
    return () if wanted.strip() in PLAIN else ("sh", "-c", wanted)


def _paged(command: Sequence[str], data: bytes) -> bool:
    """Whether a pager has taken the text; what its user has not read by then is not missed."""
    import subprocess  # not needed in a pipe

    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
    except OSError:
        return False
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the pager's; its terminal must not be left before it
    process.communicate(data)  # passes over a reader that is gone
    return process.returncode not in NO_PAGER
