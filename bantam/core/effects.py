"""Effects: everything Bantam does, in the imperative. Frozen plain data, one closed union."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from bantam.core.base.record import dataclass
from bantam.core.events import Id
from bantam.core.messages import Message, Messages

# --- requests: each is answered by events with its id


@dataclass(frozen=True)
class CallModel:
    """Answered by any number of `ModelChunks`, then one `ModelEnded` or `ModelFailed`.

    `parameters` are all members of the body beside messages and tools; they and `tools` are as the dialect `api` has
    them. Nothing may come for `timeout_s`, and after `left_s` it ends in any case, with a `Failure` of kind `TIME`.
    """

    id: Id
    messages: Messages
    tools: tuple[Message, ...]
    parameters: Mapping[str, Any]
    timeout_s: float
    left_s: float | None = None
    api: str = "chat"


@dataclass(frozen=True)
class RunShell:
    """Answered by any number of `ToolProgress`, then one `CommandEnded`."""

    id: Id
    command: str
    shell: str
    timeout_s: float
    output_bytes_max: int


@dataclass(frozen=True)
class RunTool:
    """A tool that is neither a command nor an agent: any number of `ToolProgress`, then one `ToolFinished`.

    `arguments` are the JSON object that the model wrote, and the tool's own to check.
    """

    id: Id
    name: str
    arguments: Mapping[str, Any]
    timeout_s: float
    output_bytes_max: int


@dataclass(frozen=True)
class Sleep:
    """Answered by `TimerFired`. `seconds` may be scaled in tests, but never below `floor_s` (`Retry-After`)."""

    id: Id
    seconds: float
    floor_s: float = 0.0


@dataclass(frozen=True)
class AskApproval:
    """Answered by `Approved` or `Denied`. `why`: the rule of `approve` that asks, or what is unclear.

    `command`: the line that is to run, or the call of a tool in such words.
    """

    id: Id
    command: str
    why: str


@dataclass(frozen=True)
class CheckAnswer:
    """Whether a text is JSON that satisfies a JSON Schema; answered by `AnswerChecked`."""

    id: Id
    text: str
    schema: Mapping[str, Any]


# --- the others: not answered


@dataclass(frozen=True)
class Cancel:
    """Stop an outstanding request; whatever still comes of it is ignored."""

    id: Id


@dataclass(frozen=True)
class Save:
    """Keep the conversation. Always a valid list."""

    messages: Messages


@dataclass(frozen=True)
class Spawn:
    """Start a subagent; answered by `ToolFinished`. Never leaves the core."""

    id: Id
    prompt: str


class Reason(StrEnum):
    """Why a turn ended."""

    DONE = "done"
    FAILED = "failed"
    TRANSIENT = "transient"  # failed, but trying later makes sense
    ITERATIONS = "iterations"  # `max_al_iterations` reached
    CALLS = "calls"  # the other budgets of a turn, `max_calls_total` …
    TOKENS = "tokens"
    SECONDS = "seconds"
    COST = "cost"
    CYCLE = "cycle"  # `max_identical_calls`
    UNAPPROVED = "unapproved"  # done, but a command needed an approval that nobody could give
    SCHEMA = "schema"  # the answer does not satisfy the schema
    INTERRUPTED = "interrupted"

    def __repr__(self) -> str:
        return f"Reason.{self.name}"


ANSWERED = (Reason.DONE, Reason.UNAPPROVED)
"""The ends of a turn that have an answer."""
BUDGETS = (Reason.ITERATIONS, Reason.CALLS, Reason.TOKENS, Reason.SECONDS, Reason.COST, Reason.CYCLE)
"""The ends of a turn that a limit is the reason of."""


@dataclass(frozen=True)
class Finish:
    """An agent's turn is over. `why` is one line when it did not end well. Never leaves the core."""

    reason: Reason
    text: str = ""
    why: str = ""


@dataclass(frozen=True)
class Withhold:
    """A server refused this request parameter: leave it out for the rest of the run. Never leaves the core."""

    parameter: str


@dataclass(frozen=True)
class Unapproved:
    """A command needed an approval that nobody could give. Never leaves the core."""

    command: str


# --- outputs: what an Emit carries to whoever watches


@dataclass(frozen=True)
class Requesting:
    """A request is on its way."""


@dataclass(frozen=True)
class TextDelta:
    text: str


@dataclass(frozen=True)
class ThoughtDelta:
    """Reasoning, to be shown and never mixed into the answer."""

    text: str


@dataclass(frozen=True)
class CallStarted:
    """A tool call begins. `arguments` as the conversation has them: `{}` where they could not be read."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ResultStarted:
    """The header of a tool's result: what follows in `ResultDelta` is its text."""

    call_id: str
    name: str
    error: bool = False


@dataclass(frozen=True)
class ResultDelta:
    """A piece of a result. A glimpse is a sample of output that is not kept: for a live display only."""

    call_id: str
    text: str
    error: bool = False
    glimpse: bool = False


@dataclass(frozen=True)
class ResultEnded:
    """A tool call is over; `text` is the whole result as the model gets it."""

    call_id: str
    name: str
    text: str
    error: bool = False


@dataclass(frozen=True)
class Retrying:
    """A call failed and is tried again after `seconds`. What was shown of this answer does not count."""

    why: str
    seconds: float
    attempt: int
    attempts_max: int


@dataclass(frozen=True)
class Notice:
    """One line a user should see that is no part of the conversation; `error` when something failed."""

    text: str
    error: bool = False


@dataclass(frozen=True)
class Summarised:
    """The summary that `SummaryAsked` asked for."""

    text: str


@dataclass(frozen=True)
class Returned:
    """Something the user said while the turn ran that was not said to the model, or taken back: to the editor."""

    text: str
    parts: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Spent:
    """What was used: model calls, and tokens as servers counted them."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    """Of `tokens_in`, those that the provider had read before."""
    usd: float = 0.0
    """What servers said that calls cost."""
    told_in: int = 0
    told_out: int = 0
    """Of the tokens, those that `usd` is for."""


@dataclass(frozen=True)
class TurnEnded:
    """The last output of a turn; `text` is the last assistant message's; `cost_usd` is None where it is unknown."""

    reason: Reason
    text: str
    spent: Spent
    cost_usd: float | None = None


Output = (
    Requesting
    | TextDelta
    | ThoughtDelta
    | CallStarted
    | ResultStarted
    | ResultDelta
    | ResultEnded
    | Retrying
    | Notice
    | Summarised
    | Returned
    | TurnEnded
)


@dataclass(frozen=True)
class Emit:
    """Show something; `who` is the path of the agent it comes from."""

    who: Id
    output: Output


Request = CallModel | RunShell | RunTool | Sleep | AskApproval | CheckAnswer
Effect = Request | Cancel | Save | Emit
"""What leaves the core."""
Inner = Spawn | Finish | Withhold | Unapproved
"""What `loop` tells `tree`, and nobody else sees."""
