"""A rope is its pieces in order, and there are never many of them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base import rope

pytestmark = pytest.mark.core


@given(st.lists(st.text(max_size=9)))
def test_a_rope_says_what_was_added(pieces: list[str]) -> None:
    made: tuple[str, ...] = ()
    for piece in pieces:
        made = rope.add(made, piece)
    assert "".join(made) == "".join(pieces)
    assert all(made) or made == ("",)


@given(st.lists(st.integers(1, 5), max_size=400))
def test_a_rope_stays_short(sizes: list[int]) -> None:
    made: tuple[bytes, ...] = ()
    for size in sizes:
        made = rope.add(made, bytes(size))
        assert all(len(a) > 2 * len(b) for a, b in pairwise(made))
    assert len(made) <= max(1, sum(sizes)).bit_length()
