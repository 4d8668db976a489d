"""The calls of one answer on their way: which runs next, and what each came to.

One at a time, or a run of adjacent ones side by side where their tools allow it, in the order of the calls. When all
are done it is `loop` that says their results and goes on. What a tool is called makes no difference here.
"""

from typing import assert_never

from bantam.core import messages
from bantam.core.base import texts
from bantam.core.base.record import replace
from bantam.core.base.settings import Config
from bantam.core.base.trie import Trie
from bantam.core.effects import AskApproval, Cancel, Effect, Inner, RunShell, RunTool, Spawn
from bantam.core.events import Id, ToolProgress
from bantam.core.rules import gate, limits
from bantam.core.state import Acting, Agent, Repeated, Slot
from bantam.core.tools import shown, toolbox
from bantam.core.tools.table import Toolbox
from bantam.core.tools.toolbox import Command, Function, Task, Unusable

Effects = tuple[Effect | Inner, ...]
Begun = RunShell | RunTool | Spawn


def asked(agent: Agent, raw: messages.Message, tools: Toolbox, config: Config, cut: bool) -> tuple[Slot, ...]:
    """The calls of the agent's last message, which came as `raw`."""
    by_name = {tool.name: tool for tool in tools}
    slots: list[Slot] = []
    for call, as_it_came in zip(messages.calls_of(agent.messages[-1]), messages.calls_of(raw), strict=True):
        name, arguments = messages.call_name(call), str(messages.call_arguments(call))
        tool = by_name.get(name)
        action = toolbox.parse(as_it_came, config.tools, len(agent.path), cut, tools)
        line, together = toolbox.judged(tool, action), tool is not None and tool.side_by_side
        slots.append(Slot(len(slots), messages.call_id(call), name, arguments, action, line, together))
    return tuple(slots)


def advance(agent: Agent, phase: Acting, config: Config, left_s: float | None) -> tuple[Agent, Acting, Effects]:
    """Start the next group, if its turn has come. An unusable call is answered on the spot."""
    effects: list[Effect | Inner] = []
    begun, busy, results = phase.begun, phase.busy, phase.results
    while begun < len(phase.slots):
        slot = phase.slots[begun]
        if busy and not (slot.together and _is_group(busy)):
            break
        begun += 1
        effects.append(shown.started(agent, slot))
        action, ask = gate.judged(slot.action, slot.line, config.approve) if not _is_late(left_s) else (_NO_TIME, "")
        if isinstance(action, Unusable):
            results = results.put((slot.place,), action.why)
            effects += shown.result(agent, slot, action.why, error=True)
            continue
        id, agent = next_id(agent)
        slot, effect = _asking(slot, id, ask) if ask else _started(slot, id, config, left_s)
        busy = busy.put(id, slot)
        effects.append(effect)
    return agent, Acting(phase.slots, begun, busy, results), tuple(effects)


def _is_group(busy: Trie[Slot]) -> bool:
    """Whether others may run beside those that run: what one of them says, all do."""
    return next(slot.together for _, slot in busy.below(()))


def approved(phase: Acting, slot: Slot, id: Id, config: Config, left_s: float | None) -> tuple[Acting, Begun] | str:
    """A call that asked, on its way; or why it does not run after all."""
    if _is_late(left_s):
        return toolbox.NO_TIME
    slot, effect = _started(replace(slot, asks=False), id, config, left_s)
    return replace(phase, busy=phase.busy.put(id, slot)), effect


def _asking(slot: Slot, id: Id, why: str) -> tuple[Slot, AskApproval]:
    assert slot.line is not None  # nothing else was judged
    return replace(slot, asks=True), AskApproval(id, slot.line, why)


def _started(slot: Slot, id: Id, config: Config, left_s: float | None) -> tuple[Slot, Begun]:
    timeout_s = config.shell_timeout if left_s is None else min(config.shell_timeout, left_s)
    limited = replace(slot, timeout_s=timeout_s)
    match slot.action:
        case Command(line):
            return limited, RunShell(id, line, config.shell, timeout_s, config.shell_output_bytes)
        case Function(name, arguments):
            return limited, RunTool(id, name, arguments, timeout_s, config.shell_output_bytes)
        case Task(prompt):
            return slot, Spawn(id, prompt)
        case Unusable():
            raise AssertionError("it was answered on the spot")
        case never:
            assert_never(never)


_NO_TIME = Unusable(toolbox.NO_TIME)


def _is_late(left_s: float | None) -> bool:
    return left_s is not None and left_s <= limits.CLOCK_S


def repeats(last: Repeated, slots: tuple[Slot, ...]) -> tuple[Repeated, int]:
    """How often the last call has now come in a row, and the most that any did."""
    most = 0
    for slot in slots:
        call = f"{slot.name} {slot.action!r}"
        last = Repeated(call, last.times + 1 if call == last.call else 1)
        most = max(most, last.times)
    return last, most


def refused(agent: Agent, slots: tuple[Slot, ...], why: str) -> tuple[messages.Messages, Effects]:
    """All calls with the same result, and nothing run."""
    told = [(shown.started(agent, slot), *shown.result(agent, slot, why, error=True)) for slot in slots]
    results = tuple(messages.tool_result(slot.call_id, why) for slot in slots)
    return results, tuple(effect for some in told for effect in some)


def progress(agent: Agent, phase: Acting, slot: Slot, event: ToolProgress) -> tuple[Agent, Effects]:
    """A running tool printed something."""
    busy = phase.busy.put(event.id, replace(slot, heard=toolbox.hear(slot.heard, event)))
    return replace(agent, phase=replace(phase, busy=busy)), shown.progress(agent, slot, event)


def filled(agent: Agent, phase: Acting, slot: Slot, id: Id, text: str, error: bool) -> tuple[Acting, Effects]:
    """A call that was under way has its result."""
    text = texts.clean(text)
    phase = replace(phase, busy=phase.busy.cut(id), results=phase.results.put((slot.place,), text))
    return phase, shown.result(agent, slot, text, error)


def interrupted(agent: Agent, phase: Acting) -> tuple[messages.Messages, Effects]:
    """All calls with a result: those that came, and of the others what is known. What runs is cancelled."""
    effects: list[Effect | Inner] = []
    closed = phase.results
    busy = {slot.place: (id, slot) for id, slot in phase.busy.items()}
    for slot in phase.slots:
        if (slot.place,) in phase.results:
            continue
        id, slot = busy.get(slot.place, (None, slot))
        is_running = id is not None and not slot.asks
        text = toolbox.interrupted_result(slot.heard) if is_running else toolbox.NOT_RUN
        if id is not None:
            effects += [Cancel(id), *shown.result(agent, slot, text, error=True)]
        closed = closed.put((slot.place,), text)
    return results(replace(phase, results=closed)), tuple(effects)


def results(phase: Acting) -> messages.Messages:
    """What is said to the model, in the order of the calls."""
    return tuple(messages.tool_result(slot.call_id, phase.results[slot.place,]) for slot in phase.slots)


def is_done(phase: Acting) -> bool:
    return phase.begun == len(phase.slots) and not phase.busy


def running(phase: Acting, id: Id) -> Slot | None:
    """The call that runs under this id."""
    slot = phase.busy.get(id)
    return None if slot is None or slot.asks else slot


def command(phase: Acting, id: Id) -> Slot | None:
    """The same, if it is a command."""
    slot = running(phase, id)
    return slot if slot is not None and isinstance(slot.action, Command) else None


def asking(phase: Acting, id: Id) -> Slot | None:
    """The call that waits for an approval under this id."""
    slot = phase.busy.get(id)
    return None if slot is None or not slot.asks else slot


def next_id(agent: Agent) -> tuple[Id, Agent]:
    """An address for the agent's next request."""
    return (*agent.path, agent.serial + 1), replace(agent, serial=agent.serial + 1)
