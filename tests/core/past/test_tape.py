"""A log as a tape: what was asked for follows from what happened, and a difference is named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.effects import CallModel, CheckAnswer, RunShell, RunTool, Sleep
from bantam.core.past import history, tape
from bantam.core.tools.table import BUILT_IN, Toolbox
from tests.core.past.test_history import lines, written
from tests.servers import TOOLBOX
from tests.strategies import json_values
from tests.world import Rolled, World, config

pytestmark = pytest.mark.core


@given(st.integers(0, 10**6))
def test_what_a_run_asked_for_follows_from_its_log(seed: int) -> None:
    dice = Rolled(seed)
    world = World(config(dice))
    for _ in range(dice.number(25)):
        world.act(dice, faults=10)
    read = tape.read(lines(written(world)))
    assert [event for _, event in read.events] == [event for _, event in world.log]
    made = [effect for _, effects in world.history for effect in effects if isinstance(effect, tape.REQUESTS)]
    assert list(read.requests) == made
    assert [tape.difference(a, b) for a, b in zip(read.requests, made, strict=True)] == [""] * len(made)


@given(json_values, json_values)
def test_a_difference_is_told_exactly_if_there_is_one(a: Any, b: Any) -> None:
    assert (tape.unequal(a, b) == "") == (json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True))
    assert tape.unequal(a, a) == ""


def test_the_first_difference_is_named_by_its_path() -> None:
    def call(**parameters: Any) -> CallModel:
        said = ({"role": "system", "content": "s"}, {"role": "user", "content": "x"})
        return CallModel((1,), said, (), {"model": "m", **parameters}, 300)

    assert tape.difference(call(top_k=1), call()) == "top_k: 1 is not nothing"
    assert tape.difference(call(), call(top_k=1)) == "top_k: nothing is not 1"
    other = CallModel((1,), ({"role": "system", "content": "t" * 100},), (), {"model": "m"}, 300)
    assert tape.difference(call(), other).startswith('messages[0].content: "s" is not "ttt')
    assert tape.difference(RunShell((2,), "ls", "sh", 1, 1), RunShell((2,), "pwd", "sh", 9, 9)).startswith("command: ")
    one, other_one = (RunTool((2,), "look_up", {"word": word}, 1, 1) for word in "ab")
    assert tape.difference(one, other_one) == 'look_up.word: "a" is not "b"'
    assert tape.difference(CheckAnswer((2,), "a", {}), CheckAnswer((2,), "a", {})) == ""
    assert tape.difference(Sleep((2,), 1), Sleep((2,), 2)) == ""
    assert tape.difference(Sleep((2,), 1), call()) == "Sleep is not CallModel"


@pytest.mark.parametrize("toolbox", [BUILT_IN, TOOLBOX])
def test_a_tape_knows_the_tools_of_its_run(toolbox: Toolbox) -> None:
    head = history.header("a", "b", "c", "d", config(Rolled(0)), toolbox)
    assert ("toolbox" in head) == (toolbox is TOOLBOX)  # the logs of older versions name none
    assert tape.read([json.dumps(head).encode() + b"\n"]).toolbox == toolbox
    wrong = json.dumps({**head, "toolbox": [{"type": "Config"}]}).encode() + b"\n"
    with pytest.raises(ValueError, match="no configuration"):
        tape.read([wrong])


@pytest.mark.parametrize("data", [b"", b"{}\n", b"x\n"])
def test_what_is_no_log_is_no_tape(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        tape.read(lines(data))
    head = json.dumps(history.header("a", "b", "c", "d", config(Rolled(0)))).encode() + b"\n"
    with pytest.raises(ValueError, match="line 2"):
        tape.read([head, b"[1, 2]\n"])
