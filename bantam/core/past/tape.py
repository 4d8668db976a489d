"""A log as a tape: what happened, in order, and what was asked for. What is asked for follows from what happened.

So a replay needs nothing but the log: its events answer, and the requests that folding it gives are those that the
run must make again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bantam.core.base.grown import Grown
from bantam.core.base.record import dataclass
from bantam.core.base.settings import Config
from bantam.core.effects import AskApproval, CallModel, CheckAnswer, Request, RunShell, RunTool, Sleep
from bantam.core.events import Event, Id
from bantam.core.messages import Message, Messages
from bantam.core.past import codec, history
from bantam.core.past.lines import words
from bantam.core.tools.table import BUILT_IN, Toolbox

SHOWN_CHARS_MAX = 60  # of a value that differs
REQUESTS = (CallModel, RunShell, RunTool, Sleep, AskApproval, CheckAnswer)


@dataclass(frozen=True)
class Tape:
    """`id` of the log, `started` as `--json` tells it, the events with their times, and the requests in order."""

    id: str
    started: str
    system: str
    config: Config
    events: tuple[tuple[float, Event], ...]
    requests: tuple[Request, ...]
    toolbox: Toolbox = BUILT_IN


def read(lines: Iterable[bytes]) -> Tape:
    """The tape that a log is. Raises ValueError for what is no log, or is not whole."""
    whole = list(lines)
    events: list[tuple[float, Event]] = []
    requests: list[Request] = []
    for past in history.pasts(whole):
        if past.event is not None:
            events.append((past.now, past.event))
        requests += [effect for effect in past.effects if isinstance(effect, REQUESTS)]
    if past.damage.count:
        raise ValueError(f"it is {words(past.damage)}")
    head = json.loads(whole[0])
    config, toolbox = codec.decode(head["config"]), history.toolbox_of(head)
    named = str(head.get("id")), str(head.get("started")), head["system"]
    return Tape(*named, config, tuple(events), tuple(requests), toolbox)


def difference(here: Request, taped: Request, known: int = 0) -> str:
    """The first member in which two requests differ, with both values; "" if they ask for the same.

    Limits and waits are not compared: they follow from the times. So many first messages are `known` to be equal.
    """
    if type(here) is not type(taped):
        return f"{type(here).__name__} is not {type(taped).__name__}"
    return unequal(said(here, known), said(taped, known), "messages", known) or unequal(asked(here), asked(taped))


def known(here: Messages, there: Messages, before: tuple[Messages, Messages]) -> int:
    """How many first messages of two lists are equal because those `before` were, and both have only grown since.

    Without this each request would be compared from its first message on, which is quadratic over a run.
    """
    if not isinstance(here, Grown) or not isinstance(there, Grown):
        return 0
    return len(before[0]) if here.goes_on_from(before[0]) and there.goes_on_from(before[1]) else 0


def unequal(here: Any, there: Any, path: str = "", first: int = 0) -> str:
    """The path of the first difference of two JSON values, and what stands there; "" where they are equal.

    If they are lists, they may be the rest of longer ones from the place `first` on.
    """
    found = next(_differences(here, there, path, first), None)
    if found is None:
        return ""
    path, ours, theirs = found
    return f"{path or 'the value'}: {_shown(ours)} is not {_shown(theirs)}"


def number(id: Id) -> str:
    """The address of a request, as it is shown."""
    return ".".join(map(str, id))


def said(request: Request, known: int = 0) -> tuple[Message, ...]:
    """The messages of a call to the model behind so many first ones; none for any other request."""
    return tuple(request.messages[known:]) if isinstance(request, CallModel) else ()


def asked(request: Request) -> Any:
    """What a request asks for beside its messages, as far as a replay must ask for the same."""
    match request:
        case CallModel(tools=tools, parameters=parameters):
            return {**parameters, "tools": tools}
        case RunShell(command=command) | AskApproval(command=command):
            return {"command": command}
        case RunTool(name=name, arguments=arguments):
            return {name: arguments}
        case CheckAnswer(text=text, schema=schema):
            return {"text": text, "schema": schema}
        case _:
            return {}


_NOTHING = object()


def _differences(a: Any, b: Any, path: str, first: int = 0) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from _differences(a.get(key, _NOTHING), b.get(key, _NOTHING), f"{path}.{key}" if path else key)
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        for at in range(max(len(a), len(b))):
            ours, theirs = (list_[at] if at < len(list_) else _NOTHING for list_ in (a, b))
            yield from _differences(ours, theirs, f"{path}[{first + at}]")
    elif type(a) is not type(b) or a != b:
        yield path, a, b


def _shown(value: Any) -> str:
    if value is _NOTHING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"
