"""Markdown, the beginning of a line: what the line is, and which lists, quotes and fences are open behind it."""

import re
from enum import Enum, auto
from typing import NamedTuple

from bantam.core.words.spans import MARK, Pair, Spans

HEAD_MAX = 200  # characters in which the beginning of a line says what the line is
DEPTH_MAX = 16  # quotes and lists within each other that one line can open; more are text
TAB = 4  # columns (CommonMark 0.31.2, 2.2); as many make indented code
CODE = "code"
_BLANKS = re.compile(r"[ \t]*")
_RULE = re.compile(r"([-*_])(?:[ \t]*\1)*[ \t]*")
_HASHES = re.compile(r"#+")
_ITEM = re.compile(r"(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]|\Z)")
_ITEM_PART = re.compile(r"[-+*]|[0-9]{1,9}[.)]?")
_FENCE = re.compile(r"(`+|~+)([^\n]*)")
_LANGUAGE = re.compile(r"[{.\s]*([A-Za-z0-9_+#-]{1,32})")
_DASHES = re.compile(r"\|[ \t]*:?--")  # two, since one may be all that stands in a cell
_DASHES_PART = re.compile(r"\|[ \t]*:?-?")


class Fence(NamedTuple):
    """Fenced code that is open."""

    sign: str
    length: int
    column: int
    quotes: int
    style: str
    """`code:python`, or `code` where the fence names no language."""


class Styler(NamedTuple):
    """Between two pieces of text."""

    held: str = ""
    """What has come and is not decided."""
    starts: bool = True
    """At the start of a line, of which `held` is the beginning."""
    verbatim: str = ""
    """The style of the rest of this line, in which nothing has a meaning; else `spans` says."""
    spans: Spans = Spans()
    fence: Fence | None = None
    insets: tuple[int, ...] = ()
    """The columns where the contents of the open list items stand, outermost first."""
    paragraph: bool = False
    """The line before is one that text may go on from."""
    table: bool = False
    """The line before is one of a table."""


class _Look(Enum):
    """What a look at the next construct of a line comes to, if not to a styler."""

    ON = auto()
    """It was a quote or a list item: what stands in it comes next."""
    WAIT = auto()
    """It depends on characters that have not come."""
    OUT = auto()
    """It ended the fence in which it would have been code."""


def begin(styler: Styler, head: str, whole: bool, more: bool) -> tuple[Styler, int, list[Pair]] | None:
    """Read the beginning of a line: the styler behind it, how long it is, and its pairs; None if not decided.

    `whole`: the head is all of the line. `more`: it may grow, and what that could change is not decided.
    """
    line = _Line(styler, head, whole, more)
    found = line.read()
    return None if isinstance(found, _Look) else (found, line.at, line.pairs)


class _Line:
    """One line, from left to right: indentation, quotes and lists, and what stands in them."""

    def __init__(self, styler: Styler, head: str, whole: bool, more: bool) -> None:
        self._styler, self._head, self._whole, self._more = styler, head, whole, more
        self.at = 0
        self.pairs: list[Pair] = []
        self._insets, self._paragraph = styler.insets, styler.paragraph
        self._quotes = self._floor = 0  # how many, and the column where the innermost begins
        self._placed = False  # whether it is known which list items the line is in

    def read(self) -> Styler | _Look:
        if self._styler.fence:
            found = self._fenced(self._styler.fence)
            if found is not _Look.OUT:
                return found
        for _ in range(DEPTH_MAX):
            found = self._next()
            if found is not _Look.ON:
                return found
        return self._text()

    def _next(self) -> Styler | _Look:
        """One construct. The order of the questions is CommonMark's."""
        start = self._skip_blanks()
        if start == len(self._head):
            return _Look.WAIT if self._more else self._blank()
        column, sign, rest = self._column(start), self._head[start], self._head[start:]
        if sign == ">" and not self._is_code(column):
            return self._quote(start)
        if not self._placed:
            self._insets, self._placed = tuple(inset for inset in self._insets if inset <= column), True
        if self._is_code(column):
            return self._made(verbatim=CODE)
        if self._more and self._may_change(rest):
            return _Look.WAIT
        if self._is_heading(rest):
            self._take(MARK, start + len(rest) - len(rest.lstrip("#")))
            return self._text("heading", paragraph=False)
        if self._opens_fence(rest):
            return self._fence(rest, column)
        if self._is_rule(rest):
            return self._made(verbatim="rule")
        if item := _ITEM.match(rest):
            return self._item(start + item.end())
        if sign == "|":
            return self._row(rest)
        return self._text()

    def _may_change(self, rest: str) -> bool:
        """Whether the meaning of a construct depends on what comes next."""
        hashes = _HASHES.match(rest)
        return bool(
            (hashes and hashes.end() == len(rest))
            or _RULE.fullmatch(rest)
            or _ITEM_PART.fullmatch(rest)
            or _DASHES_PART.fullmatch(rest)
            or (rest[0] in "`~" and (set(rest) == {rest[0]} or self._opens_fence(rest)))
        )

    def _is_heading(self, rest: str) -> bool:
        hashes = len(rest) - len(rest.lstrip("#"))
        return 1 <= hashes <= 6 and rest[hashes : hashes + 1] in ("", " ", "\t")

    def _is_rule(self, rest: str) -> bool:
        """A thematic break; or what underlines a paragraph, which makes a heading of it when that was told."""
        if not self._whole or not _RULE.fullmatch(rest):
            return False
        return rest.count(rest[0]) >= 3 or (self._paragraph and rest.startswith("--"))

    def _opens_fence(self, rest: str) -> bool:
        found = _FENCE.match(rest)
        return bool(found and len(found[1]) >= 3 and not (rest[0] == "`" and "`" in found[2]))

    def _fence(self, rest: str, column: int) -> Styler | _Look:
        if not self._whole:
            return self._text()
        found = _FENCE.match(rest)
        assert found is not None
        language = _LANGUAGE.match(found[2])
        style = f"{CODE}:{language[1].lower()}" if language else CODE
        fence = Fence(rest[0], len(found[1]), column, self._quotes, style)
        self._take(MARK, len(self._head))
        return self._made(fence=fence)

    def _fenced(self, fence: Fence) -> Styler | _Look:
        """A line of fenced code, or the one that closes it."""
        start = self._skip_blanks()
        while self._quotes < fence.quotes and self._head[start : start + 1] == ">":
            self._quote(start)
            if self._quotes < fence.quotes:
                start = self._skip_blanks()
        if self._quotes < fence.quotes:
            if self._more and start == len(self._head):
                return _Look.WAIT
            self.at, self.pairs, self._quotes, self._floor = 0, [], 0, 0
            return _Look.OUT
        start = self._skip_blanks()
        rest = self._head[start:].rstrip(" \t")
        closes = self._column(start) < fence.column + TAB and set(rest) <= {fence.sign}
        if closes and self._more:
            return _Look.WAIT
        if closes and self._whole and len(rest) >= fence.length:
            self._take(MARK, len(self._head))
            return self._made()
        return self._made(verbatim=fence.style, fence=fence)

    def _quote(self, start: int) -> _Look:
        self._take("quote", start + 1)
        self._quotes += 1
        self._floor = self._column(self.at) + (self._head[self.at : self.at + 1] == " ")
        return _Look.ON

    def _item(self, end: int) -> _Look:
        self._take("item", end)
        self._placed = True
        inner = self._column(end)
        text = self._column(self._skip_blanks())
        self._insets += (text if inner < text <= inner + TAB else inner + 1,)
        self._paragraph = False
        return _Look.ON

    def _row(self, rest: str) -> Styler:
        if _DASHES.match(rest):
            return self._made(verbatim=MARK, table=True)
        return self._text("" if self._styler.table else "strong", paragraph=False, table=True)

    def _blank(self) -> Styler:
        self._take("", len(self._head))
        return self._made()

    def _text(self, base: str = "", paragraph: bool = True, table: bool = False) -> Styler:
        base = base or ("quoted" if self._quotes else "")
        return self._made(Spans(base=base, style=base, table=table), paragraph=paragraph, table=table)

    def _made(
        self,
        spans: Spans = Spans(),  # noqa: B008
        verbatim: str = "",
        fence: Fence | None = None,
        paragraph: bool = False,
        table: bool = False,
    ) -> Styler:
        return Styler("", False, verbatim, spans, fence, self._insets, paragraph, table)

    def _take(self, style: str, end: int) -> None:
        """The text up to `end` is told, in this style."""
        self.pairs.append((style, self._head[self.at : end]))
        self.at = end

    def _skip_blanks(self) -> int:
        found = _BLANKS.match(self._head, self.at)
        return found.end() if found else self.at

    def _column(self, at: int) -> int:
        return len(self._head[:at].expandtabs(TAB))

    def _is_code(self, column: int) -> bool:
        """Whether this is indented code, which cannot follow the line of a paragraph."""
        inset = max([self._floor, *(inset for inset in self._insets if inset <= column)])
        return not self._paragraph and column - inset >= TAB
