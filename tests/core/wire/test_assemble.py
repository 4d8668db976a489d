"""Deltas -> a message: however an answer is cut, it is the same answer, and nothing unknown is lost."""

import json
import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bantam.core import messages
from bantam.core.base import texts
from bantam.core.messages import Message
from bantam.core.wire import assemble
from bantam.core.wire.assemble import Partial
from tests import servers
from tests.invariants import is_same_call
from tests.servers import THOUGHT, Dice, Json
from tests.strategies import halved, is_json, json_objects, json_values, tapes

pytestmark = pytest.mark.core


def assembled(chunks: Any) -> Partial:
    partial = Partial()
    for chunk in chunks:
        partial = assemble.merge(partial, chunk)
    return partial


def message_of(*deltas: Json) -> Message:
    return assemble.finished(assembled({"choices": [{"delta": delta}]} for delta in deltas))


def call(arguments: Json = "", **more: Json) -> Json:
    return {"function": {"name": "x", "arguments": arguments}, **more}


def piece(arguments: str, **more: Json) -> Json:
    return {"function": {"arguments": arguments}, **more}


@given(tapes, tapes)
def test_however_an_answer_is_cut_it_is_what_the_model_said(dice: Dice, cuts: Dice) -> None:
    reply, style = servers.reply(dice), servers.style(dice)
    assume(style.keeps_calls_apart(reply))
    partial = assembled(servers.chunks(cuts, reply, style))
    normal = messages.normalised(assemble.finished(partial))
    assert normal["content"] == reply.text
    assert {normal.get(key, "") for key in reply.thought_keys} == {reply.thought}
    assert {key: normal.get(key) for key in reply.extra} == reply.extra
    for made, meant in zip(messages.calls_of(normal), reply.calls, strict=True):
        is_same_call(made, meant)


@given(tapes)
def test_a_thought_is_never_content(dice: Dice) -> None:
    message = assemble.finished(assembled(servers.chunks(dice, servers.reply(dice), servers.style(dice))))
    assert not set(str(message.get("content"))) & set(THOUGHT)


@given(tapes)
def test_one_object_means_the_same_as_a_stream(dice: Dice) -> None:
    reply = servers.reply(dice)
    assume(servers.Style("none", 0, "own", True, True).keeps_calls_apart(reply))
    whole = assembled([servers.whole(reply)])
    parts = assembled(servers.chunks(dice, reply, servers.Style()))
    assert messages.normalised(assemble.finished(whole)) == messages.normalised(assemble.finished(parts))
    assert (whole.finish, whole.usage) == (parts.finish, parts.usage)


@given(st.lists(json_objects | tapes.map(servers.json_object), max_size=6))
def test_nonsense_adds_something_or_nothing_and_stays_json(chunks: list[Json]) -> None:
    message = assemble.finished(assembled(chunks))
    assert is_json(message)
    assert message["role"] == "assistant"
    for chunk in chunks:
        assert all(isinstance(text, str) for text in assemble.deltas(chunk))


@given(json_values, st.sampled_from(["extra_content", "reasoning_details", "x"]))
def test_a_member_that_nobody_knows_comes_back_equal(value: Json, key: str) -> None:
    assert message_of({"content": "a"}, {key: value}, {"content": "b"}).get(key) == value


@given(st.lists(st.text(max_size=3), max_size=9))
def test_text_is_joined_in_order(pieces: list[str]) -> None:
    message = message_of(*({"content": piece} for piece in pieces))
    assert message.get("content", "") == "".join(pieces)


@given(st.text(min_size=1), st.data())
def test_a_character_whose_halves_came_apart_is_one_again(text: str, data: st.DataObject) -> None:
    units = halved(text)
    at = data.draw(st.integers(0, len(units)))
    parts = texts.paired(units[:at]), texts.paired(units[at:])  # as a JSON reader gives them
    partial = assembled({"choices": [{"delta": {"content": part}}]} for part in parts)
    assert assemble.finished(partial)["content"] == texts.paired(units)
    assert is_json({"rope": list(partial.message["content"])})


# --- coalescing


@given(st.lists(tapes.map(servers.json_object) | json_objects, max_size=4), tapes)
def test_coalesced_chunks_mean_the_same(nonsense: list[Json], dice: Dice) -> None:
    chunks = servers.chunks(dice, servers.reply(dice), servers.style(dice))
    for chunk in nonsense:
        chunks.insert(dice.number(len(chunks)), chunk)
    fewer = assemble.coalesced(chunks)
    assert len(fewer) <= len(chunks)
    assert assemble.finished(assembled(fewer)) == assemble.finished(assembled(chunks))
    assert assembled(fewer).usage == assembled(chunks).usage
    shown = ["".join(assemble.deltas(chunk)[1] for chunk in some) for some in (chunks, fewer)]
    assert texts.paired(shown[0]) == texts.paired(shown[1])


def test_neighbours_that_differ_in_their_text_alone_become_one() -> None:
    chunks = [{"id": "1", "choices": [{"index": 0, "delta": {"content": text}}]} for text in "abc"]
    other = {"id": "2", "choices": [{"index": 0, "delta": {"content": "d"}}]}
    abc = {"id": "1", "choices": [{"index": 0, "delta": {"content": "abc"}}]}
    assert assemble.coalesced([*chunks, other, *chunks]) == (abc, other, abc)


# --- tool calls, as servers are known to send them


def arguments(message: Message) -> list[Json]:
    return [messages.call_arguments(call) for call in messages.calls_of(message)]


def test_gemini_sends_index_0_for_all_parallel_calls() -> None:
    message = message_of({"tool_calls": [call("{}", index=0, id="a")]}, {"tool_calls": [call("[]", index=0, id="b")]})
    assert arguments(message) == ["{}", "[]"]


def test_some_servers_send_neither_index_nor_id() -> None:
    message = message_of({"tool_calls": [call('{"a"')]}, {"tool_calls": [piece(":1}")]}, {"tool_calls": [call("{}")]})
    assert arguments(message) == ['{"a":1}', "{}"]


def test_llama_cpp_python_repeats_id_and_name() -> None:
    deltas = [{"tool_calls": [call(text, index=0, id="a")]} for text in ('{"a"', ": 1}", "", " ")]
    assert arguments(message_of(*deltas)) == ['{"a": 1} ']


def test_the_first_name_and_id_win() -> None:
    message = message_of(
        {"tool_calls": [call("{", index=0, id="a")]},
        {"tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": "}"}}]},
        {"tool_calls": [{"index": 0, "id": None, "function": {"name": None, "arguments": ""}}]},
    )
    assert message["tool_calls"] == [call("{}", id="a")]


def test_the_same_id_at_another_index_is_another_call() -> None:
    message = message_of({"tool_calls": [call("{", index=0, id="a"), call("[", index=1, id="a")]})
    assert arguments(message) == ["{", "["]


def test_two_named_calls_of_one_delta_are_two() -> None:
    assert arguments(message_of({"tool_calls": [call(""), call("")]})) == ["", ""]
    assert arguments(message_of({"tool_calls": [call("", id="a"), call("", id="a")]})) == ["", ""]


def test_nameless_pieces_of_one_delta_continue_its_call() -> None:
    message = message_of(
        {"tool_calls": [call("{", index=0), piece("}", index=0), call("[", index=1), piece("]", index=1)]}
    )
    assert arguments(message) == ["{}", "[]"]


def test_a_call_behind_one_whose_arguments_are_whole_is_another() -> None:
    message = message_of({"tool_calls": [call("{}", id="a")]}, {"tool_calls": [call("{}", id="a")]})
    assert arguments(message) == ["{}", "{}"]


def test_arguments_that_are_an_object_are_whole() -> None:
    message = message_of({"tool_calls": [call({"a": None})]}, {"tool_calls": [call({})]})
    assert arguments(message) == [{"a": None}, {}]


def test_a_late_member_of_a_call_joins_it() -> None:
    late = {"index": 0, "extra_content": {"google": {"thought_signature": "s"}}}
    message = message_of({"tool_calls": [call("{}", index=0, id="a")]}, {"tool_calls": [late]})
    assert message["tool_calls"] == [call("{}", id="a", extra_content={"google": {"thought_signature": "s"}})]


@given(st.randoms(use_true_random=False), st.sampled_from(["index", "id", "both"]), st.integers(1, 40))
def test_calls_that_grow_side_by_side_stay_apart(chance: random.Random, told: str, count: int) -> None:
    """Pieces of one call keep their order; those of others come between them, in one delta or another."""
    meant = [json.dumps({"command": f"echo {n}"}) for n in range(count)]
    marks: list[Json] = [{"index": n, "id": f"c{n}"} for n in range(count)]
    marks = [{key: mark[key] for key in mark if told in (key, "both")} for mark in marks]
    items = [
        [call("", **mark)] + [piece(letter, **mark) for letter in text] for text, mark in zip(meant, marks, strict=True)
    ]
    order = [n for n, own in enumerate(items) for _ in own[1:]]
    chance.shuffle(order)
    deltas = [{"tool_calls": [own.pop(0)]} for own in items]
    while order:
        some = [order.pop() for _ in range(min(len(order), chance.randint(1, 3)))]
        deltas.append({"tool_calls": [items[n].pop(0) for n in some]})
    assert arguments(message_of(*deltas)) == meant


def test_a_call_that_gets_its_index_late_is_found_by_it() -> None:
    message = message_of(
        {"tool_calls": [call("{", id="a")]},
        {"tool_calls": [piece("", id="a", index=3)]},
        {"tool_calls": [call("[", id="b", index=4)]},
        {"tool_calls": [piece("}", index=3)]},
    )
    assert arguments(message) == ["{}", "["]


def test_a_null_between_pieces_of_arguments_takes_nothing_away() -> None:
    pieces = ({"function": {"arguments": text}, "index": 0} for text in ("{", None, "}"))
    assert arguments(message_of(*({"tool_calls": [one]} for one in pieces))) == ["{}"]


def test_what_is_no_function_call_is_none() -> None:
    assert "tool_calls" not in message_of({"tool_calls": [None, 3, {"id": "a"}]})
    assert "tool_calls" not in message_of({"tool_calls": "x", "function_call": {"name": "old"}})


# --- content that is a list of parts


def test_plain_text_behind_parts_is_one_part() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    message = message_of({"content": [thinking]}, {"content": "a"}, {"content": ""}, {"content": "b"})
    assert message["content"] == [thinking, {"type": "text", "text": "ab"}]


def test_parts_behind_plain_text_do_not_replace_it() -> None:
    message = message_of({"content": "a"}, {"content": [{"type": "text", "text": "b"}, "c"]}, {"content": "d"})
    assert message["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
        "c",
        {"type": "text", "text": "d"},
    ]
    assert messages.text_of(message) == "abd"
    assert message_of({"content": ""}, {"content": []})["content"] == []


def test_items_of_unknown_lists_join_by_index_and_id() -> None:
    message = message_of(
        {"reasoning_details": [{"index": 0, "text": "a"}, {"index": 1, "text": "b"}]},
        {"reasoning_details": [{"index": 0, "text": "c"}, {"id": "x", "text": "d"}]},
        {"reasoning_details": [{"id": "x", "text": "e"}, {"text": "f"}]},
    )
    texts = [item["text"] for item in message["reasoning_details"]]
    assert texts == ["ac", "b", "de", "f"]


# --- what is shown


def test_the_first_choice_alone_is_read() -> None:
    chunk = {"choices": [None, {"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]}
    assert assemble.deltas(chunk) == ("", "a")
    assert assemble.finished(assembled([chunk]))["content"] == "a"


def test_a_refusal_is_shown_as_text() -> None:
    assert assemble.deltas({"choices": [{"delta": {"refusal": "no"}}]}) == ("", "no")
    assert assemble.deltas({"choices": [{"message": {"reasoning": "hm", "content": "yes"}}]}) == ("hm", "yes")


def test_facts_are_the_newest_that_say_something() -> None:
    message = message_of(
        {"a": 1, "b": "x", "c": {"d": 1}}, {"a": 2, "b": "", "c": {"e": 2}}, {"a": None, "c": {"d": None}}
    )
    assert json.loads(json.dumps(message)) == {"role": "assistant", "a": 2, "b": "x", "c": {"d": 1, "e": 2}}
