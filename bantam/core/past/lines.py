"""A line of a log: the event that stands in it, or what is wrong with it in words that everybody knows."""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from bantam.core.base.record import dataclass, replace
from bantam.core.events import Event
from bantam.core.past import codec

PLACES_MAX = 3  # damaged lines that are named; of others the number is told


@dataclass(frozen=True)
class Line:
    """`number` counts from 1. Both parts can be there: NUL bytes before a line leave it readable."""

    number: int
    told: tuple[float, Event] | None
    """When something happened, and what."""
    why: str
    """What is wrong with it; "" for a line as it was written."""


@dataclass(frozen=True)
class Damage:
    """What is wrong with a log so far."""

    places: tuple[str, ...] = ()
    """The first damaged lines, with what is wrong with them."""
    count: int = 0
    """All damaged lines."""
    lost: int = 0
    """Those of them that tell nothing."""
    idle: int = 0
    """Answers behind them that mean nothing without what is missing."""


def read(lines: Iterable[bytes], first: int) -> Iterator[Line]:
    """The lines from number `first` on. One without an end was being written when the process died, and is no line."""
    before = b""
    for number, line in enumerate(lines, first):
        if not line.endswith(b"\n"):
            return
        # an event has its own microsecond, so no two lines are equal unless one was written twice
        yield Line(number, None, "the same as the line before") if line == before else _line(number, line)
        before = line


def value(line: bytes) -> tuple[Any, str]:
    """The JSON value in a line, or else what is wrong with it; both where only NUL bytes stand before it."""
    rest = line.lstrip(b"\0")
    why = "NUL bytes" if len(rest) < len(line) else ""
    if not rest.strip():
        return None, why or "nothing in it"
    if b"\0" in rest:
        return None, "NUL bytes"
    try:
        return json.loads(rest.decode()), why
    except UnicodeDecodeError:
        return None, "not UTF-8"
    except RecursionError:
        return None, "nested too deeply"
    except ValueError:
        is_part = rest[:1] in b"[{" and rest.rstrip()[-1:] not in b"]}"
        return None, "it breaks off" if is_part else "not JSON"


def with_line(damage: Damage, line: Line) -> Damage:
    """The damage with that of one more line."""
    places = damage.places
    if len(places) < PLACES_MAX:
        places += (f"{line.number} ({line.why})",)
    return replace(damage, places=places, count=damage.count + 1, lost=damage.lost + (line.told is None))


def words(damage: Damage) -> str:
    """Where a log is damaged; "" if it is not."""
    if not damage.count:
        return ""
    more = damage.count - len(damage.places)
    places = [*damage.places, *([f"{more} more"] if more else [])]
    where = " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
    return f"damaged in line{'s' * (damage.count > 1)} {where}"


def kept(damage: Damage, events: int) -> str:
    """What is kept of a damaged log that told so many events."""
    idle = f", and {damage.idle} mean{'s' * (damage.idle == 1)} nothing without what is missing" if damage.idle else ""
    return f"{1 + events - damage.idle} of its {1 + events + damage.lost} lines are kept{idle}"


def _line(number: int, line: bytes) -> Line:
    found, why = value(line)
    told = _told(found)
    return Line(number, told, why or ("" if told else "no event"))


def _told(found: Any) -> tuple[float, Event] | None:
    """What a line's value tells, if it is one that `history.line` makes."""
    match found:
        case [int() | float() as now, dict() as told] if not isinstance(now, bool):
            try:
                event, at = codec.decode(told), float(now)
            except (ValueError, OverflowError, RecursionError):
                return None
            return (at, event) if isinstance(event, Event) and math.isfinite(at) else None
        case _:
            return None
