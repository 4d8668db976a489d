"""The head and the tail of any bytes, in pieces of any size."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bantam.core.tools.clip import GLIMPSE_BYTES, Clip

pytestmark = pytest.mark.core


MIXED = st.one_of(st.binary(max_size=120), st.text(max_size=60).map(lambda text: text.encode()))
PIECES = st.lists(MIXED, max_size=8)
LIMITS = st.integers(0, 150)


def clipped(pieces: Iterable[bytes], bytes_max: int) -> tuple[str, str, int]:
    clip = Clip(bytes_max)
    head = ""
    for piece in pieces:
        clip.feed(piece)
        head += clip.told()
    return head, *clip.end()


def chop(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(places)]


@settings(deadline=None, max_examples=300)
@given(PIECES, LIMITS)
def test_what_fits_is_told_whole(pieces: list[bytes], spare: int) -> None:
    data = b"".join(pieces)
    head, tail, skipped = clipped(pieces, len(data) + spare)
    assert head + tail == data.decode(errors="replace")
    assert skipped == 0


@settings(deadline=None, max_examples=300)
@given(PIECES, LIMITS)
def test_what_does_not_fit_is_counted_to_the_byte(pieces: list[bytes], bytes_max: int) -> None:
    data = b"".join(pieces)
    head, tail, skipped = clipped(pieces, bytes_max)
    if len(data) <= bytes_max:
        assert skipped == 0
        return
    head_max, tail_max = bytes_max // 2, bytes_max - bytes_max // 2
    assert any(  # at most three bytes are cut at either side, for the sake of a whole character
        data[:told].decode(errors="replace") == head
        and data[told + skipped :].decode(errors="replace") == tail
        and max(0, tail_max - 3) <= len(data) - told - skipped <= tail_max
        for told in range(max(0, head_max - 3), head_max + 1)
    )


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=100), st.lists(st.integers(0, 400), max_size=8), LIMITS)
def test_no_character_is_cut_and_no_chunking_shows(text: str, cuts: list[int], bytes_max: int) -> None:
    data = text.replace("\ufffd", "").encode()
    head, tail, skipped = clipped(chop(data, cuts), bytes_max)
    assert (head, tail, skipped) == clipped([data], bytes_max)
    assert "\ufffd" not in head + tail
    assert len(head.encode()) + skipped + len(tail.encode()) == len(data)


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=100), st.lists(st.integers(0, 400), max_size=8), LIMITS)
def test_a_glimpse_shows_the_latest_words_and_never_joins_the_head(text: str, cuts: list[int], bytes_max: int) -> None:
    clip, seen, head = Clip(bytes_max), b"", ""
    for piece in chop(text.replace("\ufffd", "").encode(), cuts):
        clip.feed(piece)
        seen, head = seen + piece, head + clip.told()
        words, skipped = clip.glimpse()
        begin = len(head.encode()) + skipped
        assert skipped > 0
        assert "\ufffd" not in words
        assert seen[begin:].startswith(words.encode())
        if words:
            assert len(seen) - begin - len(words.encode()) < 4


def test_a_glimpse_is_short() -> None:
    clip = Clip(100_000)
    clip.feed(b"a" * 49_999)
    assert not clip.is_head_full
    clip.feed(b"a" + "€".encode() * 10_000)
    assert clip.is_head_full
    assert len(clip.told()) == 50_000
    words, skipped = clip.glimpse()
    assert words == "€" * (GLIMPSE_BYTES // 3)
    assert skipped == 30_000 - len(words.encode())
