"""The head and the tail of a stream of bytes as text, in bounded memory: what is kept of a command's output.

It decodes UTF-8 in pieces of any size, cuts no character in two and counts what it leaves out. It
neither reads the bytes nor says in words that some are missing.
"""

GLIMPSE_BYTES = 2_000


class Clip:
    """The head is told as it comes, the tail at the end; together the whole text, if nothing is left out.

    The one mutable thing in here, and never part of a state: a handler has one for each command.
    """

    def __init__(self, bytes_max: int) -> None:
        self._head_room = bytes_max // 2
        self._tail_max = bytes_max - self._head_room
        self._head = bytearray()  # what was not told yet, be it the first bytes of a character
        self._tail = bytearray()
        self._dropped = 0  # bytes that had to leave the tail

    @property
    def is_head_full(self) -> bool:
        return self._head_room == 0

    def feed(self, data: bytes) -> None:
        """Take what came."""
        head, rest = data[: self._head_room], data[self._head_room :]
        self._head += head
        self._head_room -= len(head)
        self._tail += rest
        excess = max(len(self._tail) - self._tail_max, 0)
        del self._tail[:excess]
        self._dropped += excess

    def told(self) -> str:
        """The text of the head that is new since the last time."""
        text, begun = _whole(self._head)
        self._head = begun
        return text

    def glimpse(self) -> tuple[str, int]:
        """The latest words, and how many bytes between the head and them are left out: never 0.

        (Words that follow the head without a gap would be taken for more of it.)
        """
        start = max(len(self._tail) - GLIMPSE_BYTES, 0)
        skipped = self._dropped + len(self._head) + start
        if skipped == 0:
            start = skipped = 1
        words, cut = _from_character(self._tail[start:])
        return _whole(words)[0], skipped + cut

    def end(self) -> tuple[str, int]:
        """What was not told, and how many bytes between the head and it are left out."""
        if self._dropped == 0:
            return (self._head + self._tail).decode(errors="replace"), 0
        words, cut = _from_character(self._tail)
        return words.decode(errors="replace"), self._dropped + len(self._head) + cut


def _whole(data: bytearray) -> tuple[str, bytearray]:
    """The text of the bytes, without a character that is not complete, and that one's bytes."""
    for back in range(1, min(len(data), 3) + 1):
        first = data[-back]
        if not _is_continuation(first):
            length = 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)
            end = len(data) - back if back < length else len(data)
            return data[:end].decode(errors="replace"), data[end:]
    return data.decode(errors="replace"), bytearray()


def _from_character(data: bytearray) -> tuple[bytearray, int]:
    """The bytes without the rest of a character that began before them, and how many that were."""
    cut = 0
    while cut < min(len(data), 3) and _is_continuation(data[cut]):
        cut += 1
    return data[cut:], cut


def _is_continuation(byte: int) -> bool:
    return byte & 0xC0 == 0x80
