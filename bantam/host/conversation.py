"""One conversation with whoever asks: the runtime wired to real handlers, and to what keeps it.

The editor, piped lines, a driver and the guided tour are small programs around this. Any number of conversations live
in one process; each has its own place and watcher, and shares nothing with another but what their places share.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from bantam.core import tree
from bantam.core.base.problem import Problem
from bantam.core.base.record import replace
from bantam.core.base.settings import Config
from bantam.core.effects import AskApproval, Emit, Reason, Request, Returned, TurnEnded
from bantam.core.events import (
    Cleared,
    CompactAsked,
    ConfigChanged,
    Denied,
    Event,
    Interrupted,
    Loaded,
    SummaryAsked,
    TookBack,
    UserSaid,
)
from bantam.core.past import history
from bantam.core.rules import credentials, limits
from bantam.core.rules.redact import Redactor
from bantam.core.state import Session
from bantam.core.window import context
from bantam.core.words import config, prompts
from bantam.host import keeper
from bantam.host.attachments import Attachments, Parts
from bantam.host.handlers import Outside
from bantam.host.keeper import Keeper, Kept, Opened
from bantam.host.setup import Setup
from bantam.host.watcher import Watcher
from bantam.shell.disk import store
from bantam.shell.disk.files import StoreError
from bantam.shell.disk.store import Resumed, Saved
from bantam.shell.net import address
from bantam.shell.runtime import Handler, Runtime

if TYPE_CHECKING:  # each of these is imported where it is first asked for, which most runs never do
    from bantam.core.words.spending import Usage
    from bantam.shell.disk.tape import Player, Recorder


class Conversation:
    """Made and closed in a running loop. `autosaves` is off where one answer is all that is wanted.

    `ask` answers for the user whether a command may run; until it is set, nobody does.
    """

    def __init__(
        self,
        found: Setup,
        watcher: Watcher,
        autosaves: bool = True,
        resumed: Resumed | None = None,
        tape: "Recorder | Player | None" = None,
        attached: Parts = (),
    ) -> None:
        self.setup, self.config, self.watcher = found, found.config, watcher
        self.ask: Callable[[AskApproval], Awaitable[Event]] = _nobody
        self._returned: list[str] = []
        self.attachments = Attachments(found.place, attached)
        recorder, self.player = _sides(tape)
        self._redactor = Redactor(credentials.secrets(found.place.environ, found.key))
        settings, system = _loggable(found.config), self.clean(found.system)
        self.keeper = Keeper(found.place, watcher, settings, system, autosaves, resumed, recorder)
        self._outside = Outside(found.place, found.config, found.key, self._redactor)
        past = resumed.past if resumed else None
        self._lost: tuple[Event, ...] = history.recovery(past.session) if past else ()
        session = past.session if past else tree.start(settings, system)
        self.runtime = self._wired(session, past.now if past else 0)
        for notice in found.notices:
            watcher.say(notice, "notice", error=True)
        self.keeper.tidy()
        if resumed:
            self._resume(resumed)

    def _wired(self, session: Session, now: float) -> Runtime:
        """The runtime of a session, `now` seconds after its start. A tape answers for the whole outside."""
        clock, player = self.setup.place.clock.seconds, self.player
        start = clock() - now
        handlers: dict[type[Request], Handler] = {**self._outside.handlers(), AskApproval: self._approval}
        runtime = Runtime(
            session,
            dict.fromkeys(handlers, player.play) if player else handlers,
            self._show,
            self.keeper.keep,
            self._hear,
            self._redactor,
            player.now if player else lambda: clock() - start,
        )
        if player:
            player.drive(runtime.tell, lambda: runtime.session)
        return runtime

    # --- talking

    async def line(self, text: str) -> Reason:
        """A line that was typed or piped: a command, or something for the model. Raises `commands.Quit`."""
        from bantam.host import commands

        asked = commands.parse(text)
        return await (self.say(text) if asked is None else commands.obey(self, asked))

    async def say(self, text: str) -> Reason:
        """Something for the model; what a killed run left open is told with it."""
        parts = self.attachments.take(text)
        if isinstance(parts, Problem):
            self.watcher.say(parts.text, error=True)
            return Reason.FAILED
        lost, self._lost = self._lost, ()
        said = UserSaid(prompts.with_schema(text, self.config.schema), parts)
        return (await self.runtime.turn(said, *lost)).reason

    @property
    def is_unfinished(self) -> bool:
        """Whether the run that this one goes on from was killed in the middle of a turn."""
        return bool(self._lost)

    async def go_on(self) -> Reason:
        """Go on with the turn of a killed run."""
        lost, self._lost = self._lost, ()
        return (await self.runtime.turn(*lost)).reason

    def add(self, text: str) -> None:
        """Say something while a turn runs: the model hears it with its next call."""
        parts = self.attachments.take(text)
        if isinstance(parts, Problem):
            self.watcher.say(f"{parts.text}, nor was the text said", error=True)
            self._returned.append(text)
        else:
            self.runtime.tell(UserSaid(text, parts))

    def take_back(self) -> str:
        """What was added last and is not said yet, which is now not said at all; "" if there is none."""
        self.runtime.tell(TookBack())
        return "".join(self.returned())

    def returned(self) -> list[str]:
        """What was added and came back, since the turn ended before it was said; told once."""
        back, self._returned = self._returned, []
        return back

    def is_said(self, line: str) -> bool:
        """Whether a line is for the model, and no command that is carried out between turns."""
        from bantam.host import commands

        return commands.parse(line) is None and not line.lstrip().startswith("!")

    def interrupt(self, signal: int = 0) -> None:
        """Stop the turn, if there is one; a signal did it, or a key."""
        if self.busy:
            self.runtime.tell(Interrupted(signal))

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self.runtime.busy

    async def close(self) -> None:
        """Leave nothing running."""
        await self.runtime.close()
        await self._outside.close()
        self.keeper.close()

    # --- what is kept

    @property
    def log_id(self) -> str | None:
        """The id of this run's log, once there is one."""
        return (self.player.tape.id if self.player else self.keeper.log_id) or None

    def keep(self) -> None:
        """Save a copy on the way out; what failed is said."""
        self.keeper.keep(self.runtime.conversation)

    async def save(self) -> Kept | Problem:
        """Save first, then ask the model for the summary: nothing is lost when it cannot give one."""
        said = self.runtime.conversation
        if len(said) < 2:
            return Problem("there is nothing to save yet")
        if not self.config.save:
            return Problem("save=false: nothing is kept")
        summary = store.first_words(said)
        try:
            id = self.keeper.store.save_new(said, summary)
            ended = await self.runtime.turn(SummaryAsked())
            if ended.reason is Reason.DONE and ended.text:
                summary = ended.text
                self.keeper.store.save(id, said, summary)
        except StoreError as problem:
            return Problem(self.keeper.causes.answer(problem))
        return Kept(id, summary, ended.reason)

    def sessions(self) -> list[str]:
        """The ids that `load` takes."""
        return self.keeper.store.ids()

    def words_of(self, id: str) -> str:
        """A few words about one of them, as far as they can be had at once."""
        return self.keeper.store.words(id)

    def listing(self, what: str = "") -> Sequence[Saved] | Problem:
        """The saved sessions, the `logs` of past runs, or the one of either with this id."""
        try:
            if what in ("", "logs"):
                return self.keeper.store.runs() if what else self.keeper.store.saved()
            id = self.keeper.store.find(what)
            return id if isinstance(id, Problem) else [self.keeper.store.row(id)]
        except StoreError as problem:
            return Problem(str(problem))

    def load(self, wanted: str) -> Opened | Problem:
        """Go on from a saved session or a log: its id, or the beginning of that."""
        id = self.keeper.store.find(wanted)
        if isinstance(id, Problem):
            return id
        try:
            messages, notice = self.keeper.store.load(id)
        except StoreError as problem:
            return Problem(str(problem))
        self.runtime.tell(Loaded(tuple(messages)))
        return self._opened(id, notice)

    async def compact(self) -> TurnEnded:
        """Replace the conversation by a summary of it, which is the text of the turn's end."""
        return await self.runtime.turn(CompactAsked())

    def clear(self) -> None:
        """Forget the conversation; only the system prompt stays."""
        self.runtime.tell(Cleared())

    def attach(self, name: str) -> Problem | None:
        """Have a file go along with the next message."""
        return self.attachments.add(name)

    def usage(self) -> "Usage":
        """What the last turn used, what all have, and how full the window is."""
        from bantam.core.words.spending import Usage

        session, now = self.runtime.session, self.config
        spent = session.spent, session.total
        size = context.estimate(tree.conversation(session))
        turn, total = (limits.known_cost_usd(now, one) for one in spent)
        return Usage(spent[0], turn, spent[1], total, size, now.context_window)

    # --- settings

    def settings(self) -> Sequence[tuple[str, str]]:
        """All settings as they hold now, without the key's value."""
        return config.shown(self.config, self.setup.key is not None)

    def configure(self, key: str, value: str) -> str | Problem:
        """Change one setting here and in model.cfg; returns the line that says so."""
        from bantam.host import change

        found = change.change(self.setup, key, value)
        if isinstance(found, Problem):
            return found
        self.setup = found
        self.config = replace(found.config, schema=self.config.schema)
        self.keeper.saves = self.config.save
        self._redactor = Redactor((*self._redactor.secrets, found.key))  # the old key may still turn up
        self.runtime.redactor = self._redactor
        self._outside.reconfigure(self.config, found.key, self._redactor)
        self.watcher.recolor(found.config.color, found.config.render)
        self.runtime.tell(ConfigChanged(_loggable(self.config)))
        now = dict(self.settings()).get(key)
        return f"{key}={now}" if now is not None else f"{key} is left out of requests"

    def always(self, command: str) -> None:
        """Let exactly this command run without a question, for the rest of this run."""
        from bantam.core.rules import approval  # seldom needed

        rules = approval.parse(self.config.approve)
        if not isinstance(rules, Problem):
            self.config = replace(self.config, approve=approval.render(approval.remember(rules, command)))
            self.runtime.tell(ConfigChanged(_loggable(self.config)))

    def clean(self, text: str) -> str:
        """The text without the key, fit to be kept."""
        return self._redactor.text(text)

    # --- within

    def _resume(self, resumed: Resumed) -> None:
        if resumed.past is None:
            self.runtime.tell(Loaded(tuple(resumed.messages)))
        elif resumed.past.session.config != _loggable(self.config):
            self.runtime.tell(ConfigChanged(_loggable(self.config)))
        keeper.tell(self.watcher, "resumed", self._opened(resumed.id, resumed.notice))
        if self._lost:
            self.watcher.say("the run was killed in the middle of a turn; going on with it", "notice")

    def _opened(self, id: str, notice: str) -> Opened:
        return Opened(id, len(self.runtime.conversation) - 1, notice)

    async def _approval(self, request: AskApproval) -> AsyncGenerator[Event, None]:
        yield await self.ask(request)

    def _show(self, emit: Emit) -> None:
        if isinstance(emit.output, Returned):
            self._returned.append(emit.output.text)
            self.attachments.give_back(emit.output.parts)
        self.watcher.show(emit)

    def _hear(self, now: float, event: Event) -> None:
        self.watcher.hear(now, event)
        if self.player:
            self.player.hear(event)
        self.keeper.append(now, event)


async def _nobody(request: AskApproval) -> Event:
    """What answers for whoever is not there."""
    return Denied(request.id, nobody=True)


def _sides(tape: "Recorder | Player | None") -> "tuple[Recorder | None, Player | None]":
    """What records this run, and what plays another one."""
    if tape is None:
        return None, None
    from bantam.shell.disk.tape import Player

    return (None, tape) if isinstance(tape, Player) else (tape, None)


def _loggable(settings: Config) -> Config:
    """The settings as the core and its log have them: a login in the endpoint's URL is a secret."""
    return replace(settings, endpoint=address.without_login(settings.endpoint))
