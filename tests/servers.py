"""What servers say: answers, failures and their bytes, as dice decide.

The dice are hypothesis or a seeded generator, so the state machine and `scripts/vopr.py` meet the same
servers. Zero is always the simplest choice, so that hypothesis shrinks towards the plain case.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from bantam.core.events import Answer, Failure, Fault, Id, ModelChunks, ModelEnded, ModelFailed
from bantam.core.messages import read_json
from bantam.core.tools.table import BUILT_IN, Tool
from bantam.core.wire import body, chat
from bantam.core.wire.assemble import finish_of

T = TypeVar("T")
Json = Any

THOUGHT = "жѫщѯ"  # a thought is written in letters that nothing else uses, so each byte of it can be traced
WORDS = (
    "a", "", "ok ", "\n", "two words", "é", "\u2028", "𝄞", "日本", "\x1b[31mred", "\r\n", "\t", '"', "\\", "{}",
    "[DONE]", "data: x", "\n\n", "e\u0301", "\x00", "\u202e", "content", "</think>",
)  # fmt: skip
KEYS = ("note", "content", "text", "id", "index", "name", "type", "extra_content", "signature", "role", "$tuple")
LOOK_UP = Tool(
    "look_up",
    "Looks something up. A tool of kind `function` that exists in tests alone.",
    {"type": "object", "properties": {"word": {"type": "string"}}},
    side_by_side=True,
)
TOOLBOX = (*BUILT_IN, LOOK_UP)
COMMANDS = ("ls", "true", "echo hi", "cat <<E\nx\nE\n", "sleep 9; echo é")
PROMPTS = ("look around", "do it\nthen say so", "日本")
WORDS_OF_FUNCTIONS = ("x", "it's", {"a": [1.5, None]}, 3)  # it takes any JSON object and judges for itself
ARGUMENTS: Mapping[str, tuple[str, Sequence[Json]]] = {
    "shell_exec": ("command", COMMANDS),
    "run_subagent": ("prompt", PROMPTS),
    "look_up": ("word", WORDS_OF_FUNCTIONS),
}
FINISHES = ("stop", "tool_calls", "length", "content_filter", "function_call", "end_turn", "eos", "STOP", "unknown")
PARAMETERS = ("temperature", "stop", "max_tokens", "reasoning_effort", "top_k")


class Dice(Protocol):
    """Where chance comes from."""

    def number(self, most: int) -> int:
        """One of 0, 1, ..., `most`; 0 is the plainest choice."""
        ...


def pick(dice: Dice, options: Sequence[T]) -> T:
    return options[dice.number(len(options) - 1)]


def chance(dice: Dice, percent: int) -> bool:
    return dice.number(99) >= 100 - percent


def text(dice: Dice, words: Sequence[str] = WORDS) -> str:
    return "".join(pick(dice, words) for _ in range(1 + dice.number(3)))


def json_value(dice: Dice, levels: int = 3) -> Json:
    """Any JSON, with members that look like those of a message."""
    kind = dice.number(8 if levels else 5)
    if kind < 6:
        return pick(dice, (None, True, 0, -1.5, 10**20, "", "x", "call_1", text(dice)))
    if kind == 6:
        return [json_value(dice, levels - 1) for _ in range(dice.number(2))]
    return {pick(dice, KEYS): json_value(dice, levels - 1) for _ in range(dice.number(3))}


def facts(dice: Dice) -> dict[str, Json]:
    """Members that Bantam does not know: whatever they hold must come back."""
    if not chance(dice, 30):
        return {}
    return {pick(dice, ("extra_content", "reasoning_details", "annotations", "x")): json_value(dice)}


# --- an answer, before it is bytes


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Json
    id: str = ""
    extra: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What a model means to say, whatever its server makes of it."""

    text: str = ""
    thought: str = ""
    calls: tuple[Call, ...] = ()
    extra: dict[str, Json] = field(default_factory=dict)
    thought_keys: tuple[str, ...] = ("reasoning_content",)
    """The names it has; some servers send it under two."""
    finish: str = "stop"
    usage: tuple[int, int] | None = None


def thought(dice: Dice) -> str:
    return "".join(pick(dice, THOUGHT) for _ in range(dice.number(5)))


def good_call(dice: Dice, name: str) -> Call:
    member, values = ARGUMENTS[name]
    arguments: Json = {member: pick(dice, values)}
    if chance(dice, 20):
        arguments["extra"] = json_value(dice, 1)
    if chance(dice, 10):
        return Call(name, arguments, extra=facts(dice))
    return Call(name, json.dumps(arguments, ensure_ascii=chance(dice, 50)), extra=facts(dice))


def bad_call(dice: Dice) -> Call:
    """A call that must not run: an unknown tool, or arguments that cannot be used (a function takes any object)."""
    name = pick(dice, ("shell_exec", "run_subagent", "rm_rf", "", "shell exec", "n" * 99, "look_up"))
    nonsense: Sequence[Json] = (
        "", "{", "null", "[]", '["ls"]', "3", '"ls"', "{}", '{"command": 3}', '{"prompt": " "}', "[" * 2000,
        None, {}, [], ["ls"], 3, {"command": None}, '{"command": "ls"', '{"command": "ls"}}', '{"command": NaN}',
        '{"command": "a\\u0000b"}', '{"command": "\\ud800"}', '{"command": "ls",}', '{command: "ls"}',
        '{"command": ["ls"]}', '"{\\"command\\": \\"ls\\"}"', '```json\n{"command": "ls"}\n```', '{"cmd": "ls"}', "ls",
        True, "\x00", "{'command': 'ls'}",
    )  # fmt: skip
    return Call(name, pick(dice, nonsense))


def reply(dice: Dice, hostile: bool = False) -> Reply:
    """A reply of a good or a confused model. `hostile`: it always asks for more."""
    kind = 3 + dice.number(4) if hostile else dice.number(9)
    shell, child, function = ("shell_exec",), ("run_subagent",), ("look_up",)
    names: Sequence[str] = ()
    match kind:
        case 2 | 3:
            names = shell * (1 + dice.number(2))
        case 4 | 5:
            names = child * (1 + dice.number(2)) + function * dice.number(1)
        case 6 | 7:
            names = tuple(pick(dice, (*shell, *child, *function)) for _ in range(2 + dice.number(2)))
    calls = tuple(bad_call(dice) if chance(dice, 15) else good_call(dice, name) for name in names)
    words = text(dice) if not calls or chance(dice, 40) else ""
    if kind == 8:  # neither text nor calls, perhaps a thought
        words = pick(dice, ("", " ", "\n"))
    calls = tuple(Call(c.name, c.arguments, f"call_{dice.number(3)}{n}", c.extra) for n, c in enumerate(calls))
    return Reply(
        words if kind == 8 or calls or words.strip() else "fine" + words,
        thought(dice) if chance(dice, 30) or kind == 8 else "",
        calls,
        facts(dice),
        pick(dice, (("reasoning_content",), ("reasoning",), ("reasoning", "reasoning_content"))),
        pick(dice, FINISHES) if chance(dice, 20) else "tool_calls" if calls else "stop",
        (dice.number(1000), dice.number(100)) if chance(dice, 60) else None,
    )


# --- an answer as chunks

Index = Literal["own", "zero", "none"]
Ids = Literal["own", "repeated", "none", "same", "empty"]


@dataclass(frozen=True)
class Style:
    """How a server writes its tool calls."""

    index: Index = "own"
    first: int = 0
    """The index of the first call, where each has its own."""
    ids: Ids = "own"
    whole: bool = False
    """Each call in one delta."""
    together: bool = False
    """All calls in one delta."""

    def keeps_calls_apart(self, reply: Reply) -> bool:
        """Whether anyone could tell where one call ends and the next begins."""
        if len(reply.calls) < 2 or self.index == "own":
            return True
        readable = all(_holds_object(call.arguments) for call in reply.calls)
        named = all(call.name for call in reply.calls)
        if self.ids in ("own", "repeated"):
            return named
        return named and (readable or self.together)


def _holds_object(arguments: Json) -> bool:
    try:
        return isinstance(read_json(arguments) if isinstance(arguments, str) else arguments, dict)
    except (ValueError, RecursionError):
        return False


def style(dice: Dice) -> Style:
    if not chance(dice, 50):
        return Style(whole=chance(dice, 50))
    together = chance(dice, 20)
    return Style(
        pick(dice, ("own", "zero", "none")),
        pick(dice, (0, 1, 7)),
        pick(dice, ("own", "repeated", "none", "same", "empty")),
        together or chance(dice, 50),
        together,
    )


def cut_text(dice: Dice, whole: str) -> list[str]:
    """The text in pieces; now and then a cut goes through the middle of a surrogate pair."""
    units = whole.encode("utf-16-le", "surrogatepass")
    pieces: list[str] = []
    size = len(units) // 2
    while size and len(pieces) < 5:
        at = 2 * (size if len(pieces) == 4 else 1 + dice.number(size - 1))
        pieces.append(units[:at].decode("utf-16-le", "surrogatepass"))
        units, size = units[at:], size - at // 2
    return pieces


def _calls_deltas(dice: Dice, reply: Reply, style: Style) -> list[list[Json]]:
    """For each call the items that tell of it; the first one names it."""
    told = []
    for number, call in enumerate(reply.calls):
        id = {"none": None, "same": reply.calls[0].id, "empty": ""}.get(style.ids, call.id)
        index = number + style.first if style.index == "own" else 0
        place: dict[str, Json] = {} if style.index == "none" else {"index": index}
        pieces: list[Json] = [call.arguments]
        if not style.whole and isinstance(call.arguments, str):
            pieces = cut_text(dice, call.arguments) or [""]
        first = {**place, "type": "function", "function": {"name": call.name, "arguments": pieces[0]}, **call.extra}
        items = [first if id is None else {**first, "id": id}]
        for piece in pieces[1:]:
            again: dict[str, Json] = pick(dice, ({}, {}, {"id": None}, {"id": ""}))
            again = {"id": id} if style.ids == "repeated" else again
            named: dict[str, Json] = pick(dice, ({}, {}, {"name": None}, {"name": ""}))
            if style.ids == "repeated" and chance(dice, 30) and _holds_object(call.arguments):
                named = {"name": call.name}
            items.append({**place, **again, "function": {**named, "arguments": piece}})
        told.append(items)
    return told


def deltas(dice: Dice, reply: Reply, style: Style) -> list[dict[str, Json]]:
    """What a stream adds, piece by piece."""
    out: list[dict[str, Json]] = []
    if chance(dice, 50):
        out.append({"role": "assistant", "content": pick(dice, (None, ""))})
    out += [dict.fromkeys(reply.thought_keys, piece) for piece in cut_text(dice, reply.thought)]
    if reply.extra:
        out.append(dict(reply.extra))
    out += [{"content": piece} for piece in cut_text(dice, reply.text)]
    calls = _calls_deltas(dice, reply, style)
    if style.together and calls:
        return [*out, {"tool_calls": [item for items in calls for item in items]}]
    if style.index == "own" and chance(dice, 20):  # several calls grow side by side
        longest = max(map(len, calls), default=0)
        return out + [{"tool_calls": [items[n] for items in calls if n < len(items)]} for n in range(longest)]
    return out + [{"tool_calls": [item]} for items in calls for item in items]


def usage(reply: Reply) -> dict[str, Json]:
    if reply.usage is None:
        return {}
    return {"usage": {"prompt_tokens": reply.usage[0], "completion_tokens": reply.usage[1]}}


NULLS = dict.fromkeys(("content", "role", "refusal", "tool_calls", "function_call", "reasoning", "audio"))
EMPTY_CHUNKS: tuple[dict[str, Json], ...] = (
    {"choices": [{"index": 0, "delta": {}}]},
    {"choices": []},
    {"choices": None},
    {},
    {"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},  # Azure begins so
    {"choices": [{"index": 0, "delta": None, "finish_reason": None, "logprobs": None}], "usage": None},
    {"choices": [{"index": 0, "delta": NULLS, "finish_reason": ""}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": []}}], "usage": {}},
    {"choices": [{"index": 1, "delta": {"content": "of another choice"}, "finish_reason": "length"}]},
    {"choices": [{"index": 0}], "error": None},
    {"object": "chat.completion.chunk", "x": {"y": [1]}},
)
"""Chunks that say nothing, as servers send them between others."""


def chunks(dice: Dice, reply: Reply, style: Style, ends: bool = True) -> list[dict[str, Json]]:
    """The JSON objects of a stream. `ends`: with a finish_reason."""
    frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk"} if chance(dice, 50) else {}
    out: list[dict[str, Json]] = [
        {**frame, "choices": [{"index": 0, "delta": delta}]} for delta in deltas(dice, reply, style)
    ]
    if chance(dice, 30):
        for _ in range(1 + dice.number(2)):
            out.insert(dice.number(len(out)), pick(dice, EMPTY_CHUNKS))
    if ends:
        out.append({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish}]})
    if chance(dice, 10):
        out.append(pick(dice, EMPTY_CHUNKS))
    told = usage(reply)
    if told and out and chance(dice, 50):
        out[-1] = {**out[-1], **told}
    elif told:
        out.append({**frame, "choices": [], **told})
    return out


def whole(reply: Reply) -> dict[str, Json]:
    """The answer of a server that does not stream."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}, **call.extra}
        for call in reply.calls
    ]
    message: dict[str, Json] = {"role": "assistant", "content": reply.text or None, **reply.extra}
    if reply.thought:
        message |= dict.fromkeys(reply.thought_keys, reply.thought)
    if calls:
        message["tool_calls"] = calls
    return {"choices": [{"index": 0, "message": message, "finish_reason": reply.finish}], **usage(reply)}


# --- chunks as bytes, and bytes as a reader's events

NOISE = (
    b"data: ping", b"data: : comment", b"data:: keep-alive", b"data: null", b"data: true", b"data: 5", b'data: "ping"',
    b'data: "half', b"data: [PING]", b"data: ping\ndata: pong", b"data: : {", b"event: ping\ndata: ping", b"data: -",
    "data: é{}".encode(), b"data: \x00", b"data: <p>{}</p>", b"id: 7\ndata: x",
)  # fmt: skip
"""Events that are nobody's answer: keep-alives that a gateway has rewrapped as data, and other words."""


def sse(dice: Dice, chunks: Sequence[Json], marked: bool) -> bytes:
    """A stream of events with the freedom that the format allows."""
    out = pick(dice, (b"", b"", b"\xef\xbb\xbf", b": hello\n\n", b"\n"))
    ends = pick(dice, ((b"\n",), (b"\r\n",), (b"\r",), (b"\n", b"\r\n", b"\r")))
    gap = pick(dice, (b" ", b""))
    plain = not chance(dice, 30)
    for chunk in chunks:
        payload = json.dumps(chunk, indent=None if plain or chance(dice, 70) else 1)
        lines = [b"data:" + gap + line.encode() for line in payload.split("\n")]
        if not plain:
            lines.insert(0, pick(dice, (b": ping", b"event: message", b"id: 7", b"retry: 9", b"x", b":" + b"-" * 3000)))
            out += pick(dice, (b"", b"", b"data:", b"data", b": alive", b"event: ping", *NOISE)) + 2 * pick(dice, ends)
        end = pick(dice, ends)
        out += end.join(lines) + end * 2
    if not plain and chunks and finish_of(chunks[-1]) and chance(dice, 30):
        out += pick(dice, NOISE) + 2 * pick(dice, ends)
    if marked:
        end = pick(dice, ends)
        out += b"data:" + gap + b"[DONE]" + pick(dice, (b"", b" ", b"  \t")) + end * pick(dice, (2, 1, 0))
    elif chance(dice, 30):
        out = out.removesuffix(pick(dice, ends))
    return out


def cut_bytes(dice: Dice, data: bytes) -> list[bytes]:
    """The same bytes as a network might bring them."""
    size = pick(dice, (len(data) or 1, 1 + dice.number(200), 7 + dice.number(40), 3))
    return [data[at : at + size] for at in range(0, len(data), size)]


End = Literal["closes", "breaks", "silent"]
ENDS: tuple[End, ...] = ("closes", "breaks", "silent")


def read(id: Id, pieces: Sequence[bytes], end: End = "closes") -> list[Answer]:
    """The events that the core's own reader makes of a body, by what happens behind it.

    The connection is closed in good order, or it breaks, or it stays open and nothing more comes.
    """
    state, events, until = body.Body(id, chat), list[Answer](), None
    for piece in pieces:
        state, told = body.feed(state, piece)
        until = body.deadline(state, told, until, 0.0, 300.0)
        events += told
        if events and isinstance(events[-1], (ModelEnded, ModelFailed)):
            return events
    if end == "closes":
        return events + body.finish(state)
    if end == "silent" and until is not None and (rest := body.lapse(state)):
        return events + rest
    fault = Fault.NETWORK if end == "breaks" else Fault.SILENCE
    return [*events, ModelFailed(id, Failure(fault, "nothing more came"))]


ERRORS: tuple[dict[str, Json], ...] = (
    {"error": {"message": "overloaded", "code": 529}},
    {"error": {"message": "too many requests at once", "code": "1302"}},
    {"error": {"message": "rate limit", "type": "rate_limit_error", "code": "429"}},
    {"error": "upstream went away"},
    {"error": {"message": "no such model", "code": 404}},
    {"error": {"message": "used up", "code": "insufficient_quota"}},
    {"object": "error", "message": "context_length exceeded", "code": 400},
    {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}], "error": {"code": 502}},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]},
    {"error": {"message": "Unsupported parameter", "param": "temperature", "code": 400}},
)
"""What stands inside a 200 when something went wrong behind the status line."""

NO_ANSWERS = (
    b"", b" \n", b"<html>404</html>", b"hello", b"[]", b"3", b'{"a": 1}', b'{"choices": 5}', b"[" * 3000, b"data: {",
    b'{"choices": [{"message": {"content": "x"}}', b"data: 5\n\n", b"\xff\xfe", b": x\n\n",
    b"data: Internal Server Error\n\n", b"data: ping\n\ndata: [DONE]\n\n", b"event: error\ndata: gone\n\n",
    b'data: {"choices": [{"delta": {"content": "x"}}]}\n\ndata: overloaded\n\n', b"data: null", b"data: \"x\n\n",
    b'{"choices": [], "x": NaN}',
    b"data: " + b'{"a":' * 150 + b"1" + b"}" * 150 + b"\n\n", b'{"error": {"message": "no", "code": 429}}',
    b'[{"error": {"code": 503, "message": "busy"}}]', b'data: {"choices": [null]}\n\ndata: [DONE]\n\n',
    b'data: {"object": "error", "message": "context_length exceeded"}\n\n',
    b'data: {"choices": [{"delta": null, "finish_reason": "error"}]}\n\n',
    b'data: {"choices": [{"delta": {"content": 1e999}}]}\n\n', b"data: [DONE]\n\n", b"data: \n\ndata: null\n\n",
    b'event: error\ndata: {"error": {"code": "1302", "message": "slow down"}}\n\ndata: [DONE]\n\n',
    b'{"error": {"code": 502, "message": "provider returned error"}}', b'{"error": "no"}',
    b'{"object": "list", "data": []}',
    b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n", b'{"choices": []}', b'{"choices": [{}]}',
    b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}\n\ndata: {"choi',
)  # fmt: skip


def answer(dice: Dice, id: Id, faults: int, hostile: bool = False) -> tuple[list[Answer], Reply | None]:
    """The events of one answered request, and the reply that is true if all of them arrive.

    With `faults` (percent) the stream is cut, has an error inside, or is no answer at all.
    """
    said = reply(dice, hostile)
    how = style(dice)
    fault = dice.number(6) if chance(dice, faults) else -1
    end = pick(dice, ENDS)
    if fault == 0:
        return read(id, cut_bytes(dice, pick(dice, NO_ANSWERS)), end), None
    if chance(dice, 15):
        start = pick(dice, (b"", b"\xef\xbb\xbf", b" \n"))
        pieces = cut_bytes(dice, start + json.dumps(whole(said), indent=pick(dice, (None, 1))).encode())
        if fault > 0:
            return read(id, pieces[: dice.number(len(pieces) - 1)], end), None
        end = pick(dice, ("closes", "silent"))
        return read(id, pieces, end), said if Style("none", 0, "own", True, True).keeps_calls_apart(said) else None
    marked = chance(dice, 70)
    parts = chunks(dice, said, how, ends=not marked or chance(dice, 80))
    true = said if how.keeps_calls_apart(said) else None
    if chance(dice, 20):  # chunks that some other reader has taken out of their bytes
        return [*(ModelChunks(id, (part,)) for part in parts), ModelEnded(id, True)], true
    if fault == 1:
        parts.insert(dice.number(len(parts) - 1), pick(dice, ERRORS))
    if fault == 2:
        parts.insert(dice.number(len(parts) - 1), json_object(dice))
    data = sse(dice, parts, marked)
    if fault == 3:  # a chunk that is no JSON
        data = data.replace(b'"}', b"", 1)
    if fault > 3:
        return read(id, cut_bytes(dice, data[: dice.number(len(data) - 1)]), end), None
    if fault < 0 and not marked:
        return read(id, cut_bytes(dice, data), pick(dice, ENDS)), true
    return read(id, cut_bytes(dice, data)), true if fault < 0 else None


def json_object(dice: Dice) -> dict[str, Json]:
    """A chunk that makes no sense."""
    delta = {pick(dice, ("content", "tool_calls", "role", "refusal", "reasoning")): json_value(dice)}
    shapes: tuple[Json, ...] = (
        5,
        None,
        [],
        [5],
        [{"delta": 5}],
        [{"delta": delta}],
        [{"message": delta}],
        {"delta": delta},
    )
    return {"choices": pick(dice, shapes), pick(dice, ("usage", "x", "id")): json_value(dice, 1)}


FAILURES = (
    Failure(Fault.HTTP, "busy", 503),
    Failure(Fault.HTTP, '{"error": {"message": "slow down"}}', 429),
    Failure(Fault.HTTP, "slow down", 429, 2.5),
    Failure(Fault.HTTP, "slow down", 429, 90.0),
    Failure(Fault.HTTP, "come back tomorrow", 429, 121.0),
    Failure(Fault.HTTP, "at once", 503, 0.0),
    Failure(Fault.HTTP, '{"error": {"code": "insufficient_quota", "message": "used up"}}', 429),
    Failure(Fault.HTTP, "overloaded", 529),
    Failure(Fault.HTTP, '{"error": {"message": "Invalid assistant message: content or tool_calls must be set"}}', 400),
    Failure(Fault.HTTP, '{"error": {"code": "context_length_exceeded", "message": "too long"}}', 400),
    Failure(Fault.HTTP, "too large", 413),
    Failure(Fault.HTTP, '{"error": {"message": "Unsupported parameter", "param": "temperature"}}', 400),
    Failure(Fault.HTTP, '{"detail": [{"loc": ["body", "stop"], "msg": "extra_forbidden"}]}', 422),
    Failure(Fault.HTTP, "unknown field stream_options", 400),
    Failure(Fault.HTTP, "property 'reasoning_content' is unsupported", 400),
    Failure(Fault.HTTP, "no such model", 404),
    Failure(Fault.HTTP, "who are you?", 401),
    Failure(Fault.HTTP, "", 400),
    Failure(Fault.HTTP, "", 408),
    Failure(Fault.HTTP, "<html>", 403),
    Failure(Fault.NETWORK, "connection refused"),
    Failure(Fault.SILENCE, "nothing came for 300 s"),
    Failure(Fault.TIME, "the time of the turn is over"),
    Failure(Fault.CERTIFICATE, "self-signed certificate"),
    Failure(Fault.REQUEST, "no such host: ''"),
    Failure(Fault.ANSWER, "Invalid assistant message"),
    Failure(Fault.LIMIT, "the answer is larger than 64 MB"),
    Failure(Fault.LIMIT, "a chunk of the answer is nested more than 100 levels deep"),
    Failure(Fault.ANSWER, "the API answered 200 with a web page (HTML); is the endpoint right? <html>", 200),
    Failure(Fault.ANSWER, '{"error": {"message": "Unsupported parameter", "param": "temperature"}}', 400),
    Failure(Fault.HTTP, "it redirects to https://api.invalid/v1; set endpoint to that", 301),
    Failure(Fault.HTTP, "more than 5 redirects, the last to http://api.invalid/x", 307),
    Failure(Fault.HTTP, "this came from the proxy http://p:1: Proxy Authentication Required", 407),
    Failure(Fault.HTTP, "this came from the proxy http://p:1: Bad Gateway", 502),
    Failure(Fault.HTTP, '{"error": {"message": "conflict"}}', 409),
    Failure(Fault.HTTP, "too early", 425),
    Failure(Fault.HTTP, '{"error": "pay"}', 402),
    Failure(Fault.HTTP, "", 204),
    Failure(Fault.HTTP, "credit balance is too low", 500),
    Failure(Fault.HTTP, '{"error": {"message": "Unrecognized request argument supplied: top_k"}}', 400),
    Failure(Fault.HTTP, "input is too long", 422),
)
