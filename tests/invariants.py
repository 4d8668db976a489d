"""What must hold after every event: a function a row. The numbers are names, and more rows hold elsewhere.

9-11, 35 and 39 are about one leaf and in its own tests: closing, pruning, stripping, the chunking of bytes,
model.cfg. 27 (it comes to rest), 28 (also under a model that always wants more), 32 and 33 (a replay is equal,
a crash is survived), 34 (the table of transitions) and 42 (answers may swap) are runs of the world.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bantam.core import messages, tree
from bantam.core.base.problem import Problem
from bantam.core.base.record import replace
from bantam.core.base.texts import clean
from bantam.core.effects import (
    AskApproval,
    CallModel,
    CallStarted,
    Cancel,
    Emit,
    Notice,
    Output,
    Reason,
    ResultDelta,
    ResultEnded,
    ResultStarted,
    Returned,
    RunShell,
    RunTool,
    Save,
    Sleep,
    TurnEnded,
)
from bantam.core.events import (
    AnswerChecked,
    Approved,
    Cleared,
    CommandEnded,
    CompactAsked,
    ConfigChanged,
    Denied,
    Fault,
    Interrupted,
    Loaded,
    Lost,
    ModelEnded,
    ModelFailed,
    SummaryAsked,
    TimerFired,
    TookBack,
    ToolFinished,
    UserSaid,
)
from bantam.core.events import says as says_something
from bantam.core.messages import Message, Messages, text_of
from bantam.core.past import codec
from bantam.core.rules import approval
from bantam.core.state import Acting, Agent, BackingOff, Calling, Checking, Idle, Session
from bantam.core.window.context import SUMMARY_INTRODUCTION
from tests import servers
from tests.servers import THOUGHT
from tests.world import REQUESTS, Moment, World, rows, whole

DEPTH_MAX = 5
RETRIES_MAX = 9
PAGE_RETRIES_MAX = 2
WAIT_MAX_S = 120
CLEARED = "[output cleared]"


# --- the conversation


def complaint(messages: Messages) -> str:
    """What a strict server would say of a list; "" if it takes it. Written without the core's own helpers."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        try:
            json.dumps(message, allow_nan=False, ensure_ascii=False).encode()
        except ValueError as problem:
            return f"{at}: no JSON in UTF-8: {problem}"
        role, content = message["role"], message.get("content")
        if (role == "system") != (at == 0):
            return f"{at}: a system message stands first and nowhere else"
        if not isinstance(content, str) and not (isinstance(content, list) and content and role != "tool"):
            return f"{at}: content is {content!r}"
        if role == "tool":
            if not waiting or waiting.pop(0) != message["tool_call_id"]:
                return f"{at}: a result that no call waits for, or out of order"
            continue
        if waiting:
            return f"{at}: {waiting} have no result"
        if role == "user" and not content:
            return f"{at}: the user says nothing"
        if role == "assistant":
            if found := _assistant_complaint(message, content):
                return f"{at}: {found}"
            waiting = [call["id"] for call in message.get("tool_calls", ())]
        elif role not in ("system", "user"):
            return f"{at}: role {role!r}"
    return f"{waiting} have no result" if waiting else ""


def _assistant_complaint(message: Message, content: Any) -> str:
    if "tool_calls" not in message:
        words = (
            content
            if isinstance(content, str)
            else "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
        )
        return "" if words.strip() else "neither content nor calls"
    calls = message["tool_calls"]
    if not calls or len({call["id"] for call in calls}) < len(calls):
        return "no calls, or two with the same id"
    for call in calls:
        function = call["function"]
        if not call["id"] or not isinstance(call["id"], str) or call["type"] != "function":
            return "a call without an id or a type"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", function["name"]):
            return f"a function called {function['name']!r}"
        if not isinstance(json.loads(function["arguments"], parse_constant=_no_json), dict):
            return f"arguments {function['arguments']!r}"
    return ""


def _no_json(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@dataclass(frozen=True)
class Call:
    """A call of an answer: the id of its request while it is under way, what was heard, and its result once there."""

    call_id: str
    id: tuple[int, ...] | None
    heard: str
    text: str | None


def calls(phase: Acting) -> list[Call]:
    """All calls of an answer, in order. Each waits, or is under way, or has a result."""
    busy = {slot.place: (id, "".join(slot.heard.head)) for id, slot in phase.busy.items()}
    assert not busy.keys() & {place for (place,) in phase.results}
    assert {*busy, *(place for (place,) in phase.results)} == {*range(phase.begun)}
    told = [(*busy.get(slot.place, (None, "")), phase.results.get((slot.place,))) for slot in phase.slots]
    return [Call(slot.call_id, *each) for slot, each in zip(phase.slots, told, strict=True)]


def row_1_each_request_and_save_is_valid(world: World, moment: Moment) -> None:
    for effect in moment.effects:
        if isinstance(effect, (CallModel, Save)):
            assert complaint(effect.messages) == "", complaint(effect.messages)


def row_2_lists_are_valid_and_only_the_calls_at_work_are_open(world: World, moment: Moment) -> None:
    for path, agent in moment.after.agents.items():
        if agent == moment.before.agents.get(path):
            continue
        if isinstance(agent.phase, Acting):
            ids = [call["id"] for call in agent.messages[-1]["tool_calls"]]
            assert ids == [slot.call_id for slot in agent.phase.slots]
            assert [slot.place for slot in agent.phase.slots] == [*range(len(ids))]
            results = [{"role": "tool", "tool_call_id": id, "content": "x"} for id in ids]
            assert complaint((*agent.messages, *results)) == ""
            assert any(slot.text is None for slot in calls(agent.phase))
        else:
            assert complaint(agent.messages) == "", complaint(agent.messages)


def row_3_results_are_those_of_their_calls(world: World, moment: Moment) -> None:
    """What came back stands behind its own call, whatever order it came in."""
    for _, old, new in _changed(moment):
        if not isinstance(old.phase, Acting) or isinstance(new.phase, Acting) or not _grew(old, new):
            continue
        said = new.messages[len(old.messages) :]
        for slot, message in zip(calls(old.phase), said, strict=False):
            if slot.text is not None:
                assert message == {"role": "tool", "tool_call_id": slot.call_id, "content": slot.text}
            elif isinstance(moment.event, ToolFinished) and slot.id == moment.event.id:
                assert message["content"] == clean(moment.event.text)
            elif isinstance(moment.event, CommandEnded) and slot.id == moment.event.id:
                assert message["content"].endswith(f"exit: {moment.event.code}")
    if isinstance(moment.event, (ToolFinished, CommandEnded)) and moment.accepted:
        assert [slot.text is None for slot in _slots(moment.before, moment) if slot.id == moment.event.id] == [True]


def row_4_a_list_only_grows_or_is_cut_for_a_reason(world: World, moment: Moment) -> None:
    for path, old, new in _changed(moment):
        if _grew(old, new):
            continue
        match moment.event:
            case Cleared():
                assert (path, old.phase, new.messages) == ((), Idle(), old.messages[:1])
            case Loaded():
                assert (path, old.phase) == ((), Idle())
            case ModelFailed() if path == moment.path and not whole(moment):
                assert new.strips == old.strips + 1 or _pruned(old, new)
                assert len(json.dumps([*new.messages])) < len(json.dumps([*old.messages]))
            case (
                ModelEnded() | ModelFailed() | Lost()
            ):  # a compaction, and perhaps output cleared on the way to the next call
                shrunk = isinstance(old.phase, Calling) and old.phase.purpose in ("compact", "shrink")
                assert shrunk or _pruned(old, new)
                if isinstance(old.phase, Calling) and old.phase.purpose == "shrink" and not _pruned(old, new):
                    assert len(new.messages) < len(old.messages) + len(old.queued)
                    assert _prompt(old) in (None, *new.messages)
            case _:
                assert _pruned(old, new)


def _prompt(agent: Agent) -> Mapping[str, Any] | None:
    """What the user said last; None if there are only summaries of it."""
    said = [m for m in agent.messages if m["role"] == "user" and not text_of(m).startswith(SUMMARY_INTRODUCTION)]
    return said[-1] if said else None


def _pruned(old: Agent, new: Agent) -> bool:
    """Whether all that was taken away is old output, marked as such."""
    pairs = zip(old.messages, new.messages, strict=False)
    return len(new.messages) >= len(old.messages) and all(a == b or {**a, "content": CLEARED} == b for a, b in pairs)


def row_5_the_system_message_stays(world: World, moment: Moment) -> None:
    for path, agent in moment.after.agents.items():
        old = moment.before.agents.get(path)
        if old is not None and not isinstance(moment.event, Loaded):
            assert agent.messages[0]["content"] == old.messages[0]["content"]
        elif old is None:
            assert agent.messages[0]["content"] == world.session.system + "\n\nImportant: this is a child agent"


def row_6_the_message_is_what_the_model_said(world: World, moment: Moment) -> None:
    """Rows 6, 36, 37, 38 and 40 in one: text, calls and unknown members arrive whole, however they were cut."""
    event = moment.event
    if not (isinstance(event, ModelEnded) or (isinstance(event, ModelFailed) and whole(moment))):
        return
    if event.id not in world.truth:
        return
    reply, shown = world.truth[event.id], world.shown.get(event.id, ("", ""))
    old, new = moment.before.agents.get(moment.path), moment.after.agents.get(moment.path)
    if old is None or not isinstance(old.phase, Calling) or old.phase.purpose != "reply":
        return
    assert (clean(shown[0]), shown[1]) == (reply.text, reply.thought)
    if new is None or not _grew(old, new) or len(old.messages) == len(new.messages):
        assert new is None or isinstance(new.phase, BackingOff | Idle) or _pruned(old, new)
        return
    message = new.messages[len(old.messages)]
    assert message["content"] == reply.text
    assert all(message[key] == value for key, value in reply.extra.items() if value is not None)
    assert {message.get(key, "") for key in reply.thought_keys} == {reply.thought}
    calls = message.get("tool_calls", [])
    assert len(calls) == len(reply.calls)
    for call, meant in zip(calls, reply.calls, strict=True):
        is_same_call(call, meant)


def is_same_call(call: Mapping[str, Any], meant: servers.Call) -> None:
    assert call["function"]["name"] == (re.sub(r"[^A-Za-z0-9_-]", "_", meant.name)[:64] or "unknown")
    assert all(call[key] == value for key, value in meant.extra.items() if value is not None)
    try:
        value = (
            json.loads(meant.arguments, parse_constant=_no_json)
            if isinstance(meant.arguments, str)
            else meant.arguments
        )
    except (ValueError, RecursionError, AssertionError):
        value = None
    if isinstance(value, dict) and isinstance(meant.arguments, str):
        assert call["function"]["arguments"] == meant.arguments
    else:
        assert json.loads(call["function"]["arguments"]) == (value if isinstance(value, dict) else {})


def row_7_no_thought_in_any_content(world: World, moment: Moment) -> None:
    for _, old, new in _changed(moment):
        if old.messages is not new.messages and not isinstance(moment.event, Loaded):
            for message in new.messages[1:]:
                assert not set(str(message["content"])) & set(THOUGHT)


def row_8_an_interrupt_keeps_results_that_came(world: World, moment: Moment) -> None:
    old, new = moment.before.agents[()], moment.after.agents[()]
    if not isinstance(moment.event, Interrupted):
        return
    match old.phase:
        case Acting() as phase:
            said = [message["content"] for message in new.messages[len(old.messages) :]]
            for slot, content in zip(calls(phase), said, strict=True):
                assert content == slot.text if slot.text is not None else "interrupted by the user" in content
                assert content.startswith(clean(slot.heard) if slot.text is None else "")
        case Calling(id=id, purpose="reply"):
            text = clean(world.shown.get(id, ("", ""))[0])
            assert id not in world.truth or not text.strip() or new.messages[-1]["content"] == text


def row_12_all_data_survives_json(world: World, moment: Moment) -> None:
    for value in (moment.event, *moment.effects):
        assert codec.decode(json.loads(json.dumps(codec.encode(value)))) == value, value
    if len(world.log) % 5 == 0:
        session = moment.after
        assert codec.decode(json.loads(json.dumps(codec.encode(session)))) == session, session


# --- requests


def row_13_no_id_is_used_twice(world: World, moment: Moment) -> None:
    """An approval and the command that it allows are one request."""
    ids = [request.id for request in moment.requests]
    assert len(set(ids)) == len(ids)
    again = {moment.event.id} if isinstance(moment.event, Approved) and moment.accepted else set()
    assert not (world.used & set(ids)) - again
    assert not world.used & (moment.after.agents.keys() - moment.before.agents.keys())


def row_14_what_is_awaited_is_what_is_outstanding(world: World, moment: Moment) -> None:
    left = dict(moment.open)
    if moment.accepted and isinstance(moment.event, _FINAL):
        del left[moment.event.id]
    for effect in moment.effects:
        if isinstance(effect, Cancel):
            del left[effect.id]  # row 16: names an outstanding request, once
        elif isinstance(effect, REQUESTS):
            left[effect.id] = effect
    assert tree.outstanding(moment.after) == left.keys()


_FINAL = (ModelEnded, ModelFailed, CommandEnded, ToolFinished, TimerFired, Approved, Denied, AnswerChecked, Lost)


def row_15_what_nobody_waits_for_changes_nothing(world: World, moment: Moment) -> None:
    blank = isinstance(moment.event, UserSaid) and not says_something(moment.event)
    if not moment.accepted or blank:
        assert moment.effects == ()
        assert moment.after == moment.before


def row_17_at_rest_nothing_is_outstanding(world: World, moment: Moment) -> None:
    over = any(isinstance(effect, Emit) and isinstance(effect.output, TurnEnded) for effect in moment.effects)
    if over or isinstance(moment.event, Interrupted):
        assert moment.after.agents.keys() == {()}
        assert moment.after.agents[()].phase == Idle()
        assert moment.after.agents[()].queued == ()
        assert tree.outstanding(moment.after) == frozenset()


def row_18_a_turn_ends_once_and_with_its_last_effect(world: World, moment: Moment) -> None:
    ends = [at for at, e in enumerate(moment.effects) if isinstance(e, Emit) and isinstance(e.output, TurnEnded)]
    if world.in_turn:
        assert (ends != []) == tree.idle(moment.after)
        assert ends in ([], [len(moment.effects) - 1])
        if isinstance(moment.event, Interrupted):
            (end,) = [output for output in _outputs(moment) if isinstance(output, TurnEnded)]
            assert end.reason is Reason.INTERRUPTED
    else:
        assert tree.idle(moment.after)
        assert all(isinstance(effect, Save) for effect in moment.effects)


def row_19_only_usable_calls_run(world: World, moment: Moment) -> None:
    """Each command, function and child is announced right before, with the arguments that the model wrote."""
    for at, effect in enumerate(moment.effects):
        if isinstance(effect, (RunShell, RunTool)) and effect.id in world.used:
            assert moment.event == Approved(effect.id)
            assert is_meant(effect, world.approvals[effect.id])
        elif isinstance(effect, (RunShell, RunTool, AskApproval)):
            (told,) = [o for o in _outputs(moment, at - 1, at) if isinstance(o, CallStarted)]
            written = json.loads(told.arguments)
            if told.name == "shell_exec":
                line = clean(written["command"])
            else:
                assert told.name == "look_up"
                written = json.loads(json.dumps(written).replace("\\ud800", "\\ufffd"))
                line = f"look_up {quoted(json.dumps(written, ensure_ascii=False, sort_keys=True))}"
            asks = isinstance(effect, AskApproval)
            assert effect.command == line if isinstance(effect, AskApproval) else is_meant(effect, line)
            verdict = approval.judge(as_policy(moment.after.config.approve), line)
            assert verdict.decision == (approval.Decision.ASK if asks else approval.Decision.ALLOW)
    started = [o for o in _outputs(moment) if isinstance(o, CallStarted) and o.name == "run_subagent"]
    prompts = [clean(json.loads(o.arguments).get("prompt", "")) for o in started]
    for path in moment.after.agents.keys() - moment.before.agents.keys():
        assert moment.after.agents[path].messages[1]["content"] in prompts


def quoted(text: str) -> str:
    """The text as one word of a shell."""
    word = "'" + text.replace("'", "'\\''") + "'"
    assert shlex.split(word) == [text]
    return word


def is_meant(effect: RunShell | RunTool, line: str) -> bool:
    """Whether a request is what the line says that was asked about."""
    if isinstance(effect, RunShell):
        return effect.command == line
    name, written = shlex.split(line)
    return (effect.name, effect.arguments) == (name, json.loads(written))


def as_policy(text: str) -> approval.Policy:
    found = approval.parse(text)
    assert not isinstance(found, Problem)
    return found


def row_19_a_denial_that_nobody_could_lift_is_told_at_the_end(world: World, moment: Moment) -> None:
    for effect in moment.effects:
        if isinstance(effect, Emit) and isinstance(effect.output, TurnEnded):
            assert effect.output.reason is not Reason.DONE or not moment.after.unapproved
            assert effect.output.reason is not Reason.UNAPPROVED or moment.after.unapproved
    if isinstance(moment.event, Denied) and moment.event.nobody and moment.accepted:
        asked = moment.open[moment.event.id]
        assert isinstance(asked, AskApproval)
        told = [o.text for o in _outputs(moment) if isinstance(o, Notice) and o.text.startswith("not run: ")]
        assert len(told) == (asked.command not in moment.before.unapproved)  # once a turn, and by the loop itself
        assert asked.command in moment.after.unapproved


def row_answers_are_checked_and_repaired_once(world: World, moment: Moment) -> None:
    """A turn of a schema is done with an answer that was found good, and else fails after one repair."""
    old, new = moment.before.agents[()], moment.after.agents[()]
    assert new.repairs <= 1
    for effect in moment.effects:
        if isinstance(effect, Emit) and isinstance(effect.output, TurnEnded) and moment.after.config.schema:
            reply = isinstance(old.phase, Calling) and old.phase.purpose == "reply"
            if effect.output.reason in (Reason.DONE, Reason.UNAPPROVED) and reply:
                raise AssertionError(f"not checked: {effect.output}")
            if isinstance(old.phase, Checking) and effect.output.reason in (Reason.DONE, Reason.UNAPPROVED):
                assert moment.event == AnswerChecked(old.phase.id, "")


# --- bounds


def row_20_no_agent_gets_more_replies_than_allowed(world: World, moment: Moment) -> None:
    for path, count in world.answered.items():
        assert count <= world.limit, (path, count)
    for request in moment.requests:
        agent = moment.after.agents[request.id[:-1]]
        if isinstance(agent.phase, Calling) and agent.phase.purpose == "reply":  # row 23: the door is shut in time
            assert agent.iterations < moment.after.config.max_al_iterations or not isinstance(
                moment.event, ToolFinished
            )
            assert world.answered.get(agent.path, 0) < world.limit


def row_21_nothing_is_deeper_than_five_levels(world: World, moment: Moment) -> None:
    assert all(len(path) <= DEPTH_MAX for path in moment.after.agents)
    assert all(len(request.id) <= DEPTH_MAX + 1 for request in moment.requests)


def row_22_spent_is_what_was_told(world: World, moment: Moment) -> None:
    spent = moment.after.spent
    assert (spent.calls, spent.tokens_in, spent.tokens_out) == world.spent
    for effect in moment.effects:
        if isinstance(effect, Emit) and isinstance(effect.output, TurnEnded):
            assert effect.output.spent == spent
            old, new = moment.before.total, moment.after.total
            assert new.calls - old.calls == spent.calls
            assert (new.tokens_in - old.tokens_in, new.tokens_out - old.tokens_out) == world.spent[1:]


def used_up(world: World, moment: Moment) -> bool:
    """Whether a budget of the turn was passed: by the calls that ended, as servers counted them, and by the clock."""
    config, (calls, tokens_in, tokens_out) = moment.after.config, world.spent
    cost = (tokens_in * config.price_in + tokens_out * config.price_out) / 1e6
    return (
        0 < config.max_calls_total <= calls
        or 0 < config.max_tokens_total <= tokens_in + tokens_out
        or 0 < config.max_cost_usd <= cost
        or 0 < config.max_seconds <= moment.now - world.begun
    )


def worn_out(moment: Moment) -> bool:
    """Whether the agent of the event has had as many replies as it may have: the limit can be lowered in mid-turn."""
    return moment.before.agents[moment.path].iterations >= moment.after.config.max_al_iterations


def row_23_no_call_beyond_a_budget(world: World, moment: Moment) -> None:
    config, elapsed_s = moment.after.config, moment.now - world.begun
    for request in moment.requests:
        if isinstance(request, (CallModel, Sleep)):  # nor is one waited for
            assert not used_up(world, moment)
        if isinstance(request, CallModel):
            left_s = config.max_seconds - elapsed_s if config.max_seconds else None
            assert request.left_s == left_s
        if isinstance(request, (RunShell, RunTool)) and config.max_seconds:
            assert 0 < request.timeout_s <= config.max_seconds - elapsed_s
        if isinstance(request, Sleep) and config.max_seconds:
            assert request.seconds < config.max_seconds - elapsed_s


def row_23_no_call_runs_too_often_in_a_row(world: World, moment: Moment) -> None:
    for at, effect in enumerate(moment.effects):
        if isinstance(effect, (RunShell, RunTool)) and world.in_a_row:
            assert rows(world.row, moment.effects[:at])[effect.id[:-1]][1] <= world.in_a_row


def row_24_delays_are_fibonacci_or_what_the_server_asks(world: World, moment: Moment) -> None:
    for request in moment.requests:
        if isinstance(request, Sleep):
            slept = world.sleeps.get(request.id[:-1], 0)
            failure = moment.event.failure if isinstance(moment.event, ModelFailed) else None
            page = failure is not None and (failure.fault, failure.status) == (Fault.ANSWER, 200)
            assert slept < (PAGE_RETRIES_MAX if page else RETRIES_MAX)
            a, b = 1, 1
            for _ in range(slept):
                a, b = b, a + b
            asked = failure.retry_after_s if failure is not None else None
            assert (request.seconds, request.floor_s) == (max(a, asked or 0), asked or 0)
            assert request.seconds <= WAIT_MAX_S


def row_25_a_call_follows_each_sleep(world: World, moment: Moment) -> None:
    if moment.accepted and isinstance(moment.open.get(getattr(moment.event, "id", ())), Sleep):
        if used_up(world, moment) or worn_out(moment):
            return
        assert [(type(r), r.id[:-1]) for r in moment.requests] == [(CallModel, moment.path)]


def row_26_recovery_takes_something_away_at_most_twice(world: World, moment: Moment) -> None:
    for _, old, new in _changed(moment):
        assert new.strips <= 2
        if new.strips > old.strips:
            assert len(json.dumps([*new.messages])) < len(json.dumps([*old.messages]))
    if moment.after.withheld != moment.before.withheld and not isinstance(moment.event, ConfigChanged):
        assert moment.after.withheld > moment.before.withheld
        if used_up(world, moment) or worn_out(moment):
            return
        (call,) = moment.requests
        assert isinstance(call, CallModel)
        assert not moment.after.withheld & call.parameters.keys()


# --- the function itself


def row_29_arguments_do_not_change(world: World, moment: Moment) -> None:
    assert moment.before == moment.copy
    assert moment.event == moment.event_copy


def row_30_the_same_gives_the_same(world: World, moment: Moment) -> None:
    assert moment.again == (moment.after, moment.effects)


def row_38_ids_are_present_and_unique_also_in_what_is_shown(world: World, moment: Moment) -> None:
    assert all(output.call_id for output in _outputs(moment) if isinstance(output, CallStarted))


def row_40_a_result_is_shown_whole(world: World, moment: Moment) -> None:
    """The pieces that are shown of a result, glimpses apart, are the result that the model gets."""
    shown = dict(world.results)
    for effect in moment.effects:
        match effect:
            case Emit(who, ResultStarted(call_id)):
                shown[who, call_id] = ""
            case Emit(who, ResultDelta(call_id, text, glimpse=False)):
                shown[who, call_id] += text
            case Emit(who, ResultEnded(call_id, text=text)):
                lost = isinstance(moment.event, ToolFinished) and moment.event.id[:-1] == who
                assert shown[who, call_id] == text or (lost and shown[who, call_id].endswith(text))


def row_41_agents_do_not_touch_each_other(world: World, moment: Moment) -> None:
    """An answer to one agent changes those above it only by its end."""
    if isinstance(moment.event, Interrupted | Cleared | Loaded | UserSaid | TookBack | CompactAsked | SummaryAsked):
        return
    gone = moment.before.agents.keys() - moment.after.agents.keys()
    for path, agent in moment.before.agents.items():
        if path == moment.path or path in gone:
            continue
        below = [child for child in gone if child[:-1] == path]
        assert moment.after.agents[path] is agent or below or isinstance(moment.event, ConfigChanged)
    for path in gone:
        assert path == moment.path[: len(path)]


def row_46_nothing_the_user_said_is_lost_or_said_twice(world: World, moment: Moment) -> None:
    """What was queued waits, is said, or is given back; taken back is the last of it, and nothing else changes."""
    old, new = moment.before.agents[()], moment.after.agents[()]
    came = [moment.event] if isinstance(moment.event, UserSaid) and says_something(moment.event) else []
    waits = [*old.queued, *([] if old.phase == Idle() else came)]
    returned = [UserSaid(o.text, o.parts) for o in _outputs(moment) if isinstance(o, Returned)]
    if isinstance(moment.event, TookBack):
        assert [*new.queued, *returned] == waits
        assert len(returned) == min(1, len(waits))
        assert replace(new, queued=old.queued) == old
        return
    failed = (
        isinstance(moment.event, ModelFailed) and moment.path == () and not whole(moment)
    )  # takes away, and says nothing
    is_new = all(message is not kept for message in new.messages[-len(waits) :] for kept in old.messages)
    says = is_new and not failed and _says(new, waits)
    if new.queued == tuple(waits):
        assert not (waits and says)
    else:
        assert new.queued == ()
        assert (returned == waits) != says
    if came and old.phase == Idle():
        assert _says(new, came) or any(isinstance(output, TurnEnded) for output in _outputs(moment))


def _says(agent: Agent, said: list[UserSaid]) -> bool:
    """Whether the list ends with the user saying these."""
    return list(agent.messages[-len(said) :]) == [messages.user(one.text, one.parts) for one in said]


def _outputs(moment: Moment, start: int = 0, end: int | None = None) -> list[Output]:
    return [effect.output for effect in moment.effects[start:end] if isinstance(effect, Emit)]


def _changed(moment: Moment) -> list[tuple[tuple[int, ...], Agent, Agent]]:
    """(path, before, after) of the agents that the event changed and left alive."""
    old = moment.before.agents
    return [(p, old[p], new) for p, new in moment.after.agents.items() if p in old and new is not old[p]]


def _grew(old: Agent, new: Agent) -> bool:
    return new.messages[: len(old.messages)] == old.messages


def _slots(session: Session, moment: Moment) -> list[Call]:
    phase = session.agents[moment.path].phase
    return calls(phase) if isinstance(phase, Acting) else []


CHECKS = tuple(check for name, check in sorted(globals().items()) if name.startswith("row_"))
SLOW = (row_12_all_data_survives_json, row_29_arguments_do_not_change, row_30_the_same_gives_the_same)
QUICK = tuple(check for check in CHECKS if check not in SLOW)
"""Without those that take two thirds of the time."""
