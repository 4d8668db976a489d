"""Where outputs become bytes: standard output, standard error, and which of them gets what.

Writes UTF-8 under any locale, once per output, and no escape byte where no terminal is.
"""

import os
from collections.abc import Mapping
from typing import Literal

from bantam.core.base import texts
from bantam.core.base.record import replace
from bantam.core.effects import (
    ANSWERED,
    CallStarted,
    Emit,
    Notice,
    Requesting,
    ResultDelta,
    Retrying,
    TextDelta,
    TurnEnded,
)
from bantam.core.words import view, wrap
from bantam.front.show.highlight import Highlighter
from bantam.front.show.tell import columns
from bantam.front.show.writer import Writer

Mode = Literal["transcript", "answer", "quiet"]
"""Everything on standard output; the answer there and the rest on standard error; the answer and errors only."""


class Screen(Writer):
    """Shows a run to a person."""

    def __init__(
        self, mode: Mode, color: str = "auto", render: str = "markdown", environ: Mapping[str, str] = os.environ
    ) -> None:
        super().__init__()
        self.mode = mode
        self._terminals = {fd: os.isatty(fd) for fd in (1, 2)}
        self._environ = environ
        self._columns = {1: view.Column(), 2: view.Column()}
        self._highlighters = {1: Highlighter(), 2: Highlighter()}
        self._shared = self._terminals[1] and self._terminals[2]
        self._held: list[Emit] = []
        self._waiting = False
        self.recolor(color, render)

    def recolor(self, color: str, render: str) -> None:
        """Follow the settings: `color` for a terminal that can, always, or never; `render` on coloured terminals."""
        plain = any(self._environ.get(name) for name in ("NO_COLOR", "BANTAM_NO_COLOR"))
        dumb = self._environ.get("TERM") in ("dumb", "unknown")
        self._colors = {
            fd: not plain and color != "never" and (color == "always" or (terminal and not dumb))
            for fd, terminal in self._terminals.items()
        }
        self._moves = not dumb
        styled = render == "markdown" and self.mode == "transcript" and self._terminals[1] and self._colors[1]
        self._columns[1] = replace(self._columns[1], markdown=styled)

    @property
    def colored(self) -> bool:
        """Whether standard output is written in colour."""
        return self._colors[1]

    def show(self, emit: Emit) -> None:
        """One output, to wherever this mode sends it."""
        output = emit.output
        failed = isinstance(output, Retrying) or (isinstance(output, Notice) and output.error)
        if isinstance(output, ResultDelta) and output.glimpse and not self._terminals[1]:
            return
        match self.mode:
            case "transcript":
                self._put(2 if failed else 1, emit)
            case "quiet":
                if failed:
                    self._put(2, emit)
            case "answer":
                self._hold(emit)
        if self.mode != "transcript" and isinstance(output, TurnEnded) and output.reason in ANSWERED:
            self._answer(output.text)

    def say(self, text: wrap.Text, style: str = "", error: bool = False) -> None:
        """A line of the front end's own, such as what a command answers: on a terminal, as wide as that is now."""
        fd = 2 if error or self.mode != "transcript" else 1
        if self.mode == "quiet" and not error:
            return
        self._unwait()
        column, pairs = view.settle(self._column(fd), self._width(fd))
        self._set_column(fd, column)
        text = wrap.laid(wrap.mapped(texts.safe, text), self._width(fd))
        self._write(fd, [*pairs, ("error" if error else style, text + "\n")])

    def fresh_line(self) -> None:
        """Make sure that a prompt starts at the beginning of a line."""
        self._unwait()
        for fd in (1,) if self._shared else (1, 2):
            column, pairs = view.settle(self._column(fd), self._width(fd))
            self._set_column(fd, column)
            self._write(fd, pairs)

    def _hold(self, emit: Emit) -> None:
        """Text may be the answer, which is told once, at the end: keep it back until it is not."""
        match emit.output:
            case TextDelta() if not emit.who:
                self._held.append(emit)
            case TurnEnded() | Requesting():
                self._held.clear()
                self._put(2, emit)
            case _:
                if isinstance(emit.output, CallStarted):
                    for held in self._held:
                        self._put(2, held)
                    self._held.clear()
                self._put(2, emit)

    def _answer(self, text: str) -> None:
        text = texts.safe(text) if self._terminals[1] else text
        self.fresh_line()
        self._write(1, [("", text if text.endswith("\n") else text + "\n")])

    def _put(self, fd: int, emit: Emit) -> None:
        if isinstance(emit.output, Requesting) and self._terminals[fd]:
            self._wait(fd, emit)
            return
        column, pairs = view.render(self._column(fd), emit, self._width(fd))
        self._set_column(fd, column)
        if pairs:
            self._unwait()
        self._write(fd, pairs)

    def _wait(self, fd: int, emit: Emit) -> None:
        """The mark of a request in flight, in place: gone when the next output comes."""
        if self._waiting:
            return
        column, pairs = view.settle(self._column(fd), self._width(fd))
        self._set_column(fd, column)
        mark = view.mark(emit.who, self._width(fd))
        self._write(fd, [*pairs, ("request", mark)])
        self._waiting = True
        self._mark = (fd, len(mark))

    def _unwait(self) -> None:
        if self._waiting:
            fd, width = self._mark
            self._waiting = False
            self._raw(fd, "\r\x1b[K" if self._moves else "\r" + " " * width + "\r")

    def _width(self, fd: int) -> int:
        """How many columns there are to fit into; 0 where nothing is wrapped."""
        return columns(fd) if self._terminals[fd] else 0

    def _column(self, fd: int) -> view.Column:
        return self._columns[1 if self._shared else fd]

    def _set_column(self, fd: int, column: view.Column) -> None:
        self._columns[1 if self._shared else fd] = column

    def _write(self, fd: int, pairs: list[view.Pair]) -> None:
        if self._colors[fd]:
            pairs = self._highlighters[1 if self._shared else fd].colored(pairs)
            self._raw(fd, "".join(view.ansi(style, text) for style, text in pairs))
        else:
            self._raw(fd, "".join(text for _, text in pairs))
