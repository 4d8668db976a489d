"""How a run ends, as an exit status that scripts can rely on."""

from bantam.core.effects import Reason

DONE = 0
FAILED = 1
USAGE = 2  # usage or configuration
READER_GONE = 141  # 128 + SIGPIPE, as a shell reports it

_STATUS = {
    Reason.DONE: DONE,
    Reason.FAILED: FAILED,
    Reason.ITERATIONS: 3,
    Reason.TRANSIENT: 75,  # EX_TEMPFAIL of sysexits.h: trying later makes sense
    Reason.INTERRUPTED: 130,  # 128 + SIGINT
}


def of(reason: Reason) -> int:
    return _STATUS[reason]
