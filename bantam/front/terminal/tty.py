"""The REPL's terminal: what is painted, and what is typed while a turn runs.

Nothing here knows what a turn is. The terminal is never asked anything, since not every one answers.
"""

import asyncio
import os
import select
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import StringIO, TextIOWrapper
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import HSplit, Layout
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition
from prompt_toolkit.output import Output
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.utils import get_cwidth, is_dumb_terminal

from bantam.core.base import texts

PROMPT = "bantam> "
ESCAPE_S = 0.1  # a sequence of a key comes at once: an escape that stays alone for so long is the key Escape
QUIET_S = 0.5  # a key that comes sooner after another belongs to it
CTRL_C, CTRL_D, PASTE_END = "\x03", "\x04", "\x1b[201~"
LAST_LINE = " class:last-line"  # what prompt_toolkit adds to the style of a window's last line
COLUMNS_MIN = 20  # narrower, and there is no room for indenting


class Keyboard(Vt100Input):
    """Standard input. Text is UTF-8 under any locale; other bytes survive as lone surrogates."""

    def __init__(self) -> None:
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        super().__init__(sys.stdin)

    def read_keys(self) -> list[KeyPress]:
        text = self.stdin_reader.read()
        if not os.isatty(self.fileno()):
            self.stdin_reader.closed = True  # it is gone, and could be read for ever, to no end
        elif self.stdin_reader.closed:  # somebody has left it in line mode, which makes an end of file of the key
            self.stdin_reader.closed, text = False, CTRL_D
        elif (
            text == CTRL_C and self.vt100_parser._in_bracketed_paste
        ):  # its end was lost, and all else would be with it
            self.vt100_parser.feed(PASTE_END)
        self.vt100_parser.feed(text)
        keys, self._buffer = self._buffer, []
        return keys


class Unbuffered(StringIO):
    """Standard output for prompt_toolkit: whatever cannot be written is not tried again later."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        data = memoryview(text.encode(errors="replace"))
        while data:
            data = data[os.write(1, data) :]
        return len(text)

    def fileno(self) -> int:
        return 1

    def isatty(self) -> bool:
        return True


def display() -> Output:
    """Standard output."""
    if is_dumb_terminal():
        return PlainTextOutput(Unbuffered())
    output = Vt100_Output.from_pty(Unbuffered(), term=os.environ.get("TERM"))
    output.enable_cpr = False
    return output


def use_painter(app: Application[str]) -> None:
    """Give the editor the painter for its output."""
    kind = Echo if isinstance(app.output, PlainTextOutput) else Painter
    app.renderer = kind(app.renderer.style, app.output)
    app.layout.container = Steady([app.layout.container])


class Steady(HSplit):
    """A layout in which no style depends on where the input ends, else its first line is painted with each new one."""

    def write_to_screen(
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        super().write_to_screen(screen, mouse_handlers, write_position, parent_style, erase_bg, z_index)
        for row in screen.data_buffer.values():
            for x, cell in row.items():
                if cell.style.endswith(LAST_LINE):
                    row[x] = Char(cell.char, cell.style.removesuffix(LAST_LINE))


class Painter(Renderer):
    """Paints only what changed, also at the end.

    prompt_toolkit's own paints finished input again, and whoever waits for the next prompt would find that.
    """

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        app.exit_style = ""  # a style for finished input would be a change of all of it
        super().render(app, layout)
        if is_done:
            size = self.output.get_size()
            height = layout.container.preferred_height(size.columns, size.rows + 1).preferred
            if height > size.rows:
                self._write_whole(app, layout, size.columns)
            else:
                self.output.write("\r\n" * max(1, height - self._cursor_pos.y))
                self.output.erase_down()
            self.reset()

    def _write_whole(self, app: Application[Any], layout: Layout, columns: int) -> None:
        """Leave all of a text of which the window shows a part only, so that it can be read by scrolling back."""
        buffer = layout.get_buffer_by_name(DEFAULT_BUFFER)
        assert buffer is not None
        assert self._attrs_for_style is not None
        self._erase_window()
        text = texts.safe(buffer.text)
        if columns >= COLUMNS_MIN:
            for part in (PROMPT[:-2], PROMPT[-2:]):  # in two, since this is no prompt to wait for
                self.output.set_attributes(self._attrs_for_style["class:prompt"], app.color_depth)
                self.output.write(part)
                self.output.reset_attributes()
            text = _indented(text)
        self.output.write(text.replace("\n", "\r\n") + "\r\n")

    def _erase_window(self) -> None:
        """Erase the whole window, but not at once: some terminals keep what that erases, for scrolling back."""
        self.output.write("\r")
        self.output.cursor_up(self._cursor_pos.y)
        self.output.cursor_down(1)
        self.output.erase_down()
        self.output.cursor_up(1)
        self.output.erase_end_of_line()
        self.output.enable_autowrap()

    def report_absolute_cursor_row(self, row: int) -> None:
        """Nothing here has asked: it is the answer to whatever ran before."""


class Echo(Renderer):
    """For terminals that can only append: no escape sequence, and edits within a line show it once more."""

    _shown: str | None = None

    def reset(self, _scroll: bool = False, leave_alternate_screen: bool = True) -> None:
        super().reset(_scroll, leave_alternate_screen)
        self._shown = None

    def erase(self, leave_alternate_screen: bool = True) -> None:
        if self._shown is not None:
            self._write("\n")
        self.reset()

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        buffer = layout.get_buffer_by_name(DEFAULT_BUFFER)
        assert buffer is not None
        buffer.load_history_if_not_yet_loaded()
        text, before = texts.safe(buffer.text), self._shown
        gone = "" if before is None else before[len(text) :]
        if before is None:
            self._write(PROMPT + _indented(text))
        elif text.startswith(before):
            self._write(_indented(text[len(before) :]))
        elif before.startswith(text) and "\n" not in gone:
            self._write("\b \b" * get_cwidth(gone))
        else:
            self._write("\n" + PROMPT + _indented(text))
        self._shown = text
        if is_done:
            self._write("\n")
            self.reset()

    def _write(self, text: str) -> None:
        self.output.write(text)
        self.output.flush()


def _indented(text: str) -> str:
    return text.replace("\n", "\n" + " " * len(PROMPT))


def keep_typed_before(keyboard: Vt100Input) -> None:
    """What was typed before the terminal was ours: its line mode has made LF of each Enter."""
    while text := keyboard.stdin_reader.read():
        keyboard.vt100_parser.feed(text.replace("\n", "\r"))
    store_typeahead(keyboard, keyboard.flush_keys())


class Modes:
    """The terminal's modes: raw within `raw`, and otherwise what they were when that began."""

    def __init__(self, keyboard: Vt100Input) -> None:
        self._raw = keyboard.raw_mode()

    @contextmanager
    def raw(self) -> Iterator[None]:
        with self._raw:
            yield

    def retake(self) -> None:
        """Raw again, after somebody else had the terminal. In the background this stops until it is ours."""
        with suppress(termios.error):  # the terminal is gone, which whoever reads or writes will notice
            self._raw.__enter__()

    def give_back(self) -> None:
        """As they were, for the shell."""
        self._raw.__exit__(None, None, None)


def is_gone(keyboard: Vt100Input) -> bool:
    """Whether the terminal went away. What is no terminal can only end."""
    return isinstance(keyboard, Keyboard) and not os.isatty(keyboard.fileno())


class TypeAhead:
    """Keys that come while a turn runs: kept for the next prompts.

    Ctrl+C is not kept but calls `interrupt`, Ctrl+Z calls `suspend`, and the end of the input `end`.
    """

    def __init__(
        self,
        keyboard: Input,
        display: Output,
        interrupt: Callable[[], None],
        suspend: Callable[[], None],
        end: Callable[[], None],
    ) -> None:
        self._keyboard, self._display = keyboard, display
        self._interrupt, self._suspend, self._end = interrupt, suspend, end
        self._kept: list[KeyPress] = []
        self._kept_at = 0.0  # of the loop's clock, when the last of them came
        self._asked: asyncio.Future[str] | None = None
        self._answers = ""
        self._escape: asyncio.TimerHandle | None = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read keys meanwhile. What was read too early by the last prompt counts as typed now."""
        loop = asyncio.get_running_loop()
        with self._keyboard.raw_mode(), self._keyboard.attach(self._read):
            self.mark_pastes(True)
            loop.call_soon(self._take, get_typeahead(self._keyboard))  # once the turn has begun
            try:
                yield
            finally:
                if self._escape:
                    self._escape.cancel()
                self.mark_pastes(False)
                store_typeahead(self._keyboard, self._kept)

    async def answer(self, answers: str, show: Callable[[], None]) -> str:
        """Which of these letters is typed, once `show` has shown what they mean.

        Everything else is kept as ever, and so is a letter that comes in the middle of what somebody types: it
        may well have been meant for that, before the question could be seen.
        """
        while not self._keyboard.closed and select.select([self._keyboard.fileno()], [], [], 0)[0]:
            self._read()
        show()
        self._asked, self._answers = asyncio.get_running_loop().create_future(), answers
        try:
            return await self._asked
        finally:
            self._asked = None

    def mark_pastes(self, marked: bool) -> None:
        """Have the terminal mark pastes, so that their line ends are no Enter."""
        if marked:
            self._display.enable_bracketed_paste()
        else:
            self._display.disable_bracketed_paste()
        self._display.flush()

    def _read(self) -> None:
        self._take(self._keyboard.read_keys())
        if self._keyboard.closed:
            self._end()
        if self._escape:
            self._escape.cancel()
        self._escape = asyncio.get_running_loop().call_later(ESCAPE_S, self._flush)

    def _flush(self) -> None:
        self._take(self._keyboard.flush_keys())

    def _take(self, keys: list[KeyPress]) -> None:
        for key in keys:
            if key.key == Keys.ControlC:
                self._interrupt()
            elif key.key == Keys.ControlZ:
                self._suspend()
            elif key.key != Keys.CPRResponse and not self._is_answer(key):
                self._kept.append(key)
                self._kept_at = asyncio.get_running_loop().time()

    def _is_answer(self, key: KeyPress) -> bool:
        """Whether the key answers a question, which is thereby answered."""
        letter, quiet_s = key.key.lower(), asyncio.get_running_loop().time() - self._kept_at
        if not self._asked or self._asked.done() or letter not in list(self._answers) or quiet_s < QUIET_S:
            return False
        self._asked.set_result(letter)
        return True
