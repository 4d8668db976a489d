"""The slash commands, one table: help, completion, suggestions and what is done are made from its rows."""

import re
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Protocol

from bantam.core.base.problem import Problem
from bantam.core.base.record import dataclass
from bantam.core.effects import Reason, TurnEnded
from bantam.core.words import prompts, spending, wrap
from bantam.core.words.spending import Usage
from bantam.core.words.wrap import Kept as Verbatim
from bantam.host import keeper
from bantam.host.keeper import Kept, Opened
from bantam.host.watcher import Watcher
from bantam.shell.disk.store import Saved


class Quit(Exception):
    """The user wants to leave."""


class Commanded(Protocol):
    """What commands ask of a conversation."""

    @property
    def watcher(self) -> Watcher: ...
    async def save(self) -> Kept | Problem: ...
    def listing(self, what: str = "") -> Sequence[Saved] | Problem: ...
    def load(self, wanted: str) -> Opened | Problem: ...
    async def compact(self) -> TurnEnded: ...
    def settings(self) -> Sequence[tuple[str, str]]: ...
    def configure(self, key: str, value: str) -> str | Problem: ...
    def clear(self) -> None: ...
    def attach(self, name: str) -> Problem | None: ...
    def usage(self) -> Usage: ...


class Completion(Enum):
    """What may stand behind a command; where it is none of these, a path."""

    PATH = "path"
    SESSION = "session"
    SETTING = "setting"
    TOPIC = "topic"
    MODEL = "model"


@dataclass(frozen=True)
class Row:
    """A command. Nothing may stand behind one without an `argument`, which is how that is written in the help.

    `needs` are the words for an argument that is missing and cannot be.
    """

    name: str
    argument: str
    help: str
    act: Callable[[Commanded, str], Awaitable[Reason]]
    completion: Completion = Completion.PATH
    needs: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        return f"{self.name} {self.argument}".rstrip()


@dataclass(frozen=True)
class Asked:
    """A command that a line asks for, and what stands behind it."""

    row: Row
    argument: str


def parse(line: str) -> Asked | Problem | None:
    """What a line asks for, what is wrong with it, or None for text."""
    found = prompts.slash(line)
    if found is None:
        return None
    name, rest = found
    row = row_of(name)
    if row is None:
        return Problem(f"unknown command {name}; {_hint(name)}")
    if rest and not row.argument:
        return Problem(f"{name} takes nothing behind it")
    if not rest and row.needs:
        return Problem(f"{name} needs {row.needs}")
    return Asked(row, rest)


async def obey(talk: Commanded, asked: Asked | Problem) -> Reason:
    """Carry out a command. Raises Quit."""
    return _refuse(talk, asked) if isinstance(asked, Problem) else await asked.row.act(talk, asked.argument)


def row_of(name: str) -> Row | None:
    return next((row for row in ROWS if name in (row.name, *row.aliases)), None)


def names() -> list[str]:
    """Of all commands, the aliases last."""
    return [*(row.name for row in ROWS), *(alias for row in ROWS for alias in row.aliases)]


def help_table() -> tuple[wrap.Row, ...]:
    """All commands and what they are for."""
    width = max(len(row.usage) for row in ROWS)
    return tuple(wrap.Row(f"{row.usage:<{width}}  ", row.help) for row in ROWS)


def setting(rest: str) -> tuple[str, str | None]:
    """The key behind `/cfg` and the value behind that, if there is one."""
    key, sign, value = re.split(r"(\s*=\s*|\s+|$)", rest, maxsplit=1)
    return key, value if sign else None


def _hint(name: str) -> str:
    import difflib  # for a slip of the finger only

    near = difflib.get_close_matches(name, names(), 1, 0.5)
    return f"did you mean {near[0]}?" if near else "/help lists the commands"


# --- what each of them does


async def _save(talk: Commanded, _: str) -> Reason:
    kept = await talk.save()
    if isinstance(kept, Problem):
        return _refuse(talk, kept)
    talk.watcher.say(wrap.Row(f"saved as {kept.id}: ", kept.summary), "notice")
    return kept.reason


async def _list(talk: Commanded, what: str) -> Reason:
    rows = talk.listing(what)
    if isinstance(rows, Problem):
        return _refuse(talk, rows)
    if not rows:
        talk.watcher.say("no logs" if what else "no saved sessions; /list logs shows past runs", "notice")
    width = max((len(row.id) for row in rows), default=0)
    for row in rows:
        count = "" if row.count is None else f"{row.count:>4} messages  "
        talk.watcher.say(wrap.Row(f"{row.id:<{width}}  {row.created}  {count}", row.summary))
    return Reason.DONE


async def _load(talk: Commanded, wanted: str) -> Reason:
    opened = talk.load(wanted)
    if isinstance(opened, Problem):
        return _refuse(talk, opened)
    keeper.tell(talk.watcher, "loaded", opened)
    return Reason.DONE


async def _compact(talk: Commanded, _: str) -> Reason:
    ended = await talk.compact()
    if ended.reason is Reason.DONE and ended.text:
        talk.watcher.say(("compacted to:", Verbatim(ended.text)), "notice")
    return ended.reason


async def _cfg(talk: Commanded, rest: str) -> Reason:
    key, value = setting(rest)
    if value is not None:
        told = talk.configure(key, value)
        if isinstance(told, Problem):
            return _refuse(talk, told)
        talk.watcher.say(wrap.Row(f"{key}=", told.removeprefix(f"{key}=")) if told.startswith(f"{key}=") else told)
        return Reason.DONE
    chosen = [wrap.Row(f"{name}=", shown) for name, shown in talk.settings() if key in ("", name)]
    if not chosen:
        return _refuse(talk, Problem(f"{key} is not set"))
    talk.watcher.say((*chosen,))
    return Reason.DONE


async def _attach(talk: Commanded, name: str) -> Reason:
    problem = talk.attach(name)
    if problem is not None:
        return _refuse(talk, problem)
    talk.watcher.say(f"{name} goes along with your next message", "notice")
    return Reason.DONE


async def _usage(talk: Commanded, _: str) -> Reason:
    talk.watcher.say(spending.table(talk.usage()))
    return Reason.DONE


async def _clear(talk: Commanded, _: str) -> Reason:
    talk.clear()
    talk.watcher.say("the conversation was cleared", "notice")
    return Reason.DONE


async def _help(talk: Commanded, topic: str) -> Reason:
    from bantam.host import topics  # the manual is seldom asked for, and never at the start

    if not topic:
        talk.watcher.say(help_table())
        return Reason.DONE
    told = topics.text(topic)
    if isinstance(told, Problem):
        return _refuse(talk, told)
    talk.watcher.say(wrap.Page(told.rstrip("\n")))
    return Reason.DONE


async def _quit(talk: Commanded, _: str) -> Reason:
    raise Quit


def _refuse(talk: Commanded, why: Problem) -> Reason:
    talk.watcher.say(why.text, error=True)
    return Reason.FAILED


ROWS = (
    Row("/save", "", "save the conversation as a new session, with a summary by the model", _save),
    Row(
        "/list",
        "[logs | ID]",
        "list saved sessions, newest first; the logs of past runs; or one of them",
        _list,
        Completion.SESSION,
    ),
    Row(
        "/load",
        "ID",
        "go on from a saved session: its id, a unique beginning of it, or autosave",
        _load,
        Completion.SESSION,
        needs="the id of a session; /list shows them",
    ),
    Row("/compact", "", "replace the conversation by a summary of it", _compact),
    Row(
        "/cfg",
        "[KEY [VALUE]]",
        "show all settings, show one, or change one here and in model.cfg",
        _cfg,
        Completion.SETTING,
    ),
    Row(
        "/attach", "FILE", "send a file with the next message: a picture, or text", _attach, needs="the name of a file"
    ),
    Row("/usage", "", "tokens, cost, and how full the model's window is", _usage),
    Row("/clear", "", "forget the conversation; only the system prompt stays", _clear),
    Row("/help", "[TOPIC]", "this list, or a topic of the manual (see bantam help)", _help, Completion.TOPIC),
    Row("/quit", "", "leave (also /exit, or Ctrl+D on an empty line)", _quit, aliases=("/exit",)),
)
