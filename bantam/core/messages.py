"""Chat-completions messages, and the only code that spells their keys.

A message is the very JSON object that came or will go, so members nobody here knows
(`extra_content`, `reasoning_details`, next year's) survive because nobody unpacks them.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Any

from bantam.core.base.grown import Grown
from bantam.core.base.texts import clean

Message = Mapping[str, Any]
Messages = Grown[Message] | tuple[Message, ...]
"""A conversation: grown by its agent, or a list of any other origin. The two compare as equals."""
Call = Mapping[str, Any]

REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")
NO_RESULT = "no result: the run ended before this call did"
IMAGE = "[image]"  # stands for a picture where only words go
NAME_LENGTH_MAX = 64  # of a function name; OpenAI's reference: a-z, A-Z, 0-9, _ and -, at most 64
NESTING_MAX = 100  # levels of lists and objects; what is deeper is an attack on the reader


def system(text: str) -> Message:
    return {"role": "system", "content": clean(text)}


def user(text: str, parts: Iterable[Mapping[str, Any]] = ()) -> Message:
    """What a user says; with `parts` that were attached, the content is a list: the text first, if there is any."""
    attached = [map_text(part, clean) for part in parts]
    own = [text_part(clean(text))] if text.strip() else []
    return {"role": "user", "content": [*own, *attached] if attached else clean(text)}


def text_part(text: str) -> Mapping[str, Any]:
    return {"type": "text", "text": text}


def image_part(url: str) -> Mapping[str, Any]:
    """A picture as Chat Completions has it; `url` may be a data URL (RFC 2397)."""
    return {"type": "image_url", "image_url": {"url": url}}


def images_of(message: Message) -> int:
    """How many pictures are in a message."""
    return sum(map(_is_image, _parts(message)))


def without_images(message: Message, mark: str = IMAGE) -> Message:
    """The same message with a mark in the place of each picture."""
    if not images_of(message):
        return message
    return {**message, "content": [text_part(mark) if _is_image(part) else part for part in _parts(message)]}


def _parts(message: Message) -> tuple[Any, ...]:
    content = message.get("content")
    return tuple(content) if isinstance(content, (list, tuple)) else ()


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "image_url"


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": clean(text)}


def tool_result(call_id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": clean(text)}


def longer(messages: Messages, *more: Message) -> Messages:
    """The list with more behind it. Costs what is added, once the list has grown this way."""
    return (messages if isinstance(messages, Grown) else Grown(messages)) + more


def with_text(message: Message, text: str) -> Message:
    """The same message with `text` as its content."""
    return {**message, "content": text}


def shortened(message: Message, most: int) -> Message:
    """The same message with its long texts cut in the middle, to about `most` characters each.

    That is its content, and the texts in the arguments of its calls.
    """

    def cut(text: str) -> str:
        mark = f"\n[{len(text) - most} characters left out]\n"
        worth = most + len(mark) + 2  # in JSON a line end is two characters
        return text[: most // 2] + mark + text[-(most // 2) :] if len(text) > worth else text

    def call(old: Call) -> Call:
        arguments = json_object(call_arguments(old)) or {}
        less = map_text(arguments, cut)
        return old if less == arguments else {**old, "function": {**_function(old), "arguments": json.dumps(less)}}

    content = message.get("content")
    short = dict(message)
    if isinstance(content, str):
        short["content"] = cut(content)
    elif isinstance(content, (list, tuple)):
        texts = [isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content]
        pairs = zip(content, texts, strict=True)
        short["content"] = [{**part, "text": cut(part["text"])} if has_text else part for part, has_text in pairs]
    if calls := calls_of(message):
        short["tool_calls"] = [call(old) for old in calls]
    return short


def role_of(message: Message) -> str:
    return str(message.get("role"))


def text_of(message: Message) -> str:
    """The words of a message: its content as a string, or the text of its content parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else ()
    return "".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def last_words(messages: Messages) -> str:
    """The text of the last assistant message."""
    return next((text_of(message) for message in reversed(messages) if role_of(message) == "assistant"), "")


def calls_of(message: Message) -> tuple[Call, ...]:
    calls = message.get("tool_calls")
    if role_of(message) != "assistant" or not isinstance(calls, (list, tuple)):
        return ()
    return tuple(call for call in calls if isinstance(call, Mapping))


def call_id(call: Call) -> str:
    value = call.get("id")
    return value if isinstance(value, str) else ""


def call_name(call: Call) -> str:
    value = _function(call).get("name")
    return value if isinstance(value, str) else ""


def call_arguments(call: Call) -> Any:
    """The arguments as they came: a string as the format has it, or whatever a server sent instead."""
    return _function(call).get("arguments")


def answers(message: Message) -> str | None:
    """The id of the call that a tool message answers; None for any other message."""
    return str(message.get("tool_call_id") or "") if role_of(message) == "tool" else None


def open_calls(messages: Messages) -> tuple[Call, ...]:
    """The calls at the end of the list that have no result yet."""
    answered = set()
    for message in reversed(messages):
        answer = answers(message)
        if answer is None:
            return tuple(call for call in calls_of(message) if call_id(call) not in answered)
        answered.add(answer)
    return ()


def close(messages: Messages, why: str = NO_RESULT) -> Messages:
    """Answer every open call at the end with `why`. Total and idempotent; only ever appends."""
    return longer(messages, *(tool_result(call_id(call), why) for call in open_calls(messages)))


def strip_last_assistant(messages: Messages) -> Messages:
    """Without the last assistant message and the tool results that answer it.

    The remedy for servers that refuse their own output ("Invalid assistant message: content or
    tool_calls must be set").
    """
    for at in range(len(messages) - 1, -1, -1):
        if role_of(messages[at]) == "assistant":
            ids = {call_id(call) for call in calls_of(messages[at])}
            rest = tuple(m for m in messages[at + 1 :] if answers(m) is None or answers(m) not in ids)
            return messages[:at] + rest
    return messages


def strip_reasoning(messages: Messages) -> Messages:
    """Without the reasoning members, for servers that refuse them."""
    return tuple(
        {key: value for key, value in m.items() if key not in REASONING_KEYS}
        if any(key in m for key in REASONING_KEYS)
        else m
        for m in messages
    )


def normalised(message: Message) -> Message:
    """An assistant message in the form that strict servers take back.

    Content is text (`""` beside calls: `null` or its absence is a 500 on llama-cpp-python), ids are
    present and unique, names are identifiers, arguments are a string that holds a JSON object (llama.cpp
    answers 500 to anything else). Everything else stays as it came.
    """
    message = map_text(message, clean)  # first: two ids can become equal here
    calls = calls_of(message)
    content = message.get("content")
    if not isinstance(content, (str, list)) or not content:
        content = message["refusal"] if isinstance(message.get("refusal"), str) and not calls else ""
    fixed: dict[str, Any] = {**message, "role": "assistant", "content": content}
    fixed.pop("tool_calls", None)
    if calls:
        fixed["tool_calls"] = [*_with_ids(calls)]
    return fixed


def is_empty(message: Message) -> bool:
    """True for an assistant message that has neither text nor calls: no server takes it back."""
    return not calls_of(message) and not text_of(message).strip()


def is_valid(messages: Messages) -> bool:
    """Whether a strict server would take the list: every call answered once, in order, right behind it."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role, answer = role_of(message), answers(message)
        if answer is not None:
            if not waiting or waiting.pop(0) != answer:
                return False
            continue
        calls = calls_of(message)
        if waiting or role not in ("system", "user", "assistant") or (role == "system") != (at == 0):
            return False
        if role == "assistant" and (is_empty(message) or normalised(message) != message):
            return False
        waiting = [call_id(call) for call in calls]
    return not waiting


def repair(raw: Iterable[Any], system_prompt: str) -> Messages:
    """Any JSON list as a valid conversation; a valid one comes back equal.

    For files that another version, a crash or a text editor left behind: calls without a result get
    one, results without a call go, and so do messages that say nothing.
    """
    said = [_readable(m) for m in raw if isinstance(m, Mapping) and nesting(m) <= NESTING_MAX]
    kept: list[Message] = []
    for at, message in enumerate(said):
        if answers(message) is not None:
            continue
        if at == 0 and role_of(message) == "system":
            kept.append(message)
            continue
        if role_of(message) != "assistant":
            if text_of(message) or message.get("content"):
                kept.append({**message, "role": "user"})
            continue
        fixed = normalised(message)
        if not is_empty(fixed):
            rest = (said[place] for place in range(at + 1, len(said)))  # a slice would copy all of it, for each message
            kept += [fixed, *_results(message, fixed, rest)]
    if not kept or role_of(kept[0]) != "system":
        kept.insert(0, system(system_prompt))
    return tuple(kept)


def _results(raw: Message, fixed: Message, rest: Iterable[Message]) -> Iterable[Message]:
    """A result for each call: those that stand before the next assistant message, wherever, else a made-up one.

    The second of two calls with one id has the second result of that id.
    """
    found: dict[str, list[Message]] = {}
    for message in takewhile(lambda m: role_of(m) != "assistant", rest):
        if answers(message) is not None:
            found.setdefault(str(answers(message)), []).append(message)
    for old, new in zip(calls_of(raw), calls_of(fixed), strict=True):
        own = found.get(call_id(old)) or found.get(call_id(new))
        yield {**own.pop(0), "tool_call_id": call_id(new)} if own else tool_result(call_id(new), NO_RESULT)


def map_text(value: Any, change: Callable[[str], str]) -> Any:
    """The same JSON value with `change` applied to each string, member names included.

    Numbers that JSON cannot write (NaN, infinity) become null.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): map_text(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [map_text(item, change) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_object(text: Any) -> dict[str, Any] | None:
    """The JSON object that `text` is or holds; None for anything else."""
    if isinstance(text, Mapping):
        return dict(text)
    if not isinstance(text, str):
        return None
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_json(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


read_json = json.JSONDecoder(parse_constant=_no_json).decode
"""The value of a JSON text, without Python's additions to JSON (NaN, Infinity). Raises ValueError or RecursionError."""


def nesting(value: Any) -> int:
    """Levels of lists and objects, counted without recursion."""
    level, deep = [value], 0
    while level := [item for item in level if isinstance(item, (Mapping, list, tuple))]:
        level = [item for outer in level for item in (outer.values() if isinstance(outer, Mapping) else outer)]
        deep += 1
    return deep


def _function(call: Call) -> Mapping[str, Any]:
    function = call.get("function")
    return function if isinstance(function, Mapping) else {}


def _with_ids(calls: tuple[Call, ...]) -> Iterable[Call]:
    """The calls with ids that are present and unique, and arguments that hold an object.

    Deterministic: a made-up id is the call's place in its message, so that a replay gives the same.
    """
    taken: set[str] = set()
    last: dict[str, int] = {}  # the last suffix of an id that came more than once
    for number, call in enumerate(calls, 1):
        wanted = call_id(call) or f"call_{number}"
        own = wanted
        while own in taken:
            last[wanted] = last.get(wanted, 1) + 1
            own = f"{wanted}_{last[wanted]}"
        taken.add(own)
        raw = call_arguments(call)
        arguments = json_object(raw)
        function = {
            **_function(call),
            "name": re.sub(r"[^A-Za-z0-9_-]", "_", call_name(call))[:NAME_LENGTH_MAX] or "unknown",
            "arguments": raw if isinstance(raw, str) and arguments is not None else json.dumps(arguments or {}),
        }
        yield {**call, "id": own, "type": "function", "function": function}


def _readable(message: Message) -> Message:
    """A message of a file with strings that can be sent, and content that is text or a list of parts."""
    message = map_text(message, clean)
    content = message.get("content")
    if role_of(message) == "tool":
        text = content if isinstance(content, str) else text_of(message) or _as_text(content)
        return {**message, "tool_call_id": str(message.get("tool_call_id") or ""), "content": text}
    return message if content and isinstance(content, (str, list)) else {**message, "content": _as_text(content)}


def _as_text(content: Any) -> str:
    return "" if content in (None, "", []) else json.dumps(content)
