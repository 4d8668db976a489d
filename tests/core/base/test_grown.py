"""A grown sequence is the tuple of its items, whatever grew from the same beginning meanwhile."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.grown import Grown

pytestmark = pytest.mark.core
SEVEN, EIGHT = (7,), (8,)


def equal(one: object, other: object) -> bool:
    return one == other


@given(st.lists(st.tuples(st.integers(0, 10**6), st.lists(st.integers(), max_size=4)), max_size=30))
def test_every_version_stays_what_it_was_whichever_is_gone_on_from(growths: list[tuple[int, list[int]]]) -> None:
    versions: list[tuple[Grown[int], tuple[int, ...]]] = [(Grown(), ())]
    for pick, more in growths:
        old, meant = versions[pick % len(versions)]
        versions.append((old + more, (*meant, *more)))
    for made, meant in versions:
        assert made.total(abs) == sum(map(abs, meant))
        assert (tuple(made), len(made), repr(made)) == (meant, len(meant), repr(meant))
        assert tuple(reversed(made)) == meant[::-1]
        assert equal(made, meant)
        assert equal(meant, made)


@given(st.lists(st.integers()), st.slices(20), st.integers(-20, 20))
def test_its_parts_are_those_of_a_tuple(items: list[int], part: slice, at: int) -> None:
    longer, whole = Grown(items) + SEVEN, (*items, *SEVEN)
    assert longer[part] == whole[part]
    if -len(whole) <= at < len(whole):
        assert longer[at] == whole[at]
    else:
        with pytest.raises(IndexError):
            longer[at]
    assert not equal(Grown(items), (*items, 8))
    assert not equal(Grown(items), [*items])


def test_what_nobody_else_has_gone_on_from_is_not_copied() -> None:
    first = Grown([1])
    second = first + SEVEN
    other = first + EIGHT
    assert (tuple(second), tuple(other)) == ((1, 7), (1, 8))
    assert (second.goes_on_from(first), other.goes_on_from(first), first.goes_on_from(second)) == (True, False, False)


def test_each_item_is_weighed_once() -> None:
    weighed: list[int] = []

    def weight(item: int) -> int:
        weighed.append(item)
        return item

    growing: Grown[int] = Grown([1, 2])
    for item in (3, 4):
        assert growing.total(weight) == sum(growing)
        growing += [item]
    assert growing.total(weight) == 10
    assert weighed == [1, 2, 3, 4]


def test_a_copy_shares_nothing() -> None:
    first = Grown([[1]])
    for copied in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert copied == first
        copied[0].append(2)
        assert equal(first, ([1],))
        assert not copied.goes_on_from(first)
