"""Key bindings of the REPL, where they differ from prompt_toolkit's.

Those of Enter bind to the editor alone: in its search line Enter and Ctrl+J end the search.
"""

from collections.abc import Callable

from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, emacs_mode, has_focus
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


def bindings(enter_is_lf: Callable[[], bool], suspend: Callable[[], None]) -> KeyBindings:
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

    return made
