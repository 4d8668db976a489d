"""One agent: what each event does in each phase. Read `step` as a table; a row is a line.

Knows nothing of trees: to spawn a subagent is an effect, and its end comes back as a tool's result.
Two doors matter: `_call_model` is the only place where a reply is asked for, so limits, the window and
queued text are looked at there and nowhere else; `_finish` is the only way back to Idle.
"""

from collections.abc import Mapping
from typing import Any, assert_never

from bantam.core import acting, messages
from bantam.core.acting import Effects
from bantam.core.base.record import dataclass, replace
from bantam.core.base.settings import Config
from bantam.core.effects import (
    Cancel,
    CheckAnswer,
    Finish,
    Notice,
    Reason,
    Requesting,
    Retrying,
    Returned,
    Save,
    Sleep,
    Spent,
    Summarised,
    TextDelta,
    ThoughtDelta,
    Unapproved,
    Withhold,
)
from bantam.core.events import (
    AnswerChecked,
    Approved,
    Cleared,
    CommandEnded,
    CompactAsked,
    Denied,
    Event,
    Failure,
    Fault,
    Id,
    Interrupted,
    Loaded,
    Lost,
    ModelChunks,
    ModelEnded,
    ModelFailed,
    SummaryAsked,
    TimerFired,
    TookBack,
    ToolFinished,
    ToolProgress,
    UserSaid,
    says,
)
from bantam.core.rules import limits
from bantam.core.state import Acting, Agent, BackingOff, Calling, Checking, Idle, Purpose, Repeated, Slot
from bantam.core.tools import toolbox
from bantam.core.tools.shown import emit
from bantam.core.tools.table import Toolbox
from bantam.core.window import context
from bantam.core.wire import assemble, failures, request
from bantam.core.wire.assemble import Partial
from bantam.core.wire.failures import Remedy, broke

REPAIRS_MAX = 1  # answers of a turn that may fail the schema
STRIPS_MAX = 2  # recoveries of a turn that remove something from the list
Step = tuple[Agent, Effects]


@dataclass(frozen=True)
class Context:
    """What the loop may look at and not change."""

    config: Config
    toolbox: Toolbox
    withheld: frozenset[str]
    spent: Spent
    """In this turn, the call that the event ends included."""
    elapsed_s: float
    """Since this turn began."""


def step(agent: Agent, event: Event, ctx: Context) -> Step:
    match agent.phase, event:
        case Idle(), UserSaid() as said if says(said):
            return _say(agent, said, ctx)
        case Idle(), CompactAsked():
            return _ask(agent, "compact", ctx)
        case Idle(), SummaryAsked():
            return _ask(agent, "summary", ctx)
        case Idle(), Cleared():
            return _replaced(agent, agent.messages[:1])
        case Idle(), Loaded(loaded):
            return _replaced(agent, messages.repair(loaded, messages.text_of(agent.messages[0])))
        case Calling(id=id) as phase, ModelChunks(id=its, chunks=chunks) if id == its:
            return _chunks(agent, phase, chunks)
        case Calling(id=id) as phase, ModelEnded(id=its, marked=marked) if id == its:
            return _ended(agent, phase, marked, ctx)
        case Calling(id=id) as phase, ModelFailed(id=its, failure=f) if id == its and phase.partial.finish and broke(f):
            return _ended(agent, phase, True, ctx)
        case Calling(id=id) as phase, ModelFailed(id=its, failure=failure) if id == its:
            return _failed(agent, phase, failure, ctx)
        case Calling(id=id), Lost(id=its) if id == its:
            return step(agent, ModelFailed(id, failures.LOST), ctx)
        case BackingOff(id=id) as phase, (TimerFired(id=its) | Lost(id=its)) if id == its:
            return _again(agent, phase.purpose, phase.attempt, ctx)
        case Acting() as phase, ToolProgress(id=id) if slot := acting.running(phase, id):
            return acting.progress(agent, phase, slot, event)
        case Acting() as phase, CommandEnded(id=id) if slot := acting.command(phase, id):
            text = toolbox.result(slot.heard, event, slot.timeout_s)
            return _fill(agent, phase, slot, id, text, bool(event.problem), ctx)
        case Acting() as phase, ToolFinished(id=id, text=text, error=error) if slot := acting.running(phase, id):
            return _fill(agent, phase, slot, id, text, error, ctx)
        case Acting() as phase, Approved(id=id) if slot := acting.asking(phase, id):
            return _approved(agent, phase, slot, id, ctx)
        case Acting() as phase, Denied(id=id, nobody=nobody) if slot := acting.asking(phase, id):
            return _denied(agent, phase, slot, id, nobody, ctx)
        case Acting() as phase, Lost(id=id) if slot := acting.asking(phase, id):
            return _fill(agent, phase, slot, id, toolbox.NOT_RUN, True, ctx)
        case Acting() as phase, Lost(id=id) if slot := acting.running(phase, id):
            shown_anew = replace(slot, heard=toolbox.Heard())
            return _fill(agent, phase, shown_anew, id, toolbox.lost_result(slot.heard), True, ctx)
        case Checking(id=id, text=text), AnswerChecked(id=its, problem=problem) if id == its:
            return _checked(agent, text, problem, ctx)
        case Checking(id=id, text=text), Lost(id=its) if id == its:
            return _check(agent, text, ctx)
        case Calling() | BackingOff() | Acting() | Checking(), UserSaid() as said if says(said):
            return replace(agent, queued=(*agent.queued, said)), ()
        case _, TookBack() if agent.queued:
            last = agent.queued[-1]
            return replace(agent, queued=agent.queued[:-1]), (emit(agent, Returned(last.text, last.parts)),)
        case Calling() as phase, Interrupted():
            return _interrupt_call(agent, phase)
        case BackingOff(id=id) | Checking(id=id), Interrupted():
            return _finish(agent, Finish(Reason.INTERRUPTED), (Cancel(id),))
        case Acting() as phase, Interrupted():
            return _interrupt_tools(agent, phase)
        case _:  # total: an event that means nothing here, or nothing any more, changes nothing
            return agent, ()


# --- asking


def _say(agent: Agent, said: UserSaid, ctx: Context) -> Step:
    heard = messages.longer(agent.messages, messages.user(said.text, said.parts))
    fresh = replace(agent, messages=heard, iterations=0, repeated=Repeated(), strips=0, squeezed=0, repairs=0)
    return _call_model(fresh, ctx)


def _ask(agent: Agent, purpose: Purpose, ctx: Context) -> Step:
    """A call about the conversation, outside of it."""
    if len(agent.messages) < 2:
        return _finish(agent, Finish(Reason.DONE), (emit(agent, Notice("there is nothing to summarise yet")),))
    return _send(replace(agent, iterations=0, strips=0, squeezed=0), purpose, 1, ctx)


def _call_model(agent: Agent, ctx: Context) -> Step:
    """Ask for the next reply: the only door to it."""
    reason = _over(agent, ctx)
    if reason is not None:
        return _stop(agent, reason, ctx)
    said = (messages.user(one.text, one.parts) for one in agent.queued)
    agent = replace(agent, messages=messages.longer(agent.messages, *said), queued=())
    if context.is_full(ctx.config, agent.messages):
        agent = replace(agent, messages=context.prune(agent.messages, ctx.config.context_window))
        if context.is_full(ctx.config, agent.messages) and context.can_shrink(agent.messages):
            return _send(agent, "shrink", 1, ctx)
    return _send(agent, "reply", 1, ctx)


def _over(agent: Agent, ctx: Context) -> Reason | None:
    return limits.over(ctx.config, agent.iterations, ctx.spent, ctx.elapsed_s)


def _send(agent: Agent, purpose: Purpose, attempt: int, ctx: Context) -> Step:
    id = (*agent.path, agent.serial + 1)
    agent = replace(agent, serial=agent.serial + 1, phase=Calling(id, purpose, attempt, Partial(), ctx.withheld))
    left_s = limits.left_s(ctx.config, ctx.elapsed_s)
    call = request.call(agent, id, purpose, ctx.config, ctx.toolbox, ctx.withheld, left_s)
    return agent, (emit(agent, Requesting()), call)


def _again(agent: Agent, purpose: Purpose, attempt: int, ctx: Context) -> Step:
    """A call once more, unless a budget was used up meanwhile."""
    reason = _over(agent, ctx)
    return _send(agent, purpose, attempt, ctx) if reason is None else _stop(agent, reason, ctx)


# --- the answer


def _chunks(agent: Agent, phase: Calling, chunks: tuple[Mapping[str, Any], ...]) -> Step:
    partial = phase.partial
    told: list[TextDelta | ThoughtDelta] = []
    for chunk in chunks:
        partial = assemble.merge(partial, chunk)
        thought, text = assemble.deltas(chunk) if phase.purpose == "reply" else ("", "")
        told += [ThoughtDelta(thought)] if thought else []
        told += [TextDelta(text)] if text else []
    return replace(agent, phase=replace(phase, partial=partial)), tuple(emit(agent, o) for o in told)


def _ended(agent: Agent, phase: Calling, marked: bool, ctx: Context) -> Step:
    raw = assemble.finished(phase.partial)
    message = messages.normalised(raw)
    if not marked and not phase.partial.finish:
        return _failed(agent, phase, Failure(Fault.NETWORK, "the answer broke off before its end"), ctx)
    if messages.is_empty(message) or (phase.purpose != "reply" and not messages.text_of(message).strip()):
        return _failed(agent, phase, Failure(Fault.ANSWER, "the model answered with neither text nor a tool call"), ctx)
    text = messages.text_of(message)
    match phase.purpose:
        case "reply":
            return _reply(replace(agent, iterations=agent.iterations + 1), phase.partial, raw, message, ctx)
        case "compact":
            shorter = context.compacted(agent.messages, text, whole=True)
            return _finish(replace(agent, messages=shorter), Finish(Reason.DONE, text))
        case "shrink":
            shorter = context.compacted(agent.messages, text, whole=False)
            agent, effects = _call_model(replace(agent, messages=shorter), ctx)
            return agent, (emit(agent, Notice("the conversation was compacted to fit the model")), *effects)
        case "summary":
            line = context.summary_line(text)
            return _finish(agent, Finish(Reason.DONE, line), (emit(agent, Summarised(line)),))
        case never:
            assert_never(never)


def _reply(agent: Agent, partial: Partial, raw: messages.Message, message: messages.Message, ctx: Context) -> Step:
    """Say the message as it came, then do what its calls ask for."""
    agent = replace(agent, messages=messages.longer(agent.messages, message))
    cut = partial.finish == "length"
    if slots := acting.asked(agent, raw, ctx.toolbox, ctx.config, cut):
        repeated, most = acting.repeats(agent.repeated, slots)
        agent = replace(agent, repeated=repeated)
        is_cycle = 0 < ctx.config.max_identical_calls < most
        return _cycle(agent, slots, ctx) if is_cycle else _act(agent, Acting(slots), ctx)
    notes = (emit(agent, Notice("the answer was cut off at the token limit")),) if cut else ()
    if agent.queued:
        agent, effects = _call_model(agent, ctx)
        return agent, notes + effects
    if ctx.config.schema and not agent.path:
        agent, effects = _check(agent, messages.text_of(message), ctx)
        return agent, notes + effects
    return _finish(agent, Finish(Reason.DONE, messages.text_of(message)), notes)


# --- the schema


def _check(agent: Agent, text: str, ctx: Context) -> Step:
    id, agent = acting.next_id(agent)
    return replace(agent, phase=Checking(id, text)), (CheckAnswer(id, text, ctx.config.schema),)


def _checked(agent: Agent, text: str, problem: str, ctx: Context) -> Step:
    """An answer that does not satisfy the schema may be repaired, so often."""
    if not problem and not agent.queued:
        return _finish(agent, Finish(Reason.DONE, text))
    if not problem:
        return _call_model(agent, ctx)
    if agent.repairs < REPAIRS_MAX:
        said = messages.user(f"Your answer does not satisfy the schema: {problem}. Answer with the JSON alone.")
        agent = replace(agent, messages=messages.longer(agent.messages, said), repairs=agent.repairs + 1)
        agent, effects = _call_model(agent, ctx)
        return agent, (emit(agent, Notice(f"the answer does not satisfy the schema: {problem}; once more")), *effects)
    why = f"the answer does not satisfy the schema: {problem}"
    return _finish(agent, Finish(Reason.SCHEMA, text, why), (emit(agent, Notice(why, error=True)),))


# --- tools


def _act(agent: Agent, phase: Acting, ctx: Context, before: Effects = ()) -> Step:
    """Start the next group of calls. None left: the results are said, and the model is asked again."""
    agent, phase, effects = acting.advance(agent, phase, ctx.config, limits.left_s(ctx.config, ctx.elapsed_s))
    effects = before + effects
    if not acting.is_done(phase):
        return replace(agent, phase=phase), effects
    agent, more = _call_model(replace(agent, messages=messages.longer(agent.messages, *acting.results(phase))), ctx)
    return agent, effects + more


def _fill(agent: Agent, phase: Acting, slot: Slot, id: Id, text: str, error: bool, ctx: Context) -> Step:
    phase, shown = acting.filled(agent, phase, slot, id, text, error)
    return _act(agent, phase, ctx, shown)


def _approved(agent: Agent, phase: Acting, slot: Slot, id: Id, ctx: Context) -> Step:
    found = acting.approved(phase, slot, id, ctx.config, limits.left_s(ctx.config, ctx.elapsed_s))
    if isinstance(found, str):
        return _fill(agent, phase, slot, id, found, True, ctx)
    running, effect = found
    return replace(agent, phase=running), (effect,)


def _denied(agent: Agent, phase: Acting, slot: Slot, id: Id, nobody: bool, ctx: Context) -> Step:
    agent, effects = _fill(agent, phase, slot, id, toolbox.UNAPPROVED if nobody else toolbox.DENIED, True, ctx)
    return agent, ((Unapproved(slot.line), *effects) if nobody and slot.line is not None else effects)


def _cycle(agent: Agent, slots: tuple[Slot, ...], ctx: Context) -> Step:
    """The same call again and again: nothing of this answer runs."""
    closed, effects = acting.refused(agent, slots, toolbox.CYCLE)
    agent, more = _stop(replace(agent, messages=messages.longer(agent.messages, *closed)), Reason.CYCLE, ctx)
    return agent, effects + more


# --- what went wrong


def _failed(agent: Agent, phase: Calling, failure: Failure, ctx: Context) -> Step:
    if failure.fault is Fault.TIME:
        return _stop(agent, Reason.SECONDS, ctx)
    asked = request.spare(ctx.config, phase.withheld)
    why = failures.explain(failure)
    remedy = failures.remedy(failure, asked)
    shorter = failures.shorter(agent.messages, remedy) if phase.purpose == "reply" else None
    match remedy:
        case Remedy.RETRY:
            wait = failures.delay(phase.attempt, failure)
            if wait is None:
                return _give_up(agent, phase.purpose, failures.used_up(failure), why)
            if reason := _over(agent, replace(ctx, elapsed_s=ctx.elapsed_s + wait[0])):
                return _stop(agent, reason, ctx, f"; {why}")
            return _back_off(agent, phase, failure, *wait)
        case Remedy.WITHHOLD:
            name = failures.refused_parameter(failure, asked) or ""
            note = emit(agent, Notice(f"the server refuses {name}; going on without it"))
            agent, effects = _again(agent, phase.purpose, phase.attempt, replace(ctx, withheld=ctx.withheld | {name}))
            return agent, (Withhold(name), note, *effects)
        case Remedy.STRIP | Remedy.STRIP_REASONING if shorter is not None and agent.strips < STRIPS_MAX:
            note = emit(agent, Notice(f"{why}; trying again without what was refused"))
            agent = replace(agent, messages=shorter, strips=agent.strips + 1)
            agent, effects = _again(agent, phase.purpose, 1, ctx)
            return agent, (note, *effects)
        case Remedy.COMPACT if shorter is not None:
            return _again(replace(agent, messages=shorter), phase.purpose, 1, ctx)
        case Remedy.COMPACT if phase.purpose == "reply" and context.can_shrink(agent.messages):
            return _again(agent, "shrink", 1, ctx)
        case Remedy.COMPACT if tighter := request.squeezed(agent, phase.purpose, ctx.config):
            return _again(tighter, phase.purpose, 1, ctx)
    return _give_up(agent, phase.purpose, Reason.FAILED, why)


def _back_off(agent: Agent, phase: Calling, failure: Failure, seconds: float, floor_s: float) -> Step:
    id, agent = acting.next_id(agent)
    agent = replace(agent, phase=BackingOff(id, phase.purpose, phase.attempt + 1))
    note = Retrying(failures.explain(failure), seconds, phase.attempt, failures.retries_max(failure))
    return agent, (emit(agent, note), Sleep(id, seconds, floor_s))


def _give_up(agent: Agent, purpose: Purpose, reason: Reason, why: str) -> Step:
    told = {
        "reply": why,
        "compact": f"could not compact, the conversation stays as it was: {why}",
        "shrink": f"the conversation is too long and could not be compacted: {why}",
        "summary": f"no summary: {why}",
    }[purpose]
    return _finish(agent, Finish(reason, "", told), (emit(agent, Notice(told, error=True)),))


# --- the end of a turn


def _stop(agent: Agent, reason: Reason, ctx: Context, why: str = "") -> Step:
    """A budget is used up; what was said stays, and the user may go on."""
    words = limits.explain(reason, ctx.config) + why
    last = messages.last_words(agent.messages)
    return _finish(agent, Finish(reason, last, words), (emit(agent, Notice(words, error=True)),))


def _finish(agent: Agent, finish: Finish, before: Effects = ()) -> Step:
    """Back to Idle, the only way. What was queued and not said goes back to the user."""
    back = tuple(emit(agent, Returned(one.text, one.parts)) for one in agent.queued)
    return replace(agent, phase=Idle(), queued=()), (*before, Save(agent.messages), *back, finish)


def _interrupt_call(agent: Agent, phase: Calling) -> Step:
    """Keep the text so far as an ordinary message; half-received calls and thoughts go."""
    text = messages.text_of(assemble.finished(phase.partial)) if phase.purpose == "reply" else ""
    kept = messages.longer(agent.messages, messages.assistant(text)) if text.strip() else agent.messages
    return _finish(replace(agent, messages=kept), Finish(Reason.INTERRUPTED, text), (Cancel(phase.id),))


def _interrupt_tools(agent: Agent, phase: Acting) -> Step:
    """Keep the results that came, say of the others what is known, and close the list."""
    closed, effects = acting.interrupted(agent, phase)
    agent = replace(agent, messages=messages.longer(agent.messages, *closed))
    return _finish(agent, Finish(Reason.INTERRUPTED), effects)


def _replaced(agent: Agent, new: messages.Messages) -> Step:
    """Another conversation. Never while something is outstanding."""
    return replace(agent, messages=new), (Save(new),)
