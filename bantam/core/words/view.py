"""Outputs -> (style, text) pairs. The only state is where the last character stands.

A style is a word; `ansi` makes terminal colours of it. Nothing that a model or a command wrote reaches a
terminal raw: control characters, escape sequences and direction overrides become visible signs. Nor is it wrapped:
lines of Bantam's own are, where the terminal is known to have so many `columns` (0: it is none, or does not say).
"""

from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from bantam.core.base.record import dataclass, replace
from bantam.core.base.texts import safe
from bantam.core.effects import (
    CallStarted,
    Emit,
    Notice,
    Requesting,
    ResultDelta,
    ResultEnded,
    ResultStarted,
    Retrying,
    Returned,
    Summarised,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
)
from bantam.core.events import Id
from bantam.core.words import wrap

if TYPE_CHECKING:
    from bantam.core.words.blocks import Styler

Pair = tuple[str, str]
REQUESTING = "...requesting..."
ROOM_MIN = 8  # columns for a line's words behind its label; in fewer, the terminal breaks them itself
STYLES = {  # SGR parameters (ECMA-48, 8.3.117)
    "request": "1;90",
    "marker": "36",
    "thought": "2",
    "call": "33",
    "header": "32",
    "result": "2",
    "error": "31",
    "notice": "2",
    "prompt": "1",
    # of Markdown: none of them sets a background, or a colour that is hard to read on one of the usual two
    "mark": "2",
    "heading": "1",
    "strong": "1",
    "emphasis": "3",
    "strike": "9",
    "code": "36",
    "link": "4",
    "item": "36",
    "quote": "36",
    "quoted": "3",
    "rule": "2",
    # of code in a fence
    "keyword": "35",
    "string": "32",
    "number": "36",
    "comment": "2",
    "defined": "1",
    "removed": "31",
}


@dataclass(frozen=True)
class Column:
    """Where output stands: who wrote last, what kind of text, whether its line is still open."""

    who: Id = ()
    kind: str = ""
    fresh: bool = True
    """At the start of a line."""
    carry: str = ""
    """Half a character: a CR whose LF, or a high surrogate whose low one, may come next."""
    markdown: bool = False
    """Whether answers are styled."""
    styler: "Styler | None" = None
    """What of this answer was styled, and is held back."""


def render(column: Column, emit: Emit, columns: int = 0) -> tuple[Column, list[Pair]]:
    """What to write for one output, and where that leaves the cursor."""
    who, output = emit.who, emit.output
    match output:
        case ThoughtDelta(text):
            return _flow(column, who, "thought", text, columns)
        case TextDelta(text):
            return _flow(column, who, "", text, columns)
        case ResultDelta(text=text, error=error, glimpse=glimpse):
            return _flow(column, who, "error" if error else "result", f"\n{text}\n" if glimpse else text, columns)
        case CallStarted(name=name, arguments=arguments):
            text = f"[tool call: {_one_line(name)}({_one_line(arguments)})]"
            return _line(column, who, "call", wrap.Kept(text), columns)
        case ResultStarted(name=name, error=error):
            text = f"[tool result: {_one_line(name)}]"
            return _line(column, who, "error" if error else "header", wrap.Kept(text), columns)
        case Retrying(why, seconds, attempt, attempts_max):
            text = f"{why}; trying again in {seconds:g} s ({attempt} of {attempts_max})"
            return _line(column, who, "error", text, columns)
        case Notice(text, error):
            return _line(column, who, "error" if error else "notice", text, columns)
        case Requesting():
            return _line(column, who, "request", REQUESTING, columns)
        case ResultEnded() | TurnEnded():
            return settle(column, columns)
        case Summarised() | Returned():
            return column, []
        case never:
            assert_never(never)


def settle(column: Column, columns: int = 0) -> tuple[Column, list[Pair]]:
    """End what is open: the reasoning block, the line."""
    pairs: list[Pair] = []
    if column.carry:
        column, pairs = _write(replace(column, carry=""), column.who, column.kind, column.carry)
    if column.styler:
        from bantam.core.words import markdown

        column, more = _tell(column, markdown.finish(column.styler))
        pairs += more
    if not column.fresh:
        pairs.append(("", "\n"))
    if column.kind == "thought":
        pairs += _told(column.who, "marker", "--- reasoning end ---", columns)
    return Column(column.who, markdown=column.markdown), pairs


def label(who: Id) -> str:
    """What stands before each line of a subagent: indented by its level, named by its address."""
    return "" if not who else "  " * len(who) + ".".join(map(str, who)) + "| "


def mark(who: Id, columns: int) -> str:
    """What stands in place while a request is in flight: in one line, or it could not be taken back."""
    text = label(who) + REQUESTING
    return text if not columns or wrap.width(text) <= columns else REQUESTING[:columns]


def ansi(style: str, text: str) -> str:
    """The pair as a terminal gets it: colour switched off before each line end, so that none runs on."""
    code = _code(style)
    if not code or not text:
        return text
    return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else "" for line in text.split("\n"))


@lru_cache(maxsize=100)
def _code(style: str) -> str:
    """The SGR parameters of a style, or of several with blanks between; `code:` may name a language."""
    return ";".join(code for word in style.split() if (code := STYLES.get(word.partition(":")[0])))


def _one_line(text: str) -> str:
    return safe(text).replace("\n", "\u2424")


def _flow(column: Column, who: Id, kind: str, text: str, columns: int) -> tuple[Column, list[Pair]]:
    """Text that comes in pieces and goes on where the last piece ended."""
    pairs: list[Pair] = []
    if (column.who, column.kind) != (who, kind):
        column, pairs = settle(column, columns)
        if kind == "thought":
            pairs += _told(who, "marker", "--- reasoning start ---", columns)
        column = Column(who, kind, markdown=column.markdown)
    text = column.carry + text
    held = text[-1:] if text[-1:] == "\r" or "\ud800" <= text[-1:] <= "\udbff" else ""
    column, more = _write(replace(column, carry=held), who, kind, text[: len(text) - len(held)])
    return column, pairs + more


def _write(column: Column, who: Id, kind: str, text: str) -> tuple[Column, list[Pair]]:
    text = safe(text)
    if not text:
        return column, []
    if column.markdown and not kind:
        from bantam.core.words import markdown  # seldom needed, and its patterns take their time

        styler, pairs = markdown.feed(column.styler or markdown.START, text)
        return _tell(replace(column, styler=styler), pairs)
    return replace(column, fresh=text.endswith("\n")), _labelled(who, kind, text, column.fresh)


def _tell(column: Column, pairs: list[Pair]) -> tuple[Column, list[Pair]]:
    """What is decided of an answer's styles."""
    if not pairs:
        return column, []
    mark, fresh = label(column.who), column.fresh
    if mark:  # in a pair of its own, so that it looks as ever
        parts = [(style, line) for style, text in pairs for line in text.splitlines(keepends=True)]
        pairs = []
        for style, line in parts:
            pairs += [("", mark), (style, line)] if fresh else [(style, line)]
            fresh = line.endswith("\n")
    return replace(column, fresh=pairs[-1][1].endswith("\n")), pairs


def _line(column: Column, who: Id, style: str, text: wrap.Text, columns: int) -> tuple[Column, list[Pair]]:
    """A line of its own."""
    column, pairs = settle(column, columns)
    return Column(who, markdown=column.markdown), pairs + _told(who, style, text, columns)


def _told(who: Id, style: str, text: wrap.Text, columns: int) -> list[Pair]:
    """Words of Bantam's own, in as many lines as they need, each behind the agent's label."""
    room = max(ROOM_MIN, columns - wrap.width(label(who))) if columns else 0
    return _labelled(who, style, wrap.laid(wrap.mapped(safe, text), room) + "\n")


def _labelled(who: Id, style: str, text: str, fresh: bool = True) -> list[Pair]:
    """The text, each new line of a subagent behind its label."""
    if not who:
        return [(style, text)]
    mark = label(who)
    body = text.removesuffix("\n").replace("\n", "\n" + mark) + ("\n" if text.endswith("\n") else "")
    return [(style, mark + body if fresh else body)]
