"""A log folds to the session that wrote it, wherever it was cut, and the session goes on from there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import tree
from bantam.core.base.settings import Config
from bantam.core.events import CommandEnded, Event, Lost, ModelChunks, ModelEnded, ToolProgress, UserSaid
from bantam.core.past import history
from tests.invariants import complaint
from tests.servers import TOOLBOX, Json
from tests.world import SYSTEM, Rolled, World, config

pytestmark = pytest.mark.core


def written(world: World) -> bytes:
    """The log of a world's life."""
    head = history.header("20260101-000000", "2026-01-01 00:00:00", "", SYSTEM, world.start, TOOLBOX)
    lines: list[Json] = [head, *(history.line(now, event) for now, event in world.log)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def lines(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]


@given(st.integers(0, 10**6), st.data())
def test_a_log_cut_anywhere_loses_the_unfinished_event_and_goes_on(seed: int, data: st.DataObject) -> None:
    dice = Rolled(seed)
    world = World(config(dice))
    for _ in range(dice.number(30)):
        world.act(dice, faults=15)
    whole = written(world)
    cut = data.draw(st.integers(whole.index(b"\n") + 1, len(whole)))
    past = history.fold(lines(whole[:cut]))
    count = whole[:cut].count(b"\n") - 1
    assert (past.events, past.problem) == (count, "")
    assert past.session == (world.history[count - 1][0] if count else tree.start(world.start, SYSTEM, TOOLBOX))

    after = World(world.start)
    after.session = past.session
    for event in history.recovery(past.session):
        after.tell(event)
    after.heal()
    assert complaint(tree.conversation(after.session)) == ""


@given(st.binary(max_size=30), st.integers(0, 10**6))
def test_a_line_that_cannot_be_read_is_named_and_left_out(garbage: bytes, seed: int) -> None:
    dice = Rolled(seed)
    world = World(config(dice))
    for _ in range(dice.number(10)):
        world.act(dice, faults=15)
    told = lines(written(world))
    at = 1 + dice.number(len(told) - 1)
    past = history.fold([*told[:at], b"!" + garbage.replace(b"\n", b"") + b"\n", *told[at:]])
    assert past.events == len(told) - 1
    assert past.problem.startswith(f"is damaged in line {at + 1} (")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"{}\n", b"[]\n", b"3\n", b"\xff\n", b'{"bantam_log": 99}\n', b'{"bantam_log": 1}\n',
        b"[" * 10**5 + b"\n",
        b'{"bantam_log": 1, "system": "x", "config": {"type": "UserSaid", "text": "x"}}\n',
        b'{"bantam_log": 1, "system": 3, "config": {"type": "Config"}}\n', b'{"bantam_log": 1',
    ],
)  # fmt: skip
def test_what_is_no_log_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        history.fold(lines(data))


CALL = {"index": 0, "id": "c", "function": {"name": "shell_exec", "arguments": '{"command": "make"}'}}
ASKED: tuple[Event, ...] = (
    UserSaid("build it"),
    ModelChunks((1,), ({"choices": [{"delta": {"tool_calls": [CALL]}, "finish_reason": "tool_calls"}]},)),
    ModelEnded((1,), marked=True),
)


def test_a_command_whose_end_is_unknown_is_reported_and_not_run_again() -> None:
    session = tree.start(Config(), "s")
    for event in (*ASKED, ToolProgress((2,), "compiling\n")):
        session, _ = tree.step(session, event, 0)
    assert history.recovery(session) == (Lost((2,)),)
    session, effects = tree.step(session, Lost((2,)), 0)
    result = tree.conversation(session)[-1]["content"]
    assert result.startswith("compiling\n[lost: Bantam was killed while this ran")
    assert [type(effect).__name__ for effect in effects if type(effect).__name__ != "Emit"] == ["CallModel"]


def test_what_has_ended_is_not_lost() -> None:
    session = tree.start(Config(), "s")
    for event in (*ASKED, CommandEnded((2,), 0)):
        session, _ = tree.step(session, event, 0)
    assert history.recovery(session) == (Lost((3,)),)
