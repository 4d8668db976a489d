"""One conversation with whoever asks: the runtime wired to real handlers, and the slash commands.

The editor, piped lines and one-shot runs are small programs around this.
"""

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bantam.core import tree
from bantam.core.base.problem import Problem
from bantam.core.base.record import replace
from bantam.core.base.settings import Config
from bantam.core.effects import AskApproval, Emit, Reason, Request, Summarised
from bantam.core.events import (
    Cleared,
    CompactAsked,
    ConfigChanged,
    Denied,
    Event,
    Interrupted,
    Loaded,
    SummaryAsked,
    UserSaid,
)
from bantam.core.messages import Messages
from bantam.core.past import history
from bantam.core.rules.redact import Redactor
from bantam.core.words import commands, config
from bantam.core.words.commands import Command
from bantam.core.words.wrap import Kept, Row
from bantam.host import setup
from bantam.host.handlers import Outside
from bantam.host.setup import Setup
from bantam.host.watcher import Watcher
from bantam.shell.disk import files, store
from bantam.shell.disk.files import StoreError
from bantam.shell.disk.store import Resumed, Store
from bantam.shell.disk.tape import Player, Recorder
from bantam.shell.net import address
from bantam.shell.runtime import Handler, Runtime


class Quit(Exception):
    """The user wants to leave."""


class Chat:
    """A conversation. `options` are the values of `-c`; `autosaves` is off in print mode."""

    def __init__(
        self,
        found: Setup,
        options: Sequence[str],
        screen: Watcher,
        autosaves: bool = True,
        environ: Mapping[str, str] = os.environ,
        resumed: Resumed | None = None,
        tape: Recorder | Player | None = None,
    ) -> None:
        self.config, self.screen = found.config, screen
        self._key, self._options, self._environ = found.key, options, environ
        self._autosaves = autosaves
        self._complaints: set[str] = set()
        self._summary = ""
        self.ask: Callable[[AskApproval], Awaitable[Event]] = self._nobody
        self._redactor = Redactor(setup.secrets(environ, found.key))
        self._store = Store(store.home())
        system = self.clean(found.system)
        self._log = resumed.log if resumed else self._store.new_log(_loggable(found.config), system, screen.created)
        self._system, self._first = system, _loggable(found.config)
        self.player = tape if isinstance(tape, Player) else None
        self._recorder = tape if isinstance(tape, Recorder) else None
        self.tape_is_cut = False
        self._outside = Outside(found.config, found.key, environ, self._redactor)
        past = resumed.past if resumed else None
        start = time.monotonic() - (past.now if past else 0)
        handlers: dict[type[Request], Handler] = {**self._outside.handlers(), AskApproval: self._approval}
        self.runtime = Runtime(
            past.session if past else tree.start(_loggable(found.config), system),
            dict.fromkeys(handlers, self.player.play) if self.player else handlers,
            self._show,
            self._keep,
            self._write_log,
            self._redactor,
            self.player.now if self.player else lambda: time.monotonic() - start,
        )
        if self.player:
            self.player.drive(self.runtime.tell, lambda: self.runtime.session)
        for notice in found.notices:
            screen.say(notice, "notice", error=True)
        if autosaves and found.config.save:
            self._tidy()
        self._lost: tuple[Event, ...] = history.recovery(past.session) if past else ()
        if resumed:
            self._resume(resumed)

    # --- what can be asked

    async def line(self, text: str) -> Reason:
        """A line that was typed or piped: a command, or something for the model."""
        command = commands.parse(text)
        return await (self.say(text) if command is None else self.obey(command))

    async def say(self, text: str) -> Reason:
        """Something for the model; what a killed run left open is told with it."""
        lost, self._lost = self._lost, ()
        said = UserSaid(commands.with_schema(text, self.config.schema))
        return (await self.runtime.turn(said, *lost)).reason

    @property
    def is_unfinished(self) -> bool:
        """Whether the run that this one goes on from was killed in the middle of a turn."""
        return bool(self._lost)

    async def go_on(self) -> Reason:
        """Go on with the turn of a killed run."""
        lost, self._lost = self._lost, ()
        return (await self.runtime.turn(*lost)).reason

    async def obey(self, command: Command) -> Reason:
        """Carry out a slash command. Raises Quit."""
        try:
            return await self._obey(command)
        except StoreError as problem:
            return self._refuse(str(problem))

    def add(self, text: str) -> None:
        """Say something while a turn runs: the model hears it with its next call."""
        self.runtime.tell(UserSaid(text))

    def interrupt(self, signal: int = 0) -> None:
        """Stop the turn, if there is one; a signal did it, or a key."""
        if self.busy:
            self.runtime.tell(Interrupted(signal))

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self.runtime.busy

    @property
    def log_id(self) -> str | None:
        """The id of this run's log, once there is one."""
        return (self.player.tape.id if self.player else self._log.id) or None

    async def close(self) -> None:
        """Leave nothing running."""
        await self.runtime.close()
        await self._outside.close()
        self._log.close()

    def save(self) -> None:
        """Save on the way out; what failed is said."""
        self._keep(self.runtime.conversation)

    def always(self, command: str) -> None:
        """Let exactly this command run without a question, for the rest of this run."""
        from bantam.core.rules import approval  # seldom needed

        rules = approval.parse(self.config.approve)
        if not isinstance(rules, Problem):
            self.config = replace(self.config, approve=approval.render(approval.remember(rules, command)))
            self.runtime.tell(ConfigChanged(_loggable(self.config)))

    def sessions(self) -> list[str]:
        """The ids that `/load` takes, for completion."""
        return self._store.ids()

    def clean(self, text: str) -> str:
        """The text without the key, fit to be kept."""
        return self._redactor.text(text)

    # --- commands

    async def _obey(self, command: Command) -> Reason:
        match command:
            case commands.Save():
                return await self._save()
            case commands.List(what):
                return self._list(what)
            case commands.Load(id):
                return self._load(id)
            case commands.Compact():
                return await self._compact()
            case commands.Cfg(key, value):
                return self._show_config(key) if value is None else self._set(key, value)
            case commands.Clear():
                self.runtime.tell(Cleared())
                self.screen.say("the conversation was cleared", "notice")
            case commands.Help():
                self.screen.say(commands.help_table())
            case commands.Quit():
                raise Quit
            case commands.Wrong(why):
                return self._refuse(why)
        return Reason.DONE

    async def _save(self) -> Reason:
        """Save first, then ask the model for the summary: nothing is lost when it cannot give one."""
        said = self.runtime.conversation
        if len(said) < 2:
            return self._refuse("there is nothing to save yet")
        if not self.config.save:
            return self._refuse("save=false: nothing is kept")
        self._summary = ""
        id = self._store.save_new(said, store.first_words(said))
        ended = await self.runtime.turn(SummaryAsked())
        if self._summary:
            self._store.save(id, said, self._summary)
        self.screen.say(Row(f"saved as {id}: ", self._summary or store.first_words(said)), "notice")
        return ended.reason

    def _list(self, what: str) -> Reason:
        if what in ("", "logs"):
            rows = self._store.runs() if what else self._store.saved()
        else:
            id = self._store.find(what)
            if isinstance(id, Problem):
                return self._refuse(id.text)
            rows = [self._store.row(id)]
        if not rows:
            self.screen.say("no logs" if what else "no saved sessions; /list logs shows past runs", "notice")
        width = max((len(row.id) for row in rows), default=0)
        for row in rows:
            count = "" if row.count is None else f"{row.count:>4} messages  "
            self.screen.say(Row(f"{row.id:<{width}}  {row.created}  {count}", row.summary))
        return Reason.DONE

    def _load(self, wanted: str) -> Reason:
        id = self._store.find(wanted)
        if isinstance(id, Problem):
            return self._refuse(id.text)
        loaded, problem = self._store.load(id)
        self.runtime.tell(Loaded(tuple(loaded)))
        self._tell_loaded("loaded", id, problem)
        return Reason.DONE

    def _resume(self, resumed: Resumed) -> None:
        if resumed.past is None:
            self.runtime.tell(Loaded(tuple(resumed.messages)))
        elif resumed.past.session.config != _loggable(self.config):
            self.runtime.tell(ConfigChanged(_loggable(self.config)))
        self._tell_loaded("resumed", resumed.id, resumed.notice)
        if self._lost:
            self.screen.say("the run was killed in the middle of a turn; going on with it", "notice")

    def _tell_loaded(self, done: str, id: str, problem: str) -> None:
        count = len(self.runtime.conversation) - 1
        self.screen.say(f"{done} {id}: {count} messages", "notice")
        if problem:
            self.screen.say(problem, error=True)

    def _tidy(self) -> None:
        try:
            aside = self._store.tidy()
        except StoreError as problem:
            self._complain(problem)
            return
        if aside:
            self.screen.say(f"the autosave could not be read; it is kept as {aside}", error=True)

    async def _compact(self) -> Reason:
        ended = await self.runtime.turn(CompactAsked())
        if ended.reason is Reason.DONE and ended.text:
            self.screen.say(("compacted to:", Kept(ended.text)), "notice")
        return ended.reason

    def _show_config(self, key: str) -> Reason:
        rows = config.shown(self.config, self._key is not None)
        chosen = [Row(f"{name}=", value) for name, value in rows if key in ("", name)]
        if not chosen:
            return self._refuse(f"{key} is not set")
        self.screen.say((*chosen,))
        return Reason.DONE

    def _set(self, key: str, value: str) -> Reason:
        """Change one line of model.cfg and go on with it; whatever is wrong with it changes nothing."""
        old = setup.read_text(setup.CONFIG_FILE)
        if isinstance(old, Problem):
            return self._refuse(old.text)
        if "\n" in value or "\r" in value:
            return self._refuse(f"/cfg {key}: a value is one line")
        entry = config.entry_of(f"{key}={value}", "/cfg")
        if isinstance(entry, Problem):
            return self._refuse(entry.text)
        text = config.update(old or "", key, entry.value)
        options = [option for option in self._options if option.partition("=")[0].strip() != key]  # the later word wins
        options += [f"endpoint={value}"] if key == "endpoint" else []  # named by the user, so the key may go there
        found = setup.from_text(text, options, self._environ)
        if not isinstance(found, Setup):
            return self._refuse(f"nothing was changed: {found.text}")
        path = Path(setup.CONFIG_FILE)
        try:
            mode = path.stat().st_mode & 0o7777 if path.exists() else 0o600
            files.write_whole(path.resolve(), text.encode(), mode)
        except OSError as problem:
            return self._refuse(f"cannot write {setup.CONFIG_FILE}: {problem.strerror or problem}")
        self._options = options
        self._reconfigure(found)
        now = dict(config.shown(self.config, self._key is not None)).get(key)
        self.screen.say(Row(f"{key}=", now) if now is not None else f"{key} is left out of requests")
        return Reason.DONE

    def _reconfigure(self, found: Setup) -> None:
        self.config, self._key = replace(found.config, schema=self.config.schema), found.key
        self._redactor = Redactor((*self._redactor.secrets, found.key))  # the old key may still turn up
        self.runtime.redactor = self._redactor
        self._outside.reconfigure(self.config, self._key, self._redactor)
        self.screen.recolor(found.config.color)
        self.runtime.tell(ConfigChanged(_loggable(self.config)))

    def _refuse(self, why: str) -> Reason:
        self.screen.say(why, error=True)
        return Reason.FAILED

    # --- handlers and sinks

    async def _approval(self, request: AskApproval) -> AsyncGenerator[Event, None]:
        yield await self.ask(request)

    async def _nobody(self, request: AskApproval) -> Event:
        """What answers for whoever is not there."""
        return Denied(request.id, nobody=True)

    def _show(self, emit: Emit) -> None:
        if isinstance(emit.output, Summarised):
            self._summary = emit.output.text
        self.screen.show(emit)

    def _keep(self, said: Messages) -> None:
        if self._autosaves and self.config.save and len(said) > 1:
            try:
                self._store.autosave(said)
            except StoreError as problem:
                self._complain(problem)

    def _write_log(self, now: float, event: Event) -> None:
        self.screen.hear(now, event)
        if self.player:
            self.player.hear(event)
        try:
            if self.config.save:
                self._log.append(now, event)
        except StoreError as problem:
            self._complain(problem)
        try:
            if self._recorder:
                self._recorder.append(now, event, self._header)
        except StoreError as problem:
            self.screen.say(f"{problem}; the tape is not whole", error=True)
            self._recorder, self.tape_is_cut = None, True

    def _header(self) -> dict[str, Any]:
        """The first line of a tape."""
        created = time.strftime("%Y-%m-%d %H:%M:%S")
        return history.header(self._log.id, created, self.screen.created, self._system, self._first)

    def _complain(self, problem: StoreError) -> None:
        """Say once why nothing can be kept, be it the log or the session; the chat goes on."""
        why = str(problem).rpartition(": ")[2]
        if why not in self._complaints:
            self._complaints.add(why)
            self.screen.say(f"{problem}; the conversation goes on unsaved", error=True)


def _loggable(config: Config) -> Config:
    """The settings as the core and its log have them: a login in the endpoint's URL is a secret."""
    return replace(config, endpoint=address.without_login(config.endpoint))
