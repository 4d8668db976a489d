"""What is kept of one conversation: its log, a copy after each turn, its tape. What cannot be kept stops nothing."""

from typing import Any

from bantam.core.base.settings import Config
from bantam.core.events import Event
from bantam.core.messages import Messages
from bantam.core.past import history
from bantam.host.causes import Causes
from bantam.host.place import Place
from bantam.host.watcher import Watcher
from bantam.shell.disk import files
from bantam.shell.disk.files import StoreError
from bantam.shell.disk.store import Resumed, Store
from bantam.shell.disk.tape import Recorder

UNSAVED, CUT = "the conversation goes on unsaved", "the tape is not whole"


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
        recorder: Recorder | None,
    ) -> None:
        self.saves, self.tape_is_cut = config.save, False
        self.store, self.causes = Store(place.home, place.clock.wall), Causes(place)
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
