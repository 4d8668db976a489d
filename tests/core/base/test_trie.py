"""A trie is read as the dict with the same entries, and no change to it changes another."""

import pickle
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.trie import Address, Trie

pytestmark = pytest.mark.core
numbers = st.integers(0, 3) | st.integers(60, 66) | st.integers(4090, 4100) | st.integers(0, 10**9)
addresses = st.lists(numbers, max_size=4).map(tuple)
changes = st.lists(st.tuples(addresses, st.none() | st.integers()), max_size=30)


def changed(steps: list[tuple[Address, int | None]]) -> tuple[Trie[int | None], Mapping[Address, int | None]]:
    """What a trie and a dict come to; None cuts."""
    trie: Trie[int | None] = Trie()
    plain: dict[Address, int | None] = {}
    for key, value in steps:
        before, copy = trie, dict(plain)
        if value is None:
            assert dict(trie.below(key)) == {k: v for k, v in plain.items() if k[: len(key)] == key}
            trie = trie.cut(key)
            plain = {k: v for k, v in plain.items() if k[: len(key)] != key}
        else:
            trie = trie.put(key, value)
            plain = {**plain, key: value}
        assert before == copy
    return trie, plain


@given(changes, addresses)
def test_it_is_read_as_a_dict(steps: list[tuple[Address, int | None]], other: Address) -> None:
    trie, plain = changed(steps)
    assert dict(trie.items()) == plain
    assert trie == plain
    assert (len(trie), bool(trie), {*trie}) == (len(plain), bool(plain), {*plain})
    for key in (*plain, other):
        assert trie.get(key) == plain.get(key)
        assert (key in trie) == (key in plain)
    if other not in plain:
        with pytest.raises(KeyError):
            trie[other]


@given(changes, st.integers())
def test_equal_entries_make_equal_tries_in_whatever_order_they_came(
    steps: list[tuple[Address, int | None]], seed: int
) -> None:
    trie, plain = changed(steps)
    entries = list(plain.items())
    Random(seed).shuffle(entries)
    assert Trie(entries) == trie
    assert eval(repr(trie)) == trie
    assert pickle.loads(pickle.dumps(trie)) == trie
    assert trie != trie.put((7,), -1).put((7, 7), -1)


def test_a_none_is_an_entry() -> None:
    trie: Trie[None] = Trie([((1,), None)])
    assert (1,) in trie
    assert trie[1,] is None
    assert trie.cut((2,)) == trie
