"""Deltas -> one assistant message, members that nobody here knows included.

One rule keeps them alive while streaming: strings under a few names are streams and are joined; every
other value is a fact, and the newest fact that says something wins. So reasoning cannot enter content:
they stand under different names and no code joins them.

Lists of items (tool calls above all) are joined at the end: which item a delta goes on with is then found in
one pass, and n items cost n, in whatever order their pieces came.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Any

from bantam.core.base import rope
from bantam.core.base.record import dataclass, field, replace
from bantam.core.base.texts import paired
from bantam.core.messages import Message, calls_of, json_object, text_of

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
    lists: Mapping[str, Any] = field(default_factory=dict)
    """Members that are lists, and what came for each since: {"before": a rope of values, "last": the newest}."""


def merge(partial: Partial, chunk: Mapping[str, Any]) -> Partial:
    """The answer with one more chunk. Total: a chunk that makes no sense adds nothing."""
    usage = chunk.get("usage")
    if isinstance(usage, Mapping) and usage:
        partial = replace(partial, usage=usage)
    if finish := finish_of(chunk):
        partial = replace(partial, finish=finish)
    said = {key: value for key, value in _delta(_choice(chunk)).items() if value is not None}
    lists = [key for key, value in said.items() if isinstance(value, (list, tuple)) or key in partial.lists]
    if lists:
        waiting = {key: _waiting(key, partial.lists.get(key), said[key]) for key in lists}
        rest = _merged(partial.message, {key: value for key, value in said.items() if key not in lists})
        return replace(partial, lists={**partial.lists, **waiting}, message=rest)
    return replace(partial, message=_merged(partial.message, said)) if said else partial


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
    lists = {key: _folded(key, partial.message.get(key), waiting) for key, waiting in partial.lists.items()}
    message = {**_joined({**partial.message, **lists}), "role": "assistant"}  # many streams do not say the role
    message.pop("function_call", None)  # the format of 2023, which some servers send beside tool_calls
    calls = [
        {key: value for key, value in call.items() if key != "index"}
        for call in calls_of(message)
        if call.get("function")
    ]
    message.pop("tool_calls", None)
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
        return _items(key, old if isinstance(old, list) else [], new)
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


# --- lists


def _waiting(key: str, old: Mapping[str, Any] | None, value: Any) -> Mapping[str, Any]:
    """The values of a list, and of what came behind it, with one more. What only goes on with the last one joins it."""
    if isinstance(value, str) and key in STREAMS:
        if old and isinstance(old["last"], tuple):
            return {**old, "last": _grown(old["last"], value)}
        return _next(old, (value,))
    if old and value == [] and isinstance(old["last"], list):
        return old
    piece = _piece(value)
    if piece is None:
        return _next(old, [*value] if isinstance(value, tuple) else value)
    is_placed = key == "tool_calls" or piece.get("id") or piece.get("index") is not None
    run = _piece(old["last"]) if old and is_placed else None
    longer = _longer(run, piece) if run is not None else None
    return _next(old, [_merged({}, piece)]) if longer is None or old is None else {**old, "last": [longer]}


def _next(old: Mapping[str, Any] | None, last: Any) -> Mapping[str, Any]:
    return {"before": rope.add(old["before"], [_joined(old["last"])]) if old else (), "last": last}


def _piece(value: Any) -> Mapping[str, Any] | None:
    """The one item of a list, unless it can be the beginning of a call."""
    item = value[0] if isinstance(value, list) and len(value) == 1 else None
    return item if isinstance(item, dict) and not _name(item) else None


def _longer(run: Mapping[str, Any], piece: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A piece with another behind it; None if they differ in anything but what their streams bring."""
    if run.keys() != piece.keys():
        return None
    longer = dict(run)
    for key, value in piece.items():
        old = run[key]
        if key in STREAMS and isinstance(value, str) and isinstance(old, tuple):
            longer[key] = _grown(old, value)
        elif key == "function" and isinstance(value, dict) and isinstance(old, dict):
            longer[key] = _longer(old, value)
            if longer[key] is None:
                return None
        elif isinstance(value, (dict, list)) or old != value:
            return None
    return longer


def _folded(key: str, start: Any, waiting: Mapping[str, Any]) -> Any:
    """The value of a member to which these were added."""
    value = start
    for new in [*(value for piece in waiting["before"] for value in piece), _joined(waiting["last"])]:
        if isinstance(value, _Items) and isinstance(new, list):
            value.add(new)
        elif isinstance(value, _Items) and isinstance(new, str) and key in STREAMS:
            value.text(new)
        else:
            value = _value(key, value.items if isinstance(value, _Items) else value, new)
            value = _Items(key, value) if isinstance(value, list) else value
    return value.items if isinstance(value, _Items) else value


def _items(key: str, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    items = _Items(key, old)
    items.add(new)
    return items.items


class _Items:
    """A list that grows, and where in it an item stands, by id and `index`: each look takes the same time."""

    def __init__(self, key: str, items: Sequence[Any]) -> None:
        self.key, self.items = key, list[Any]()
        self._places: dict[tuple[Any, ...], list[int]] = {}
        for item in items:
            self._append(item)

    def add(self, new: Sequence[Any]) -> None:
        """The items of one delta: each goes on with an earlier one, or is another."""
        earlier = len(self.items)
        for item in new:
            at = self._place(item, earlier) if isinstance(item, Mapping) else None
            if at is None:
                self._append(_merged({}, item) if isinstance(item, Mapping) else item)
                continue
            before = _signs(self.items[at])
            self.items[at] = _merged(self.items[at], item)
            after = _signs(self.items[at])
            for sign in before if after != before else ():
                if sign not in after:
                    self._places[sign].remove(at)
            self._note(at, [sign for sign in after if sign not in before])

    def text(self, text: str) -> None:
        """Plain text behind the items: one part, however it was cut."""
        last = self.items[-1] if self.items else None
        if isinstance(last, Mapping) and last.get("type") == "text" and isinstance(last.get("text"), tuple):
            self.items[-1] = {**last, "text": _grown(last["text"], text)}
        elif text:
            self._append({"type": "text", "text": (text,)})

    def _place(self, item: Mapping[str, Any], earlier: int) -> int | None:
        """Which item a delta continues; None for a new one.

        By id and `index`, as far as they are known, else (tool calls of servers that send neither) the last
        one. A different id beside a name is a new call even at an old index: Gemini sends `index: 0` for all
        its parallel calls. So is a named call behind one whose arguments are already whole. Two items of one
        delta are two, nameless pieces of a call apart: `earlier` items are from deltas before.
        """
        is_piece = self.key == "tool_calls" and not _name(item)
        end = len(self.items) if is_piece else earlier
        id, index = _plain(item.get("id")) or None, _plain(item.get("index"))
        who = id if id and self._last((id,), end) >= 0 else None
        if who is None and index is None and self.key != "tool_calls":
            return None
        at = self._last((who,), end)
        if index is not None:
            at = max(self._last((who, index), end), self._last((who, ()), end))
        return None if at < 0 or _starts_call(self.items[at], item) else at

    def _append(self, item: Any) -> None:
        if isinstance(item, Mapping):
            self._note(len(self.items), _signs(item))
        self.items.append(item)

    def _note(self, at: int, signs: Sequence[tuple[Any, ...]]) -> None:
        for sign in signs:
            insort(self._places.setdefault(sign, []), at)

    def _last(self, sign: tuple[Any, ...], end: int) -> int:
        """The last place before `end` with a sign; -1 if there is none."""
        places = self._places.get(sign, ())
        found = bisect_left(places, end)
        return places[found - 1] if found else -1


def _signs(item: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What an item is found by: (its id or None), and the same with its index, which is () where it has none."""
    index = _plain(item["index"]) if "index" in item else ()
    id = _plain(item.get("id"))
    return [(None,), (None, index), *([(id,), (id, index)] if id else [])]


def _plain(value: Any) -> Any:
    """An id or an index as a key; nonsense is none."""
    return value if isinstance(value, (str, int, float)) else None


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
    return says and isinstance(earlier, Mapping) and _is_object(earlier.get("arguments"))


def _is_object(arguments: Any) -> bool:
    """Whether arguments are whole. They are looked at once more with each delta that has a name, so quickly."""
    if isinstance(arguments, tuple) and any(arguments):
        end = next(piece for piece in reversed(arguments) if piece.strip() or piece is arguments[0]).rstrip()
        return end.endswith("}") and json_object("".join(arguments)) is not None
    return json_object(_joined(arguments)) is not None


def _joined(value: Any) -> Any:
    """The same value with ropes joined to strings."""
    if isinstance(value, tuple):
        return "".join(value)
    if isinstance(value, Mapping):
        return {key: _joined(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_joined(item) for item in value]
    return value
