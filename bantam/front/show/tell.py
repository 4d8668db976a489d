"""What subcommands write: text on standard output, and a status that says whether anybody took it."""

import os

from bantam.core.words import status


def tell(text: str, code: int = status.DONE) -> int:
    """Write lines to standard output; returns the exit status, which is another one where nobody reads."""
    data = memoryview((text + "\n").encode(errors="replace"))
    try:
        while data:
            data = data[os.write(1, data) :]
    except BrokenPipeError:
        return status.READER_GONE
    except OSError:
        return status.FAILED
    return code
