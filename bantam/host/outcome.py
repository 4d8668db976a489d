"""What comes of what is asked of a conversation, where that is more than a reason."""

from bantam.core.base.record import dataclass
from bantam.core.effects import Reason
from bantam.host.watcher import Watcher


@dataclass(frozen=True)
class Kept:
    """A session was saved; `reason`: how the call for its summary ended."""

    id: str
    summary: str
    reason: Reason


@dataclass(frozen=True)
class Opened:
    """The conversation goes on from a session or a log; `notice`: what of that could not be read."""

    id: str
    count: int
    notice: str


def tell(watcher: Watcher, done: str, opened: Opened) -> None:
    """Say what was `done`: loaded, or resumed."""
    watcher.say(f"{done} {opened.id}: {opened.count} messages", "notice")
    if opened.notice:
        watcher.say(opened.notice, error=True)
