"""What is written by whoever has no run to show: subcommands on standard output, complaints on standard error.

On a terminal the lines fit into what it is wide now; a pipe and a file get them whole.
"""

import os
import sys
from contextlib import suppress

from bantam.core.words import status
from bantam.core.words.wrap import Text, laid


def tell(text: Text, code: int = status.DONE) -> int:
    """Write lines to standard output; returns the exit status, which is another one where nobody reads."""
    data = memoryview((laid(text, columns(1)) + "\n").encode(errors="replace"))
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        return status.READER_GONE
    except OSError:
        return status.FAILED
    return code


def complain(why: str) -> None:
    """What is wrong, on standard error; where nobody takes it, the exit status has to do."""
    with suppress(OSError):
        os.write(2, (laid(f"bantam: {why}", columns(2)) + "\n").encode(errors="replace"))


def remark(what: str) -> None:
    """What somebody should know, on Python's standard error, which `--json` takes for its events."""
    try:
        wide = columns(sys.stderr.fileno())
    except OSError:  # it is no file
        wide = 0
    sys.stderr.write(laid(f"bantam: {what}", wide) + "\n")


def columns(fd: int) -> int:
    """How wide the terminal behind a descriptor is now; 0 where there is none, or it does not say."""
    try:
        return os.get_terminal_size(fd).columns
    except OSError:
        return 0
