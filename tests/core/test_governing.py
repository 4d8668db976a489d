"""Stories of a turn that is governed: its budgets, its approvals, the schema of its answer."""

import pytest

from bantam.core import tree
from bantam.core.base.record import replace
from bantam.core.base.settings import Config
from bantam.core.effects import (
    AskApproval,
    CallModel,
    Cancel,
    CheckAnswer,
    Effect,
    Emit,
    Notice,
    Reason,
    RunShell,
    RunTool,
    Sleep,
    TurnEnded,
)
from bantam.core.events import (
    AnswerChecked,
    Approved,
    CommandEnded,
    ConfigChanged,
    Denied,
    Event,
    Failure,
    Fault,
    Id,
    Interrupted,
    Lost,
    ModelChunks,
    ModelEnded,
    ModelFailed,
    ToolFinished,
    UserSaid,
)
from bantam.core.state import Session
from bantam.core.tools.table import names
from tests.invariants import complaint
from tests.servers import TOOLBOX, Json

pytestmark = pytest.mark.core


class Turn:
    """A session of one setting, and the effects of its last event. Time is what `now` says."""

    def __init__(self, **settings: Json) -> None:
        self.session: Session = tree.start(Config(**settings), "s", TOOLBOX)
        self.effects: tuple[Effect, ...] = ()
        self.now = 0.0

    def tell(self, *events: Event) -> "Turn":
        for event in events:
            self.session, self.effects = tree.step(self.session, event, self.now)
            assert complaint(tree.conversation(self.session)) == "" or tree.outstanding(self.session)
        return self

    @property
    def ended(self) -> TurnEnded:
        (end,) = [e.output for e in self.effects if isinstance(e, Emit) and isinstance(e.output, TurnEnded)]
        assert complaint(tree.conversation(self.session)) == ""
        return end

    @property
    def requests(self) -> list[Effect]:
        return [e for e in self.effects if not isinstance(e, Emit) and type(e).__name__ != "Save"]

    @property
    def notices(self) -> list[str]:
        return [e.output.text for e in self.effects if isinstance(e, Emit) and isinstance(e.output, Notice)]

    @property
    def last(self) -> str:
        return str(tree.conversation(self.session)[-1]["content"])


def says(id: Id, *commands: str, text: str = "", tokens: int = 0, tool: str = "shell_exec") -> tuple[Event, Event]:
    member = {"shell_exec": "command", "run_subagent": "prompt", "look_up": "word"}[tool]
    calls = [
        {"index": n, "id": f"c{n}", "function": {"name": tool, "arguments": f'{{"{member}": "{command}"}}'}}
        for n, command in enumerate(commands)
    ]
    chunk: Json = {"choices": [{"delta": {"content": text, "tool_calls": calls}}]}
    if tokens:
        chunk["usage"] = {"prompt_tokens": tokens, "completion_tokens": 0}
    return ModelChunks(id, (chunk,)), ModelEnded(id, marked=True)


# --- budgets


def test_a_budget_of_tokens_ends_the_turn_after_the_answer_that_passed_it() -> None:
    turn = Turn(max_tokens_total=100).tell(UserSaid("x"), *says((1,), "ls", tokens=99), CommandEnded((2,), 0))
    assert [type(request) for request in turn.requests] == [CallModel]
    turn.tell(*says((3,), "ls", text="still at it", tokens=1), CommandEnded((4,), 0))
    assert (turn.ended.reason, turn.ended.text) == (Reason.TOKENS, "still at it")
    assert turn.notices == ["stopped: the tokens of this turn are used up (max_tokens_total=100)"]
    turn.tell(UserSaid("go on"))  # a new turn has a new budget
    assert [type(request) for request in turn.requests] == [CallModel]


def test_eight_subagents_share_one_budget() -> None:
    turn = Turn(max_calls_total=4).tell(UserSaid("x"), *says((1,), *"abcdefgh", tool="run_subagent"))
    paths = [(n,) for n in range(2, 10)]
    assert [request.id for request in turn.requests if isinstance(request, CallModel)] == [(*p, 1) for p in paths]
    calls = 0
    for path in paths:  # each was already asking: one response of each may pass the budget, and no more
        turn.tell(*says((*path, 1), "ls"))
        if any(isinstance(request, RunShell) for request in turn.requests):
            turn.tell(CommandEnded((*path, 2), 0))
        calls += sum(isinstance(request, CallModel) for request in turn.requests)
    assert calls == 2  # the second and the third call were made before the fourth was counted
    assert turn.session.spent.calls == 9


def test_the_clock_is_in_every_request() -> None:
    turn = Turn(max_seconds=10, shell_timeout=7)
    turn.now = 100.0
    turn.tell(UserSaid("x"))
    assert [r.left_s for r in turn.requests if isinstance(r, CallModel)] == [10]
    turn.now = 105.0
    turn.tell(*says((1,), "sleep 60", "ls"))
    assert [r.timeout_s for r in turn.requests if isinstance(r, RunShell)] == [5]
    turn.now = 110.0
    turn.tell(CommandEnded((2,), 124, "so far\n", timed_out=True))
    assert turn.ended.reason is Reason.SECONDS
    first, second = tree.conversation(turn.session)[-2:]
    assert first["content"] == "so far\n[timed out after 5 s and was stopped]\n\nexit: 124"
    assert second["content"] == "not run: the time of the turn is over"


def test_a_call_that_the_clock_ends_ends_the_turn() -> None:
    turn = Turn(max_seconds=10).tell(UserSaid("x"), ModelFailed((1,), Failure(Fault.TIME, "over")))
    assert turn.ended.reason is Reason.SECONDS
    finished = {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}
    turn = Turn(max_seconds=10).tell(UserSaid("x"), ModelChunks((1,), (finished,)))
    assert turn.tell(ModelFailed((1,), Failure(Fault.TIME, "over"))).ended.reason is Reason.DONE


def test_no_sleep_is_longer_than_what_is_left_of_the_time() -> None:
    busy = Failure(Fault.HTTP, "busy", 503, retry_after_s=30.0)
    turn = Turn(max_seconds=20).tell(UserSaid("x"), ModelFailed((1,), busy))
    assert turn.ended.reason is Reason.SECONDS
    assert turn.notices == ["stopped: the time of this turn is over (max_seconds=20); the API answered 503: busy"]
    turn = Turn(max_seconds=40).tell(UserSaid("x"), ModelFailed((1,), busy))
    assert [type(request) for request in turn.requests] == [Sleep]


def test_no_retry_is_waited_for_that_a_budget_forbids() -> None:
    turn = Turn(max_calls_total=1).tell(UserSaid("x"), ModelFailed((1,), Failure(Fault.HTTP, "busy", 503)))
    assert (turn.ended.reason, turn.requests) == (Reason.CALLS, [])
    assert turn.notices[0].endswith("(max_calls_total=1); the API answered 503: busy")


def test_the_same_call_again_and_again_is_stopped_before_it_runs() -> None:
    turn = Turn(max_identical_calls=2).tell(UserSaid("x"))
    for number in (1, 3):
        turn.tell(*says((number,), "ls"), CommandEnded((number + 1,), 0))
    turn.tell(*says((5,), "ls", "pwd"))
    assert turn.ended.reason is Reason.CYCLE
    assert turn.requests == []
    assert turn.last == "not run: this call was made too often in a row"
    turn = Turn(max_identical_calls=1).tell(UserSaid("x"))
    for number, command in ((1, "ls"), (3, "pwd"), (5, "ls")):
        turn.tell(*says((number,), command), CommandEnded((number + 1,), 0))
    assert [type(request) for request in turn.requests] == [CallModel]


# --- approvals


def test_a_command_that_asks_waits_and_keeps_its_id() -> None:
    turn = Turn(approve="allow ls; deny rm *").tell(UserSaid("x"), *says((1,), "ls", "make", "rm -rf y"))
    assert [(type(r), getattr(r, "command", "")) for r in turn.requests] == [(RunShell, "ls")]
    turn.tell(CommandEnded((2,), 0))
    assert turn.requests == [AskApproval((3,), "make", "no rule is about it")]
    assert turn.tell(CommandEnded((3,), 0, "forged")).effects == ()
    turn.tell(Approved((3,)))
    assert [(type(r), getattr(r, "id", ())) for r in turn.requests] == [(RunShell, (3,))]
    turn.tell(CommandEnded((3,), 0, "made"))
    assert turn.last == "not run: the rules of this folder do not allow it (deny rm *)"
    turn.tell(*says((4,), text="done"))
    assert turn.ended.reason is Reason.DONE


def test_a_function_is_judged_in_words_that_rules_can_read() -> None:
    approve = "allow look_up *blue*; deny look_up *red*"
    turn = Turn(approve=approve, tools=names(TOOLBOX), shell_timeout=7)
    turn.tell(UserSaid("x"), *says((1,), "blue", "red", "it's $(ls)", tool="look_up"))
    asked = AskApproval((3,), "look_up '{\"word\": \"it'\\''s $(ls)\"}'", "no rule is about it")
    assert turn.requests == [RunTool((2,), "look_up", {"word": "blue"}, 7, 100_000), asked]
    assert turn.tell(ToolFinished((3,), "forged")).effects == ()
    assert turn.tell(Approved((3,))).requests == [RunTool((3,), "look_up", {"word": "it's $(ls)"}, 7, 100_000)]
    turn.tell(ToolFinished((2,), "sky"), ToolFinished((3,), "sea"))
    results = [message["content"] for message in tree.conversation(turn.session)[-3:]]
    assert results == ["sky", "not run: the rules of this folder do not allow it (deny look_up *red*)", "sea"]
    turn.tell(*says((4,), "green", tool="look_up"), Denied((5,), nobody=True))
    assert turn.notices[0].startswith('not run: look_up \'{"word": "green"}\': it needs an approval')


def test_a_function_has_no_more_time_than_the_turn() -> None:
    turn = Turn(max_seconds=10, tools=names(TOOLBOX)).tell(UserSaid("x"))
    turn.now = 4.0
    turn.tell(*says((1,), "blue", tool="look_up"))
    assert [request.timeout_s for request in turn.requests if isinstance(request, RunTool)] == [6]


def test_what_is_denied_does_not_run_and_the_turn_goes_on() -> None:
    turn = Turn(approve="ask").tell(UserSaid("x"), *says((1,), "ls"), Denied((2,)))
    assert [type(request) for request in turn.requests] == [CallModel]
    assert turn.last == "not run: the user denied it"
    turn.tell(Approved((2,)), CommandEnded((2,), 0))  # too late
    assert turn.effects == ()
    assert turn.tell(*says((3,), text="then not")).ended.reason is Reason.DONE


def test_where_nobody_can_be_asked_the_turn_says_so_at_its_end() -> None:
    turn = Turn(approve="ask").tell(UserSaid("x"), *says((1,), "look", tool="run_subagent"), *says((2, 1), "ls"))
    assert turn.requests == [AskApproval((2, 2), "ls", "approve=ask")]
    turn.tell(Denied((2, 2), nobody=True))
    assert turn.notices == [
        "not run: ls: it needs an approval (approve=ask), and there is nobody to ask; "
        'to allow it, write into model.cfg: approve=allow "ls"'
    ]
    turn.tell(*says((2, 3), "ls"), Denied((2, 4), nobody=True))
    assert turn.notices == []  # once a turn
    turn.tell(*says((2, 5), text="no"), *says((3,), text="sorry"))
    assert (turn.ended.reason, turn.ended.text) == (Reason.UNAPPROVED, "sorry")
    turn.tell(UserSaid("again"), *says((4,), text="fine"))
    assert turn.ended.reason is Reason.DONE


def test_rules_that_cannot_be_read_ask() -> None:
    turn = Turn(approve="nonsense").tell(UserSaid("x"), *says((1,), "ls"))
    assert [type(request) for request in turn.requests] == [AskApproval]


def test_an_interrupt_takes_a_question_back() -> None:
    turn = Turn(approve="ask").tell(UserSaid("x"), *says((1,), "ls"), Interrupted())
    assert turn.requests == [Cancel((2,))]
    assert turn.last == "not run: interrupted by the user before it started"
    turn = Turn(approve="ask").tell(UserSaid("x"), *says((1,), "ls"), Lost((2,)))
    assert turn.last == "not run: interrupted by the user before it started"


def test_an_approval_that_comes_too_late_runs_nothing() -> None:
    turn = Turn(approve="ask", max_seconds=5).tell(UserSaid("x"), *says((1,), "ls"))
    turn.now = 60.0
    assert turn.tell(Approved((2,))).ended.reason is Reason.SECONDS
    assert turn.last == "not run: the time of the turn is over"


# --- the schema of an answer

SCHEMA = {"type": "object", "required": ["a"]}


def test_an_answer_is_checked_and_may_be_repaired_once() -> None:
    turn = Turn(schema=SCHEMA).tell(UserSaid("x"))
    (call,) = turn.requests
    assert isinstance(call, CallModel)
    assert call.parameters["response_format"]["json_schema"] == {"name": "answer", "schema": SCHEMA}
    turn.tell(*says((1,), text="{}"))
    assert turn.requests == [CheckAnswer((2,), "{}", SCHEMA)]
    turn.tell(AnswerChecked((2,), "a is missing"))
    assert turn.notices == ["the answer does not satisfy the schema: a is missing; once more"]
    assert turn.last == "Your answer does not satisfy the schema: a is missing. Answer with the JSON alone."
    turn.tell(*says((3,), text='{"a": 1}'), AnswerChecked((4,), ""))
    assert (turn.ended.reason, turn.ended.text) == (Reason.DONE, '{"a": 1}')


def test_an_answer_that_stays_wrong_is_a_failure_of_its_own() -> None:
    turn = Turn(schema=SCHEMA).tell(UserSaid("x"), *says((1,), text="{}"), AnswerChecked((2,), "a is missing"))
    turn.tell(*says((3,), text="[]"), AnswerChecked((4,), "no object"))
    assert turn.ended.reason is Reason.SCHEMA
    assert turn.notices == ["the answer does not satisfy the schema: no object"]


def test_what_was_said_meanwhile_is_said_behind_a_good_answer() -> None:
    turn = Turn(schema=SCHEMA).tell(UserSaid("x"), *says((1,), text="{}"), UserSaid("and?"), AnswerChecked((2,), ""))
    assert turn.last == "and?"
    assert [type(request) for request in turn.requests] == [CallModel]


def test_a_check_that_was_lost_is_made_again_and_an_interrupt_ends_it() -> None:
    turn = Turn(schema=SCHEMA).tell(UserSaid("x"), *says((1,), text="{}"), Lost((2,)))
    assert turn.requests == [CheckAnswer((3,), "{}", SCHEMA)]
    assert turn.tell(Interrupted()).ended.reason is Reason.INTERRUPTED


def test_subagents_and_summaries_have_no_schema() -> None:
    turn = Turn(schema=SCHEMA).tell(UserSaid("x"), *says((1,), "look", tool="run_subagent"))
    (call,) = turn.requests
    assert isinstance(call, CallModel)
    assert "response_format" not in call.parameters
    turn.tell(*says((2, 1), text="no JSON"))
    assert turn.last == "no JSON"


# --- a setting that changes in mid-turn


def test_what_a_server_refused_is_forgotten_with_the_server_and_not_with_another_setting() -> None:
    refusal = Failure(Fault.HTTP, '{"error": {"message": "Unsupported parameter", "param": "temperature"}}', 400)
    turn = Turn().tell(UserSaid("x"), ModelFailed((1,), refusal), *says((2,), text="ok"))
    assert turn.session.withheld == {"temperature"}
    turn.tell(ConfigChanged(replace(turn.session.config, approve="ask")))
    assert turn.session.withheld == {"temperature"}
    turn.tell(ConfigChanged(replace(turn.session.config, model="another")))
    assert turn.session.withheld == frozenset()
