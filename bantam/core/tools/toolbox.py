"""What a model is told of its tools, what its calls ask for, and what it gets back.

Parse, don't validate: a call becomes an action, or a text that tells the model what was wrong. Nothing
ever runs with arguments that did not parse.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from bantam.core.base import rope
from bantam.core.base.record import dataclass, replace
from bantam.core.base.settings import DEPTH_MAX
from bantam.core.base.texts import clean
from bantam.core.events import CommandEnded, ToolProgress
from bantam.core.messages import NESTING_MAX, Call, call_arguments, call_name, json_object, map_text, nesting, read_json
from bantam.core.tools import arguments, table
from bantam.core.tools.table import BUILT_IN, Kind, Tool, Toolbox

QUOTE_MAX = 300  # characters of the model's own arguments that an error quotes


@dataclass(frozen=True)
class Command:
    """A command line for the shell."""

    line: str


@dataclass(frozen=True)
class Task:
    """A prompt for a subagent."""

    prompt: str


@dataclass(frozen=True)
class Function:
    """A call of a tool of kind `function`."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Unusable:
    """A call that cannot be run; `why` is its result."""

    why: str


Action = Command | Task | Function | Unusable


@dataclass(frozen=True)
class Heard:
    """The output of a running tool so far: its beginning, and the newest glimpse of the rest."""

    head: tuple[str, ...] = ()
    skipped: int = 0
    glimpse: str = ""


def parse(call: Call, names: Iterable[str], depth: int, cut: bool, toolbox: Toolbox = BUILT_IN) -> Action:
    """What a call as it came asks for. `names`: the tools that are on; `cut`: the answer ended at the token limit."""
    name, raw = call_name(call), call_arguments(call)
    offered = table.chosen(toolbox, names)
    tool = next((tool for tool in offered if tool.name == name), None)
    if tool is None:
        known = ", ".join(table.names(offered)) or "none"
        return Unusable(f"error: there is no tool {name!r}; the tools are: {known}")
    given = json_object(raw)
    if given is None and cut:
        return Unusable(
            f"error: the arguments of {name} were cut off by the token limit, so nothing ran; "
            "send a shorter call, or several"
        )
    if given is None:
        return Unusable(f"error: the arguments of {name} are not a JSON object: {_why_not(raw)}. {_quote(raw)}")
    if tool.kind is Kind.FUNCTION:
        if nesting(given) > NESTING_MAX:
            return Unusable(f"error: the arguments of {name} are nested more than {NESTING_MAX} levels deep")
        return Function(name, map_text(given, clean))
    if wrong := arguments.wrong(name, tool.parameters, given):
        return Unusable(f"error: {wrong}. {_quote(raw)}")
    value = clean(given[tool.parameters["required"][0]])  # JSON can spell half a character, which nobody can be given
    return _command(value) if tool.kind is Kind.COMMAND else _task(value, depth)


def _command(line: str) -> Command | Unusable:
    if "\0" in line:
        return Unusable("error: the command has a NUL character, which no process can be given")
    return Command(line)


def _task(prompt: str, depth: int) -> Task | Unusable:
    if not prompt.strip():
        return Unusable("error: the prompt is empty; say what the subagent shall do")
    if depth >= DEPTH_MAX:
        return Unusable(f"error: subagents may be nested {DEPTH_MAX} levels deep and this is the last; do it yourself")
    return Task(prompt)


def judged(tool: Tool | None, action: Action) -> str | None:
    """The line that `approve` is asked about; None for what it does not judge.

    A call that is no command is put into words of a shell, `NAME 'ARGUMENTS'`, so that rules read it as one.
    """
    if tool is None or not tool.judged:
        return None
    match action:
        case Command(line):
            return line
        case Function(name, given):
            return f"{name} {_quoted(json.dumps(given, ensure_ascii=False, sort_keys=True))}"
        case Task(prompt):
            return f"{tool.name} {_quoted(prompt)}"
        case Unusable():
            return None
        case never:
            assert_never(never)


def _quoted(text: str) -> str:
    """One word of a shell, whatever is in it."""
    return "'" + text.replace("'", "'\\''") + "'"


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
    """The result of a call that ran when Bantam was killed: its output so far, and that its end is unknown."""
    return _lines(_so_far(heard), [LOST])


LOST = "[lost: Bantam was killed while this ran; whether it has finished is unknown, and it was not run again]"


DENIED = "not run: the user denied it"
UNAPPROVED = "not run: it needs an approval, and there is nobody to ask"
CYCLE = "not run: this call was made too often in a row"
NO_TIME = "not run: the time of the turn is over"
NOT_RUN = "not run: interrupted by the user before it started"


def denied(why: str) -> str:
    """The result of a call that a rule forbids."""
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
