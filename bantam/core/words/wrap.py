"""Bantam's own words and a width -> lines that fit. What a model or a command wrote never comes here, but as `Kept`.

Lines are broken between words. What goes on is indented, a table's last column under itself. Only what is wider than a
whole line is broken within, and nothing is lost: joined again, the lines have the same signs in the same order.

Widths are counted as terminals count them: 0, 1 or 2 columns a character, by Unicode's own tables and the sum over all
of a text. Where terminals differ (families and flags of emoji, emoji newer than these tables) that is the most that any
of them takes, for a line that ends early still fits.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import assert_never

from bantam.core.base.record import dataclass
from bantam.core.words import page

HANG = 2  # columns that a line which goes on is indented by, beyond the line that it goes on from
UNDER = 4  # columns that a text is indented by which found no room beside its head
BESIDE_MIN = 16  # columns that it needs there
INDENT_SHARE = 4  # an indent takes a quarter of the line at most


@dataclass(frozen=True)
class Row:
    """A line of a table: its head as it is, blanks at its end included, and a text that is wrapped under itself."""

    head: str
    text: str


@dataclass(frozen=True)
class Kept:
    """What somebody else wrote, which is shown as it is."""

    text: str


@dataclass(frozen=True)
class Page:
    """A page of the manual: as it is where all of its lines fit, else laid out anew, paragraph by paragraph."""

    text: str


Part = str | Row | Page | Kept
Text = Part | tuple[Part, ...]
"""What is told: lines of prose, rows, pages, and words of others; several parts begin a line each."""


def plain(text: Text) -> str:
    """The text as a pipe or a program gets it, whole and unbroken."""
    return "\n".join(_plain(part) for part in _parts(text))


def laid(text: Text, columns: int) -> str:
    """The text as lines of so many columns; 0: there is no width to fit into."""
    return "\n".join("\n".join(_lines(part, columns)) for part in _parts(text)) if columns > 0 else plain(text)


def mapped(change: Callable[[str], str], text: Text) -> Text:
    """The text with all its words changed, in the same parts."""
    return tuple(_mapped(change, part) for part in _parts(text))


def width(text: str) -> int:
    """The columns that a line of text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


# --- parts


def _parts(text: Text) -> tuple[Part, ...]:
    return text if isinstance(text, tuple) else (text,)


def _plain(part: Part) -> str:
    match part:
        case str():
            return part
        case Row(head, text):
            return head + text
        case Page(text) | Kept(text):
            return text
        case never:
            assert_never(never)


def _mapped(change: Callable[[str], str], part: Part) -> Part:
    match part:
        case str():
            return change(part)
        case Row(head, text):
            return Row(change(head), change(text))
        case Page(text):
            return Page(change(text))
        case Kept(text):
            return Kept(change(text))
        case never:
            assert_never(never)


def _lines(part: Part, columns: int) -> Iterator[str]:
    match part:
        case str():
            for line in part.split("\n"):
                yield from _line(line, columns)
        case Row(head, text):
            first, *others = text.split("\n")
            yield from _row(head, first, columns)
            for line in others:
                yield from _line(line, columns)
        case Page(text) if any(width(line) > columns for line in text.split("\n")):
            for piece in page.pieces(text):
                yield from _line(piece, columns) if isinstance(piece, str) else _row(*piece, columns)
        case Page(text):
            yield text
        case Kept(text):
            yield text
        case never:
            assert_never(never)


def _line(line: str, columns: int) -> list[str]:
    """A line of prose: what goes on is indented a little more than the line itself."""
    if width(line) <= columns and "\t" not in line:
        return [line]
    line = line.expandtabs()
    text = line.lstrip(" ")
    indent = min(len(line) - len(text), columns // INDENT_SHARE)
    return _filled(" " * indent, text, columns, min(indent + HANG, columns // INDENT_SHARE))


def _row(head: str, text: str, columns: int) -> list[str]:
    """A head and the text behind it, or, where that is too narrow, under it."""
    if width(head + text) <= columns and "\t" not in head + text:
        return [head + text]
    head, text = head.expandtabs(), text.expandtabs()
    beside = width(head)
    if columns - beside >= BESIDE_MIN or not beside:
        return _filled(head, text, columns, beside)
    indent = min(UNDER, columns // INDENT_SHARE)
    heads = _line(head.rstrip(" "), columns)
    return [*heads, *_filled(" " * indent, text, columns, indent)] if text.strip(" ") else heads


# --- words


def _filled(start: str, text: str, columns: int, indent: int) -> list[str]:
    """The words of a text behind `start`, and in as many more lines as they need, each indented."""
    lines: list[str] = []
    line, used = start, width(start)
    for gap, word in _units(text, columns):
        wide = width(word)
        if used + gap + wide <= columns:
            line, used = line + " " * gap + word, used + gap + wide
            continue
        if line.strip(" "):
            lines.append(line.rstrip(" "))
        *whole, line = _alone(word, wide, columns, indent)
        lines += whole
        used = width(line)
    return [*lines, line]


def _alone(word: str, wide: int, columns: int, indent: int) -> list[str]:
    """A word at the beginning of a line, less indented if that keeps it whole; else piece by piece, none indented."""
    if wide <= columns:
        return [" " * min(indent, columns - wide) + word]
    pieces, piece, used = [], "", 0
    for sign in signs(word):
        if piece and used + width(sign) > columns:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + sign, used + width(sign)
    return [*pieces, piece]


def _units(text: str, columns: int) -> Iterator[tuple[int, str]]:
    """What is not to be parted, each with the blanks before it: words, and commands that one may copy.

    A command that does not fit into a line is parted into its words.
    """
    gap, unit, last = 0, "", ""
    for blanks, word in re.findall("( *)([^ ]+)", text):
        if last and _belong(last, word) and width(unit) + len(blanks) + width(word) <= columns:
            unit += blanks + word
        else:
            if last:
                yield gap, unit
            gap, unit = len(blanks), word
        last = word
    if last:
        yield gap, unit


def _belong(word: str, following: str) -> bool:
    """Whether two words are no place for a break: in `bantam -c KEY=VALUE`, `/list logs`, before `[y/n]`."""
    return bool(re.fullmatch(_GOES_ON, word) or (word[-1] not in ",;:." and re.match(_GOES_WITH, following)))


# compiled when first used, for most runs have nothing to wrap
_GOES_ON = r"\(?(bantam|/[a-z]+|-[A-Za-z])"  # a program, a slash command, a short option: what is it about?
_GOES_WITH = r"--?[A-Za-z]|\["  # an option, and what may be added or typed


# --- signs


def signs(word: str) -> Iterator[str]:
    """What a terminal shows as one: a character with its marks, joined emoji, a flag."""
    sign = word[:1]
    for before, char in pairwise(word):
        flag = _is_flag_half(char) and _is_flag_half(before) and len(sign) % 2 == 1
        if _columns(char) == 0 or char == _EMOJI or char in _TONES or before == _JOINER or flag:
            sign += char
        else:
            yield sign
            sign = char
    if sign:
        yield sign


_JOINER, _EMOJI = "\u200d", "\ufe0f"  # what joins emoji, and what makes one of a plain sign
_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"  # of skin
_WIDE_LATER = "[\u2630-\u2637\u268a-\u268f\u4dc0-\u4dff\U0001d300-\U0001d37f]"  # by Unicode 16
_INVISIBLE = "\u200b\u200c\u200d\u2060"  # format characters that no terminal gives a column


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


@lru_cache(4096)
def _columns(char: str) -> int:
    """The columns of one character."""
    import unicodedata  # most of what is said has no need of it

    if char == _EMOJI:  # makes a narrow sign wide, where a terminal knows of it
        return 1
    kind = unicodedata.category(char)
    if kind in ("Mn", "Me") or char in _INVISIBLE or "\u1160" <= char <= "\u11ff":  # marks; the inner parts of Hangul
        return 0
    later = kind == "Cn" or re.match(_WIDE_LATER, char)  # unassigned, as these tables know it: it may well be an emoji
    return 2 if later or _is_flag_half(char) or unicodedata.east_asian_width(char) in ("W", "F") else 1
