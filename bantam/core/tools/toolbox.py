"""The two tools: what the model is told of them, what it asks for, and what it gets back.

Parse, don't validate: a call becomes an action, or a text that tells the model what was wrong. Nothing
ever runs with arguments that did not parse.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from bantam.core.base import rope
from bantam.core.base.record import dataclass, replace
from bantam.core.base.settings import DEPTH_MAX
from bantam.core.base.texts import clean
from bantam.core.events import CommandEnded, ToolProgress
from bantam.core.messages import Call, call_arguments, call_name, json_object, read_json

QUOTE_MAX = 300  # characters of the model's own arguments that an error quotes
_TOOLS: Mapping[str, tuple[str, str, str]] = {
    "shell_exec": (
        "Run a shell command and return its output and exit status. "
        "Standard input is empty; a command that runs too long is stopped.",
        "command",
        "The command, as for sh -c.",
    ),
    "run_subagent": (
        "Give a task to a child agent with the same tools and an empty conversation, and return its "
        "last message. Several calls side by side run at the same time.",
        "prompt",
        "The whole task: the child sees nothing else.",
    ),
}


@dataclass(frozen=True)
class ShellExec:
    command: str


@dataclass(frozen=True)
class RunSubagent:
    prompt: str


@dataclass(frozen=True)
class Unusable:
    """A call that cannot be run; `why` is its result."""

    why: str


Action = ShellExec | RunSubagent | Unusable


@dataclass(frozen=True)
class Heard:
    """The output of a running command so far: its beginning, and the newest glimpse of the rest."""

    head: tuple[str, ...] = ()
    skipped: int = 0
    glimpse: str = ""


def offered(names: Collection[str]) -> tuple[tuple[str, str, Mapping[str, Any]], ...]:
    """Name, description and the JSON Schema of the arguments of each tool that the model is told of."""
    return tuple(
        (
            name,
            what,
            {
                "type": "object",
                "properties": {member: {"type": "string", "description": meaning}},
                "required": [member],
            },
        )
        for name, (what, member, meaning) in _TOOLS.items()
        if name in names
    )


def parse(call: Call, names: Collection[str], depth: int, cut: bool) -> Action:
    """What a call as it came asks for. `cut`: the answer ended at the token limit."""
    name, raw = call_name(call), call_arguments(call)
    if name not in names or name not in _TOOLS:
        return Unusable(f"error: there is no tool {name!r}; the tools are: {', '.join(names) or 'none'}")
    arguments = json_object(raw)
    member = _TOOLS[name][1]
    if arguments is None:
        if cut:
            return Unusable(
                f"error: the arguments of {name} were cut off by the token limit, so nothing ran; "
                "send a shorter call, or several"
            )
        return Unusable(f"error: the arguments of {name} are not a JSON object: {_why_not(raw)}. {_quote(raw)}")
    if member not in arguments:
        return Unusable(f"error: {name} needs the member {member!r}. {_quote(raw)}")
    value = arguments[member]
    if not isinstance(value, str):
        return Unusable(f"error: {member!r} of {name} must be a string. {_quote(raw)}")
    value = clean(value)  # JSON can spell half a character, which no process can be given
    match name:
        case "shell_exec" if "\0" in value:
            return Unusable("error: the command has a NUL character, which no process can be given")
        case "shell_exec":
            return ShellExec(value)
    if not value.strip():
        return Unusable("error: the prompt is empty; say what the subagent shall do")
    if depth >= DEPTH_MAX:
        return Unusable(f"error: subagents may be nested {DEPTH_MAX} levels deep and this is the last; do it yourself")
    return RunSubagent(value)


def hear(heard: Heard, event: ToolProgress) -> Heard:
    if event.skipped:
        return replace(heard, skipped=event.skipped, glimpse=event.text)
    return replace(heard, head=rope.add(heard.head, event.text))


def result(heard: Heard, ended: CommandEnded, timeout_s: float) -> str:
    """The result of a command: its output, how it ended where that is special, and its status."""
    output = "".join(heard.head) + _gap(ended.skipped) + ended.tail
    notes = []
    if ended.timed_out:
        notes.append(f"[timed out after {round(timeout_s, 2):g} s and was stopped]")
    elif ended.signal:
        notes.append(f"[ended by {ended.signal}]")
    if ended.problem:
        notes.append(f"[{ended.problem}]")
    return _lines(output, notes) + f"\n\nexit: {ended.code}"


def interrupted_result(heard: Heard) -> str:
    """The result of a call that the user interrupted: its output so far, and that it was interrupted."""
    return _lines(_so_far(heard), ["[interrupted by the user]"])


def lost_result(heard: Heard) -> str:
    """The result of a command that ran when Bantam was killed: its output so far, and that its end is unknown."""
    return _lines(_so_far(heard), [LOST])


LOST = "[lost: Bantam was killed while this ran; whether it has finished is unknown, and it was not run again]"


DENIED = "not run: the user denied it"
UNAPPROVED = "not run: it needs an approval, and there is nobody to ask"
CYCLE = "not run: this call was made too often in a row"
NO_TIME = "not run: the time of the turn is over"
NOT_RUN = "not run: interrupted by the user before it started"


def denied(why: str) -> str:
    """The result of a command that a rule forbids."""
    return f"not run: the rules of this folder do not allow it ({why})"


def _so_far(heard: Heard) -> str:
    return "".join(heard.head) + _gap(heard.skipped) + heard.glimpse


def _gap(skipped: int) -> str:
    return f"\n[{skipped} bytes left out here]\n" if skipped else ""


def _lines(output: str, notes: list[str]) -> str:
    gap = "\n" if notes and output and not output.endswith("\n") else ""
    return output + gap + "\n".join(notes)


def _why_not(raw: Any) -> str:
    if not isinstance(raw, str):
        return f"they are {_kind(raw)}"
    try:
        return f"they are {_kind(read_json(raw))}"
    except (ValueError, RecursionError) as problem:
        return str(problem)


def _kind(value: Any) -> str:
    names = {"NoneType": "null", "str": "a string", "list": "a list", "bool": "a boolean"}
    return names.get(type(value).__name__, "a number")


def _quote(raw: Any) -> str:
    text = clean(raw) if isinstance(raw, str) else json.dumps(raw)
    return f"They were: {text[:QUOTE_MAX]}" + ("…" if len(text) > QUOTE_MAX else "")
