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
    """Read as any mapping. `put` and `cut` give another one and leave this as it is."""

    __slots__ = ("_root", "_size")

    def __init__(self, entries: Mapping[Address, V] | Iterable[tuple[Address, V]] = ()) -> None:
        self._root: Node = {}
        self._size = 0
        for key, value in dict(entries).items():
            grown = self.put(key, value)
            self._root, self._size = grown._root, grown._size

    def put(self, key: Address, value: V) -> "Trie[V]":
        """With this entry, in place of another of the same key."""
        digits = _digits(key)
        nodes = self._way(digits)
        node = nodes.pop()
        size = self._size + (_HERE not in node)
        node = {**node, _HERE: (key, value)}
        while nodes:
            node = {**nodes.pop(), digits.pop(): node}
        return _made(node, size)

    def cut(self, key: Address) -> "Trie[V]":
        """Without the entry of this address and all below it."""
        digits = _digits(key)
        nodes = self._way(digits)
        gone = sum(1 for _ in _entries(nodes.pop()))
        if not gone:
            return self
        node: Node = {}
        while nodes:
            digit = digits.pop()
            rest = {other: its for other, its in nodes.pop().items() if other != digit}
            node = {**rest, digit: node} if node else rest
        return _made(node, self._size - gone)

    def below(self, key: Address) -> Iterator[tuple[Address, V]]:
        """The entry of this address and all below it."""
        return _entries(self._way(_digits(key))[-1])

    def get(self, key: Address, default: Any = None) -> Any:
        node = self._root
        for digit in _digits(key):
            node = node.get(digit, _EMPTY)
        return node[_HERE][1] if _HERE in node else default

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
        return self._size

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Trie):
            return bool(self._root == other._root)
        return dict(self) == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of any mapping

    def __repr__(self) -> str:
        return f"Trie({dict(self)!r})"

    def _way(self, digits: Iterable[int]) -> list[Node]:
        """The nodes from the root to where an address ends."""
        nodes = [self._root]
        for digit in digits:
            nodes.append(nodes[-1].get(digit, _EMPTY))
        return nodes


def _made(root: Node, size: int) -> Trie[Any]:
    made: Trie[Any] = Trie()
    made._root, made._size = root, size
    return made


def _digits(key: Address) -> list[int]:
    return [digit for number in key for digit in (number >> 12, number >> 6 & 63, number & 63)]


def _entries(node: Node) -> Iterator[tuple[Address, Any]]:
    for digit, inner in node.items():
        if digit == _HERE:
            yield inner
        else:
            yield from _entries(inner)
