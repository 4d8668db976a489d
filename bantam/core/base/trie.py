"""A mapping from addresses (tuples of numbers) that changes without being copied: agents, requests, places.

`{**agents, id: agent}` copies all of them, which is quadratic where one answer starts ten thousand subagents. Here each
number of an address is three digits, and each digit leads to a dict of about 64 entries at most: a change copies those
on its way. Where an entry stands follows from its key alone, so what has equal entries is equal, whatever order they
came in, and all that is below an address hangs from one node.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

V = TypeVar("V")
Address = tuple[int, ...]
Node = dict[Any, Any]
_HERE = ""  # beside the digits, which are numbers: the entry of the address that ends here
_EMPTY: Node = {}


class Trie(Mapping[Address, V]):
    """Read as any mapping, of which only the length takes time. `put` and `cut` give another and change nothing."""

    __slots__ = ("_root",)

    def __init__(self, entries: Mapping[Address, V] | Iterable[tuple[Address, V]] = ()) -> None:
        root = _EMPTY
        for key, value in dict(entries).items():
            root = _with(root, key, 0, (key, value))
        self._root = root

    def put(self, key: Address, value: V) -> "Trie[V]":
        """With this entry, in place of another of the same key."""
        made: Trie[V] = Trie.__new__(Trie)
        made._root = _with(self._root, key, 0, (key, value))
        return made

    def cut(self, key: Address) -> "Trie[V]":
        """Without the entry of this address and all below it."""
        made: Trie[V] = Trie.__new__(Trie)
        made._root = _without(self._root, key, 0)
        return made

    def below(self, key: Address) -> Iterator[tuple[Address, V]]:
        """The entry of this address and all below it."""
        node = self._root
        for number in key:
            for digit in _digits(number):
                node = node.get(digit, _EMPTY)
        return _entries(node)

    def get(self, key: Address, default: Any = None) -> Any:
        node = self._root
        try:
            for number in key:
                node = node[number >> 12][number >> 6 & 63][number & 63]
            return node[_HERE][1]
        except KeyError:
            return default

    def __getitem__(self, key: Address) -> V:
        found: V = self.get(key, _EMPTY)
        if found is _EMPTY:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and self.get(key, _EMPTY) is not _EMPTY

    def __iter__(self) -> Iterator[Address]:
        return (key for key, _ in _entries(self._root))

    def __len__(self) -> int:
        return sum(1 for _ in _entries(self._root))

    def __bool__(self) -> bool:
        return bool(self._root)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Trie):
            return bool(self._root == other._root)
        return dict(self) == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of any mapping

    def __repr__(self) -> str:
        return f"Trie({dict(self)!r})"


def _digits(number: int) -> tuple[int, int, int]:
    return number >> 12, number >> 6 & 63, number & 63


def _with(node: Node, key: Address, at: int, entry: tuple[Address, Any]) -> Node:
    """A node with an entry at what of its key comes from `at` on."""
    if at == len(key):
        return {**node, _HERE: entry}
    a, b, c = _digits(key[at])
    first = node.get(a, _EMPTY)
    second = first.get(b, _EMPTY)
    third = second.get(c, _EMPTY)
    return {**node, a: {**first, b: {**second, c: _with(third, key, at + 1, entry)}}}


def _without(node: Node, key: Address, at: int) -> Node:
    """A node without what hangs from the rest of a key."""
    if at == len(key):
        return _EMPTY
    a, b, c = _digits(key[at])
    first = node.get(a, _EMPTY)
    second = first.get(b, _EMPTY)
    third = second.get(c, _EMPTY)
    return _set(node, a, _set(first, b, _set(second, c, _without(third, key, at + 1))))


def _set(node: Node, digit: int, inner: Node) -> Node:
    """A node with another below it; there are no empty ones."""
    return {**node, digit: inner} if inner else {other: its for other, its in node.items() if other != digit}


def _entries(node: Node) -> Iterator[tuple[Address, Any]]:
    for digit, inner in node.items():
        if digit == _HERE:
            yield inner
        else:
            yield from _entries(inner)
