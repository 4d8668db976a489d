"""Two runs side by side: where they part, whatever pieces and ids their answers came in, and what they cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.settings import Config
from bantam.core.events import (
    Approved,
    CommandEnded,
    Denied,
    Event,
    Failure,
    Fault,
    ModelChunks,
    ModelEnded,
    ModelFailed,
    ToolProgress,
    UserSaid,
)
from bantam.core.past import compare, tape
from bantam.core.past.tape import Tape
from tests.core.past.test_history import lines, written
from tests.servers import Json
from tests.world import Rolled, World, config

pytestmark = pytest.mark.core


def run_of(*events: Event, settings: Config | None = None, pace: float = 1.0) -> Tape:
    timed = tuple((n * pace, event) for n, event in enumerate(events))
    return Tape("id", "", "s", settings or Config(), timed, ())


def says(text: str, **usage: int) -> Json:
    return {"choices": [{"delta": {"content": text}}], **({"usage": usage} if usage else {})}


def asks(call_id: str, command: str) -> Json:
    function = {"name": "shell_exec", "arguments": f'{{"command": "{command}"}}'}
    return {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": call_id, "function": function}]}}]}


def build(call_id: str = "c", command: str = "make", out: str = "ok", said: str = "done") -> tuple[Event, ...]:
    return (
        UserSaid("build it"),
        ModelChunks((1,), (asks(call_id, command),)),
        ModelEnded((1,), marked=True),
        ToolProgress((2,), out),
        CommandEnded((2,), 0),
        ModelChunks((3,), (says(said, prompt_tokens=1000, completion_tokens=20),)),
        ModelEnded((3,), marked=True),
    )


@given(st.integers(0, 10**6))
def test_a_run_is_equal_to_itself(seed: int) -> None:
    dice = Rolled(seed)
    world = World(config(dice))
    for _ in range(dice.number(25)):
        world.act(dice, faults=10)
    run = tape.read(lines(written(world)))
    assert compare.parted(run, run) == ""
    compare.cost(run)


def test_ids_that_servers_make_up_pieces_and_times_do_not_count() -> None:
    start, *rest = build("call_2")
    pieces = (ModelChunks((1,), ()), *rest)
    assert compare.parted(run_of(*build("call_1")), run_of(start, *pieces, pace=3)) == ""


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (build(said="failed"), 'event 7, answer to 3, content: "done" is not "failed"'),
        (build(out="bad"), 'event 5, answer to 2, result: "ok\\n\\nexit: 0" is not "bad\\n\\nexit: 0"'),
        (build(command="rm"), "event 3, answer to 1, tool_calls[0].function.arguments: "),
        ((*build(), UserSaid("more")), "event 8, input 2: not there in A, there in B"),
        (build()[:-1], "event 7, answer to 3: there in A, not there in B"),
        ((UserSaid("build"), *build()[1:]), 'event 1, input 1, text: "build it" is not "build"'),
    ],
)
def test_where_two_runs_part_is_named(other: tuple[Event, ...], words: str) -> None:
    assert compare.parted(run_of(*build()), run_of(*other)).startswith(words)


def test_an_approval_and_the_result_behind_it_are_two_answers() -> None:
    start, end = build()[:3], build()[3:]
    ask = Config(approve="ask")
    found = compare.parted(
        run_of(*start, Approved((2,)), *end, settings=ask), run_of(*start, Denied((2,)), settings=ask)
    )
    assert found == 'event 4, answer to 2, type: "Approved" is not "Denied"'


def test_a_failure_is_compared_by_what_the_server_said() -> None:
    one, two = (
        run_of(UserSaid("x"), ModelFailed((1,), Failure(Fault.HTTP, words, 401)), ModelEnded((1,)), ModelEnded((9, 1)))
        for words in ("no", "never")
    )
    assert compare.parted(one, two) == 'event 2, answer to 1, failure.text: "no" is not "never"'


def test_a_setting_shows_in_the_first_request() -> None:
    found = compare.parted(run_of(*build()), run_of(*build(), settings=Config(model="other")))
    assert found == 'event 1, CallModel 1, model: "big-pickle" is not "other"'


def test_what_a_run_cost_is_counted_while_its_turns_ran() -> None:
    events = (*build(), UserSaid("again"), ModelChunks((4,), (says("x", prompt_tokens=5),)))
    cost = compare.cost(run_of(*events, settings=Config(price_in=2, price_out=50)))
    assert (cost.spent.calls, cost.spent.tokens_in, cost.spent.tokens_out) == (2, 1000, 20)
    assert cost.seconds == 7.0
    assert cost.usd == pytest.approx(0.003)
    assert compare.cost(run_of(*build())).usd is None
    assert compare.cost(run_of(*build()[:3])).spent.calls == 1
