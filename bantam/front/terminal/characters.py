"""Visible characters: where one begins and ends, for the keys that take a whole one.

A visible character is an extended grapheme cluster (Unicode Standard Annex 29): a joined emoji, a flag, a letter with
its marks, a Hangul syllable, CR LF. wcwidth has the tables, as prompt_toolkit's own idea of widths does.
"""

from wcwidth import grapheme_boundary_before, iter_graphemes

REACH = 1_000  # characters around the cursor that are looked at: a key costs the same in any text


def before(text: str, at: int, count: int = 1) -> int:
    """Where the character before `at` begins, or the last of so many."""
    start = max(0, at - REACH)
    near, place = text[start:at], at - start
    for _ in range(count):
        if place <= 0:
            break
        place = grapheme_boundary_before(near, place)
    return start + place


def behind(text: str, at: int, count: int = 1) -> int:
    """Where the character at `at` ends, or the last of so many."""
    near = iter_graphemes(text[at : at + REACH])
    for _ in range(count):
        at += len(next(near, ""))
    return at


def start(text: str, at: int) -> int:
    """Where the character begins in the middle of which `at` stands; `at` itself between two."""
    if at <= 0 or at >= len(text) or (text[at].isascii() and text[at] != "\n"):
        return at
    left = before(text, at)
    return left if behind(text, left) > at else at
