"""What watchers are shown of an agent: outputs, and nothing that changes what happens."""

from bantam.core.effects import CallStarted, Emit, Output, ResultDelta, ResultEnded, ResultStarted
from bantam.core.events import ToolProgress
from bantam.core.state import Agent, Slot
from bantam.core.tools import toolbox

Emits = tuple[Emit, ...]


def emit(agent: Agent, output: Output) -> Emit:
    return Emit(agent.path, output)


def started(agent: Agent, slot: Slot) -> Emit:
    """A call of the agent's last message begins."""
    return emit(agent, CallStarted(slot.call_id, slot.name, slot.arguments))


def progress(agent: Agent, slot: Slot, event: ToolProgress) -> Emits:
    return *_header(agent, slot), emit(agent, ResultDelta(slot.call_id, event.text, glimpse=bool(event.skipped)))


def result(agent: Agent, slot: Slot, text: str, error: bool) -> Emits:
    """The rest of a result: all that `progress` did not show yet, and its end."""
    rest = text.removeprefix("".join(slot.heard.head))
    delta = (emit(agent, ResultDelta(slot.call_id, rest, error)),) if rest else ()
    ended = emit(agent, ResultEnded(slot.call_id, slot.name, text, error))
    return (*_header(agent, slot, error), *delta, ended)


def _header(agent: Agent, slot: Slot, error: bool = False) -> Emits:
    """The header of a result, unless output of it was shown already."""
    if slot.heard != toolbox.Heard():
        return ()
    return (emit(agent, ResultStarted(slot.call_id, slot.name, error)),)
