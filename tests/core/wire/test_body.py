"""The body of an answer: whatever comes, in whatever pieces, its reader tells the same and ends once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.events import Answer, Failure, Fault, ModelChunks, ModelEnded, ModelFailed
from bantam.core.wire import assemble, chat, failures
from bantam.core.wire.body import PAYLOAD_BYTES_MAX, REST_S, Body, deadline, feed, finish, lapse
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
    _, events = feed(Body(ID, chat), b'data: [DONE]\n\ndata: {"choices": []}\n\n')
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


@pytest.mark.parametrize(
    "body", [b": ping\n\n", b"\n: ping\n\n", b"data:\n\n", b"event: message\n\n", b"data\n\nid: 7\n\n"]
)
def test_a_stream_that_says_nothing_is_as_good_as_no_body(body: bytes) -> None:
    assert fault(body) == Failure(Fault.ANSWER, "the API answered 200 with a stream that says nothing")


def test_a_web_page_is_called_one() -> None:
    assert "web page" in fault(b"<html></html>").text


def test_json_of_another_kind_is_no_answer() -> None:
    for body in (b'{"a": 1}', b"[]", b"[1, 2]", b"hello", b"database: x"):
        assert "no chat completion" in fault(body).text
        assert fault(body).status == failures.PAGE


def test_a_broken_chunk_is_named_and_quoted() -> None:
    assert fault(b'data: {"choices": [{"del\n\n').text == 'a chunk of the answer is not valid JSON: {"choices": [{"del'
    assert fault(b"data: [5]\n\n").text == "a chunk of the answer is no JSON object: [5]"
    assert fault(b'{"choices": [').text == 'the answer is not valid JSON: {"choices": ['
    assert {fault(body).status for body in (b"data: {\n\n", b"data: [5]\n\n", b'{"choices": [')} == {0}


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
    assert not isinstance(events[0], ModelFailed) or events[0].failure.fault is Fault.LIMIT


def test_many_brackets_are_not_deep_nesting() -> None:
    assert isinstance(told(b"data: " + json.dumps({"a": [[]] * 200}).encode() + b"\n\n")[0], ModelChunks)


def test_what_is_no_json_number_becomes_null() -> None:
    assert told(b'data: {"a": NaN}\n\n')[0] == ModelChunks(ID, ({"a": None},))
    assert told(b'data: {"a": [1e999, -1e999, 1.5]}\n\n')[0] == ModelChunks(ID, ({"a": [None, None, 1.5]},))


def test_the_end_of_a_body_that_never_began() -> None:
    assert isinstance(finish(Body(ID, chat))[-1], ModelFailed)


@pytest.mark.parametrize("start", [b"data: ", b'{"choices": "'])
def test_one_endless_event_ends_the_answer_and_not_the_memory(start: bytes) -> None:
    state, events = feed(Body(ID, chat), start)
    piece, fed = b"a" * 1_000_000, 0
    while not events:
        state, events = feed(state, piece)
        fed += len(piece)
    assert PAYLOAD_BYTES_MAX - len(piece) <= fed <= PAYLOAD_BYTES_MAX + 2 * len(piece)
    assert events == [ModelFailed(ID, Failure(Fault.LIMIT, "the answer is larger than 64 MB"))]


def test_one_endless_event_behind_a_whole_answer_ends_it_well() -> None:
    state, events = feed(Body(ID, chat), data_of(LAST))
    assert isinstance(events[-1], ModelChunks)
    half = b"a" * (PAYLOAD_BYTES_MAX // 2 + 1)
    state, events = feed(state, b"data: " + half)
    assert not events
    assert feed(state, half)[1] == [ModelEnded(ID)]


# --- what is nobody's answer


@given(tapes, st.data(), st.booleans(), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_words_between_the_events_of_any_stream_change_nothing(
    dice: Dice, data: st.DataObject, marked: bool, end: bytes
) -> None:
    """Broken streams and those with errors, too. What stands behind the last event is another matter."""
    parts = servers.chunks(dice, servers.reply(dice), servers.style(dice), ends=data.draw(st.booleans()))
    if data.draw(st.booleans()):
        parts.insert(dice.number(len(parts)), servers.pick(dice, servers.ERRORS))
    plain = [data_of(part) for part in parts] + [b"data: [DONE]\n\n"] * marked
    if data.draw(st.booleans()):
        plain.insert(dice.number(len(plain)), b'data: {"choices": [{"delta": {"con\n\n')
    noisy = list[bytes]()
    for event in plain:
        words = data.draw(st.lists(st.sampled_from(servers.NOISE), max_size=2))
        noisy += [*(word + b"\n\n" for word in words), event]
    body = b"".join(noisy).replace(b"\n", end)
    assert meaning(read(ID, data.draw(parts_of(body)))) == meaning(read(ID, [b"".join(plain)]))


@given(st.sampled_from(servers.NOISE), st.sampled_from([b"", b"\n", b"\n\n", b"\r\n\r\n"]))
def test_words_behind_a_finish_reason_change_nothing(word: bytes, end: bytes) -> None:
    body, until = waits(data_of(LAST), word + end)
    assert until == REST_S
    assert lapse(body) == finish(body) == [ModelEnded(ID)]


@given(st.sampled_from(servers.NOISE), st.sampled_from([b"", b"\n", b"\n\n"]))
def test_words_are_not_the_end_of_an_answer(word: bytes, end: bytes) -> None:
    text = data_of({"choices": [{"delta": {"content": "a"}}]})
    body, until = waits(text, word + end)
    assert until is None
    assert lapse(body) == []
    said = finish(body)[-1]
    assert isinstance(said, ModelFailed)
    assert "broke off with the words: " in said.failure.text


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\r\n\r\n"])
@pytest.mark.parametrize("before", [b"", b": hi\n\n", b"data: ping\n\n"])
def test_a_stream_of_words_alone_is_a_failure_that_quotes_them(before: bytes, end: bytes) -> None:
    told = fault(before + b"data: Internal Server Error" + end)
    assert told.text.startswith("the API answered 200 with nothing but the words: ")
    assert told.text.endswith("Internal Server Error")
    assert (told.fault, told.status) == (Fault.ANSWER, 0)


def test_the_words_of_an_event_named_error_are_an_error() -> None:
    text = data_of({"choices": [{"delta": {"content": "a"}}]})
    for name in (b"event: error", b"event:error"):
        _, failed = told(text + name + b"\ndata: upstream went away\n\ndata: [DONE]\n\n")
        assert isinstance(failed, ModelFailed)
        assert failures.explain(failed.failure) == "upstream went away"
    assert told(text + b"event: error\ndata:\n\ndata: [DONE]\n\n")[-1] == ModelEnded(ID, marked=True)


def test_words_are_no_sign_that_an_answer_began() -> None:
    state, events = feed(Body(ID, chat), b"data: ping\n\n")
    assert (state.told, events) == (False, [])


@pytest.mark.parametrize(
    "wrapped",
    [b"data: data: %s", b"data: : ping\ndata: %s", b"data: \xef\xbb\xbf%s", b"data: ping\ndata:\ndata: data:%s"],
)
def test_a_chunk_that_was_rewrapped_is_a_chunk(wrapped: bytes) -> None:
    chunk = {"choices": [{"delta": {"content": "a"}}]}
    body = b"".join(wrapped % part + b"\n\n" for part in (json.dumps(chunk).encode(), b"[DONE]"))
    assert told(body) == [ModelChunks(ID, (chunk,)), ModelEnded(ID, marked=True)]


@pytest.mark.parametrize(
    "half", [b'{"choices": [{"del', b"{", b"[", b"[{", b"{ping}", b"[1", b'{"a": 1}]', b": x\ndata: {"]
)
def test_what_begins_as_json_and_cannot_be_read_is_damaged(half: bytes) -> None:
    assert "a chunk of the answer is not valid JSON" in fault(b"data: " + half + b"\n\n").text


# --- silence behind an answer

LAST = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def waits(*reads: bytes, timeout_s: float = 300) -> tuple[Body, float | None]:
    """A body after some reads, a second apart, and the time at which its rest is given up."""
    body, until = Body(ID, chat), None
    for now, data in enumerate(reads):
        body, events = feed(body, data)
        until = deadline(body, events, until, float(now), timeout_s)
    return body, until


def data_of(chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def test_before_a_finish_reason_only_silence_ends_the_wait() -> None:
    open_end = {"choices": [{"delta": {"content": "a"}, "finish_reason": None}]}
    other = {"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]}
    assert waits(data_of(open_end), b": ping\n\n", data_of(other), data_of({"choices": []}), b"data: {")[1] is None


def test_behind_a_finish_reason_the_rest_has_a_few_seconds() -> None:
    assert waits(data_of(LAST))[1] == REST_S
    assert waits(data_of(LAST), timeout_s=1)[1] == 0.5
    assert waits(data_of(LAST), data_of({"choices": [], "usage": {}}))[1] == REST_S + 1  # usage is news
    assert waits(data_of(LAST), b": ping\n\n", b": ping\n\n", b"data: {")[1] == REST_S  # these are none


@pytest.mark.parametrize("rest", [b"", b": ping\n", b'data: {"choi', b"data: [DONE]", b'data: {"error": {}'])
def test_what_lies_half_read_behind_a_whole_answer_does_not_spoil_it(rest: bytes) -> None:
    body, _ = waits(data_of(LAST), rest)
    assert lapse(body) == finish(body) == [ModelEnded(ID, marked=b"DONE" in rest)]


def test_a_last_chunk_without_its_blank_line_counts() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 1}}
    body, _ = waits(data_of(LAST), data_of(usage).rstrip())
    assert lapse(body) == [ModelChunks(ID, (usage,)), ModelEnded(ID)]


@pytest.mark.parametrize("last", [LAST, "[DONE]", {"error": {"message": "no"}}, {"choices": []}, "half"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"  "])
def test_a_last_event_without_its_blank_line_ends_the_wait(last: Any, end: bytes) -> None:
    text = data_of({"choices": [{"delta": {"content": "a"}}]})
    body, until = waits(
        text, b": ping\n\n", b"data: " + (last if isinstance(last, str) else json.dumps(last)).encode() + end
    )
    ends = last != "half" and last != {"choices": []}
    assert until == (2 + REST_S if ends else None)
    assert lapse(body) == (finish(body) if ends else [])
    body, events = feed(body, b", and more of it")  # it was not the end after all
    assert (deadline(body, events, until, 3.0, 300), lapse(body)) == (until, [])


def test_a_large_event_is_not_read_again_and_again_for_its_end() -> None:
    large = {**LAST, "x": "y" * 100_000}
    assert waits(data_of(large)[:-2])[1] is None


def test_one_object_is_whole_when_its_last_bracket_came() -> None:
    whole = json.dumps({"choices": [{"message": {"content": "}"}}]}).encode()
    for at in range(1, len(whole) + 1):
        body, until = waits(whole[:at])
        assert (until is not None) == (whole[at - 1 : at] in b"}]")
        assert lapse(body) == (finish(body) if at == len(whole) else [])
    assert waits(whole + b"\n" * 9)[1] == REST_S
    assert isinstance(lapse(waits(b'{"error": {"message": "no"}}')[0])[-1], ModelFailed)


@given(tapes)
def test_an_answer_before_silence_is_the_answer_before_an_end(dice: Dice) -> None:
    said = servers.reply(dice)
    data = servers.sse(dice, servers.chunks(dice, said, servers.style(dice)), marked=False)
    silent, ended = (meaning(read(ID, [data], end)) for end in ("silent", "closes"))
    assert silent == ended
