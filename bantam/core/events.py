"""Events: everything that can happen to Bantam, in the past tense. Frozen plain data, one closed union."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from bantam.core.base.record import dataclass
from bantam.core.base.settings import Config

Id = tuple[int, ...]
"""An address: the path of the agent that asked, plus the number of its request.

A subagent's path is the id of the request that spawned it, so (3, 1) is the first request of the
agent that the root's third request started. An id is never used twice.
"""


class Fault(StrEnum):
    """Where a model call failed, as far as the outside can tell without judging it."""

    HTTP = "http"  # an answer with a status that is not 200
    NETWORK = "network"  # no answer, or one that broke off
    SILENCE = "silence"  # nothing came for `timeout` seconds
    TIME = "time"  # the turn's time is over
    CERTIFICATE = "certificate"  # the server's certificate was refused
    REQUEST = "request"  # the request could not be made at all: a bad URL, a missing file
    ANSWER = "answer"  # status 200 with something that is no answer: an error object, a web page
    LIMIT = "limit"  # an answer larger, or nested deeper, than is read: another would be as well

    def __repr__(self) -> str:  # Python, so that a printed event can be pasted into a test
        return f"Fault.{self.name}"


@dataclass(frozen=True)
class Failure:
    """A model call that failed. `status` is the HTTP status or 0; `text` are the server's own words."""

    fault: Fault
    text: str
    status: int = 0
    retry_after_s: float | None = None


# --- from the user


@dataclass(frozen=True)
class UserSaid:
    """`parts` are what was attached: content parts as the wire has them, which go with the text in one message."""

    text: str
    parts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class TookBack:
    """The user takes back the last thing that was said while the turn runs, unless the model has been told of it."""


@dataclass(frozen=True)
class Interrupted:
    signal: int = 0
    """The number of the signal that did it; 0 for a key, or a driver's line."""


@dataclass(frozen=True)
class Cleared:
    """Only the system prompt shall stay."""


@dataclass(frozen=True)
class CompactAsked:
    pass


@dataclass(frozen=True)
class SummaryAsked:
    """A one-line summary is wanted, for a saved session; the conversation stays as it is."""


@dataclass(frozen=True)
class Loaded:
    """A saved conversation takes the place of the present one. Any JSON list is taken and repaired."""

    messages: tuple[Any, ...]


@dataclass(frozen=True)
class ConfigChanged:
    config: Config


@dataclass(frozen=True)
class Approved:
    """The user allows what this request asks about."""

    id: Id


@dataclass(frozen=True)
class Denied:
    """What this request asks about shall not run. `nobody`: there was no user who could have been asked."""

    id: Id
    nobody: bool = False


# --- from the model


@dataclass(frozen=True)
class ModelChunks:
    """What one network read brought: the provider's JSON objects, unopened."""

    id: Id
    chunks: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class ModelEnded:
    """The answer's body ended in good order. `marked`: the stream's own end mark `[DONE]` was seen."""

    id: Id
    marked: bool = False


@dataclass(frozen=True)
class ModelFailed:
    id: Id
    failure: Failure


# --- from tools and time


@dataclass(frozen=True)
class ToolProgress:
    """Output of a running tool. With `skipped` it is a glimpse: that many bytes before it were left out."""

    id: Id
    text: str
    skipped: int = 0


@dataclass(frozen=True)
class CommandEnded:
    """A command is over. `code` as in a shell (128+N for signal N); `signal` is that signal's name.

    `skipped` bytes lie between the output told by `ToolProgress` and `tail`, which ends the output.
    `problem`: why it could not be started.
    """

    id: Id
    code: int
    tail: str = ""
    skipped: int = 0
    signal: str = ""
    timed_out: bool = False
    problem: str = ""


@dataclass(frozen=True)
class ToolFinished:
    """A tool that is no command ended (a subagent, a function). `text` is the whole result as the model gets it.

    What `ToolProgress` told before was for those who watch, and for the result of a call that is interrupted.
    """

    id: Id
    text: str
    error: bool = False


@dataclass(frozen=True)
class AnswerChecked:
    """Whether an answer satisfies the schema: `problem` is one line that says why not, or ""."""

    id: Id
    problem: str


@dataclass(frozen=True)
class TimerFired:
    id: Id


@dataclass(frozen=True)
class Lost:
    """The process that waited for this request has died: whether it was carried out, and how it ended, is unknown."""

    id: Id


Event = (
    UserSaid
    | TookBack
    | Interrupted
    | Cleared
    | CompactAsked
    | SummaryAsked
    | Loaded
    | ConfigChanged
    | ModelChunks
    | ModelEnded
    | ModelFailed
    | ToolProgress
    | CommandEnded
    | ToolFinished
    | TimerFired
    | Approved
    | Denied
    | AnswerChecked
    | Lost
)
Answer = (
    ModelChunks
    | ModelEnded
    | ModelFailed
    | ToolProgress
    | CommandEnded
    | ToolFinished
    | TimerFired
    | Approved
    | Denied
    | AnswerChecked
    | Lost
)
"""The events that answer a request and carry its id."""


def says(said: UserSaid) -> bool:
    """Whether there is anything in what a user said: words that are not blank, or something attached."""
    return bool(said.text.strip() or said.parts)
