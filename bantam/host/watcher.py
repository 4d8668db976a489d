"""Whoever watches a conversation: what it is told, and nothing of how that is shown."""

from bantam.core.effects import Emit
from bantam.core.events import Event
from bantam.core.words.wrap import Text


class Watcher:
    """Shows a run. `created`: when it began, on the wall clock, in UTC."""

    created: str

    def hear(self, now: float, event: Event) -> None:
        """An event happens, `now` seconds after the start; its outputs are shown next."""

    def show(self, emit: Emit) -> None:
        """One output."""
        raise NotImplementedError

    def say(self, text: Text, style: str = "", error: bool = False) -> None:
        """A line that is no output of the core, such as what a command answers."""
        raise NotImplementedError

    def recolor(self, color: str, render: str) -> None:
        """Follow the settings of how it looks."""
