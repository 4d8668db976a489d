"""Slash commands: a line -> what it asks for. Shared by the editor and piped lines."""

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any

from bantam.core.base.record import dataclass
from bantam.core.words.wrap import Row


@dataclass(frozen=True)
class Save:
    pass


@dataclass(frozen=True)
class List:
    """Saved sessions, the logs of past runs (`logs`), or one of either by its id."""

    what: str = ""


@dataclass(frozen=True)
class Load:
    id: str


@dataclass(frozen=True)
class Compact:
    pass


@dataclass(frozen=True)
class Cfg:
    """Show all, show one (`key`), or change one (`key` and `value`)."""

    key: str = ""
    value: str | None = None


@dataclass(frozen=True)
class Clear:
    pass


@dataclass(frozen=True)
class Help:
    pass


@dataclass(frozen=True)
class Quit:
    pass


@dataclass(frozen=True)
class Wrong:
    """A command that is not one, or that lacks something; `why` is one line."""

    why: str


Command = Save | List | Load | Compact | Cfg | Clear | Help | Quit | Wrong

USAGE = {
    "/save": "save the conversation as a new session, with a summary by the model",
    "/list [logs | ID]": "list saved sessions, newest first; the logs of past runs; or one of them",
    "/load ID": "go on from a saved session: its id, a unique beginning of it, or autosave",
    "/compact": "replace the conversation by a summary of it",
    "/cfg [KEY [VALUE]]": "show all settings, show one, or change one here and in model.cfg",
    "/clear": "forget the conversation; only the system prompt stays",
    "/help": "this list",
    "/quit": "leave (also /exit, or Ctrl+D on an empty line)",
}
NAMES = (*(usage.split()[0] for usage in USAGE), "/exit")
_SIMPLE: dict[str, Command] = {
    "/save": Save(),
    "/compact": Compact(),
    "/clear": Clear(),
    "/help": Help(),
    "/quit": Quit(),
    "/exit": Quit(),
}


def parse(line: str) -> Command | None:
    """The command of a line, or None for text. A command's first word is `/` and letters."""
    words = line.split(None, 1)
    if not words or not re.fullmatch(r"/[A-Za-z]+", words[0]):
        return None
    name, rest = words[0].lower(), words[1].strip() if len(words) > 1 else ""
    if name in _SIMPLE:
        return Wrong(f"{name} takes nothing behind it") if rest else _SIMPLE[name]
    if name == "/list":
        return List(rest)
    if name == "/load":
        return Load(rest) if rest else Wrong("/load needs the id of a session; /list shows them")
    if name == "/cfg":
        key, sign, value = re.split(r"(\s*=\s*|\s+|$)", rest, maxsplit=1)
        return Cfg(key, value if sign else None)
    near = difflib.get_close_matches(name, NAMES, 1, 0.5)
    hint = f"did you mean {near[0]}?" if near else "/help lists the commands"
    return Wrong(f"unknown command {name}; {hint}")


def with_piped(prompt: str, piped: str) -> str:
    """A prompt joined by what was piped in, as a block that the model can tell from it."""
    return f"{prompt}\n\n<stdin>\n{piped}\n</stdin>" if piped.strip() else prompt


def with_schema(prompt: str, schema: Mapping[str, Any]) -> str:
    """A prompt joined by the wish for JSON that satisfies a schema, for servers that cannot be asked; {} for none."""
    wish = "Answer with JSON alone, without a code fence or any other text. It must satisfy this JSON Schema:"
    return f"{prompt}\n\n{wish}\n{json.dumps(schema, ensure_ascii=False)}" if schema else prompt


def is_private(line: str) -> bool:
    """Whether a typed line holds the key and must not be kept in the history or the log."""
    return bool(re.match(r"\s*/cfg\s+api_key\b", line, re.I))


def help_table() -> tuple[Row, ...]:
    """All commands and what they are for."""
    width = max(map(len, USAGE))
    return tuple(Row(f"{usage:<{width}}  ", what) for usage, what in USAGE.items())
