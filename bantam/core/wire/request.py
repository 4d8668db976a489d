"""What is sent for a call to the model, by what it is for."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, assert_never

from bantam.core.base.record import replace
from bantam.core.base.settings import Config
from bantam.core.effects import CallModel
from bantam.core.events import Id
from bantam.core.messages import Message
from bantam.core.state import Agent, Purpose
from bantam.core.tools import toolbox
from bantam.core.tools.table import BUILT_IN, Toolbox
from bantam.core.window import context
from bantam.core.wire.dialects import DIALECTS

NEEDED = frozenset({"model", "stream"})  # no server can do without them


def call(
    agent: Agent,
    id: Id,
    purpose: Purpose,
    config: Config,
    tools: Toolbox,
    withheld: frozenset[str],
    left_s: float | None,
) -> CallModel:
    """The request of an agent: the conversation, or the question about it. Tools and the schema are for replies."""
    match purpose:
        case "reply":
            sent = agent.messages
        case "compact" | "shrink":
            sent = context.compact_request(agent.messages, purpose == "compact", agent.squeezed, config.context_window)
        case "summary":
            sent = context.summary_request(agent.messages)
        case never:
            assert_never(never)
    told = offered(config.api, config.tools, tools) if purpose == "reply" else ()
    asked = parameters(config, withheld, answers=purpose == "reply" and not agent.path)
    return CallModel(id, sent, told, asked, config.timeout, left_s, config.api)


def offered(api: str, names: tuple[str, ...], tools: Toolbox = BUILT_IN) -> tuple[Message, ...]:
    """The tools of these names as a dialect tells of them: the same objects each time, for they are written once."""
    return tuple(_told(api, name, what, json.dumps(schema)) for name, what, schema in toolbox.offered(names, tools))


@cache
def _told(api: str, name: str, what: str, schema: str) -> Message:
    return DIALECTS[api].tool(name, what, json.loads(schema))


def squeezed(agent: Agent, purpose: Purpose, config: Config) -> Agent | None:
    """The agent as it asks for a summary in fewer words, for a server that says there were too many.

    None if it does not ask for one, or has no shorter way to.
    """
    if purpose not in ("compact", "shrink"):
        return None
    level = context.squeeze(agent.messages, purpose == "compact", agent.squeezed, config.context_window)
    return None if level is None else replace(agent, squeezed=level)


def parameters(config: Config, withheld: frozenset[str], answers: bool = False) -> Mapping[str, Any]:
    """The members of a request body beside messages and tools. `answers`: what comes may be the turn's answer."""
    made = DIALECTS[config.api].parameters(config, answers)
    return {key: value for key, value in {**made, **config.forwarded}.items() if key not in withheld}


def spare(config: Config, withheld: frozenset[str]) -> Collection[str]:
    """The parameters that a request may do without, for a server that refuses one by name."""
    return parameters(config, withheld, answers=True).keys() - NEEDED
