"""Wrong usage or configuration: one line on standard error, and out with status 2."""

from typing import NoReturn

from bantam.core.words import status
from bantam.front.show.tell import complain


class Left(SystemExit):
    """Wrong usage or configuration; `why` is one line."""

    def __init__(self, why: str) -> None:
        super().__init__(status.USAGE)
        self.why = why


def leave(why: str) -> NoReturn:
    """One line about wrong usage or configuration, and out."""
    complain(why)
    raise Left(why)
