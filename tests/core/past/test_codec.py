"""Events, effects and sessions survive JSON; what is none of them is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import events, tree
from bantam.core.base.settings import Config
from bantam.core.effects import Emit, Reason, Spent, TurnEnded
from bantam.core.events import Failure, Fault, Loaded, ModelChunks, ModelFailed, UserSaid
from bantam.core.past import codec
from bantam.core.wire.assemble import Partial
from tests import world
from tests.servers import Dice, Json
from tests.strategies import any_text, configs, json_objects, json_values, tapes
from tests.world import World

pytestmark = pytest.mark.core


def through(value: Any) -> Any:
    return codec.decode(json.loads(json.dumps(codec.encode(value), allow_nan=False)))


@given(st.lists(json_objects), st.lists(json_values))
def test_any_json_inside_an_event_comes_back_equal(chunks: list[Json], messages: list[Json]) -> None:
    for event in (ModelChunks((1, 2), tuple(chunks)), Loaded(tuple(messages))):
        assert through(event) == event


@given(json_values, st.sampled_from(["$tuple", "$$tuple", "$", "$x"]))
def test_an_object_that_looks_like_a_mark_is_none(value: Json, key: str) -> None:
    event = ModelChunks((1,), ({key: value}, {"a": [{key: [{key: value}]}]}))
    assert through(event) == event


@given(tapes)
def test_every_session_on_its_way_comes_back_equal(dice: Dice) -> None:
    life = World(world.config(dice))
    for _ in range(dice.number(30)):
        life.act(dice, 30)
    for session, effects in life.history[-3:]:
        assert through(session) == session
        assert all(through(effect) == effect for effect in effects)


@given(configs, any_text.map(lambda text: text.encode("utf-8", "replace").decode()))
def test_a_session_keeps_its_settings(config: Config, system: str) -> None:
    session = tree.start(config, system)
    assert through(session) == session


def test_an_event_is_written_as_its_name_and_fields() -> None:
    failed = ModelFailed((3, 1), Failure(Fault.HTTP, "busy", 503, 1.5))
    assert codec.encode(failed) == {
        "type": "ModelFailed",
        "id": [3, 1],
        "failure": {"type": "Failure", "fault": "http", "text": "busy", "status": 503, "retry_after_s": 1.5},
    }
    ended = Emit((), TurnEnded(Reason.DONE, "x", Spent(1, 2, 3)))
    assert through(ended) == ended
    lists: Json = {"x": {"before": ([[{"a": 1}], ["b"]], [[]]), "last": [{"text": ("c", "d")}]}}
    rope = Partial({"content": ("a", "b"), "parts": [{"text": ("c",)}]}, lists=lists)
    assert through(rope) == rope


def test_whole_seconds_are_seconds() -> None:
    assert through(Failure(Fault.HTTP, "", 503, 2)) == Failure(Fault.HTTP, "", 503, 2.0)


NAMES = st.sampled_from([name for name in vars(events) if name[0].isupper()] + ["Session", "Slot", "Any", "x"])


@given(
    json_values
    | st.fixed_dictionaries({"type": NAMES}, optional=dict.fromkeys(("id", "text", "failure", "x"), json_values))
)
def test_other_json_is_refused_or_is_what_it_says(value: Json) -> None:
    try:
        decoded = codec.decode(value)
    except ValueError:
        return
    again = codec.encode(decoded)
    assert {key: again[key] for key in value} == value


@given(tapes, json_values)
def test_a_line_with_one_field_of_the_wrong_kind_is_refused(dice: Dice, wrong: Json) -> None:
    life = World(world.config(dice))
    for _ in range(5):
        life.act(dice, 50)
    life.says(dice)
    _, event = life.log[dice.number(len(life.log) - 1)]
    line = codec.encode(event)
    name = sorted(line)[dice.number(len(line) - 1)]
    try:
        decoded = codec.decode({**line, name: wrong})
    except ValueError:
        return
    assert {name: codec.encode(decoded)[name] for name in line} == {**line, name: wrong}
    tree.step(life.session, decoded, 0.0)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "UserSaid", "text": 5},
        {"type": "UserSaid", "text": None},
        {"type": "UserSaid"},
        {"type": "UserSaid", "text": "x", "more": 1},
        {"type": "TimerFired", "id": "1"},
        {"type": "TimerFired", "id": [True]},
        {"type": "TimerFired", "id": [1.0]},
        {"type": "ModelFailed", "id": [1], "failure": {"type": "UserSaid", "text": "x"}},
        {"type": "ModelFailed", "id": [1], "failure": "x"},
        {"type": "Failure", "fault": "gremlins", "text": ""},
        {"type": "Failure", "fault": "http", "text": "", "retry_after_s": "1"},
        {"type": "Calling", "id": [1], "purpose": "fun", "attempt": 1, "partial": {"type": "Partial"}},
        {"type": "Emit", "who": [], "output": {"type": "UserSaid", "text": "x"}},
        {"type": "Nothing"},
        {"type": ["UserSaid"]},
        {},
        [],
        3,
    ],
)
def test_what_is_no_event_of_ours_is_refused(line: Json) -> None:
    with pytest.raises(ValueError, match="not an event of this version"):
        codec.decode(line)


def test_data_of_the_core_alone_is_read() -> None:
    assert codec.decode({"type": "UserSaid", "text": "x"}) == UserSaid("x")
    assert codec.encode([1, {"a": (1,)}]) == [1, {"a": {"$tuple": [1]}}]
