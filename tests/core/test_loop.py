"""Stories: what one session does, told as events and effects. A failing program goes here under a name."""

import pytest

from bantam.core import messages, tree
from bantam.core.base.settings import Config
from bantam.core.effects import (
    CallModel,
    CallStarted,
    Cancel,
    Effect,
    Emit,
    Notice,
    Output,
    Reason,
    Requesting,
    ResultDelta,
    ResultEnded,
    ResultStarted,
    Retrying,
    Returned,
    RunShell,
    RunTool,
    Save,
    Sleep,
    Spent,
    Summarised,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
)
from bantam.core.events import (
    Cleared,
    CommandEnded,
    CompactAsked,
    ConfigChanged,
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
)
from bantam.core.messages import Message, Messages
from bantam.core.state import Session
from bantam.core.tools import toolbox
from bantam.core.tools.table import names
from bantam.core.window import context
from bantam.core.wire.request import offered
from tests.servers import LOOK_UP, TOOLBOX, Json
from tests.world import World

pytestmark = pytest.mark.core
CONFIG = Config()
NEW = tree.start(CONFIG, "s")
SYSTEM = messages.system("s")
HELLO = messages.user("hello")
OFFERED = offered(CONFIG.api, CONFIG.tools)
SENT = {"model": "big-pickle", "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.7}


def step(session: Session, *events: Event) -> tuple[Session, tuple[Effect, ...]]:
    """The session after the events, and what the last one caused."""
    effects: tuple[Effect, ...] = ()
    for event in events:
        session, effects = tree.step(session, event, 0.0)
    return session, effects


def call(name: str, arguments: str, id: str = "a") -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def said(id: Id, text: str = "", *calls: Json) -> tuple[Event, Event]:
    """A model's whole answer."""
    delta = {"content": text, "tool_calls": [{**call, "index": n} for n, call in enumerate(calls)]}
    return ModelChunks(id, ({"choices": [{"delta": delta}]},)), ModelEnded(id, marked=True)


def asks(id: Id, *said: Message, config: Config = CONFIG) -> CallModel:
    return CallModel(id, (SYSTEM, *said), OFFERED, SENT, config.timeout)


def by_root(*outputs: Output) -> tuple[Emit, ...]:
    return tuple(Emit((), output) for output in outputs)


def ended(reason: Reason, text: str = "", calls: int = 1) -> Emit:
    return Emit((), TurnEnded(reason, text, Spent(calls)))


def list_of(session: Session) -> Messages:
    return tree.conversation(session)[1:]


LS = call("shell_exec", '{"command": "ls"}')
ASKED: Message = {"role": "assistant", "content": "", "tool_calls": [LS]}


def test_a_question_is_answered() -> None:
    calling, effects = step(NEW, UserSaid("hello"))
    assert effects == (*by_root(Requesting()), asks((1,), HELLO))
    thinking, effects = step(
        calling, ModelChunks((1,), ({"choices": [{"delta": {"reasoning": "hm", "content": "hi"}}]},))
    )
    assert effects == by_root(ThoughtDelta("hm"), TextDelta("hi"))
    idle, effects = step(thinking, ModelEnded((1,), marked=True))
    answer = {"role": "assistant", "reasoning": "hm", "content": "hi"}
    assert effects == (Save((SYSTEM, HELLO, answer)), ended(Reason.DONE, "hi"))
    assert tree.idle(idle)


def test_a_command_runs_and_its_output_goes_back() -> None:
    acting, effects = step(NEW, UserSaid("hello"), *said((1,), "", LS))
    started = CallStarted("a", "shell_exec", '{"command": "ls"}')
    assert effects == (*by_root(started), RunShell((2,), "ls", "sh", 120, 100_000))
    printing, effects = step(acting, ToolProgress((2,), "x\n"))
    assert effects == by_root(ResultStarted("a", "shell_exec"), ResultDelta("a", "x\n"))
    _, effects = step(printing, CommandEnded((2,), 0))
    shown = by_root(ResultDelta("a", "\n\nexit: 0"), ResultEnded("a", "shell_exec", "x\n\n\nexit: 0"), Requesting())
    assert effects == (*shown, asks((3,), HELLO, ASKED, messages.tool_result("a", "x\n\n\nexit: 0")))


def test_commands_run_one_after_another_and_subagents_together() -> None:
    calls = [
        LS,
        call("run_subagent", '{"prompt": "p"}', "b"),
        call("run_subagent", '{"prompt": "q"}', "c"),
        {**LS, "id": "d"},
    ]
    first, effects = step(NEW, UserSaid("hello"), *said((1,), "", *calls))
    assert [e.id for e in effects if isinstance(e, RunShell | CallModel)] == [(2,)]
    both, effects = step(first, CommandEnded((2,), 0))
    assert [e.id for e in effects if isinstance(e, RunShell | CallModel)] == [(3, 1), (4, 1)]
    _, effects = step(both, *said((4, 1), "Q"))
    assert [e for e in effects if not isinstance(e, Emit)] == []
    last, effects = step(both, *said((4, 1), "Q"), *said((3, 1), "P"))
    assert [e.id for e in effects if isinstance(e, RunShell | CallModel)] == [(5,)]
    done, _ = step(last, CommandEnded((5,), 1))
    results = [(m["tool_call_id"], m["content"]) for m in list_of(done) if m["role"] == "tool"]
    assert results == [("a", "\n\nexit: 0"), ("b", "P"), ("c", "Q"), ("d", "\n\nexit: 1")]


def test_a_function_runs_beside_a_subagent_and_its_result_goes_back() -> None:
    child = call("run_subagent", '{"prompt": "p"}', "b")
    look = call("look_up", '{"word": "it\'s", "n": [1]}')
    new = tree.start(Config(tools=names(TOOLBOX)), "s", TOOLBOX)
    acting, effects = step(new, UserSaid("hello"), *said((1,), "", look, child, {**LS, "id": "c"}))
    assert [e for e in effects if not isinstance(e, Emit | CallModel)] == [
        RunTool((2,), "look_up", {"word": "it's", "n": [1]}, 120, 100_000)
    ]
    assert [tool["function"] for e in effects if isinstance(e, CallModel) for tool in e.tools][2] == {
        "name": LOOK_UP.name,
        "description": LOOK_UP.description,
        "parameters": LOOK_UP.parameters,
    }
    told, effects = step(acting, ToolProgress((2,), "half "))
    assert effects == by_root(ResultStarted("a", "look_up"), ResultDelta("a", "half "))
    assert step(told, CommandEnded((2,), 0)) == (told, ())  # it is no command
    idle, _ = step(told, Interrupted())
    results = [m["content"] for m in list_of(idle)[2:]]
    assert results == ["half \n[interrupted by the user]", "[interrupted by the user]", toolbox.NOT_RUN]
    both, effects = step(told, ToolFinished((2,), "half done"))
    assert effects == by_root(ResultDelta("a", "done"), ResultEnded("a", "look_up", "half done"))
    last, effects = step(both, *said((3, 1), "P"))
    assert [e.id for e in effects if isinstance(e, RunShell)] == [(4,)]
    assert step(last, ToolFinished((2,), "twice")) == (last, ())
    done, _ = step(last, CommandEnded((4,), 0))
    assert [m["content"] for m in list_of(done)[2:]] == ["half done", "P", "\n\nexit: 0"]


def test_a_function_whose_end_is_unknown_keeps_what_it_said() -> None:
    new = tree.start(Config(tools=names(TOOLBOX)), "s", TOOLBOX)
    acting, _ = step(new, UserSaid("hello"), *said((1,), "", call("look_up", "{}")), ToolProgress((2,), "half"))
    lost, _ = step(acting, Lost((2,)))
    assert list_of(lost)[-1]["content"] == "half\n" + toolbox.LOST


def test_a_tool_that_is_not_on_is_not_there() -> None:
    _, effects = step(tree.start(CONFIG, "s", TOOLBOX), UserSaid("hello"), *said((1,), "", call("look_up", "{}")))
    (again,) = [effect for effect in effects if isinstance(effect, CallModel)]
    words = "error: there is no tool 'look_up'; the tools are: shell_exec, run_subagent"
    assert (again.messages[-1]["content"], again.tools) == (words, OFFERED)


def test_bad_arguments_are_answered_at_once_and_nothing_runs() -> None:
    _, effects = step(NEW, UserSaid("hello"), *said((1,), "", call("shell_exec", "{")))
    assert not any(isinstance(effect, RunShell) for effect in effects)
    (again,) = [effect for effect in effects if isinstance(effect, CallModel)]
    assert "not a JSON object" in again.messages[-1]["content"]
    assert again.messages[-2]["tool_calls"] == [call("shell_exec", "{}")]


def test_an_interrupt_keeps_results_that_came() -> None:
    calls = [call("shell_exec", '{"command": "x"}', id) for id in "abc"]
    running, _ = step(
        NEW, UserSaid("hello"), *said((1,), "", *calls), ToolFinished((2,), ""), ToolProgress((3,), "so far")
    )
    idle, effects = step(running, Interrupted())
    assert [m["content"] for m in list_of(idle)[2:]] == ["", "so far\n[interrupted by the user]", toolbox.NOT_RUN]
    assert effects[0] == Cancel((3,))
    assert effects[-1] == ended(Reason.INTERRUPTED)


def test_what_is_queued_can_be_taken_back_until_it_is_said() -> None:
    acting, _ = step(NEW, UserSaid("hello"), *said((1,), "", call("shell_exec", '{"command": "ls"}')))
    waiting, _ = step(acting, UserSaid("one"), UserSaid("two"))
    one, effects = step(waiting, TookBack())
    assert effects == by_root(Returned("two"))
    assert step(one, TookBack()) == (acting, by_root(Returned("one")))
    assert step(acting, TookBack()) == (acting, ())
    told, _ = step(one, CommandEnded((2,), 0))
    assert list_of(told)[-1] == messages.user("one")
    assert step(told, TookBack()) == (told, ())


def test_an_interrupt_reaches_subagents_at_every_level_and_charges_their_calls() -> None:
    child = call("run_subagent", '{"prompt": "p"}')
    deep, _ = step(NEW, UserSaid("hello"), *said((1,), "", child), *said((2, 1), "", child))
    idle, effects = step(deep, UserSaid("wait"), Interrupted())
    assert [effect for effect in effects if isinstance(effect, Cancel)] == [Cancel((2, 2, 1))]
    assert effects[-2:] == (*by_root(Returned("wait")), ended(Reason.INTERRUPTED, calls=3))
    assert list_of(idle)[-1] == messages.tool_result("a", "[interrupted by the user]")


def test_an_interrupt_keeps_the_text_so_far_but_no_half_call_and_no_thought() -> None:
    half = {"reasoning": "hm", "content": "I wi", "tool_calls": [{"index": 0, "function": {"name": "shell_exec"}}]}
    calling, _ = step(NEW, UserSaid("hello"), ModelChunks((1,), ({"choices": [{"delta": half}]},)))
    idle, effects = step(calling, Interrupted())
    assert effects == (
        Cancel((1,)),
        Save((SYSTEM, HELLO, messages.assistant("I wi"))),
        ended(Reason.INTERRUPTED, "I wi"),
    )
    assert step(idle, *said((1,), "late")) == (idle, ())


def test_a_busy_server_is_asked_again_after_fibonacci_seconds_and_then_no_more() -> None:
    session, effects = step(NEW, UserSaid("hello"))
    slept = []
    for number in range(1, 30, 2):
        session, effects = step(session, ModelFailed((number,), Failure(Fault.HTTP, "busy", 503)))
        slept += [effect.seconds for effect in effects if isinstance(effect, Sleep)]
        if tree.idle(session):
            break
        assert effects[0] == Emit((), Retrying("the API answered 503: busy", slept[-1], len(slept), 9))
        session, effects = step(session, TimerFired((number + 1,)))
        assert effects == (*by_root(Requesting()), asks((number + 2,), HELLO))
    assert slept == [1, 1, 2, 3, 5, 8, 13, 21, 34]
    assert effects[-1] == ended(Reason.TRANSIENT, calls=10)


def test_a_server_that_refuses_its_own_message_gets_the_list_without_it() -> None:
    refused = Failure(Fault.HTTP, "Invalid assistant message: content or tool_calls must be set", 400)
    session, _ = step(NEW, UserSaid("hello"), *said((1,), "", LS), CommandEnded((2,), 0))
    again, effects = step(session, ModelFailed((3,), refused))
    assert effects[-1] == asks((4,), HELLO)
    idle, effects = step(again, ModelFailed((4,), refused))
    assert effects[-1] == ended(Reason.FAILED, calls=3)
    assert tree.idle(idle)


def test_a_refused_parameter_is_left_out_from_then_on() -> None:
    refused = Failure(Fault.HTTP, "Unsupported parameter: temperature", 400)
    session, effects = step(NEW, UserSaid("hello"), ModelFailed((1,), refused))
    assert effects[0] == Emit((), Notice("the server refuses temperature; going on without it"))
    left = {key: value for key, value in SENT.items() if key != "temperature"}
    assert effects[-1] == CallModel((2,), (SYSTEM, HELLO), OFFERED, left, 300)
    session, effects = step(session, *said((2,), "hi"), UserSaid("hello"))
    assert [e.parameters for e in effects if isinstance(e, CallModel)] == [left]
    _, effects = step(session, ModelFailed((3,), refused))
    assert effects[-1] == ended(Reason.FAILED)


def test_a_parameter_that_two_agents_sent_at_once_is_left_out_by_both() -> None:
    refused = Failure(Fault.HTTP, "Unsupported parameter: temperature", 400)
    calls = [call("run_subagent", '{"prompt": "p"}', id) for id in "ab"]
    session, _ = step(NEW, UserSaid("hello"), *said((1,), "", *calls), ModelFailed((2, 1), refused))
    session, effects = step(session, ModelFailed((3, 1), refused))
    (again,) = [effect for effect in effects if isinstance(effect, CallModel)]
    assert (again.id, "temperature" in again.parameters) == ((3, 2), False)
    assert tree.outstanding(session) == {(2, 2), (3, 2)}


def test_a_conversation_that_is_too_long_is_cleared_of_old_output_then_compacted_then_given_up() -> None:
    too_long = Failure(Fault.HTTP, "maximum context length", 400)
    big = messages.tool_result("a", "y" * 200_000)
    turns: list[Message] = []
    for _ in range(4):
        turns += [HELLO, ASKED, big, messages.assistant("hi")]
    session, _ = step(NEW, Loaded((SYSTEM, *turns)), UserSaid("more"))
    pruned, effects = step(session, ModelFailed((1,), too_long))
    (call,) = [effect for effect in effects if isinstance(effect, CallModel)]
    assert call.messages == context.prune((SYSTEM, *turns, messages.user("more")))
    assert len(str(call.messages)) < len(str(turns)) - 300_000
    shrinking, effects = step(pruned, ModelFailed((2,), too_long))
    assert effects[-1] == CallModel((3,), context.compact_request(call.messages, whole=False), (), SENT, 300)
    short, effects = step(shrinking, *said((3,), "long story"))
    summary = messages.user(context.SUMMARY_INTRODUCTION + "long story")
    assert effects[0] == Emit((), Notice("the conversation was compacted to fit the model"))
    assert effects[-1] == asks((4,), summary, messages.user("more"))
    _, effects = step(short, ModelFailed((4,), too_long))
    assert effects[-1] == ended(Reason.FAILED, calls=4)


def test_a_turn_that_grew_too_long_by_itself_goes_on_from_a_summary_of_its_work() -> None:
    too_long = Failure(Fault.HTTP, "maximum context length", 400)
    result = "y" * 6_000
    session, _ = step(NEW, UserSaid("hello"), *said((1,), "", LS), CommandEnded((2,), 0, result))
    shrinking, effects = step(session, ModelFailed((3,), too_long))
    work = list_of(session)
    assert effects[-1] == CallModel((4,), context.compact_request((SYSTEM, *work), whole=False), (), SENT, 300)
    assert len(str(effects[-1])) < 6_000
    tighter, effects = step(shrinking, ModelFailed((4,), too_long))
    again = context.compact_request((SYSTEM, *work), whole=False, squeezed=1)
    assert effects[-1] == CallModel((5,), again, (), SENT, 300)
    tightest, _ = step(tighter, ModelFailed((5,), too_long))
    _, effects = step(tightest, ModelFailed((6,), too_long))
    assert effects[-1] == ended(Reason.FAILED, calls=5)
    _, effects = step(tighter, *said((5,), "I listed files"))
    assert effects[-1] == asks((6,), HELLO, messages.user(context.SUMMARY_INTRODUCTION + "I listed files"))


def test_a_compaction_that_is_too_long_itself_is_asked_for_in_fewer_words() -> None:
    too_long = Failure(Fault.HTTP, "maximum context length", 400)
    long = messages.user("y" * 6_000)
    session, effects = step(NEW, Loaded((SYSTEM, long, messages.assistant("hi"))), CompactAsked())
    for squeezed in (1, 2):
        (request,) = [effect for effect in effects if isinstance(effect, CallModel)]
        session, effects = step(session, ModelFailed(request.id, too_long))
        asked = context.compact_request((SYSTEM, *list_of(session)), True, squeezed)
        assert effects[-1] == CallModel((squeezed + 1,), asked, (), SENT, 300)
    failed, effects = step(session, ModelFailed((3,), too_long))
    assert (list_of(failed), effects[-1]) == ((long, messages.assistant("hi")), ended(Reason.FAILED, calls=3))


def test_a_failed_compaction_leaves_the_conversation_as_it_was() -> None:
    session, _ = step(NEW, UserSaid("hello"), *said((1,), "hi"))
    asked, _ = step(session, CompactAsked())
    failed, effects = step(asked, ModelFailed((2,), Failure(Fault.HTTP, "no", 401)))
    assert list_of(failed) == list_of(session)
    assert effects[0] == Emit(
        (), Notice("could not compact, the conversation stays as it was: the API answered 401: no", True)
    )
    begun, _ = step(asked, said((2,), "we sa")[0])
    assert list_of(step(begun, Interrupted())[0]) == list_of(session)
    wordless, effects = step(asked, *said((2,), " ", LS))
    assert (list_of(wordless), effects[-1]) == (list_of(session), Sleep((3,), 1.0, 0.0))
    done, effects = step(asked, *said((2,), "we said hello"))
    assert list_of(done) == (messages.user(context.SUMMARY_INTRODUCTION + "we said hello"),)
    assert effects[-1] == ended(Reason.DONE, "we said hello")


def test_a_summary_is_one_line_and_leaves_the_conversation_alone() -> None:
    session, _ = step(NEW, UserSaid("hello"), *said((1,), "hi"))
    done, effects = step(session, SummaryAsked(), *said((2,), "a\nb"))
    assert effects == (*by_root(Summarised("a b")), Save(tree.conversation(session)), ended(Reason.DONE, "a b"))
    assert list_of(done) == list_of(session)
    _, effects = step(NEW, SummaryAsked())
    assert effects == (
        *by_root(Notice("there is nothing to summarise yet")),
        Save((SYSTEM,)),
        ended(Reason.DONE, calls=0),
    )


def test_what_the_user_says_meanwhile_is_said_before_the_next_call() -> None:
    acting, _ = step(NEW, UserSaid("hello"), *said((1,), "", LS))
    queued, effects = step(acting, UserSaid("also this"))
    assert effects == ()
    _, effects = step(queued, CommandEnded((2,), 0))
    (call,) = [effect for effect in effects if isinstance(effect, CallModel)]
    assert call.messages[-2:] == (messages.tool_result("a", "\n\nexit: 0"), messages.user("also this"))


def test_an_answer_that_the_token_limit_cut_says_so() -> None:
    cut = ModelChunks((1,), ({"choices": [{"delta": {"content": "I wi"}, "finish_reason": "length"}]},))
    _, effects = step(NEW, UserSaid("hello"), cut, ModelEnded((1,)))
    assert effects[0] == Emit((), Notice("the answer was cut off at the token limit"))
    _, effects = step(NEW, UserSaid("hello"), cut, UserSaid("go on"), ModelEnded((1,)))
    assert effects[0] == Emit((), Notice("the answer was cut off at the token limit"))
    assert isinstance(effects[-1], CallModel)


def test_a_stream_without_an_end_is_no_answer() -> None:
    open_end, whole = said((1,), "hi")
    _, effects = step(NEW, UserSaid("hello"), open_end, ModelEnded((1,)))
    assert effects[-1] == Sleep((2,), 1.0, 0.0)
    _, effects = step(NEW, UserSaid("hello"), open_end, whole)
    assert effects[-1] == ended(Reason.DONE, "hi")


def test_a_child_says_how_it_ended() -> None:
    child = call("run_subagent", '{"prompt": "p"}')
    session, _ = step(NEW, ConfigChanged(Config(max_al_iterations=2)), UserSaid("hello"), *said((1,), "", child))
    failed, _ = step(session, ModelFailed((2, 1), Failure(Fault.HTTP, "no", 401)))
    assert list_of(failed)[-1]["content"] == "error: the subagent failed: the API answered 401: no"
    stopped, _ = step(
        session, *said((2, 1), "one", LS), CommandEnded((2, 2), 0), *said((2, 3), "two", LS), CommandEnded((2, 4), 0)
    )
    why = "stopped: the model calls of this turn are used up (max_al_iterations=2)"
    assert list_of(stopped)[-1]["content"] == f"error: the subagent did not finish: {why}. Its last words: two"


def test_a_cleared_conversation_is_its_system_prompt() -> None:
    session, _ = step(NEW, UserSaid("hello"), *said((1,), "hi"))
    assert step(session, Cleared()) == (step(session, Cleared())[0], (Save((SYSTEM,)),))
    assert tree.conversation(step(session, Cleared())[0]) == (SYSTEM,)


@pytest.mark.parametrize("command", ["shell_exec", "run_subagent"])
def test_a_model_that_always_asks_for_more_is_stopped(command: str) -> None:
    """Row 28: nothing that a model answers makes a turn endless."""
    world = World(Config(max_al_iterations=3))
    world.tell(UserSaid("hello"))
    more = call(command, '{"command": "ls", "prompt": "p"}')
    while world.open:
        id = min(world.open)
        for event in said(id, "", more) if isinstance(world.open[id], CallModel) else (CommandEnded(id, 0),):
            world.tell(event)
    assert tree.idle(world.session)
    levels = 6 if command == "run_subagent" else 1
    assert world.session.spent.calls == sum(3**level for level in range(1, levels + 1))
    (end,) = [
        e.output
        for _, effects in world.history
        for e in effects
        if isinstance(e, Emit) and isinstance(e.output, TurnEnded)
    ]
    assert end.reason is Reason.ITERATIONS


def test_an_event_that_is_shown_can_be_pasted_here() -> None:
    failed = ModelFailed((1,), Failure(Fault.SILENCE, "x"))
    assert eval(repr((failed, ended(Reason.DONE)))) == (failed, ended(Reason.DONE))
