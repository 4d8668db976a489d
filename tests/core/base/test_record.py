"""Records behave as the standard library's frozen dataclasses do; they only cost less to define."""

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core.base.record import dataclass, field, replace

pytestmark = pytest.mark.core


@dataclass(frozen=True)
class Ours:
    a: int
    b: str = "x"
    c: list[int] = field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Theirs:
    a: int
    b: str = "x"
    c: list[int] = dataclasses.field(default_factory=list)


VALUES = st.one_of(st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))
ARGUMENTS = st.tuples(
    st.lists(VALUES, max_size=4), st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), VALUES, max_size=4)
)


def made(kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        return kind(*args, **kwargs)
    except TypeError:
        return None


@given(ARGUMENTS, ARGUMENTS)
def test_a_record_is_made_compared_and_shown_like_a_dataclass(first: Any, second: Any) -> None:
    ours, theirs = [made(Ours, *first), made(Ours, *second)], [made(Theirs, *first), made(Theirs, *second)]
    assert [o is None for o in ours] == [t is None for t in theirs]
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])
    for mine, other in zip(ours, theirs, strict=True):
        if mine is not None:
            assert repr(mine) == repr(other).replace("Theirs", "Ours")
            assert (mine.a, mine.b, mine.c) == (other.a, other.b, other.c)
            assert copy.deepcopy(mine) == mine == pickle.loads(pickle.dumps(mine))
            assert mine != other


@given(ARGUMENTS)
def test_a_replaced_record_is_a_new_one(changes: Any) -> None:
    ours, theirs = Ours(1), Theirs(1)
    mine, other = (
        made(lambda **c: replace(ours, **c), [], changes[1]),
        made(lambda **c: dataclasses.replace(theirs, **c), [], changes[1]),
    )
    assert repr(mine) == repr(other).replace("Theirs", "Ours")
    assert ours == Ours(1)


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Ours(1).a = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del Ours(1).a


def test_a_record_is_hashed_by_value_and_each_default_is_new() -> None:
    assert hash(Ours(1, "y", ())) == hash(Ours(1, "y", ()))  # type: ignore[arg-type]
    assert Ours(1).c is not Ours(1).c


def test_the_standard_library_takes_a_record_for_a_dataclass() -> None:
    assert dataclasses.is_dataclass(Ours)
    assert [f.name for f in dataclasses.fields(Ours)] == ["a", "b", "c"]
    assert dataclasses.replace(Ours(1), b="z") == Ours(1, "z")
    assert dataclasses.asdict(Ours(1)) == {"a": 1, "b": "x", "c": []}
    match Ours(1, "q"):
        case Ours(a, b):
            assert (a, b) == (1, "q")
