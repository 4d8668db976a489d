"""An answer with n tool calls costs work in proportion to n, whatever the calls are and come to.

Work is counted, not timed: the instructions that Python carries out. What they copy, `scripts/growth.py` measures.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from bantam.core import tree
from bantam.core.base.settings import Config
from bantam.core.effects import Effect
from bantam.core.events import CommandEnded, Event, Interrupted, ModelChunks, ModelEnded, ToolProgress, UserSaid
from bantam.core.past import compare
from bantam.core.past.tape import Tape
from bantam.core.rules.redact import Redactor
from bantam.core.state import Session
from tests.servers import Json

pytestmark = pytest.mark.core
FEW, MANY = 30, 120


def run(*events: Event, secrets: tuple[str, ...] = ()) -> Session:
    """The session after the events; what they cause is looked at as it is before it is done."""
    session, redactor = tree.start(Config(), "s"), Redactor(secrets)
    for event in (UserSaid("hello"), *events):
        session, effects = tree.step(session, redactor.event(event), 0.0)
        done: list[Effect] = []
        for effect in effects:
            done += redactor.effects(effect)
    return session


def asked(calls: int, name: str, arguments: str, **more: Json) -> list[Event]:
    """An answer with many calls, each in a chunk of its own."""
    made = [{"id": f"c{n}", "function": {"name": name, "arguments": arguments}, **more} for n in range(calls)]
    return [*(ModelChunks((1,), (delta(tool_calls=[call]),)) for call in made), ModelEnded((1,), marked=True)]


def delta(**members: Json) -> Json:
    return {"choices": [{"delta": members}]}


def whole(id: tuple[int, ...], **members: Json) -> list[Event]:
    return [ModelChunks(id, (delta(**members),)), ModelEnded(id, marked=True)]


COMMAND, TASK = ("shell_exec", '{"command": "ls"}'), ("run_subagent", '{"prompt": "p"}')


def commands(calls: int) -> list[Event]:
    ends = [event for n in range(2, calls + 2) for event in (ToolProgress((n,), "x"), CommandEnded((n,), 0))]
    return [*asked(calls, *COMMAND), *ends]


def unusable(calls: int) -> list[Event]:
    return asked(calls, "nothing", "{}", id="same", index=0)


def subagents(calls: int) -> list[Event]:
    answers = [whole((n, 1), content="done") for n in range(2, calls + 2)]
    return [*asked(calls, *TASK), *(answer[0] for answer in answers), *(answer[1] for answer in answers)]


def nested(calls: int) -> list[Event]:
    inner = {"id": "a", "function": dict(zip(("name", "arguments"), TASK, strict=True))}
    return [*asked(calls, *TASK), *(event for n in range(2, calls + 2) for event in whole((n, 1), tool_calls=[inner]))]


@pytest.mark.parametrize("kind", [commands, unusable, subagents, nested])
def test_work_grows_with_the_number_of_calls_and_no_faster(kind: Callable[[int], list[Event]]) -> None:
    few, many = kind(FEW), kind(MANY)
    run(*few)  # what is only done once is done
    assert instructions(lambda: run(*many)) < 1.15 * MANY / FEW * instructions(lambda: run(*few))
    secret = ("sk-secret",)
    run(*few, secrets=secret)
    less = instructions(lambda: run(*few, secrets=secret))
    assert instructions(lambda: run(*many, secrets=secret)) < 1.15 * MANY / FEW * less


def test_an_interrupt_of_many_subagents_costs_what_they_are() -> None:
    few, many = nested(FEW), nested(MANY)
    assert len(run(*many).agents) == 1 + 2 * MANY
    assert len(run(*many, Interrupted()).agents) == 1
    less = instructions(lambda: run(*few, Interrupted()))
    assert instructions(lambda: run(*many, Interrupted())) < 1.15 * MANY / FEW * less


def test_a_comparison_of_runs_looks_at_each_call_once() -> None:
    few, many = (
        Tape("a", "", "s", Config(), tuple((0.0, event) for event in (UserSaid("hello"), *commands(n))), ())
        for n in (FEW, MANY)
    )
    assert compare.parted(few, few) == ""
    less = instructions(lambda: compare.parted(few, few))
    assert instructions(lambda: compare.parted(many, many)) < 1.15 * MANY / FEW * less


def instructions(work: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
