"""Conversations stay valid, whatever made them: closing, repairing, stripping, normalising."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import messages
from bantam.core.base import texts
from bantam.core.messages import Message, Messages
from tests.invariants import complaint
from tests.servers import Json
from tests.strategies import (
    any_messages,
    any_text,
    conversations,
    halved,
    is_json,
    is_part_of,
    json_objects,
    json_values,
    wild_text,
)

pytestmark = pytest.mark.core
objects = any_messages.map(lambda said: tuple(m for m in said if isinstance(m, dict)))


@given(objects)
def test_close_answers_every_open_call_and_only_appends(said: Messages) -> None:
    closed = messages.close(said)
    assert closed[: len(said)] == said
    assert messages.open_calls(closed) == ()
    assert messages.close(closed) == closed


@given(conversations, st.data())
def test_a_conversation_that_breaks_off_behind_any_message_is_closed(said: Messages, data: st.DataObject) -> None:
    kept = said[: data.draw(st.integers(1, len(said)))]
    assert complaint(messages.close(kept)) == ""
    assert len(messages.close(kept)) - len(kept) == len(messages.open_calls(kept))


@given(any_messages | st.lists(json_values).map(tuple), wild_text)
def test_repair_makes_a_valid_conversation_of_any_json(raw: tuple[Json, ...], system: str) -> None:
    repaired = messages.repair(raw, system)
    assert complaint(repaired) == "", complaint(repaired)
    assert is_json([*repaired])
    assert messages.repair(repaired, system) == repaired


@given(conversations)
def test_repair_leaves_a_valid_conversation_alone(said: Messages) -> None:
    assert messages.repair(json.loads(json.dumps(said)), "another prompt") == said


@given(conversations, st.data())
def test_repair_keeps_all_that_has_its_place(said: Messages, data: st.DataObject) -> None:
    """A list that lost some messages: what is left comes back, results without a call apart."""
    lost = data.draw(st.sets(st.integers(1, max(1, len(said) - 1)), max_size=3))
    left = [m for at, m in enumerate(said) if at not in lost]
    repaired = messages.repair(left, "x")
    assert is_part_of([m for m in left if messages.answers(m) is None], repaired)
    results = [m for m in repaired if messages.answers(m) is not None]
    assert all(m in left or m["content"] == messages.NO_RESULT for m in results)


def test_repair_does_not_read_what_is_nested_beyond_all_bounds() -> None:
    bomb: Json = "x"
    for _ in range(3000):
        bomb = [bomb]
    said = [{"role": "user", "content": "hello"}, {"role": "user", "content": "x", "bomb": bomb}]
    assert messages.repair(said, "s") == (messages.system("s"), messages.user("hello"))


def test_repair_gives_a_system_message_that_says_nothing_an_empty_text() -> None:
    assert messages.repair([{"role": "system", "content": None}], "s") == (messages.system(""),)


def test_a_result_without_text_stays_empty_in_a_file() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    said = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": None},
    ]
    assert messages.repair(said, "s")[-1] == messages.tool_result("a", "")


@given(conversations)
def test_stripping_takes_the_last_assistant_message_with_its_results(said: Messages) -> None:
    stripped = messages.strip_last_assistant(said)
    assert is_part_of(stripped, said)
    assert complaint(stripped) == ""
    spoke = [at for at, m in enumerate(said) if m["role"] == "assistant"]
    assert stripped[: spoke[-1]] == said[: spoke[-1]] if spoke else stripped == said
    assert len(stripped) == len(said) - (1 + len(messages.calls_of(said[spoke[-1]])) if spoke else 0)


@given(conversations)
def test_stripping_reasoning_takes_nothing_else(said: Messages) -> None:
    stripped = messages.strip_reasoning(said)
    assert messages.strip_reasoning(stripped) == stripped
    assert complaint(stripped) == ""
    for new, old in zip(stripped, said, strict=True):
        assert {**old, **new} == old
        assert old.keys() - new.keys() <= set(messages.REASONING_KEYS)
        assert not new.keys() & set(messages.REASONING_KEYS)


@given(objects)
def test_a_normal_message_is_normal(said: Messages) -> None:
    for message in said:
        normal = messages.normalised({**message, "role": "assistant"})
        assert messages.normalised(normal) == normal
        assert messages.is_empty(normal) or complaint((messages.system(""), normal, *_results(normal))) == ""
        assert len(messages.calls_of(normal)) == len(messages.calls_of({**message, "role": "assistant"}))


@given(st.lists(st.sampled_from(["a", "a_2", "", "\ud800", "\ud801", None, 3, "call_2"]), min_size=1))
def test_ids_are_present_and_unique(ids: list[Json]) -> None:
    calls = [{"id": id, "function": {"name": "x"}} for id in ids]
    normal = messages.normalised({"role": "assistant", "tool_calls": calls})
    made = [messages.call_id(call) for call in messages.calls_of(normal)]
    assert all(made)
    assert len(set(made)) == len(ids)
    assert complaint((messages.system(""), normal, *_results(normal))) == ""


@given(json_objects)
def test_members_that_nobody_knows_stay(extra: dict[str, Json]) -> None:
    known = {"role", "content", "tool_calls"}
    extra = {key: value for key, value in extra.items() if key not in known}
    normal = messages.normalised({"role": "assistant", "content": "x", **extra})
    assert {key: value for key, value in normal.items() if key not in known} == extra


def test_a_refusal_is_the_content_where_there_is_no_other() -> None:
    assert messages.normalised({"role": "assistant", "content": None, "refusal": "no"})["content"] == "no"
    assert messages.normalised({"role": "assistant", "content": [], "refusal": None})["content"] == ""
    assert messages.normalised({"role": "assistant", "content": "yes", "refusal": "no"})["content"] == "yes"


def test_a_second_result_of_one_id_belongs_to_the_second_call() -> None:
    call = {"id": "c", "function": {"name": "shell_exec", "arguments": "{}"}}
    said = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "tool_calls": [call, call]},
        {"role": "tool", "tool_call_id": "c", "content": "one"},
        {"role": "user", "content": ""},
        {"role": "user", "content": "b"},
        {"role": "tool", "tool_call_id": "c", "content": "two"},
    ]
    repaired = messages.repair(said, "s")
    assert [m["content"] for m in repaired] == ["s", "a", "", "one", "two", "b"]
    assert messages.repair([*said, {"role": "assistant", "content": None}], "s") == repaired
    assert complaint(repaired) == ""


@given(conversations, st.data())
def test_a_list_is_valid_exactly_if_a_strict_server_takes_it(said: Messages, data: st.DataObject) -> None:
    at = st.integers(0, len(said) - 1)
    a, b = data.draw(at), data.draw(at)
    edited = list(said)
    match data.draw(st.sampled_from(["drop", "double", "swap", "nothing"])):
        case "drop":
            del edited[a]
        case "double":
            edited.insert(b, edited[a])
        case "swap":
            edited[a], edited[b] = edited[b], edited[a]
    assert messages.is_valid(tuple(edited)) == (complaint(tuple(edited)) == "")


@pytest.mark.parametrize("role", ["developer", "function"])
def test_a_role_that_servers_do_not_share_is_not_valid(role: str) -> None:
    assert not messages.is_valid((messages.system("s"), {"role": role, "content": "x"}))
    assert not messages.is_valid((messages.system("s"), {"role": "assistant", "content": " "}))


@given(any_text)
def test_clean_text_can_be_sent_and_clean_twice_is_once(text: str) -> None:
    clean = texts.clean(text)
    clean.encode()
    assert texts.clean(clean) == clean


@given(wild_text)
def test_clean_joins_the_halves_of_characters(text: str) -> None:
    assert texts.clean(halved(text)) == texts.paired(halved(text)) == text


@given(any_text, any_text)
def test_paired_text_keeps_a_half_whose_other_half_may_come(a: str, b: str) -> None:
    assert texts.paired(texts.paired(a) + b) == texts.paired(a + b)


@given(json_values)
def test_map_text_with_no_change_changes_nothing(value: Json) -> None:
    assert messages.map_text(value, str) == value


def test_numbers_that_json_cannot_write_become_null() -> None:
    assert messages.map_text({"a": [float("inf"), float("nan"), 1.5]}, str) == {"a": [None, None, 1.5]}


@given(json_values)
def test_a_json_object_is_read_as_it_is_written(value: Json) -> None:
    expected = value if isinstance(value, dict) else None
    assert messages.json_object(json.dumps(value)) == expected
    assert messages.json_object(value) == (expected if not isinstance(value, str) else messages.json_object(value))


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": -Infinity}', "[" * 100_000, "{", ""])
def test_what_is_no_json_object_is_none(text: str) -> None:
    assert messages.json_object(text) is None


@given(json_values)
def test_nesting_is_counted_as_recursion_would(value: Json) -> None:
    def depth(value: Json) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    assert messages.nesting(value) == depth(value)


@given(conversations, st.sampled_from([2, 10, 100]))
def test_a_conversation_with_its_long_texts_cut_is_valid_and_no_longer(said: Messages, most: int) -> None:
    short = tuple(messages.shortened(m, most) for m in said)
    assert complaint(short) == ""
    assert len(json.dumps(short)) <= len(json.dumps(said))
    for new, old in zip(short, said, strict=True):
        assert {**new, "content": "", "tool_calls": []} == {**old, "content": "", "tool_calls": []}
        for less, call in zip(messages.calls_of(new), messages.calls_of(old), strict=True):
            assert (messages.call_id(less), messages.call_name(less)) == (
                messages.call_id(call),
                messages.call_name(call),
            )


@given(objects, st.sampled_from([2, 10]))
def test_whatever_a_message_is_its_long_texts_are_cut(said: Messages, most: int) -> None:
    for message in said:
        short = messages.shortened(message, most)
        assert is_json(short)
        assert len(messages.text_of(short)) <= len(messages.text_of(message))


def test_a_long_text_keeps_its_ends_wherever_it_is() -> None:
    long, short = "a" * 600 + "b" * 600, "a" * 50 + "\n[1100 characters left out]\n" + "b" * 50
    call = {
        "id": "1",
        "type": "function",
        "x": 1,
        "function": {"name": "f", "arguments": json.dumps({"c": long, "n": 1})},
    }
    other = {"id": "2", "type": "function", "function": {"name": "f", "arguments": '{ "c":"as it came"}'}}
    cut = {**call, "function": {"name": "f", "arguments": json.dumps({"c": short, "n": 1})}}
    said = {"role": "assistant", "content": long, "tool_calls": [call, other], "reasoning": long}
    assert messages.shortened(said, 100) == {**said, "content": short, "tool_calls": [cut, other]}
    parts: list[Json] = [
        {"type": "text", "text": long},
        {"type": "image_url", "image_url": {}},
        {"type": "text", "text": "c"},
    ]
    assert messages.shortened({"role": "user", "content": parts}, 100)["content"] == [
        {**parts[0], "text": short},
        *parts[1:],
    ]
    assert messages.shortened(messages.user("a" * 120), 100) == messages.user("a" * 120)  # the mark would be longer


def test_a_list_of_parts_says_its_texts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, "b", {"text": 3}, {"text": "c"}]
    assert messages.text_of({"role": "user", "content": parts}) == "ac"


def _results(message: Message) -> list[Message]:
    return [messages.tool_result(messages.call_id(call), "x") for call in messages.calls_of(message)]
