"""A dialect: how a call is written for a server, and what the objects of its answer mean. `dialects` names all.

Messages, tools' schemas and chunks have one form inside Bantam, that of Chat Completions: a dialect turns it into its
own when it sends, and its own into it when it reads. `body` (limits, framing, the end of an answer), `assemble` and
`failures` are common to all. What only one dialect can say rides in members that the others do not send.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from bantam.core.base.record import dataclass
from bantam.core.base.settings import Config
from bantam.core.effects import CallModel
from bantam.core.events import Failure
from bantam.core.messages import Message, Messages


@dataclass(frozen=True)
class Listed:
    """A member of a body that is a list, most of which was in the bodies before.

    Each object of `parts` becomes any number of `items`. It is written once: the bytes are kept as long as
    the very object is sent again, so `items` looks at nothing else.
    """

    name: str
    parts: Messages
    items: Callable[[Message], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Sent:
    """The body of a request: small members, written each time, then the lists in their order."""

    members: Mapping[str, Any]
    lists: tuple[Listed, ...]


class Dialect(Protocol):
    """A module with these functions, all of them pure."""

    @property
    def PATH(self) -> str:
        """Where it is spoken, behind an endpoint."""
        ...

    @property
    def HEADERS(self) -> Mapping[str, str]:
        """Headers beside those that any request has."""
        ...

    @property
    def MADE(self) -> Sequence[str]:
        """Members of a body that Bantam makes itself: no setting of these names is forwarded."""
        ...

    def parameters(self, config: Config, answers: bool) -> Mapping[str, Any]:
        """What `CallModel.parameters` has before the user's own. `answers`: what comes may be the turn's answer."""
        ...

    def tool(self, name: str, description: str, schema: Mapping[str, Any]) -> Message:
        """How the model is told of a tool."""
        ...

    def sent(self, request: CallModel) -> Sent:
        """What is sent for a request."""
        ...

    def failure(self, text: str, value: Mapping[str, Any]) -> Failure | None:
        """What an object of an answer, which came as `text`, says went wrong, if it does."""
        ...

    def whole(self, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """An answer that is not streamed, as one chunk; None for JSON of another kind."""
        ...

    def chunks(self, memory: Any, values: Sequence[Mapping[str, Any]]) -> tuple[Any, tuple[Mapping[str, Any], ...]]:
        """The objects of one read, as chunks for `assemble`.

        `memory` is what the dialect wants to know of the objects before: None at first, then what this gave.
        """
        ...
