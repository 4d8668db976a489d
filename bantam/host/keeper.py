"""What is kept of one conversation: its log, a copy after each turn, its tape. What cannot be kept stops nothing."""

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bantam.core.base.record import dataclass
from bantam.core.base.settings import Config
from bantam.core.effects import Reason
from bantam.core.events import Event
from bantam.core.messages import Messages
from bantam.core.past import history
from bantam.host.place import Place
from bantam.host.watcher import Watcher
from bantam.shell.disk import files
from bantam.shell.disk.files import StoreError
from bantam.shell.disk.store import Resumed, Store

if TYPE_CHECKING:
    from bantam.shell.disk.tape import Recorder

UNSAVED, CUT = "the conversation goes on unsaved", "the tape is not whole"
SAME = (  # one cause has several numbers, by which step it is that fails
    {errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG},  # no folder there, and none to be had
    {errno.EACCES, errno.EPERM, errno.EROFS},  # it may not be written
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG},  # it is full
)


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


class Keeper:
    """Keeps what happens under the place's home, as long as `saves`, which is the setting.

    `autosaves`: a copy of the conversation, too. `system` and `config` are what a log begins with.
    """

    def __init__(
        self,
        place: Place,
        watcher: Watcher,
        config: Config,
        system: str,
        autosaves: bool,
        resumed: Resumed | None,
        recorder: "Recorder | None",
    ) -> None:
        self.saves, self.tape_is_cut = config.save, False
        self.causes, self.store = Causes(place), Store(place.home, place.clock.wall)
        self._place, self._watcher, self._autosaves, self._recorder = place, watcher, autosaves, recorder
        self._system, self._config = system, config
        self._log = resumed.log if resumed else self.store.new_log(config, system, watcher.created)

    @property
    def log_id(self) -> str:
        """The id of the log, once there is one."""
        return self._log.id

    def tidy(self) -> None:
        """At the start: away with what killed runs have left."""
        if not (self._autosaves and self.saves):
            return
        try:
            aside = self.store.tidy()
        except StoreError as problem:
            self._complain(problem)
            return
        if aside:
            self._watcher.say(f"the autosave could not be read; it is kept as {aside}", error=True)

    def keep(self, said: Messages) -> None:
        """The conversation, as it is after a turn."""
        if self._autosaves and self.saves and len(said) > 1:
            try:
                self.store.autosave(said)
            except StoreError as problem:
                self._complain(problem)

    def append(self, now: float, event: Event) -> None:
        """An event happens."""
        try:
            if self.saves:
                self._log.append(now, event)
        except StoreError as problem:
            self._complain(problem)
        try:
            if self._recorder:
                self._recorder.append(now, event, self._header)
        except StoreError as problem:
            self._complain(problem, CUT)
            self._recorder, self.tape_is_cut = None, True

    def close(self) -> None:
        """Let go of the log."""
        self._log.close()

    def _header(self) -> dict[str, Any]:
        """The first line of a tape."""
        created = files.stamp(self._place.clock.wall())
        return history.header(self._log.id, created, self._watcher.created, self._system, self._config)

    def _complain(self, problem: StoreError, means: str = UNSAVED) -> None:
        if words := self.causes.words(problem, means):
            self._watcher.say(words, error=True)


class Causes:
    """What keeps things from being kept, said once: whoever meets it next says what else it means, or nothing.

    Of one conversation: its log, its saves, its tape and what its user typed.
    """

    def __init__(self, place: Place | None = None) -> None:
        self._homes = (place.user_home, place.home) if place else ()
        self._said: dict[tuple[Path, int], set[str]] = {}

    def words(self, problem: StoreError, means: str, minor: bool = False) -> str:
        """What to say of a problem and what it `means`: all of it, what is new in that, or "".

        What is `minor` is worth no line of its own where the cause is known.
        """
        said = self._said.get(self._cause(problem))
        if said is not None and (minor or means in said):
            return ""
        self._note(problem, "" if minor else means)
        return f"{problem}; {means}" if said is None else means

    def answer(self, problem: StoreError) -> str:
        """The same for somebody who has asked, and gets an answer each time."""
        if problem.number and self._cause(problem) in self._said:
            return "nothing was saved"
        if problem.number:
            self._note(problem, "")
        return str(problem)

    def _note(self, problem: StoreError, means: str) -> None:
        self._said.setdefault(self._cause(problem), set()).add(means)

    def _cause(self, problem: StoreError) -> tuple[Path, int]:
        """Where and why, with one home and the different steps towards a file taken as one."""
        homes = (home for home in self._homes if problem.path.is_relative_to(home))
        kind = next((min(numbers) for numbers in SAME if problem.number in numbers), problem.number)
        return next(homes, problem.path.parent), kind
