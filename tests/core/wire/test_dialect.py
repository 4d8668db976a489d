"""The seam: what a dialect may do that Chat Completions has no need of, by one that exists here only.

Its instructions stand apart, a message can be several items or none, a stream's objects are no chunks, and what one
of them means depends on those before.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bantam.core import messages
from bantam.core.base.settings import Config
from bantam.core.effects import CallModel
from bantam.core.events import Failure, Fault, ModelChunks, ModelEnded, ModelFailed
from bantam.core.messages import Message
from bantam.core.wire import assemble, body, chat
from bantam.core.wire.dialect import Dialect, Listed, Sent
from bantam.core.wire.dialects import CHAT, DIALECTS, PATHS
from bantam.shell.net.model import Bodies

pytestmark = pytest.mark.core
ID = (1,)
CALL = {"id": "a", "type": "function", "function": {"name": "shell_exec", "arguments": "{}"}}
SAID: tuple[Message, ...] = (
    messages.system("Be brief."),
    messages.user("hello"),
    {"role": "assistant", "content": "yes", "tool_calls": [CALL, {**CALL, "id": "b"}]},
)


class Items:
    """A dialect whose requests are items, and whose answers are events of a type."""

    PATH = "/items"
    HEADERS: Mapping[str, str] = {"X-Items": "1"}
    MADE = ("input",)

    def parameters(self, config: Config, answers: bool) -> Mapping[str, Any]:
        return {"model": config.model, "store": False}

    def tool(self, name: str, description: str, schema: Mapping[str, Any]) -> Message:
        return {"name": name, "schema": schema}

    def sent(self, request: CallModel) -> Sent:
        first, rest = request.messages[0], request.messages[1:]
        members = {**request.parameters, "instructions": messages.text_of(first)}
        return Sent(members, (Listed("input", rest, self._items), Listed("tools", request.tools, lambda tool: (tool,))))

    def _items(self, message: Message) -> list[Mapping[str, Any]]:
        text = messages.text_of(message)
        own: list[Mapping[str, Any]] = [{"say": text}] if text else []
        return own + [{"call": messages.call_id(call)} for call in messages.calls_of(message)]

    def failure(self, text: str, value: Mapping[str, Any]) -> Failure | None:
        return Failure(Fault.ANSWER, text) if value.get("type") == "failed" else None

    def whole(self, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self._chunk(value["text"], "stop") if "text" in value else None

    def chunks(
        self, memory: int | None, values: Sequence[Mapping[str, Any]]
    ) -> tuple[int, tuple[Mapping[str, Any], ...]]:
        """The whole text stands in the last event again: it counts only where no piece came before."""
        told, out = memory or 0, list[Mapping[str, Any]]()
        for value in values:
            match value:
                case {"type": "delta", "text": text}:
                    told += 1
                    out.append(self._chunk(text))
                case {"type": "done", "text": text}:
                    out.append(self._chunk("" if told else text, "stop"))
        return told, tuple(out)

    def _chunk(self, text: str, finish: str | None = None) -> Mapping[str, Any]:
        return {"choices": [{"delta": {"content": text}, "finish_reason": finish}]}


ITEMS: Dialect = Items()


def event(**value: Any) -> bytes:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode()


def answer(*parts: bytes) -> tuple[str, str, Any]:
    """Text, finish_reason and final event of a body in these pieces."""
    state, partial, final = body.Body(ID, ITEMS), assemble.Partial(), None
    for part in (*parts, None):
        state, events = (state, body.finish(state)) if part is None else body.feed(state, part)
        for told in events:
            for chunk in told.chunks if isinstance(told, ModelChunks) else ():
                partial = assemble.merge(partial, chunk)
            final = None if isinstance(told, ModelChunks) else told
        if final:
            break
    return messages.text_of(assemble.finished(partial)), partial.finish, final


def test_the_table_has_each_dialect_under_its_name() -> None:
    assert DIALECTS[CHAT] is chat
    assert len({*PATHS}) == len(DIALECTS)
    assert Config().api in DIALECTS


@given(st.lists(st.integers(1, 9), max_size=5))
def test_objects_that_are_no_chunks_become_some(sizes: list[int]) -> None:
    whole = event(type="created") + event(type="delta", text="he") + event(type="delta", text="llo")
    whole += event(type="done", text="hello")
    parts, at = list[bytes](), 0
    for size in sizes:
        parts.append(whole[at : at + size])
        at += size
    assert answer(*parts, whole[at:]) == ("hello", "stop", ModelEnded(ID))


def test_what_a_dialect_remembers_is_of_this_answer() -> None:
    assert answer(event(type="created"), event(type="done", text="hello"))[:2] == ("hello", "stop")


def test_the_rest_is_as_in_any_dialect() -> None:
    failed = event(type="failed", why="no")
    final = answer(event(type="delta", text="h"), b"data: ping\n\n", failed)[2]
    assert isinstance(final, ModelFailed)
    assert '"why": "no"' in final.failure.text
    assert answer(b'{"text": "hello"}') == ("hello", "stop", ModelEnded(ID, marked=True))
    for other in (b'{"choices": []}', event(type="created"), b"<html>"):
        assert isinstance(answer(other)[2], ModelFailed)
    state, events = body.feed(body.Body(ID, ITEMS), event(type="done", text="hello")[:-2])
    assert body.deadline(state, events, None, 0.0, 300.0) == body.REST_S


def test_a_message_is_written_once_whatever_items_it_becomes() -> None:
    bodies, written = Bodies(), list[Message]()

    def items(message: Message) -> list[Mapping[str, Any]]:
        written.append(message)
        return ITEMS.sent(request).lists[0].items(message)  # type: ignore[return-value]

    said = (*SAID, {"role": "assistant", "content": ""})
    for more in ((), (messages.user("go on"),)):
        request = CallModel(ID, said + more, (), {"store": False}, 300.0)
        sent = ITEMS.sent(request)
        spied = Sent(sent.members, tuple(Listed(one.name, one.parts, items) for one in sent.lists))
        data = json.loads(b"".join(bodies.of(request, spied)))
    assert data == {
        "store": False,
        "instructions": "Be brief.",
        "input": [{"say": "hello"}, {"say": "yes"}, {"call": "a"}, {"call": "b"}, {"say": "go on"}],
        "tools": [],
    }
    assert len(written) == len({id(message) for message in written}) == 4


def test_a_conversation_may_change_its_dialect() -> None:
    bodies = Bodies()
    for api, dialect in (("chat", chat), ("items", ITEMS), ("chat", chat)):
        request = CallModel(ID, SAID, (), {}, 300.0, None, api)
        data = json.loads(b"".join(bodies.of(request, dialect.sent(request))))
        assert data.get("messages", [*SAID]) == [*SAID]
        assert len(data.get("input", "four")) == 4


@pytest.mark.parametrize("parameters", [{}, {"model": "m"}])
@pytest.mark.parametrize("lists", [(), (Listed("a", (), lambda part: (part,)),)])
def test_a_body_is_json_whatever_is_empty(parameters: Mapping[str, Any], lists: tuple[Listed, ...]) -> None:
    request = CallModel(ID, (), (), parameters, 300.0)
    data = json.loads(b"".join(Bodies().of(request, Sent(parameters, lists))))
    assert data == {**parameters, **{one.name: [] for one in lists}}
