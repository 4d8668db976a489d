"""Deltas -> one assistant message, members that nobody here knows included.

One rule keeps them alive while streaming: strings under a few names are streams and are joined; every
other value is a fact, and the newest fact that says something wins. So reasoning cannot enter content:
they stand under different names and no code joins them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bantam.core.base import rope
from bantam.core.base.record import dataclass, field, replace
from bantam.core.base.texts import paired
from bantam.core.base.trie import Trie
from bantam.core.messages import Message, json_object, text_of

STREAMS = frozenset(
    {"content", "arguments", "reasoning", "reasoning_content", "refusal", "text", "summary", "thinking"}
)
FIRST_WINS = frozenset({"id", "name", "type", "role"})  # llama-cpp-python repeats them, some servers vary them
THOUGHTS = ("reasoning_content", "reasoning")


@dataclass(frozen=True)
class Partial:
    """What came of an answer so far. In `message` a stream is a tuple of pieces (a rope), which no JSON is."""

    message: Mapping[str, Any] = field(default_factory=dict)
    finish: str = ""
    """The finish_reason, once there was one."""
    usage: Mapping[str, Any] = field(default_factory=dict)
    calls: Trie[Mapping[str, Any]] = field(default_factory=Trie)
    """The tool calls by their places, as `(place,)`; not in `message`, for there may be thousands."""
    ids: tuple[frozenset[str], ...] = ()
    """The ids that calls have, in sets whose sizes fall by halves, as the pieces of a rope."""
    top: int | None = -1
    """The highest `index` of a call; None if one has no number."""


def merge(partial: Partial, chunk: Mapping[str, Any]) -> Partial:
    """The answer with one more chunk. Total: a chunk that makes no sense adds nothing."""
    usage = chunk.get("usage")
    if isinstance(usage, Mapping) and usage:
        partial = replace(partial, usage=usage)
    if finish := finish_of(chunk):
        partial = replace(partial, finish=finish)
    said = {key: value for key, value in _delta(_choice(chunk)).items() if value is not None}
    items = said.pop("tool_calls", None)
    if said:
        partial = replace(partial, message=_merged(partial.message, said))
    return _with_calls(partial, items) if isinstance(items, (list, tuple)) and items else partial


def finish_of(chunk: Mapping[str, Any]) -> str:
    """The finish_reason that a chunk brings, or ""."""
    finish = _choice(chunk).get("finish_reason")
    return finish if isinstance(finish, str) else ""


def deltas(chunk: Mapping[str, Any]) -> tuple[str, str]:
    """(reasoning, text) that one chunk adds, for display."""
    delta = _delta(_choice(chunk))
    thought = next((t for key in THOUGHTS if isinstance(t := delta.get(key), str) and t), "")
    text = text_of(delta) or (delta["refusal"] if isinstance(delta.get("refusal"), str) else "")
    return thought, text


def finished(partial: Partial) -> Message:
    """The whole message as it came: streams joined, places (`index`) of tool calls gone."""
    message = {**_joined(partial.message), "role": "assistant"}  # many streams do not say the role
    message.pop("function_call", None)  # the format of 2023, which some servers send beside tool_calls
    calls = [
        {key: _joined(value) for key, value in call.items() if key != "index"}
        for _, call in sorted(partial.calls.items())
        if call.get("function")
    ]
    return {**message, **({"tool_calls": calls} if calls else {})}


def coalesced(chunks: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The same answer in fewer chunks: neighbours that differ only in their piece of text become one.

    `merge` gives the same message for both (any split of a text into deltas does), but a read of 300
    deltas costs one merge, one output and one line of the log.
    """
    out: list[Mapping[str, Any]] = []
    pieces: list[str] = []
    frame: tuple[Any, ...] | None = None
    for chunk in chunks:
        match chunk:
            case {"choices": [{"delta": {"content": str(text), **more}, **rest}]} if not more:
                mine = ({**chunk, "choices": None}, rest)
                if mine == frame:
                    pieces.append(text)
                    continue
                _flush(out, pieces)
                frame, pieces = mine, [text]
            case _:
                _flush(out, pieces)
                frame, pieces = None, []
        out.append(chunk)
    _flush(out, pieces)
    return tuple(out)


def _flush(out: list[Mapping[str, Any]], pieces: list[str]) -> None:
    """Put the joined text into the last chunk, which brought the first piece."""
    if len(pieces) > 1:
        choice = out[-1]["choices"][0]
        out[-1] = {**out[-1], "choices": [{**choice, "delta": {"content": paired("".join(pieces))}}]}


def _choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice: Bantam asks for one, and a forwarded `n` brings others that are not read."""
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, (list, tuple)) else ():
        if isinstance(choice, Mapping) and not choice.get("index"):
            return choice
    return {}


def _delta(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a chunk adds: its delta, or the message of an answer that is not streamed."""
    for key in ("delta", "message"):
        if isinstance(value := choice.get(key), Mapping):
            return value
    return {}


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        if value is not None or key not in merged:
            merged[key] = _value(key, merged.get(key), value)
    return merged


def _value(key: str, old: Any, new: Any) -> Any:
    if isinstance(new, str):
        if key in STREAMS:
            if isinstance(old, list):  # parts of content, then plain text
                return _with_text(old, new) if new else old
            return _grown(old, new) if isinstance(old, tuple) else (new,)
        return old if old and (not new or key in FIRST_WINS) else new
    if isinstance(new, Mapping):
        if key == "arguments":  # an object where the format has a string: a fact, and whole
            return new
        return _merged(old if isinstance(old, Mapping) else {}, new)
    if isinstance(new, (list, tuple)):
        if key == "content" and isinstance(old, tuple) and any(old):  # plain text, then parts of content
            old = [{"type": "text", "text": old}]
        return _items(old if isinstance(old, list) else [], new)
    return new


def _grown(pieces: tuple[str, ...], piece: str) -> tuple[str, ...]:
    """The rope with `piece` behind it; a character whose halves came apart (JSON escapes can) is one again."""
    if "\udc00" <= piece[:1] <= "\udfff" and pieces:
        return rope.add(pieces[:-1], paired(pieces[-1] + piece))
    return rope.add(pieces, piece)


def _with_text(parts: Sequence[Any], text: str) -> list[Any]:
    """The parts with plain text behind them: one part, however the text was cut."""
    last = parts[-1] if parts else None
    if isinstance(last, Mapping) and last.get("type") == "text" and isinstance(last.get("text"), tuple):
        return [*parts[:-1], {**last, "text": _grown(last["text"], text)}]
    return [*parts, {"type": "text", "text": (text,)}]


def _items(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    items = list(old)
    for item in new:
        at = _place(items, item, len(old)) if isinstance(item, Mapping) else None
        if at is not None:
            items[at] = _merged(items[at], item)
        else:
            items.append(_merged({}, item) if isinstance(item, Mapping) else item)
    return items


def _place(items: Sequence[Any], item: Mapping[str, Any], earlier: int) -> int | None:
    """Which item of a list a delta continues, by id and `index`, as far as they are known; None for a new one.

    Two items of one delta are two: `earlier` items are from deltas before.
    """
    id, index = item.get("id"), item.get("index")
    if index is None and not id:
        return None
    known = [at for at in range(earlier) if isinstance(items[at], Mapping)]
    same = [at for at in known if items[at].get("id") == id] if id else []
    if index is None and not same:
        return None
    return next((at for at in reversed(same or known) if _is_index(items[at], index)), None)


def _is_index(old: Mapping[str, Any], index: Any) -> bool:
    return index is None or bool(old.get("index", index) == index)


def _with_calls(partial: Partial, items: Sequence[Any]) -> Partial:
    """With deltas of tool calls. What is no object is no call."""
    calls, ids, top = partial.calls, partial.ids, partial.top
    earlier = len(calls)
    for item in items:
        if not isinstance(item, Mapping):
            continue
        is_piece = not _name(item)
        known, seen = (len(calls), ids) if is_piece else (earlier, partial.ids)
        at = _place_of_call(calls, seen, top, item, known)
        call = _merged({} if at is None else calls[at,], item)
        id, index = call.get("id"), call.get("index")
        calls = calls.put((len(calls) if at is None else at,), call)
        ids = _noted(ids, repr(id)) if id and not _is_noted(ids, repr(id)) else ids
        top = None if top is None or type(index) is not int else max(top, index)
    return replace(partial, calls=calls, ids=ids, top=top)


def _place_of_call(
    calls: Trie[Mapping[str, Any]],
    ids: tuple[frozenset[str], ...],
    top: int | None,
    item: Mapping[str, Any],
    known: int,
) -> int | None:
    """Which of the first `known` calls a delta continues; None for a new one.

    By id and `index`, as far as they are known, else (servers that send neither) the last one. A different id beside
    a name is a new call even at an old index: Gemini sends `index: 0` for all its parallel calls. So is a named call
    behind one whose arguments are already whole. Two items of one delta are two, nameless pieces of a call apart.

    The search goes backwards and ends at once for what all servers do: the last call goes on, or a new one begins.
    """
    id, index = item.get("id"), item.get("index")
    if top is not None and type(index) is int and index > top:
        return None
    has_id = bool(id) and _is_noted(ids, repr(id))
    for at in range(known - 1, -1, -1):
        call = calls[at,]
        if (not has_id or call.get("id") == id) and _is_index(call, index):
            return None if _starts_call(call, item) else at
    return None


def _noted(sets: tuple[frozenset[str], ...], name: str) -> tuple[frozenset[str], ...]:
    new = frozenset({name})
    while sets and len(sets[-1]) <= 2 * len(new):
        sets, new = sets[:-1], sets[-1] | new
    return (*sets, new)


def _is_noted(sets: tuple[frozenset[str], ...], name: str) -> bool:
    return any(name in names for names in sets)


def _name(call: Mapping[str, Any]) -> Any:
    function = call.get("function")
    return function.get("name") if isinstance(function, Mapping) else None


def _starts_call(old: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    if not _name(item):
        return False
    if item.get("id") and old.get("id") and item["id"] != old["id"]:
        return True
    earlier, arguments = old.get("function"), item["function"].get("arguments")
    says = bool(arguments.strip()) if isinstance(arguments, str) else arguments is not None
    return says and isinstance(earlier, Mapping) and json_object(_joined(earlier).get("arguments")) is not None


def _joined(value: Any) -> Any:
    """The same value with ropes joined to strings."""
    if isinstance(value, tuple):
        return "".join(value)
    if isinstance(value, Mapping):
        return {key: _joined(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_joined(item) for item in value]
    return value
