"""The key becomes a mark in whatever event brings it, and nothing else changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import codec, redact, status
from bantam.core.effects import Reason
from bantam.core.events import (
    CommandEnded,
    ConfigChanged,
    Event,
    Failure,
    Fault,
    Interrupted,
    Loaded,
    ModelChunks,
    ModelFailed,
    ToolProgress,
    UserSaid,
)
from bantam.core.settings import Config

pytestmark = pytest.mark.core
KEY = "sk-marker-1"
texts = st.lists(st.sampled_from([KEY, "a", " ", KEY[:4], "é"]), max_size=4).map("".join)
events: st.SearchStrategy[Event] = st.one_of(
    texts.map(UserSaid),
    texts.map(lambda t: ToolProgress((1,), t)),
    texts.map(lambda t: CommandEnded((1,), 0, t, problem=t)),
    texts.map(lambda t: ModelFailed((1,), Failure(Fault.HTTP, t, 401))),
    texts.map(lambda t: Loaded(({"role": "user", "content": [{"text": t}], t: 1},))),
    texts.map(lambda t: ModelChunks((1,), ({"choices": [{"delta": {"content": t, "x": [t]}}]},))),
    st.just(Interrupted()),
)


@given(events)
def test_no_key_is_left_and_nothing_else_is_touched(event: Event) -> None:
    clean = redact.event(KEY, event)
    text = json.dumps(codec.encode(event), ensure_ascii=False)
    assert json.dumps(codec.encode(clean), ensure_ascii=False) == text.replace(KEY, redact.MARK)
    assert type(clean) is type(event)


@given(events, st.sampled_from([None, "", "a", "short"]))
def test_a_placeholder_is_no_key(event: Event, secret: str | None) -> None:
    assert redact.event(secret, event) == event
    assert redact.text(secret, "a short text") == "a short text"


def test_a_changed_configuration_passes_since_it_holds_no_key() -> None:
    assert redact.event(KEY, ConfigChanged(Config())) == ConfigChanged(Config())


def test_each_end_of_a_turn_has_the_status_of_the_manual() -> None:
    found = {reason: status.of(reason) for reason in Reason}
    assert found == {
        Reason.DONE: 0,
        Reason.FAILED: 1,
        Reason.ITERATIONS: 3,
        Reason.TRANSIENT: 75,
        Reason.INTERRUPTED: 130,
    }
