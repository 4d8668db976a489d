"""What a tool is, as data, and the tools that are built in. The rest of Bantam learns a tool's name from here alone.

A session has its toolbox; the setting `tools` names those of it that a model is offered. Who adds a tool of kind
`function` puts a record behind `BUILT_IN`, its name into the setting, and gives a handler for `RunTool`.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from bantam.core.base.record import dataclass


class Kind(StrEnum):
    """What becomes of a call."""

    COMMAND = "command"  # its one string is a command line: `RunShell`
    AGENT = "agent"  # its one string is a subagent's prompt: `Spawn`
    FUNCTION = "function"  # whatever else: `RunTool`

    def __repr__(self) -> str:
        return f"Kind.{self.name}"


@dataclass(frozen=True)
class Tool:
    """`parameters` is the JSON Schema of its arguments. Those of a function are its own to check."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    kind: Kind = Kind.FUNCTION
    side_by_side: bool = False
    """Adjacent calls of tools that may run side by side do, whatever their names."""
    judged: bool = True
    """Whether `approve` is asked: about a command's line, about `NAME 'ARGUMENTS'` of another. If not, none asks."""


Toolbox = tuple[Tool, ...]


def _one_string(member: str, meaning: str) -> Mapping[str, Any]:
    properties = {member: {"type": "string", "description": meaning}}
    return {"type": "object", "properties": properties, "required": [member]}


BUILT_IN: Toolbox = (
    Tool(
        "shell_exec",
        "Run a shell command and return its output and exit status. "
        "Standard input is empty; a command that runs too long is stopped.",
        _one_string("command", "The command, as for sh -c."),
        Kind.COMMAND,
    ),
    Tool(
        "run_subagent",
        "Give a task to a child agent with the same tools and an empty conversation, and return its "
        "last message. Several calls side by side run at the same time.",
        _one_string("prompt", "The whole task: the child sees nothing else."),
        Kind.AGENT,
        side_by_side=True,
        judged=False,  # its own commands are, one by one
    ),
)


def names(toolbox: Iterable[Tool]) -> tuple[str, ...]:
    return tuple(tool.name for tool in toolbox)


def chosen(toolbox: Toolbox, wanted: Iterable[str]) -> Toolbox:
    """The tools of these names, in the order of the toolbox."""
    wanted = {*wanted}
    return tuple(tool for tool in toolbox if tool.name in wanted)
