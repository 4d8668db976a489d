"""The body of an answer with status 200: bytes -> events, whatever the server chose to send, in any dialect.

A stream of events, one JSON object (also where a stream was asked for), a web page, nothing at all: the
handler feeds the bytes and decides nothing.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bantam.core.base import rope
from bantam.core.base.record import dataclass, replace
from bantam.core.events import Answer, Failure, Fault, Id, ModelChunks, ModelEnded, ModelFailed
from bantam.core.messages import NESTING_MAX, nesting
from bantam.core.wire import failures, sse
from bantam.core.wire.assemble import finish_of
from bantam.core.wire.dialect import Dialect

PAYLOAD_BYTES_MAX = 64_000_000  # of one event, or of an answer that is not streamed
HEAD_BYTES = 300  # of a body that is no answer: what the failure quotes
LAST_BYTES_MAX = 65_536  # of an event that is looked at before its blank line came
REST_S = 5.0  # for what may follow an answer that is whole: usage, the end mark, the end
DONE = "[DONE]"
WHOLE, PIECE = "the answer", "a chunk of the answer"
_decode = json.JSONDecoder(  # NaN and 1e999 are no numbers of JSON, and must not travel on
    parse_constant=lambda _: None, parse_float=lambda digits: x if math.isfinite(x := float(digits)) else None
).decode
_WRAPPED = re.compile(r"(?:\ufeff|data:|[ \t])+")  # what a gateway may have put before a line once more
_BEGINS_JSON = re.compile(r"\{|\[(?![A-Za-z])")  # as an object or a list does, and a word in brackets does not


@dataclass(frozen=True)
class Body:
    """How far the body of request `id` was read."""

    id: Id
    dialect: Dialect
    kind: Literal["", "json", "events"] = ""
    tail: tuple[bytes, ...] = ()
    head: bytes = b""
    told: bool = False
    finished: bool = False
    """A finish_reason was read: behind it only usage and the end can come."""
    words: str = ""
    """What events behind the last chunk said that is no JSON: a keep-alive, or why there is no answer."""
    memory: Any = None
    """The dialect's own."""


def feed(body: Body, data: bytes) -> tuple[Body, list[Answer]]:
    """The events of one network read. When the last one is final, the body is over: read no further."""
    if not body.kind:
        data = data.lstrip(b"\xef\xbb\xbf \t\r\n")  # byte by byte, since a BOM can come in pieces
        if not data:
            return body, []
        body = replace(body, kind="json" if data[:1] in b"{[" else "events")
    if len(body.head) < HEAD_BYTES:
        body = replace(body, head=(body.head + data)[:HEAD_BYTES])
    if body.kind == "json":
        tail, payloads = rope.add(body.tail, data), list[str]()
    else:
        tail, payloads = sse.feed(body.tail, data)
    if sum(map(len, tail)) > PAYLOAD_BYTES_MAX:
        too_much = Failure(Fault.LIMIT, f"the answer is larger than {PAYLOAD_BYTES_MAX // 10**6} MB")
        return _told(body, [ModelFailed(body.id, too_much)])
    return _taken(body if tail == body.tail else replace(body, tail=tail), payloads)


def finish(body: Body) -> list[Answer]:
    """The events of a body that ended in good order; the last one is final."""
    if body.kind == "json":
        return [*_whole(body)]
    finished = body.finished
    body, events = _taken(body, sse.finish(body.tail))
    if finished:  # whatever is wrong with the rest
        return events if events and isinstance(events[-1], ModelEnded) else [*events, ModelEnded(body.id)]
    if events and isinstance(events[-1], (ModelEnded, ModelFailed)):
        return events
    if body.words and not body.finished:
        return [*events, ModelFailed(body.id, failures.words_alone(body.words, body.told))]
    if not body.told:
        return [ModelFailed(body.id, failures.no_answer(body.head.decode(errors="replace")))]
    return [*events, ModelEnded(body.id)]


def deadline(body: Body, events: Sequence[Answer], before: float | None, now: float, timeout_s: float) -> float | None:
    """The time at which the wait for the rest of an answer ends; None: only silence of `timeout_s` ends it.

    `events` are those of the last read, `before` is the deadline until then. Some servers send neither a mark nor an
    end behind their finish_reason and keep the connection open, and comments that keep it alive are no reason to wait.
    It comes before the silence, so that who is silent behind a whole answer has answered.
    """
    soon = now + min(REST_S, timeout_s / 2)
    if body.kind == "json":
        end = body.tail[-1][-16:].rstrip()[-1:] if body.tail else b""
        return soon if end in (b"}", b"]") else None
    if body.finished:
        return soon if events else before
    return before or soon if _says_end(body) else before


def lapse(body: Body) -> list[Answer]:
    """The events of a body whose deadline has passed, as `finish`; none if it is not whole: then the wait goes on."""
    if body.kind == "json":
        is_whole = _is_json(b"".join(body.tail).decode(errors="replace"))
    else:
        is_whole = body.finished or _says_end(body)
    return finish(body) if is_whole else []


def _says_end(body: Body) -> bool:
    """Whether an event whose blank line did not come is the last one: it has a finish_reason, the mark or an error."""
    tail = body.tail
    if not tail or tail[-1][-16:].rstrip()[-1:] not in (b"}", b"]") or sum(map(len, tail)) > LAST_BYTES_MAX:
        return False
    payload = _bare("".join(sse.finish(tail)))
    if payload == DONE or not _is_json(payload):
        return payload == DONE
    after, events = _taken(body, [payload])
    return after.finished or any(isinstance(event, ModelFailed) for event in events)


def _whole(body: Body) -> tuple[Answer, ...]:
    """The events of an answer that is not streamed."""
    text = b"".join(body.tail).decode(errors="replace").strip()
    read = _read(body.dialect, text, WHOLE)
    if isinstance(read, Failure):
        return (ModelFailed(body.id, read),)
    chunk = body.dialect.whole(read)
    if chunk is None:
        return (ModelFailed(body.id, failures.no_answer(text)),)
    return ModelChunks(body.id, (chunk,)), ModelEnded(body.id, marked=True)


def _taken(body: Body, payloads: Sequence[str]) -> tuple[Body, list[Answer]]:
    """The body after these events of its stream, and what they say."""
    objects: list[Mapping[str, Any]] = []
    final: Answer | None = None
    words = body.words
    for payload in payloads:
        if payload[0] != "{":
            bare = _bare(payload)
            if bare == DONE:
                final = ModelEnded(body.id, marked=True)
                break
            if not bare:  # no chunk, and no piece of one: it is nobody's answer
                words = words if payload in words else f"{words}\n{payload}"[:HEAD_BYTES]
                continue
            payload = bare
        read = _read(body.dialect, payload, PIECE)
        if isinstance(read, Failure):
            final = ModelFailed(body.id, read)
            break
        objects.append(read)
        words = ""
    if words != body.words:
        body = replace(body, words=words)
    memory, chunks = body.dialect.chunks(body.memory, objects)
    if memory is not body.memory:
        body = replace(body, memory=memory)
    events: list[Answer] = [ModelChunks(body.id, chunks)] if chunks else []
    return _told(body, [*events, final] if final else events)


def _told(body: Body, events: list[Answer]) -> tuple[Body, list[Answer]]:
    """The body after these events. Whatever is wrong behind a finish_reason does not spoil what was whole before it."""
    if not events:
        return body, events
    chunks = events[0].chunks if isinstance(events[0], ModelChunks) else ()
    finished = body.finished or any(map(finish_of, chunks))
    if not body.told or finished != body.finished:
        body = replace(body, told=True, finished=finished)
    if finished and isinstance(events[-1], ModelFailed):
        events = [*events[:-1], ModelEnded(body.id)]
    return body, events


def _bare(payload: str) -> str:
    """The JSON or the end mark that an event brings, without lines of words before it; "" for words alone.

    A gateway may rewrap a keep-alive as data (`data: ping`, `data: : comment`). A chunk is an object, or a list that
    holds one: what begins as such and cannot be read is damaged, what begins otherwise is no piece of the answer.
    `null`, numbers and strings are none either.
    """
    lines = payload.split("\n")
    for at, line in enumerate(lines):
        wrap = _WRAPPED.match(line)
        line = line[wrap.end() :] if wrap else line
        if line == DONE or _BEGINS_JSON.match(line):
            return "\n".join([line, *lines[at + 1 :]])
    return ""


def _read(dialect: Dialect, payload: str, what: str) -> Mapping[str, Any] | Failure:
    """One JSON object, which is `what`, or what is wrong with it."""
    try:
        value = _decode(payload)
    except ValueError:
        return Failure(Fault.ANSWER, f"{what} is not valid JSON: {failures.short(payload)}")
    except RecursionError:
        return _too_deep(what)
    if isinstance(value, list) and len(value) == 1:  # Gemini wraps its errors
        value = value[0]
    if not isinstance(value, dict) and what == WHOLE:
        return failures.no_answer(payload)
    if not isinstance(value, dict):
        return Failure(Fault.ANSWER, f"{what} is no JSON object: {failures.short(payload)}")
    if payload.count("[") + payload.count("{") > NESTING_MAX and nesting(value) > NESTING_MAX:
        return _too_deep(what)
    return dialect.failure(payload, value) or value


def _too_deep(what: str) -> Failure:
    return Failure(Fault.LIMIT, f"{what} is nested more than {NESTING_MAX} levels deep")


def _is_json(text: str) -> bool:
    try:
        _decode(text)
    except (ValueError, RecursionError):
        return False
    return True
