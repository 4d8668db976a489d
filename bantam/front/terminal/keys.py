"""Key bindings of the REPL, where they differ from prompt_toolkit's.

Those of Enter bind to the editor alone: in its search line Enter and Ctrl+J end the search. Keys that take a character
take a visible one, in emacs and in vi mode; a paste is one as well, see `core.words.pastes`.
"""

from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import (
    Condition,
    emacs_mode,
    has_focus,
    has_selection,
    shift_selection_mode,
    vi_insert_mode,
    vi_navigation_mode,
)
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.vi import TextObject, create_text_object_decorator
from prompt_toolkit.keys import Keys

from bantam.front.terminal import characters


class Drafts(Protocol):
    """What keys do with a draft that is more than editing it."""

    def paste(self, buffer: Buffer, text: str) -> None:
        """Put in what was pasted."""

    def expand(self, buffer: Buffer) -> None:
        """Show what is folded."""

    def edit(self, buffer: Buffer) -> None:
        """Have another program edit it."""


def bindings(drafts: Drafts, enter_is_lf: Callable[[], bool], suspend: Callable[[], None]) -> KeyBindings:
    """Enter submits and Ctrl+J (LF) is a newline; where LF is Enter, Alt+Enter alone is the newline."""
    made = KeyBindings()
    editing = has_focus(DEFAULT_BUFFER)
    lf = Condition(enter_is_lf)
    # in vi mode Escape would have to wait for what follows, so it does only where there is no other newline
    alt = editing & (emacs_mode | lf)

    @made.add("enter", filter=editing)  # and so does LF, which prompt_toolkit takes for Enter if nobody binds it
    def submit(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @made.add("c-j", filter=editing & ~lf)
    @made.add("escape", "enter", filter=alt)
    @made.add("escape", "c-j", filter=alt)
    def newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @made.add("c-z")
    def stop(_: KeyPressEvent) -> None:
        suspend()

    @made.add(Keys.BracketedPaste, filter=editing)
    def paste(event: KeyPressEvent) -> None:
        drafts.paste(event.current_buffer, event.data.replace("\r\n", "\n").replace("\r", "\n"))

    @made.add("c-x", "c-p", filter=editing)
    def expand(event: KeyPressEvent) -> None:
        drafts.expand(event.current_buffer)

    @made.add("c-x", "c-e", filter=editing)
    @made.add("v", filter=editing & vi_navigation_mode)
    def edit(event: KeyPressEvent) -> None:
        drafts.edit(event.current_buffer)

    _whole_characters(made)
    _vi_characters(made)
    return made


def _whole_characters(made: KeyBindings) -> None:
    """Backspace, Delete and the arrows, wherever text is typed."""
    plain = has_focus(DEFAULT_BUFFER) & (emacs_mode | vi_insert_mode) & ~shift_selection_mode

    @made.add("backspace", filter=plain, save_before=_is_first)
    def backspace(event: KeyPressEvent) -> None:
        _delete(event, -event.arg)

    @made.add("delete", filter=plain & ~has_selection, save_before=_is_first)
    @made.add("c-d", filter=plain & emacs_mode & Condition(_is_in_text), save_before=_is_first)
    def delete(event: KeyPressEvent) -> None:
        _delete(event, event.arg)

    @made.add("left", filter=plain)
    @made.add("c-b", filter=plain & emacs_mode)
    def left(event: KeyPressEvent) -> None:
        event.current_buffer.cursor_position += _along_line(event.current_buffer, -event.arg)

    @made.add("right", filter=plain)
    @made.add("c-f", filter=plain & emacs_mode)
    def right(event: KeyPressEvent) -> None:
        event.current_buffer.cursor_position += _along_line(event.current_buffer, event.arg)


def _vi_characters(made: KeyBindings) -> None:
    """x, X, h, l and what stands for them, in vi's normal mode."""
    normal = has_focus(DEFAULT_BUFFER) & vi_navigation_mode
    text_object = create_text_object_decorator(made)

    @made.add("x", filter=normal)
    @made.add("delete", filter=normal)
    def cut(event: KeyPressEvent) -> None:
        if count := _along_line(event.current_buffer, event.arg):
            event.app.clipboard.set_text(event.current_buffer.delete(count))

    @made.add("X", filter=normal)
    def cut_before(event: KeyPressEvent) -> None:
        if count := -_along_line(event.current_buffer, -event.arg):
            event.app.clipboard.set_text(event.current_buffer.delete_before_cursor(count))

    @text_object("h", filter=has_focus(DEFAULT_BUFFER))
    @text_object("left", filter=has_focus(DEFAULT_BUFFER))
    @text_object("backspace", filter=has_focus(DEFAULT_BUFFER))
    def left(event: KeyPressEvent) -> TextObject:
        return TextObject(_along_line(event.current_buffer, -event.arg))

    @text_object("l", filter=has_focus(DEFAULT_BUFFER))
    @text_object(" ", filter=has_focus(DEFAULT_BUFFER))
    @text_object("right", filter=has_focus(DEFAULT_BUFFER))
    def right(event: KeyPressEvent) -> TextObject:
        return TextObject(_along_line(event.current_buffer, event.arg))


def keep_characters_whole(app: Application[str], buffer: Buffer) -> None:
    """See to it that no key leaves the cursor inside a character, such as one that moves by lines or words."""
    was = 0

    def remember(_: object) -> None:
        nonlocal was
        was = buffer.cursor_position

    def snap(_: object) -> None:
        at = buffer.cursor_position
        begins = characters.start(buffer.text, at)
        if begins != at:
            column, goes_on = buffer.preferred_column, at > was and not vi_navigation_mode()
            buffer.cursor_position = characters.behind(buffer.text, begins) if goes_on else begins
            buffer.preferred_column = column  # to which Down goes back after Up

    app.key_processor.before_key_press += remember
    app.key_processor.after_key_press += snap


def _is_first(event: KeyPressEvent) -> bool:
    """Whether undo shall go back to before this key, and not before those like it."""
    return not event.is_repeat


def _is_in_text() -> bool:
    return bool(get_app().current_buffer.text)


def _delete(event: KeyPressEvent, count: int) -> None:
    """Delete so many characters behind the cursor, or before it if `count` is negative."""
    buffer = event.current_buffer
    text, at = buffer.text, buffer.cursor_position
    if count < 0:
        deleted = buffer.delete_before_cursor(at - characters.before(text, at, -count)) if at else ""
    else:
        deleted = buffer.delete(characters.behind(text, at, count) - at)
    if not deleted:
        event.app.output.bell()


def _along_line(buffer: Buffer, count: int) -> int:
    """How far the cursor goes by so many characters to the right, or to the left if `count` is negative."""
    if count < 0:
        line = buffer.document.current_line_before_cursor
        return characters.before(line, len(line), -count) - len(line)
    return characters.behind(buffer.document.current_line_after_cursor, 0, count)
