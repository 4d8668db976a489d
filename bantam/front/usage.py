"""Wrong usage or configuration: one line on standard error, and out with status 2."""

import os
from contextlib import suppress
from typing import NoReturn

from bantam.core.words import status


class Left(SystemExit):
    """Wrong usage or configuration; `why` is one line."""

    def __init__(self, why: str) -> None:
        super().__init__(status.USAGE)
        self.why = why


def leave(why: str) -> NoReturn:
    """One line about wrong usage or configuration, and out."""
    with suppress(OSError):  # the status says it too
        os.write(2, f"bantam: {why}\n".encode(errors="replace"))
    raise Left(why)
