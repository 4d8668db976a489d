"""A line of `--input json` -> what a driver asks for. The counterpart of `report`, and as strict as that is open:

an unknown member is refused, so that a later version can give it a meaning.
"""

from bantam.core.base.problem import Problem
from bantam.core.base.record import dataclass
from bantam.core.messages import read_json

LINE_BYTES_MAX = 16_000_000
_EXAMPLES = 'expected {"prompt": "…"} or {"interrupt": true}'
_NAME_LENGTH_MAX = 40  # of an unknown member, as it is quoted


@dataclass(frozen=True)
class Prompt:
    """Something for the model: a turn of its own, or for the turn that runs."""

    text: str


@dataclass(frozen=True)
class Interrupt:
    """Stop the turn that runs."""


def parse(line: bytes) -> Prompt | Interrupt | Problem | None:
    """What one line asks for; None for a blank one."""
    if len(line) > LINE_BYTES_MAX:
        return Problem(f"longer than {LINE_BYTES_MAX:,} bytes")
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Problem("not UTF-8")
    if not text.strip():
        return None
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return Problem(f"not JSON; {_EXAMPLES}")
    if not isinstance(value, dict):
        return Problem(f"no object; {_EXAMPLES}")
    unknown = [name for name in value if name not in ("prompt", "interrupt")]
    if unknown:
        return Problem(f"unknown member {unknown[0][:_NAME_LENGTH_MAX]!r}; {_EXAMPLES}")
    match value:
        case {"prompt": _, "interrupt": _}:
            return Problem("prompt and interrupt exclude each other")
        case {"prompt": str(prompt)} if prompt.strip():
            return Prompt(prompt)
        case {"prompt": _}:
            return Problem("prompt must be a text that is not blank")
        case {"interrupt": True}:
            return Interrupt()
        case {"interrupt": _}:
            return Problem("interrupt must be true")
        case _:
            return Problem(_EXAMPLES)
