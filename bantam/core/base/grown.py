"""A sequence that grows at its end, in time proportional to what is added: what a conversation is kept in.

Appending to a tuple copies it, which is quadratic over a conversation: to fold the log of 40,000 messages took
3.4 times as long as that of 20,000. Here all versions of one conversation share one list, and each knows how much of
it is its own. The newest version appends to that list in place, which no older one can see; any other one copies its
part first. So outside it is a value: nothing that was once read in one ever changes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")


class Grown(Sequence[T]):
    """Equal to the tuple of the same items, and shown as one. Its versions belong to one thread."""

    __slots__ = ("_items", "_size", "_sums")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = [*items]
        self._size = len(self._items)
        self._sums = [0]

    def __add__(self, more: Iterable[T]) -> "Grown[T]":
        """The longer sequence."""
        if len(self._items) != self._size:  # somebody else has gone on from here
            return Grown((*self, *more))
        longer: Grown[T] = Grown.__new__(Grown)
        longer._items, longer._sums = self._items, self._sums
        longer._items.extend([*more])
        longer._size = len(longer._items)
        return longer

    def total(self, weight: Callable[[T], int]) -> int:
        """The sum of the weights of all items, each of which is asked for once: always ask for the same `weight`."""
        for item in self._items[len(self._sums) - 1 : self._size]:
            self._sums.append(self._sums[-1] + weight(item))
        return self._sums[self._size]

    def goes_on_from(self, other: object) -> bool:
        """Whether it certainly begins with all of `other`, as far as can be known without looking at the items."""
        return isinstance(other, Grown) and self._items is other._items and self._size >= other._size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        return iter(self._items[: self._size])

    def __reversed__(self) -> Iterator[T]:
        return (self._items[at] for at in range(self._size - 1, -1, -1))

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        if isinstance(at, slice):
            return tuple(self._items[place] for place in range(*at.indices(self._size)))
        return self._items[range(self._size)[at]]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Grown):
            return (self.goes_on_from(other) and self._size == other._size) or tuple(self) == tuple(other)
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> Any:
        """Copied and pickled by its items: a copy shares nothing with what it is of."""
        return Grown, (tuple(self),)
