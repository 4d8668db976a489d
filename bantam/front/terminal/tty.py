"""The REPL's terminal: what is read of it, and what is painted.

Nothing here knows what a turn is. The terminal is never asked anything, since not every one answers.
"""

import os
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import StringIO, TextIOWrapper
from typing import Any, assert_never

from prompt_toolkit.application import Application
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.key_binding.vi_state import InputMode
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
ESCAPE_S = 0.1  # in vi mode, where the key Escape is one of the most used: an escape byte that stays alone for so long
SEQUENCE_S = 0.5  # elsewhere: a slow link may tear the bytes of an arrow apart by 300 ms, and nobody waits for Escape
PASTE_READ_BYTES = 65_536
CTRL_C, CTRL_D, PASTE_END = "\x03", "\x04", "\x1b[201~"
LAST_LINE = " class:last-line"  # what prompt_toolkit adds to the style of a window's last line
MODE_GAP = "  "
COLUMNS_MIN = 20  # narrower, and there is no room for indenting


class Keyboard(Vt100Input):
    """Standard input. Text is UTF-8 under any locale; other bytes survive as lone surrogates.

    A paste is put together here: prompt_toolkit's parser looks for its end in all of it each time a piece comes.
    """

    def __init__(self) -> None:
        self._pasted: list[str] = []  # of a paste, behind what the parser has of it
        self._tail = ""  # its last bytes, which may begin its end
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        super().__init__(sys.stdin)

    def read_keys(self) -> list[KeyPress]:
        pasting = self._is_pasting
        text = self.stdin_reader.read(PASTE_READ_BYTES) if pasting else self.stdin_reader.read()
        if not os.isatty(self.fileno()):
            self.stdin_reader.closed = True  # it is gone, and could be read for ever, to no end
        elif self.stdin_reader.closed:  # somebody has left it in line mode, which makes an end of file of the key
            self.stdin_reader.closed, text = False, CTRL_D
        elif pasting and text == CTRL_C:  # its end was lost, and all else would be with it
            text = PASTE_END + CTRL_C
        if pasting and PASTE_END not in self._tail + text:
            self._pasted.append(text)
            self._tail = (self._tail + text)[1 - len(PASTE_END) :]
        else:
            self.vt100_parser.feed("".join(self._pasted) + text)
            self._pasted = []
            self._tail = self.vt100_parser._paste_buffer[1 - len(PASTE_END) :] if self._is_pasting else ""
        keys, self._buffer = self._buffer, []
        return keys

    @property
    def _is_pasting(self) -> bool:
        return self.vt100_parser._in_bracketed_paste


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


def use_painter(app: Application[str], seen: Callable[[str], str]) -> None:
    """Give the editor the painter for its output. `seen`: a text as it is to be seen."""
    kind = Echo if isinstance(app.output, PlainTextOutput) else Painter
    app.renderer = made = kind(app.renderer.style, app.output)
    made.seen = seen
    app.layout.container = Steady([app.layout.container])


def mode_sign(app: Application[Any]) -> str:
    """What is shown of vi's mode; "" where keys are text, as they are in emacs mode."""
    if app.editing_mode != EditingMode.VI:
        return ""
    if app.current_buffer.selection_state:
        return "[visual]"
    match app.vi_state.input_mode:
        case InputMode.NAVIGATION:
            return "[normal]"
        case InputMode.REPLACE | InputMode.REPLACE_SINGLE:
            return "[replace]"
        case InputMode.INSERT | InputMode.INSERT_MULTIPLE:
            return ""
        case never:
            assert_never(never)


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

    seen: Callable[[str], str] = str

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
        text = texts.safe(self.seen(buffer.text))
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

    seen: Callable[[str], str] = str
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
        mode = "" if is_done or not (sign := mode_sign(app)) else MODE_GAP + sign
        text, before = texts.safe(self.seen(buffer.text)) + mode, self._shown
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
