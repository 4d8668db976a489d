"""The state: agents, each in one phase, and a phase holds only what is true in it."""

from typing import Literal, assert_never

from bantam.core.base.record import dataclass, field
from bantam.core.base.settings import Config
from bantam.core.base.trie import Trie
from bantam.core.effects import Spent
from bantam.core.events import Id, UserSaid
from bantam.core.messages import Messages
from bantam.core.tools.table import BUILT_IN, Toolbox
from bantam.core.tools.toolbox import Action, Heard
from bantam.core.wire.assemble import Partial

Purpose = Literal["reply", "compact", "shrink", "summary"]
"""What a call is for: an answer, `/compact`, the same in the middle of a turn, or the line of `/save`."""


@dataclass(frozen=True)
class Idle:
    pass


@dataclass(frozen=True)
class Calling:
    """Waiting for the model. `attempt` counts from 1."""

    id: Id
    purpose: Purpose
    attempt: int
    partial: Partial
    withheld: frozenset[str] = frozenset()
    """The parameters that this call went without; another agent may have lost more since."""


@dataclass(frozen=True)
class BackingOff:
    """Waiting before the same call is made again."""

    id: Id
    purpose: Purpose
    attempt: int


@dataclass(frozen=True)
class Checking:
    """Waiting to hear whether the answer satisfies the schema."""

    id: Id
    text: str


@dataclass(frozen=True)
class Slot:
    """One tool call of an answer, at its place among them; and what is known of it while it is under way."""

    place: int
    call_id: str
    name: str
    arguments: str
    """As the conversation has them."""
    action: Action
    line: str | None = None
    """What `approve` judges, if it does."""
    together: bool = False
    """It may run side by side with its neighbours."""
    asks: bool = False
    """The user is asked first."""
    timeout_s: float = 0
    """What a command may take."""
    heard: Heard = field(default_factory=Heard)


@dataclass(frozen=True)
class Acting:
    """The calls of one answer. `slots` stays as it is; each of them waits, then is under way, then has a result.

    So an event costs the same, however many calls there are.
    """

    slots: tuple[Slot, ...]
    begun: int = 0
    """How many have been started, or were answered at once."""
    busy: Trie[Slot] = field(default_factory=Trie)
    """Those that ask or run, by the ids of their requests."""
    results: Trie[str] = field(default_factory=Trie)
    """By place, as `(place,)`."""


Phase = Idle | Calling | BackingOff | Acting | Checking


@dataclass(frozen=True)
class Repeated:
    """The last tool call of a turn, and how often it came in a row."""

    call: str = ""
    times: int = 0


@dataclass(frozen=True)
class Agent:
    """One loop with its own messages: the root at path (), or a subagent at the id that spawned it."""

    path: Id
    messages: Messages
    phase: Phase = field(default_factory=Idle)
    serial: int = 0
    """How many requests this agent has numbered."""
    iterations: int = 0
    """Model calls answered in this turn."""
    repeated: Repeated = field(default_factory=Repeated)
    strips: int = 0
    """Recoveries of this turn that removed something from the list."""
    squeezed: int = 0
    """How far the requests of this turn for a summary had to be shortened, see `context.SHARES`."""
    repairs: int = 0
    """Answers of this turn that did not satisfy the schema."""
    queued: tuple[UserSaid, ...] = ()
    """What the user said meanwhile; said before the next call."""


@dataclass(frozen=True)
class Session:
    """All agents of one conversation, and what was spent."""

    config: Config
    system: str
    agents: Trie[Agent]
    toolbox: Toolbox = BUILT_IN
    """All tools there are; `config.tools` names those that are on."""
    spent: Spent = field(default_factory=Spent)
    """In this turn, by all agents together."""
    total: Spent = field(default_factory=Spent)
    """In all turns that ended."""
    unapproved: frozenset[str] = field(default_factory=frozenset)
    """What in this turn needed an approval which nobody could give."""
    begun: float = 0.0
    """When this turn began."""
    withheld: frozenset[str] = field(default_factory=frozenset)
    """Request parameters that a server refused in this run."""


def waiting(agent: Agent) -> tuple[Id, ...]:
    """The ids of the requests that an agent waits for."""
    match agent.phase:
        case Calling(id=id) | BackingOff(id=id) | Checking(id=id):
            return (id,)
        case Acting(busy=busy):
            return tuple(busy)
        case Idle():
            return ()
        case never:
            assert_never(never)
