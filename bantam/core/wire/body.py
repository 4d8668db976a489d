"""The body of an answer with status 200: bytes -> events, whatever the server chose to send.

A stream of events, one JSON object (also where a stream was asked for), a web page, nothing at all: the
handler feeds the bytes and decides nothing.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bantam.core.base import rope
from bantam.core.base.record import dataclass, replace
from bantam.core.events import Answer, Failure, Fault, Id, ModelChunks, ModelEnded, ModelFailed
from bantam.core.messages import NESTING_MAX, nesting
from bantam.core.wire import failures, sse
from bantam.core.wire.assemble import coalesced, finish_of

PAYLOAD_BYTES_MAX = 64_000_000  # of one event, or of an answer that is not streamed
HEAD_BYTES = 300  # of a body that is no answer: what the failure quotes
LAST_BYTES_MAX = 65_536  # of an event that is looked at before its blank line came
REST_S = 5.0  # for what may follow an answer that is whole: usage, the end mark, the end
DONE = "[DONE]"
WHOLE, PIECE = "the answer", "a chunk of the answer"
_decode = json.JSONDecoder(  # NaN and 1e999 are no numbers of JSON, and must not travel on
    parse_constant=lambda _: None, parse_float=lambda digits: x if math.isfinite(x := float(digits)) else None
).decode


@dataclass(frozen=True)
class Body:
    """How far the body of request `id` was read."""

    id: Id
    kind: Literal["", "json", "events"] = ""
    tail: tuple[bytes, ...] = ()
    head: bytes = b""
    told: bool = False
    finished: bool = False
    """A finish_reason was read: behind it only usage and the end can come."""


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
        too_much = Failure(Fault.ANSWER, f"the answer is larger than {PAYLOAD_BYTES_MAX // 10**6} MB")
        return body, [ModelFailed(body.id, too_much)]
    return _told(replace(body, tail=tail), _events(body.id, payloads))


def finish(body: Body) -> list[Answer]:
    """The events of a body that ended in good order; the last one is final."""
    if body.kind == "json":
        text = b"".join(body.tail).decode(errors="replace").strip()
        read = _read(text, WHOLE)
        if isinstance(read, Failure):
            return [ModelFailed(body.id, read)]
        if not isinstance(read.get("choices"), list):
            return [ModelFailed(body.id, failures.no_answer(text))]
        return [ModelChunks(body.id, (read,)), ModelEnded(body.id, marked=True)]
    if body.finished:
        return _rest(body)
    body, events = _told(body, _events(body.id, sse.finish(body.tail)))
    if events and isinstance(events[-1], (ModelEnded, ModelFailed)):
        return events
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
    return before or soon if _says_end(body.tail) else before


def lapse(body: Body) -> list[Answer]:
    """The events of a body whose deadline has passed, as `finish`; none if it is not whole: then the wait goes on."""
    if body.kind == "json":
        is_whole = _is_json(b"".join(body.tail).decode(errors="replace"))
    else:
        is_whole = body.finished or _says_end(body.tail)
    return finish(body) if is_whole else []


def _says_end(tail: sse.Tail) -> bool:
    """Whether an event whose blank line did not come is the last one: it has a finish_reason, the mark or an error."""
    if not tail or tail[-1][-16:].rstrip()[-1:] not in (b"}", b"]") or sum(map(len, tail)) > LAST_BYTES_MAX:
        return False
    return any(
        payload == DONE
        or (_is_json(payload) and (isinstance(read := _read(payload, PIECE), Failure) or finish_of(read)))
        for payload in sse.finish(tail)
    )


def _rest(body: Body) -> list[Answer]:
    """The last events of a stream that had its finish_reason."""
    body, events = _told(body, _events(body.id, sse.finish(body.tail)))
    return events if events and isinstance(events[-1], ModelEnded) else [*events, ModelEnded(body.id)]


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


def _events(id: Id, payloads: list[str]) -> list[Answer]:
    chunks: list[Mapping[str, Any]] = []
    final: Answer | None = None
    for payload in payloads:
        if payload == DONE:
            final = ModelEnded(id, marked=True)
            break
        read = _read(payload, PIECE)
        if isinstance(read, Failure):
            final = ModelFailed(id, read)
            break
        chunks.append(read)
    events: list[Answer] = [ModelChunks(id, coalesced(chunks))] if chunks else []
    return [*events, final] if final else events


def _read(payload: str, what: str) -> Mapping[str, Any] | Failure:
    """One JSON object, which is `what`, or what is wrong with it."""
    try:
        value = _decode(payload)
    except (ValueError, RecursionError):
        return Failure(Fault.ANSWER, f"{what} is not valid JSON: {failures.short(payload)}")
    if isinstance(value, list) and len(value) == 1:  # Gemini wraps its errors
        value = value[0]
    if not isinstance(value, dict) and what == WHOLE:
        return failures.no_answer(payload)
    if not isinstance(value, dict):
        return Failure(Fault.ANSWER, f"{what} is no JSON object: {failures.short(payload)}")
    if payload.count("[") + payload.count("{") > NESTING_MAX and nesting(value) > NESTING_MAX:
        return Failure(Fault.ANSWER, f"{what} is nested more than {NESTING_MAX} levels deep")
    if value.get("error") or value.get("object") == "error" or _says_error(value):
        return failures.in_body(payload, value)
    return value


def _is_json(text: str) -> bool:
    try:
        _decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _says_error(chunk: Mapping[str, Any]) -> bool:
    choices = chunk.get("choices")
    return isinstance(choices, list) and any(
        isinstance(choice, dict) and choice.get("finish_reason") == "error" for choice in choices
    )
