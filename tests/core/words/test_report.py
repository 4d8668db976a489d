"""The events of `--json` as a fold over what happened: what each output becomes, and what holds for all of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.problem import Problem
from bantam.core.base.settings import Config
from bantam.core.base.texts import clean
from bantam.core.effects import (
    ANSWERED,
    CallStarted,
    Emit,
    Output,
    Reason,
    Requesting,
    ResultEnded,
    Returned,
    Spent,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
)
from bantam.core.events import CompactAsked, Event, ModelChunks, UserSaid
from bantam.core.words import input, report, status
from bantam.core.words.input import Interrupt, Prompt
from tests.strategies import any_text, is_json, json_values, tapes
from tests.world import World

pytestmark = pytest.mark.core
CHILD = (2,)
SPENT = Spent(1, 3, 4)


def events_of(*outputs: Output | tuple[tuple[int, ...], Output] | Event) -> list[report.Json]:
    """What is told of a run in which these things happen; an output of a subagent comes with its path."""
    said, all_ = report.Report(), []
    for at, item in enumerate(outputs):
        if isinstance(item, UserSaid | CompactAsked):
            said = report.heard(said, item, float(at))
            continue
        who, output = item if isinstance(item, tuple) else ((), item)
        said, events = report.told(said, Emit(who, output))  # type: ignore[arg-type]
        all_ += events
    return [*all_, report.ended(said, Reason.DONE, 0, "20261201-101502")]


def done(text: str, reason: Reason = Reason.DONE, spent: Spent = SPENT) -> TurnEnded:
    return TurnEnded(reason, text, spent)


def test_a_turn_ends_with_what_it_used_and_its_answer() -> None:
    usage, turn, end = events_of(UserSaid("x"), done("yes"))
    counts = {"calls": 1, "tokens_in": 3, "tokens_out": 4, "tokens_cached": 0, "cost_usd": None}
    assert usage == {"type": "usage", "time": 0.0, "agent": [], **counts}
    assert (turn["reason"], turn["answer"], turn["usage"], turn["returned"]) == ("done", "yes", counts, [])
    assert (end["reason"], end["exit"], end["answer"], end["usage"]) == ("done", 0, "yes", counts)
    assert end["session"] == "20261201-101502"


def test_what_all_turns_used_is_summed_and_the_last_answer_is_the_runs() -> None:
    end = events_of(UserSaid("x"), done("one"), UserSaid("y"), done("two", spent=Spent(2, 10, 20)))[-1]
    assert (end["answer"], end["usage"]) == (
        "two",
        {"calls": 3, "tokens_in": 13, "tokens_out": 24, "tokens_cached": 0, "cost_usd": None},
    )


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason not in ANSWERED])
def test_words_of_a_turn_that_did_not_end_well_are_no_answer(reason: Reason) -> None:
    *_, turn, end = events_of(UserSaid("x"), done("one"), UserSaid("y"), done("half", reason))
    assert (turn["reason"], turn["answer"], end["answer"]) == (reason.value, None, None)


def test_a_summary_is_no_answer_and_leaves_that_of_the_run() -> None:
    *_, turn, end = events_of(UserSaid("x"), done("one"), CompactAsked(), done("a summary"))
    assert (turn["answer"], end["answer"]) == (None, "one")


def test_what_is_said_during_a_turn_changes_nothing_about_it() -> None:
    assert events_of(CompactAsked(), UserSaid("x"), done("a summary"))[-1]["answer"] is None
    assert events_of(UserSaid("x"), CompactAsked(), done("one"))[-1]["answer"] == "one"
    assert events_of(UserSaid(" \n"), CompactAsked(), done("a summary"))[-1]["answer"] is None


def test_a_prompt_that_was_not_heard_is_returned_once() -> None:
    told = events_of(
        UserSaid("x"), Returned("a"), Returned("b"), done("", Reason.INTERRUPTED), UserSaid("y"), done("z")
    )
    assert [event["returned"] for event in told if event["type"] == "turn.end"] == [["a", "b"], []]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"command": "ls", "n": 1.5}', {"command": "ls", "n": 1.5}),
        ('{"x": 1e999}', {"x": None}),
        ('{"a":' * 101 + "1" + "}" * 101, '{"a":' * 101 + "1" + "}" * 101),
        ("no object", "no object"),
    ],
)
def test_arguments_are_the_object_that_they_are_or_their_text(text: str, arguments: Any) -> None:
    call = events_of(CallStarted("c", "shell_exec", text))[0]
    assert json.loads(report.line(call))["arguments"] == arguments


def test_a_character_that_comes_in_halves_is_told_whole() -> None:
    told = events_of(Requesting(), TextDelta("a\ud83e"), ThoughtDelta("\ud83e"), (CHILD, TextDelta("c")))[1:-1]
    told += events_of(TextDelta("a\ud83e"), ThoughtDelta("\ud83e"), TextDelta("\udd80b"), ThoughtDelta("\udd80"))[:-1]
    assert [event["text"] for event in told] == ["a", "c", "a", "🦀b", "🦀"]


def test_half_a_character_that_stays_alone_is_a_mark() -> None:
    told = events_of(TextDelta("a\ud83e"), (CHILD, Requesting()), Requesting(), TextDelta("\udd80"))
    assert [(event["type"], event.get("text")) for event in told[:-1]] == [
        ("text", "a"), ("request", None), ("text", "\ufffd"), ("request", None), ("text", "\ufffd"),
    ]  # fmt: skip
    text, *_ = events_of(UserSaid("x"), (CHILD, TextDelta("\ud83e")), done("x"))
    assert (text["agent"], text["text"]) == ([2], "\ufffd")


@given(json_values, any_text)
def test_a_line_is_one_line_that_no_terminal_acts_on_and_holds_the_data(value: Any, text: str) -> None:
    event = {"value": value, "text": text, "nasty": "\x1b[2J\x9b2J\x85\u2028\u202e\u2066\ufeff\x7f\r\n"}
    line = report.line(event)
    assert line.endswith("}\n")
    assert line[:-1].isprintable() or not any(c < " " or "\x7f" <= c <= "\x9f" for c in line[:-1])
    assert line.splitlines() == [line[:-1]]
    assert not {"\u202e", "\u2066", "\ufeff"} & {*line}
    line.encode()
    read = json.loads(line)
    assert (read["text"], read["nasty"]) == (clean(text), event["nasty"])
    if is_json(value) and clean(json.dumps(value, ensure_ascii=False)) == json.dumps(value, ensure_ascii=False):
        assert read["value"] == value


def told_of(world: World) -> list[report.Json]:
    """The events of all that happened in a world."""
    said, all_ = report.Report(), []
    for (now, event), (_, effects) in zip(world.log, world.history, strict=True):
        said = report.heard(said, event, now)
        for effect in effects:
            if isinstance(effect, Emit):
                said, events = report.told(said, effect)
                all_ += events
    return all_


def makes_sense(world: World) -> bool:
    """Whether no server sent anything but text as text: what a message of such pieces is, nobody can say."""
    chunks = [chunk for _, event in world.log if isinstance(event, ModelChunks) for chunk in event.chunks]
    choices = [chunk.get("choices", []) for chunk in chunks]
    if not all(isinstance(choice, list) and all(isinstance(item, dict) for item in choice) for choice in choices):
        return False
    deltas = [item.get("delta", item.get("message", {})) for choice in choices for item in choice]
    return all(
        isinstance(delta, dict) and all(isinstance(delta.get(key), str | None) for key in ("content", "refusal"))
        for delta in deltas
    )


@given(tapes, st.integers(0, 60))
def test_whatever_happens_the_text_behind_the_last_request_is_the_answer(dice: Any, faults: int) -> None:
    world = World(Config())
    for _ in range(12):
        world.act(dice, faults)
    world.heal()
    told, text, time, sensible = told_of(world), "", 0.0, makes_sense(world)
    for event in told:
        assert event["time"] >= time
        time = event["time"]
        if event["agent"] == []:
            text = "" if event["type"] == "request" else text + event["text"] if event["type"] == "text" else text
        if event["type"] == "turn.end" and event["answer"] is not None and sensible:
            assert event["answer"] == text
    assert told == told_of(world)


# --- the other direction


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        (b'{"prompt": "one\\ntwo"}\n', Prompt("one\ntwo")),
        (b'\xef\xbb\xbf {"prompt": "/clear"}\r\n', Prompt("/clear")),
        (b'{"interrupt": true}', Interrupt()),
        (b" \r\n", None),
        (b"\xef\xbb\xbf\n", None),
    ],
)
def test_a_line_of_a_driver_asks_for_one_thing(line: bytes, asked: object) -> None:
    assert input.parse(line) == asked


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"hello", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"prompt": NaN}', "not JSON"),
        (b"\xff", "not UTF-8"),
        (b'["x"]', "no object"),
        (b"{}", "expected"),
        (b'{"prompt": 3}', "prompt must be"),
        (b'{"prompt": " \\n"}', "prompt must be"),
        (b'{"interrupt": false}', "interrupt must be true"),
        (b'{"interrupt": 1}', "interrupt must be true"),
        (b'{"prompt": "x", "interrupt": true}', "exclude each other"),
        (b'{"prompt": "x", "' + b"y" * 99 + b'": 1}', "unknown member 'yyyy"),
        (b" " * (input.LINE_BYTES_MAX + 1), "longer than 16,000,000 bytes"),
    ],
)
def test_a_wrong_line_of_a_driver_says_what_is_wrong_in_one_line(line: bytes, words: str) -> None:
    problem = input.parse(line)
    assert isinstance(problem, Problem)
    assert words in problem.text
    assert "\n" not in problem.text
    assert len(problem.text) < 140


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_line_of_a_driver_is_something(line: bytes) -> None:
    assert input.parse(line) is None or isinstance(input.parse(line), Prompt | Interrupt | Problem)


def test_a_result_carries_what_the_model_gets() -> None:
    result = events_of((CHILD, ResultEnded("c", "shell_exec", "out\n\nexit: 1")))[0]
    assert result == {
        "type": "tool.result", "time": 0.0, "agent": [2], "id": "c", "name": "shell_exec",
        "output": "out\n\nexit: 1", "error": False,
    }  # fmt: skip


def test_the_first_event_says_what_speaks_and_which_version_of_the_contract() -> None:
    first = report.started("9.9", "2026-01-01T00:00:00Z", None)
    assert first == {
        "type": "run.start",
        "time": 0.0,
        "agent": [],
        "version": 1,
        "bantam": "9.9",
        "created": "2026-01-01T00:00:00Z",
        "model": None,
    }


def test_a_bug_is_one_line_that_asks_to_be_told() -> None:
    assert status.unexpected(KeyError("x")) == "unexpected error: KeyError: 'x'; please report it"
