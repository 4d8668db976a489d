"""The dialect of `/chat/completions`. Messages and chunks are kept in its form, so little is left to do."""

from collections.abc import Mapping, Sequence
from typing import Any

from bantam.core.base.settings import Config
from bantam.core.effects import CallModel
from bantam.core.events import Failure
from bantam.core.messages import Message
from bantam.core.wire import failures
from bantam.core.wire.assemble import coalesced
from bantam.core.wire.dialect import Listed, Sent

PATH = "/chat/completions"
HEADERS: Mapping[str, str] = {}
MADE = ("messages", "stream_options")


def parameters(config: Config, answers: bool) -> Mapping[str, Any]:
    """The model, whether to stream (then with usage, which comes of itself otherwise), and the schema of an answer."""
    made: dict[str, Any] = {"model": config.model, "stream": config.stream}
    if config.schema and answers:
        named = {"name": "answer", "schema": config.schema}
        made["response_format"] = {"type": "json_schema", "json_schema": named}
    if config.stream:
        made["stream_options"] = {"include_usage": True}
    return made


def tool(name: str, description: str, schema: Mapping[str, Any]) -> Message:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def sent(request: CallModel) -> Sent:
    lists = (Listed("messages", request.messages, _itself), Listed("tools", request.tools, _itself))
    return Sent(request.parameters, lists if request.tools else lists[:1])


def _itself(part: Message) -> tuple[Message]:
    return (part,)


def failure(text: str, value: Mapping[str, Any]) -> Failure | None:
    """An object with an error in it, or in place of it; or a choice whose finish_reason is one (OpenRouter)."""
    if value.get("error") or value.get("object") == "error":
        return failures.in_body(text, value)
    choices = value.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("finish_reason") == "error":
            return failures.in_body(text, value)
    return None


def whole(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return value if isinstance(value.get("choices"), list) else None


def chunks(memory: None, values: Sequence[Mapping[str, Any]]) -> tuple[None, tuple[Mapping[str, Any], ...]]:
    return memory, coalesced(values)
