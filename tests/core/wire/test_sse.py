"""Server-sent events: any chunking of any bytes gives the same payloads."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.wire import sse
from tests.strategies import parts_of

pytestmark = pytest.mark.core

PIECES = (
    b"data:",
    b"data: ",
    b"data",
    b"x",
    "é\u2028".encode(),
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n",
    b":",
    b"id: 7",
    b" ",
    b"\xff",
)
streams = st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join)


def expected(stream: bytes) -> list[str]:
    """The payloads by the letter of the standard, the whole stream at hand (an unfinished event counts here)."""
    payloads: list[str] = []
    data: list[bytes] = []
    for line in [*re.split(rb"\r\n|\n|\r", stream), b""]:
        field, _, value = line.partition(b":")
        if line == b"":
            payloads.append(b"\n".join(data).decode(errors="replace").strip())
            data = []
        elif field == b"data":
            data.append(value.removeprefix(b" "))
    return [payload for payload in payloads if payload]


def read(parts: list[bytes]) -> list[str]:
    tail: sse.Tail = ()
    payloads = []
    for part in parts:
        tail, more = sse.feed(tail, part)
        payloads += more
    return payloads + sse.finish(tail)


@given(streams, st.data())
def test_any_chunking_gives_the_payloads_of_the_standard(stream: bytes, data: st.DataObject) -> None:
    assert read([stream]) == expected(stream)
    assert read([stream[at : at + 1] for at in range(len(stream))]) == expected(stream)
    assert read(data.draw(parts_of(stream))) == expected(stream)


@given(st.binary(max_size=50), st.data())
def test_no_bytes_at_all_are_refused(stream: bytes, data: st.DataObject) -> None:
    assert read(data.draw(parts_of(stream))) == expected(stream)


@given(
    st.text().map(lambda text: " ".join(re.split(r"[\r\n]", text)).strip()), st.sampled_from([b"\n", b"\r\n", b"\r"])
)
def test_what_was_sent_arrives(text: str, end: bytes) -> None:
    stream = b"data: " + text.encode() + end * 2
    assert read([stream[at : at + 1] for at in range(len(stream))]) == [text] * bool(text)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_is_told_as_soon_as_it_is_whole(end: bytes) -> None:
    tail, payloads = sse.feed((), b"data: a" + end * 2)
    assert payloads == ["a"]
    assert sse.feed(tail, b"data: b" + end * 2)[1] == ["b"]


def test_the_data_lines_of_one_event_are_lines_of_its_payload() -> None:
    assert read([b"data: a\ndata:  b\nid: 1\ndata\ndata:c\n\n"]) == ["a\n b\n\nc"]


def test_a_byte_order_mark_is_no_part_of_a_line() -> None:
    assert read([b"\xef\xbb\xbfdata: a\n\n"]) == ["a"]
