"""The key becomes a mark in whatever event brings it, and nothing else changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import messages
from bantam.core.base.settings import Config
from bantam.core.effects import Effect, Emit, Notice, Reason, ResultDelta, TextDelta, ThoughtDelta
from bantam.core.events import (
    CommandEnded,
    ConfigChanged,
    Event,
    Failure,
    Fault,
    Id,
    Interrupted,
    Loaded,
    ModelChunks,
    ModelFailed,
    ToolProgress,
    UserSaid,
)
from bantam.core.past import codec
from bantam.core.rules import redact
from bantam.core.rules.redact import Redactor
from bantam.core.words import status
from tests.servers import COMMANDS, PROMPTS, Json
from tests.world import Rolled, World, config

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
    clean = Redactor([KEY]).event(event)
    text = json.dumps(codec.encode(event), ensure_ascii=False)
    assert json.dumps(codec.encode(clean), ensure_ascii=False) == text.replace(KEY, redact.MARK)
    assert type(clean) is type(event)


@given(events, st.sampled_from([None, "", "a", "short", "ollama"]))
def test_a_placeholder_is_no_key(event: Event, secret: str | None) -> None:
    redactor = Redactor([secret])
    assert redactor.event(event) == event
    assert redactor.text("a short text about ollama") == "a short text about ollama"


def test_a_changed_configuration_passes_since_it_holds_no_key() -> None:
    assert Redactor([KEY]).event(ConfigChanged(Config())) == ConfigChanged(Config())


secrets = st.lists(st.text("ab", min_size=2, max_size=5), min_size=1, max_size=3, unique=True)


@given(secrets, st.lists(st.text("abc", max_size=6), max_size=12))
def test_a_stream_of_pieces_is_the_whole_without_secrets(some: list[str], pieces: list[str]) -> None:
    stream, whole = redact.Stream(some, "[key]"), "".join(pieces)
    told = [*map(stream.feed, pieces), stream.end()]
    for secret in some:
        whole = whole.replace(secret, "[key]")
    assert "".join(told) == whole
    assert stream.end() == ""


@given(st.lists(st.text("abc", max_size=6), max_size=12))
def test_a_stream_holds_back_only_what_can_become_a_secret(pieces: list[str]) -> None:
    stream, said = redact.Stream(["abab"], "#"), ""
    for piece in pieces:
        said += stream.feed(piece)
    held = stream.end()
    assert "abab".startswith(held)
    assert len(held) < 4
    assert said + held == "".join(pieces).replace("abab", "#")


class Veiled(World):
    """A world whose words are secret, and everything that leaves the core in it."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.redactor = Redactor([*COMMANDS, *PROMPTS, "two words", "fine\x1b[31", "data: x"])
        self.texts: dict[tuple[Id, str, str], str] = {}

    def tell(self, event: Event) -> tuple[Effect, ...]:
        effects = super().tell(self.redactor.event(event))
        for effect in effects:
            for clean in self.redactor.effects(effect):
                self._sees(clean)
        return effects

    def _sees(self, effect: Effect) -> None:
        assert not self._found(json.dumps(_strings(codec.encode(effect)), ensure_ascii=False)), effect
        match effect:
            case Emit(who, TextDelta() | ThoughtDelta() | ResultDelta(glimpse=False) as delta):
                name = who, type(delta).__name__, getattr(delta, "call_id", "")
                self.texts[name] = self.texts.get(name, "") + delta.text
                assert not self._found(self.texts[name]), effect
            case Emit(who, _):
                self.texts = {name: text for name, text in self.texts.items() if name[0][: len(who)] != who}

    def _found(self, text: str) -> list[str]:
        return [secret for secret in self.redactor.secrets if secret in text]


def _strings(value: Json) -> list[str]:
    """The strings of a JSON value, without the names of its members."""
    if isinstance(value, dict):
        return [found for item in value.values() for found in _strings(item)]
    if isinstance(value, list):
        return [found for item in value for found in _strings(item)]
    return [value] if isinstance(value, str) else []


@given(st.integers(0, 10**6))
def test_no_secret_leaves_the_core_however_it_was_cut(seed: int) -> None:
    dice = Rolled(seed)
    world = Veiled(config(dice))
    for _ in range(5 + dice.number(25)):
        world.act(dice, faults=5)
    world.heal()


def test_what_was_held_back_is_shown_before_the_next_thing() -> None:
    redactor = Redactor([KEY])
    assert redactor.effects(Emit((), TextDelta("so sk-mar"))) == (Emit((), TextDelta("so ")),)
    assert redactor.effects(Emit((), TextDelta("ker-1!"))) == (Emit((), TextDelta("[key]!")),)
    assert redactor.effects(Emit((3,), TextDelta("sk"))) == ()
    notice = Emit((), Notice(f"see {KEY}"))
    assert redactor.effects(notice) == (Emit((3,), TextDelta("sk")), Emit((), Notice("see [key]")))


def test_without_a_secret_nothing_is_touched() -> None:
    redactor = Redactor([None, ""])
    said = (messages.user("sk"),)
    assert redactor.messages((), said) is said
    assert redactor.effects(Emit((), TextDelta("sk"))) == (Emit((), TextDelta("sk")),)
    assert redactor.stream().feed(b"sk") == b"sk"


def test_the_bytes_of_a_connection_are_cleaned() -> None:
    stream = Redactor([KEY]).stream()
    assert stream.feed(b"x sk-marker") == b"x "
    assert stream.feed(b"-1 sk-m") == b"[key] "
    assert stream.end() == b"sk-m"


def test_a_message_without_a_secret_stays_the_same_object() -> None:
    redactor = Redactor([KEY])
    said = (messages.system("s"), messages.user(f"my {KEY}"), messages.assistant("x"))
    clean = redactor.messages((), said)
    assert clean == (said[0], messages.user("my [key]"), said[2])
    assert clean[0] is said[0]
    assert redactor.messages((), (*said, messages.user("y")))[1] is clean[1]


def test_each_end_of_a_turn_has_the_status_of_the_manual() -> None:
    found = {reason: status.of(reason) for reason in Reason}
    assert found == {
        Reason.DONE: 0,
        Reason.FAILED: 1,
        Reason.ITERATIONS: 3,
        Reason.CALLS: 3,
        Reason.TOKENS: 3,
        Reason.SECONDS: 3,
        Reason.COST: 3,
        Reason.CYCLE: 3,
        Reason.UNAPPROVED: 4,
        Reason.SCHEMA: 5,
        Reason.TRANSIENT: 75,
        Reason.INTERRUPTED: 130,
    }
