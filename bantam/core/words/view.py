"""Outputs -> (style, text) pairs. The only state is where the last character stands.

A style is a word; `ansi` makes terminal colours of it. Nothing that a model or a command wrote reaches a
terminal raw: control characters, escape sequences and direction overrides become visible signs.
"""

from typing import assert_never

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

Pair = tuple[str, str]
REQUESTING = "...requesting..."
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


def render(column: Column, emit: Emit) -> tuple[Column, list[Pair]]:
    """What to write for one output, and where that leaves the cursor."""
    who, output = emit.who, emit.output
    match output:
        case ThoughtDelta(text):
            return _flow(column, who, "thought", text)
        case TextDelta(text):
            return _flow(column, who, "", text)
        case ResultDelta(text=text, error=error, glimpse=glimpse):
            return _flow(column, who, "error" if error else "result", f"\n{text}\n" if glimpse else text)
        case CallStarted(name=name, arguments=arguments):
            return _line(column, who, "call", f"[tool call: {_one_line(name)}({_one_line(arguments)})]")
        case ResultStarted(name=name, error=error):
            return _line(column, who, "error" if error else "header", f"[tool result: {_one_line(name)}]")
        case Retrying(why, seconds, attempt, attempts_max):
            text = f"{why}; trying again in {seconds:g} s ({attempt} of {attempts_max})"
            return _line(column, who, "error", text)
        case Notice(text, error):
            return _line(column, who, "error" if error else "notice", text)
        case Requesting():
            return _line(column, who, "request", REQUESTING)
        case ResultEnded() | TurnEnded():
            return settle(column)
        case Summarised() | Returned():
            return column, []
        case never:
            assert_never(never)


def settle(column: Column) -> tuple[Column, list[Pair]]:
    """End what is open: the reasoning block, the line."""
    pairs: list[Pair] = []
    if column.carry:
        column, pairs = _write(replace(column, carry=""), column.who, column.kind, column.carry)
    if not column.fresh:
        pairs.append(("", "\n"))
    if column.kind == "thought":
        pairs += _labelled(column.who, "marker", "--- reasoning end ---\n")
    return Column(column.who), pairs


def label(who: Id) -> str:
    """What stands before each line of a subagent: indented by its level, named by its address."""
    return "" if not who else "  " * len(who) + ".".join(map(str, who)) + "| "


def ansi(style: str, text: str) -> str:
    """The pair as a terminal gets it: colour switched off before each line end, so that none runs on."""
    code = STYLES.get(style)
    if not code or not text:
        return text
    return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else "" for line in text.split("\n"))


def _one_line(text: str) -> str:
    return safe(text).replace("\n", "\u2424")


def _flow(column: Column, who: Id, kind: str, text: str) -> tuple[Column, list[Pair]]:
    """Text that comes in pieces and goes on where the last piece ended."""
    pairs: list[Pair] = []
    if (column.who, column.kind) != (who, kind):
        column, pairs = settle(column)
        if kind == "thought":
            pairs += _labelled(who, "marker", "--- reasoning start ---\n")
        column = Column(who, kind)
    text = column.carry + text
    held = text[-1:] if text[-1:] == "\r" or "\ud800" <= text[-1:] <= "\udbff" else ""
    column, more = _write(replace(column, carry=held), who, kind, text[: len(text) - len(held)])
    return column, pairs + more


def _write(column: Column, who: Id, kind: str, text: str) -> tuple[Column, list[Pair]]:
    text = safe(text)
    if not text:
        return column, []
    return replace(column, fresh=text.endswith("\n")), _labelled(who, kind, text, column.fresh)


def _line(column: Column, who: Id, style: str, text: str) -> tuple[Column, list[Pair]]:
    """A line of its own."""
    column, pairs = settle(column)
    return Column(who), pairs + _labelled(who, style, safe(text) + "\n")


def _labelled(who: Id, style: str, text: str, fresh: bool = True) -> list[Pair]:
    """The text, each new line of a subagent behind its label."""
    if not who:
        return [(style, text)]
    mark = label(who)
    body = text.removesuffix("\n").replace("\n", "\n" + mark) + ("\n" if text.endswith("\n") else "")
    return [(style, mark + body if fresh else body)]
