"""The body of an answer: whatever comes, in whatever pieces, its reader tells the same and ends once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import assemble
from bantam.core.body import PAYLOAD_BYTES_MAX, Body, feed, finish
from bantam.core.events import Answer, Failure, Fault, ModelChunks, ModelEnded, ModelFailed
from tests import servers
from tests.servers import Dice, read
from tests.strategies import parts_of, tapes

pytestmark = pytest.mark.core
ID = (1,)


def stream(dice: Dice) -> bytes:
    """A body of any kind, whole or broken off."""
    said = servers.reply(dice)
    parts = servers.chunks(dice, said, servers.style(dice))
    bodies = (
        servers.sse(dice, parts, marked=servers.chance(dice, 50)),
        json.dumps(servers.whole(said)).encode(),
        servers.pick(dice, servers.NO_ANSWERS),
    )
    body = servers.pick(dice, bodies)
    return body if servers.chance(dice, 60) else body[: dice.number(len(body))]


streams = tapes.map(stream) | st.binary(max_size=40)


def meaning(events: list[Answer]) -> tuple[Any, ...]:
    """What a session would make of the events: the message, its end and what it cost."""
    partial = assemble.Partial()
    for event in events[:-1]:
        assert isinstance(event, ModelChunks)
        for chunk in event.chunks:
            partial = assemble.merge(partial, chunk)
    return assemble.finished(partial), partial.finish, partial.usage, events[-1]


@given(streams, st.data())
def test_any_chunking_of_any_bytes_means_the_same(body: bytes, data: st.DataObject) -> None:
    whole = meaning(read(ID, [body]))
    assert meaning(read(ID, data.draw(parts_of(body)))) == whole
    assert meaning(read(ID, [body[at : at + 1] for at in range(len(body))])) == whole


@given(streams, st.data())
def test_a_body_ends_with_one_final_event(body: bytes, data: st.DataObject) -> None:
    events = read(ID, data.draw(parts_of(body)))
    assert [isinstance(event, (ModelEnded, ModelFailed)) for event in events] == [False] * (len(events) - 1) + [True]
    assert all(event.id == ID for event in events)


@given(tapes)
def test_a_read_with_many_deltas_is_one_event(dice: Dice) -> None:
    parts = servers.chunks(dice, servers.reply(dice), servers.style(dice))
    assert len(read(ID, [servers.sse(dice, parts, marked=True)])) <= 2


def told(body: bytes) -> list[Answer]:
    return read(ID, [body])


def fault(body: bytes) -> Failure:
    (event,) = told(body)
    assert isinstance(event, ModelFailed)
    return event.failure


def test_nothing_behind_the_end_mark_is_read() -> None:
    _, events = feed(Body(ID), b'data: [DONE]\n\ndata: {"choices": []}\n\n')
    assert events == [ModelEnded(ID, marked=True)]


def test_a_stream_without_a_mark_ends_unmarked() -> None:
    assert told(b'data: {"a": 1}') == [ModelChunks(ID, ({"a": 1},)), ModelEnded(ID)]


@pytest.mark.parametrize("body", [b'\xef\xbb\xbf\r\ndata: {"a": 1}', b'\xef\xbb\xbf{"choices": []}'])
def test_a_byte_order_mark_in_pieces_hides_nothing(body: bytes) -> None:
    events = read(ID, [body[at : at + 1] for at in range(len(body))])
    assert events == told(body) == told(body.lstrip(b"\xef\xbb\xbf"))
    assert isinstance(events[-1], ModelEnded)


def test_one_object_is_a_whole_answer() -> None:
    assert told(b'\xef\xbb\xbf\n{"choices": []}') == [ModelChunks(ID, ({"choices": []},)), ModelEnded(ID, marked=True)]


@pytest.mark.parametrize("body", [b"", b" \r\n"])
def test_an_empty_body_says_so(body: bytes) -> None:
    assert fault(body) == Failure(Fault.ANSWER, "the API answered 200 with an empty body")


def test_a_stream_of_comments_is_no_answer() -> None:
    assert "no chat completion" in fault(b": ping\n\n").text


def test_a_web_page_is_called_one() -> None:
    assert "web page" in fault(b"<html></html>").text


def test_json_of_another_kind_is_no_answer() -> None:
    assert "no chat completion" in fault(b'{"a": 1}').text
    assert "no chat completion" in fault(b"data: 5\n\n").text
    assert "not valid JSON" in fault(b"data: {\n\n").text


def test_an_error_inside_a_stream_keeps_its_status() -> None:
    assert fault(b'data: {"error": {"message": "no", "code": 429}}\n\n').status == 429
    assert fault(b'[{"error": {"code": 503}}]').status == 503
    assert fault(b'data: {"object": "error", "code": "500"}\n\n').status == 500
    assert fault(b'data: {"error": "no"}\n\n').status == 0
    assert fault(b'data: {"choices": [{"finish_reason": "error"}]}\n\n').fault is Fault.ANSWER


def test_text_before_an_error_is_told() -> None:
    events = told(b'data: {"choices": []}\n\ndata: {"error": "no"}\n\n')
    assert [type(event) for event in events] == [ModelChunks, ModelFailed]


@pytest.mark.parametrize("levels", [99, 100, 101, 100_000])
def test_nesting_has_a_limit(levels: int) -> None:
    events = told(b'data: {"a": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}\n\n")
    assert isinstance(events[0], ModelChunks if levels <= 100 else ModelFailed)


def test_many_brackets_are_not_deep_nesting() -> None:
    assert isinstance(told(b"data: " + json.dumps({"a": [[]] * 200}).encode() + b"\n\n")[0], ModelChunks)


def test_what_is_no_json_number_becomes_null() -> None:
    assert told(b'data: {"a": NaN}\n\n')[0] == ModelChunks(ID, ({"a": None},))
    assert told(b'data: {"a": [1e999, -1e999, 1.5]}\n\n')[0] == ModelChunks(ID, ({"a": [None, None, 1.5]},))


def test_the_end_of_a_body_that_never_began() -> None:
    assert isinstance(finish(Body(ID))[-1], ModelFailed)


@pytest.mark.parametrize("start", [b"data: ", b'{"choices": "'])
def test_one_endless_event_ends_the_answer_and_not_the_memory(start: bytes) -> None:
    state, events = feed(Body(ID), start)
    piece, fed = b"a" * 1_000_000, 0
    while not events:
        state, events = feed(state, piece)
        fed += len(piece)
    assert fed <= PAYLOAD_BYTES_MAX + 2 * len(piece)
    assert isinstance(events[-1], ModelFailed)
