"""What a terminal needs of a conversation."""

from typing import Protocol

from bantam.core.base.settings import Config


class Talk(Protocol):
    """A `Conversation`, as far as a terminal knows it."""

    @property
    def config(self) -> Config: ...

    async def line(self, text: str) -> object:
        """Carry out a line. Raises Quit."""

    async def go_on(self) -> object:
        """Go on with the turn of a killed run."""

    @property
    def is_unfinished(self) -> bool: ...

    def interrupt(self) -> None: ...

    def sessions(self) -> list[str]: ...

    def words_of(self, id: str) -> str: ...

    def clean(self, text: str) -> str: ...

    @property
    def busy(self) -> bool: ...

    def is_said(self, line: str) -> bool:
        """Whether a line is for the model, and no command."""

    def add(self, text: str) -> None:
        """Say something while a turn runs."""

    def take_back(self) -> str:
        """What was added last and is not said yet, which is now not said at all; "" if there is none."""

    def returned(self) -> list[str]:
        """What was added and came back, since the turn ended before it was said."""
