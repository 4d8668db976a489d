"""Two runs side by side: where they part, and what each cost.

Each thing that happened has an address (the number of a prompt, the id of a request), so it does not matter in
which order the answers of parallel subagents came, nor into which pieces the network cut them. Ids that servers
make up for their tool calls differ from run to run and do not count.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from bantam.core import messages, tree
from bantam.core.base.record import dataclass, field
from bantam.core.effects import CallModel, Effect, Emit, ResultEnded, Spent, TurnEnded
from bantam.core.events import (
    Answer,
    CommandEnded,
    ConfigChanged,
    Event,
    ModelChunks,
    ModelEnded,
    TimerFired,
    ToolProgress,
)
from bantam.core.messages import Messages
from bantam.core.past import codec, tape
from bantam.core.past.tape import Tape
from bantam.core.rules import limits
from bantam.core.state import Calling, Session
from bantam.core.wire import assemble


@dataclass(frozen=True)
class Moment:
    """One thing that happened at event `at`; `name` is its address."""

    at: int
    name: str
    value: Any
    said: Messages = ()
    """The messages of a call to the model, where calls have the ids that the server made up."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Those ids, and what they are called here."""


@dataclass(frozen=True)
class Cost:
    """What a run used. `seconds`: while turns ran. `usd` is None where it is not known."""

    spent: Spent
    seconds: float
    usd: float | None


def parted(one: Tape, other: Tape) -> str:
    """The first thing of `one` that is different in `other`, or else what only `other` has; "" for equal runs."""
    first, second = _addressed(one), _addressed(other)
    equal: dict[str, tuple[Messages, Messages]] = {}
    for name, moment in first.items():
        if name not in second:
            return f"event {moment.at}, {name}: there in A, not there in B"
        if found := _differ(moment, second[name], equal):
            return f"event {moment.at}, {name}, {found}"
    more = next((name for name in second if name not in first), None)
    return "" if more is None else f"event {second[more].at}, {more}: not there in A, there in B"


def _differ(here: Moment, there: Moment, equal: dict[str, tuple[Messages, Messages]]) -> str:
    """Where two moments differ. `equal`: the last messages of each agent that were found equal."""
    agent = here.name.rpartition(".")[0]
    known = tape.known(here.said, there.said, equal.get(agent, ((), ())))
    ours, theirs = (_renamed(moment.said[known:], moment.names) for moment in (here, there))
    if here.said or there.said:
        equal[agent] = here.said, there.said
    return tape.unequal(ours, theirs, "messages", known) or tape.unequal(here.value, there.value)


def cost(run: Tape) -> Cost:
    """What all turns of a run used, an unfinished one included; by the prices of the run itself."""
    session, seconds, last = tree.start(run.config, run.system, run.toolbox), 0.0, 0.0
    for now, event in run.events:
        seconds += 0 if tree.idle(session) else now - last
        session, last = tree.step(session, event, now)[0], now
    spent = session.total if tree.idle(session) else limits.add(session.total, session.spent)
    return Cost(spent, seconds, limits.known_cost_usd(session.config, spent))


def _addressed(run: Tape) -> Mapping[str, Moment]:
    """The moments by their names; one that comes again (an approval and then the result) has a number."""
    found: dict[str, Moment] = {}
    times: Counter[str] = Counter()
    for moment in _moments(run):
        times[moment.name] += 1
        again = f" ({times[moment.name]})" if times[moment.name] > 1 else ""
        found[moment.name + again] = moment
    return found


def _moments(run: Tape) -> Iterator[Moment]:
    session, prompts, turns = tree.start(run.config, run.system, run.toolbox), 0, 0
    names: dict[str, str] = {}
    for at, (now, event) in enumerate(run.events, 1):
        after, effects = tree.step(session, event, now)
        for call in _new_calls(session, after, event):
            names.setdefault(messages.call_id(call), f"call {len(names) + 1}")
        value = _told(session, event, effects)
        if value is not None:
            prompts += not isinstance(event, Answer)
            name = f"answer to {tape.number(event.id)}" if isinstance(event, Answer) else f"input {prompts}"
            yield Moment(at, name, _renamed(value, names))
        for effect in effects:
            if isinstance(effect, tape.REQUESTS):
                asked = _renamed(tape.asked(effect), names)
                said = effect.messages if isinstance(effect, CallModel) else ()
                yield Moment(at, f"{type(effect).__name__} {tape.number(effect.id)}", asked, said, names)
            if isinstance(effect, Emit) and isinstance(effect.output, TurnEnded):
                turns += 1
                yield Moment(at, f"end of turn {turns}", {"reason": effect.output.reason})
        session = after


def _new_calls(before: Session, after: Session, event: Event) -> tuple[messages.Call, ...]:
    """The calls of the message that an event brought to an end."""
    path = event.id[:-1] if isinstance(event, Answer) else ()
    old, new = before.agents.get(path), after.agents.get(path)
    return () if new is None or (old and old.messages is new.messages) else messages.calls_of(new.messages[-1])


def _told(session: Session, event: Event, effects: tuple[Effect, ...]) -> Mapping[str, Any] | None:
    """What an event said; None for a part of something, and for what shows in what comes of it."""
    match event:
        case ModelChunks() | ToolProgress() | TimerFired() | ConfigChanged():
            return None
        case ModelEnded(id=id):
            phase = session.agents[id[:-1]].phase if id[:-1] in session.agents else None
            return assemble.finished(phase.partial) if isinstance(phase, Calling) and phase.id == id else None
        case CommandEnded():
            ends = (e.output for e in effects if isinstance(e, Emit) and isinstance(e.output, ResultEnded))
            return {"result": next((end.text for end in ends), "")}
        case _:
            return {key: value for key, value in codec.encode(event).items() if key != "id"}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    return messages.map_text(value, lambda text: names.get(text, text))
