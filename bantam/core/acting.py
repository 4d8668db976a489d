"""The calls of one answer on their way: which runs next, and what each came to.

One command at a time, or a run of adjacent subagents side by side, in the order of the calls. When all are
done it is `loop` that says their results and goes on.
"""

from typing import assert_never

from bantam.core import messages
from bantam.core.base.record import replace
from bantam.core.base.settings import Config
from bantam.core.effects import AskApproval, Cancel, Effect, Inner, RunShell, Spawn
from bantam.core.events import Id, ToolProgress
from bantam.core.rules import gate, limits
from bantam.core.state import Acting, Agent, Repeated, Slot
from bantam.core.tools import shown, toolbox

Effects = tuple[Effect | Inner, ...]
Slots = tuple[Slot, ...]


def advance(agent: Agent, slots: Slots, config: Config, left_s: float | None) -> tuple[Agent, Slots, Effects]:
    """Start the next group, if its turn has come. An unusable call is answered on the spot."""
    effects: list[Effect | Inner] = []
    rest = list(slots)
    for at, slot in enumerate(slots):
        busy = [other.action for other in rest if other.id is not None and other.text is None]
        together = slot.name == "run_subagent" and all(isinstance(b, toolbox.RunSubagent) for b in busy)
        if slot.text is not None:
            continue
        if slot.id is not None or (busy and not together):
            break
        effects.append(shown.started(agent, slot))
        action, ask = gate.judged(slot.action, config.approve) if not _is_late(left_s) else (_NO_TIME, "")
        match action:
            case toolbox.Unusable(why):
                rest[at] = replace(slot, text=why)
                effects += shown.result(agent, slot, why, error=True)
                continue
            case toolbox.ShellExec(command) if ask:
                id, agent = next_id(agent)
                slot = replace(slot, id=id, asks=True)
                effects.append(AskApproval(id, command, ask))
            case toolbox.ShellExec(command):
                id, agent = next_id(agent)
                slot, effect = _run(replace(slot, id=id), id, command, config, left_s)
                effects.append(effect)
            case toolbox.RunSubagent(prompt):
                id, agent = next_id(agent)
                slot = replace(slot, id=id)
                effects.append(Spawn(id, prompt))
            case never:
                assert_never(never)
        rest[at] = slot
    return agent, tuple(rest), tuple(effects)


def approved(slot: Slot, id: Id, config: Config, left_s: float | None) -> tuple[Slot, RunShell] | str:
    """The command of a slot that asked, on its way; or why it does not run after all."""
    if _is_late(left_s) or not isinstance(slot.action, toolbox.ShellExec):
        return toolbox.NO_TIME
    return _run(replace(slot, asks=False), id, slot.action.command, config, left_s)


def _run(slot: Slot, id: Id, command: str, config: Config, left_s: float | None) -> tuple[Slot, RunShell]:
    timeout_s = config.shell_timeout if left_s is None else min(config.shell_timeout, left_s)
    run = RunShell(id, command, config.shell, timeout_s, config.shell_output_bytes)
    return replace(slot, timeout_s=timeout_s), run


_NO_TIME = toolbox.Unusable(toolbox.NO_TIME)


def _is_late(left_s: float | None) -> bool:
    return left_s is not None and left_s <= limits.CLOCK_S


def repeats(last: Repeated, slots: Slots) -> tuple[Repeated, int]:
    """How often the last call has now come in a row, and the most that any did."""
    most = 0
    for slot in slots:
        call = f"{slot.name} {slot.action!r}"
        last = Repeated(call, last.times + 1 if call == last.call else 1)
        most = max(most, last.times)
    return last, most


def refused(agent: Agent, slots: Slots, why: str) -> tuple[Slots, Effects]:
    """All calls with the same result, and nothing run."""
    told = [(shown.started(agent, slot), *shown.result(agent, slot, why, error=True)) for slot in slots]
    return tuple(replace(slot, text=why) for slot in slots), tuple(effect for some in told for effect in some)


def progress(agent: Agent, slots: Slots, slot: Slot, event: ToolProgress) -> tuple[Agent, Effects]:
    """A running command printed something."""
    heard = toolbox.hear(slot.heard, event)
    agent = replace(agent, phase=Acting(put(slots, replace(slot, heard=heard))))
    return agent, shown.progress(agent, slot, event)


def interrupted(agent: Agent, slots: Slots) -> tuple[Slots, Effects]:
    """All calls with a result: those that came, and of the others what is known. What runs is cancelled."""
    effects: list[Effect | Inner] = []
    closed = []
    for slot in slots:
        if slot.text is not None:
            closed.append(slot)
            continue
        is_running = slot.id is not None and not slot.asks
        text = toolbox.interrupted_result(slot.heard) if is_running else toolbox.NOT_RUN
        if slot.id is not None:
            effects += [Cancel(slot.id), *shown.result(agent, slot, text, error=True)]
        closed.append(replace(slot, text=text))
    return tuple(closed), tuple(effects)


def results(slots: Slots) -> messages.Messages:
    return tuple(messages.tool_result(slot.call_id, slot.text or "") for slot in slots)


def running(slots: Slots, id: Id) -> Slot | None:
    return next((slot for slot in slots if slot.id == id and slot.text is None and not slot.asks), None)


def asking(slots: Slots, id: Id) -> Slot | None:
    return next((slot for slot in slots if slot.id == id and slot.text is None and slot.asks), None)


def put(slots: Slots, new: Slot) -> Slots:
    return tuple(new if slot.id == new.id else slot for slot in slots)


def next_id(agent: Agent) -> tuple[Id, Agent]:
    """An address for the agent's next request."""
    return (*agent.path, agent.serial + 1), replace(agent, serial=agent.serial + 1)
