"""A log's lines -> the session they tell of, and what goes on from there. The log is the state.

A line is `[time, event]`; the first one is a header with the configuration and the system prompt.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from bantam.core import tree
from bantam.core.base.record import dataclass
from bantam.core.base.settings import Config
from bantam.core.effects import Effect
from bantam.core.events import Event, Lost
from bantam.core.past import codec
from bantam.core.state import Session

VERSION = 1
TIME_DIGITS = 6  # of a second


@dataclass(frozen=True)
class Past:
    """What a log told. `now`: the time of its last event, in seconds from the start of the run."""

    session: Session
    now: float
    events: int
    effects: tuple[Effect, ...] = ()
    """What its last event caused."""
    event: Event | None = None
    """Its last event."""
    problem: str = ""
    """Why it was read no further; "" for a log that is whole but for an unfinished last line."""


def header(id: str, created: str, started: str, system: str, config: Config) -> dict[str, Any]:
    """The first line of a log. `created` is the time on the user's wall, `started` when the run began, in UTC."""
    named = {"bantam_log": VERSION, "id": id, "created": created, "started": started}
    return {**named, "system": system, "config": codec.encode(config)}


def line(now: float, event: Event) -> list[Any]:
    """The line of an event."""
    return [round(now, TIME_DIGITS), codec.encode(event)]


def fold(lines: Iterable[bytes]) -> Past:
    """The past that a log's lines tell of. Raises ValueError for what is no log of this version.

    A line that cannot be read ends it, and what was before it counts. One without an end was being written
    when the process died.
    """
    return deque(pasts(lines), maxlen=1)[0]


def pasts(lines: Iterable[bytes]) -> Iterator[Past]:
    """What a log has told after each line."""
    rest = iter(lines)
    past = _begun(next(rest, b""))
    yield past
    for written in rest:
        if not written.endswith(b"\n"):
            break
        try:
            now, told = json.loads(written)
            event = codec.decode(told)
            if not isinstance(event, Event):
                raise ValueError("it holds no event")
            session, done = tree.step(past.session, event, float(now))
        except (ValueError, TypeError, RecursionError) as problem:
            yield Past(past.session, past.now, past.events, problem=f"line {past.events + 2}: {problem}")
            return
        past = Past(session, float(now), past.events + 1, done, event)
        yield past


def _begun(first: bytes) -> Past:
    """What the header tells."""
    if not first.endswith(b"\n"):
        raise ValueError("it is empty")
    head = json.loads(first)
    if not isinstance(head, dict) or head.get("bantam_log") != VERSION:
        raise ValueError("it is not a log of this version")
    config, system = codec.decode(head.get("config")), head.get("system")
    if not isinstance(config, Config) or not isinstance(system, str):
        raise ValueError("its header has no configuration")
    return Past(tree.start(config, system), 0.0, 0)


def recovery(session: Session) -> tuple[Event, ...]:
    """The events that bring a session on whose process died: nobody will answer what it waits for any more."""
    return tuple(Lost(id) for id in sorted(tree.outstanding(session)))
