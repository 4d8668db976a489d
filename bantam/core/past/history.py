"""A log's lines -> the session they tell of, and what goes on from there. The log is the state.

A line is `[time, event]`; the first one is a header with the configuration and the system prompt.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bantam.core import tree
from bantam.core.base.record import dataclass, field, replace
from bantam.core.base.settings import Config
from bantam.core.effects import Effect
from bantam.core.events import Event, Lost
from bantam.core.past import codec
from bantam.core.past.lines import Damage, Line, kept, read, value, with_line, words
from bantam.core.state import Session
from bantam.core.tools.table import BUILT_IN, Tool, Toolbox

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
    damage: Damage = field(default_factory=Damage)

    @property
    def problem(self) -> str:
        """What is wrong with it and what is kept, said behind its name; "" if it is whole but for its last line."""
        return f"is {words(self.damage)}: {kept(self.damage, self.events)}" if self.damage.count else ""


def header(
    id: str, created: str, started: str, system: str, config: Config, toolbox: Toolbox = BUILT_IN
) -> dict[str, Any]:
    """The first line of a log. `created` is the time on the user's wall, `started` when the run began, in UTC."""
    named = {"bantam_log": VERSION, "id": id, "created": created, "started": started}
    tools = {} if toolbox == BUILT_IN else {"toolbox": [codec.encode(tool) for tool in toolbox]}
    return {**named, "system": system, "config": codec.encode(config), **tools}


def toolbox_of(head: Mapping[str, Any]) -> Toolbox:
    """The tools of a run, from its log's first line; the built-in ones where it names none. Raises ValueError."""
    written = head.get("toolbox")
    found = [codec.decode(tool) for tool in written] if isinstance(written, list) else [*BUILT_IN]
    if not all(isinstance(tool, Tool) for tool in found):
        raise ValueError("it has something else in its toolbox")
    return tuple(found)


def line(now: float, event: Event) -> list[Any]:
    """The line of an event."""
    return [round(now, TIME_DIGITS), codec.encode(event)]


def fold(lines: Iterable[bytes]) -> Past:
    """The past that a log's lines tell of. Raises ValueError for what is no log of this version.

    A damaged line is left out, and what comes behind it counts as far as it makes sense (see `mend`). One without an
    end was being written when the process died.
    """
    return deque(pasts(lines), maxlen=1)[0]


def pasts(lines: Iterable[bytes]) -> Iterator[Past]:
    """What a log has told after each line."""
    rest = iter(lines)
    past = _begun(next(rest, b""))
    yield past
    told = read(rest, 2)
    for line in told:
        if line.told is None or line.why:
            yield from _mended(past, [line, *told])
            return
        now, event = line.told
        session, effects = tree.step(past.session, event, now)
        past = Past(session, now, past.events + 1, effects, event)
        yield past


def _mended(past: Past, lines: Sequence[Line]) -> Iterator[Past]:
    """What a log has told after each line from a damaged one on."""
    from bantam.core.past import mend  # only what goes on from a log reads one

    coming = mend.ahead([line.told and line.told[1] for line in lines])
    for line, next_id in zip(lines, coming, strict=True):
        damage = with_line(past.damage, line) if line.why else past.damage
        if line.told is None:
            past = Past(past.session, past.now, past.events, damage=damage)
        else:
            now, event = line.told
            session, effects, meant = mend.step(past.session, event, now, next_id)
            damage = damage if meant else replace(damage, idle=damage.idle + 1)
            past = Past(session, now, past.events + 1, effects, event, damage)
        yield past


def _begun(first: bytes) -> Past:
    """What the header tells."""
    if not first.endswith(b"\n"):
        raise ValueError("its first line breaks off" if first else "it is empty")
    head, why = value(first)
    if why:
        raise ValueError(f"its first line is damaged ({why})")
    if not isinstance(head, dict) or head.get("bantam_log") != VERSION:
        raise ValueError("it is not a log of this version")
    try:
        config, system, toolbox = codec.decode(head.get("config")), head.get("system"), toolbox_of(head)
    except (ValueError, RecursionError):
        config, system, toolbox = None, None, BUILT_IN
    if not isinstance(config, Config) or not isinstance(system, str):
        raise ValueError("its first line has no configuration of this version")
    return Past(tree.start(config, system, toolbox), 0.0, 0)


def recovery(session: Session) -> tuple[Event, ...]:
    """The events that bring a session on whose process died: nobody will answer what it waits for any more."""
    return tuple(Lost(id) for id in sorted(tree.outstanding(session)))
