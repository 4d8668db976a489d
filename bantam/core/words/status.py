"""How a run ends, as an exit status that scripts can rely on."""

from bantam.core.effects import BUDGETS, Reason

DONE = 0
FAILED = 1
USAGE = 2  # usage or configuration
SIGNALLED = 128  # plus the signal's number
READER_GONE = 141  # 128 + SIGPIPE, as a shell reports it

UNAPPROVED = 4  # a command needed an approval that nobody could give
SCHEMA = 5  # the answer does not satisfy the schema
DIVERGED = 6  # a replay, from its tape
LIMIT = 3  # a budget, or the guard against cycles
_STATUS = {
    Reason.DONE: DONE,
    Reason.FAILED: FAILED,
    **dict.fromkeys(BUDGETS, LIMIT),
    Reason.UNAPPROVED: UNAPPROVED,
    Reason.SCHEMA: SCHEMA,
    Reason.TRANSIENT: 75,  # EX_TEMPFAIL of sysexits.h: trying later makes sense
    Reason.INTERRUPTED: 130,  # 128 + SIGINT
}


def of(reason: Reason) -> int:
    return _STATUS[reason]


def unexpected(bug: Exception) -> str:
    """One line about what no run should meet."""
    return f"unexpected error: {type(bug).__name__}: {bug}; please report it"
