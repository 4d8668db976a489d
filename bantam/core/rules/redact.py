"""The key's value goes no further than where it turned up: it becomes `[key]` there, also when it comes in pieces.

Twice: in each event before it happens, and in each effect before it is performed, since only the core knows
which pieces belong together. None of it knows the key by itself: whoever makes a `Redactor` tells it.
"""

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, AnyStr, Generic

from bantam.core.base.record import fields, is_dataclass, replace
from bantam.core.base.trie import Trie
from bantam.core.effects import (
    AskApproval,
    CallModel,
    CheckAnswer,
    Effect,
    Emit,
    Output,
    Request,
    ResultDelta,
    RunShell,
    RunTool,
    Save,
    TextDelta,
    ThoughtDelta,
)
from bantam.core.events import ConfigChanged, Event, Id
from bantam.core.messages import Message, Messages, map_text

MARK = "[key]"
KEY_LENGTH_MIN = 6  # a shorter value is a placeholder such as `k`, and a common word
PLACEHOLDERS = frozenset({"ollama", "lm-studio", "lmstudio", "not-needed", "no-key-required", "sk-no-key-required"})
Delta = TextDelta | ThoughtDelta | ResultDelta


def is_secret(value: str | None) -> bool:
    """Whether a key's value is one that must not be seen, and no placeholder for servers that want some key."""
    return value is not None and len(value) >= KEY_LENGTH_MIN and value not in PLACEHOLDERS


def pieces(secret: AnyStr, mark: AnyStr, held: AnyStr, piece: AnyStr) -> tuple[AnyStr, AnyStr]:
    """The next piece of a text: what can be told of it, and its end that may be the beginning of the secret.

    `held` is what the last piece left. At the end of the text it is told as it is.
    """
    *before, rest = (held + piece).split(secret)
    most = min(len(secret) - 1, len(rest))
    size = next((n for n in range(most, 0, -1) if rest.endswith(secret[:n])), 0)
    return mark.join([*before, rest[: len(rest) - size]]), rest[len(rest) - size :]


class Stream(Generic[AnyStr]):
    """A text in pieces, without any secret. Not part of a state: each connection and command has its own."""

    def __init__(self, secrets: Iterable[AnyStr], mark: AnyStr) -> None:
        self._held: dict[AnyStr, AnyStr] = dict.fromkeys(secrets, mark[:0])
        self._mark: AnyStr = mark

    def feed(self, piece: AnyStr) -> AnyStr:
        """What can be told after the next piece."""
        for secret, held in self._held.items():
            piece, self._held[secret] = pieces(secret, self._mark, held, piece)
        return piece

    def end(self) -> AnyStr:
        """What was held back, because it could have been the beginning of a secret."""
        rest = self._mark[:0]
        for secret, held in self._held.items():
            told, left = pieces(secret, self._mark, held, rest)
            rest, self._held[secret] = told + left, self._mark[:0]
        return rest


class Redactor:
    """Takes the secrets out of all that comes in and goes out. Keeps what of each text is still held back."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        found = {secret for secret in secrets if secret is not None and is_secret(secret)}
        self.secrets = tuple(sorted(found, key=len, reverse=True))  # one may be a part of another
        self._clean: Trie[tuple[tuple[Message, Message], ...]] = Trie()
        self._streams: Trie[dict[Delta, Stream[str]]] = Trie()

    def stream(self) -> Stream[bytes]:
        """For the bytes of one connection or command."""
        return Stream([secret.encode(errors="surrogateescape") for secret in self.secrets], MARK.encode())

    def text(self, value: str) -> str:
        for secret in self.secrets:
            value = value.replace(secret, MARK)
        return value

    def event(self, told: Event) -> Event:
        """The same event without secrets, wherever they stood: typed, printed by a command, echoed by a server."""
        if not self.secrets or isinstance(told, ConfigChanged):
            return told
        cleaned: Event = self._record(told)
        return cleaned

    def effects(self, effect: Effect) -> tuple[Effect, ...]:
        """The same effect without secrets; before one that ends a text, what was held back of that."""
        if not self.secrets:
            return (effect,)
        match effect:
            case CallModel(id=id, messages=said):
                return (replace(effect, messages=self.messages(id[:-1], said)),)
            case Save(said):
                return (Save(self.messages((), said)),)
            case RunShell() | RunTool() | AskApproval() | CheckAnswer():
                request: Request = self._record(effect)
                return (request,)
            case Emit(who, TextDelta() | ThoughtDelta() | ResultDelta(glimpse=False) as delta):
                return self._next(who, delta)
            case Emit(who, output):
                cleaned: Output = self._record(output)
                return (*self._rest(who), Emit(who, cleaned))
            case _:
                return (effect,)

    def messages(self, path: Id, said: Messages) -> Messages:
        """An agent's messages without secrets. Each is looked at once; one without any stays the same object."""
        if not self.secrets:
            return said
        old = self._clean.get(path, ())
        pairs = tuple(
            before if before is not None and before[0] is message else (message, self._message(message))
            for message, before in zip_longest(said, old[: len(said)])
        )
        self._clean = self._clean.cut(path).put(path, pairs)
        return tuple(clean for _, clean in pairs)

    def _message(self, message: Message) -> Message:
        cleaned: Message = map_text(message, self.text)
        return message if cleaned == message else cleaned

    def _next(self, who: Id, delta: Delta) -> tuple[Effect, ...]:
        if who not in self._streams:
            self._streams = self._streams.put(who, {})
        stream = self._streams[who].setdefault(replace(delta, text=""), Stream(self.secrets, MARK))
        told = stream.feed(delta.text)
        return (Emit(who, replace(delta, text=told)),) if told else ()

    def _rest(self, who: Id) -> tuple[Effect, ...]:
        """What was held back of the texts of an agent and of those below it."""
        over = [*self._streams.below(who)]
        self._streams = self._streams.cut(who)
        ends = [(path, delta, stream.end()) for path, streams in over for delta, stream in streams.items()]
        return tuple(Emit(path, replace(delta, text=text)) for path, delta, text in ends if text)

    def _record(self, record: Any) -> Any:
        return replace(record, **{f.name: self._value(getattr(record, f.name)) for f in fields(record)})

    def _value(self, value: Any) -> Any:
        if isinstance(value, str) and type(value) is not str:  # a StrEnum is ours
            return value
        if is_dataclass(value):
            return self._record(value)
        changed = map_text(value, self.text)
        return tuple(changed) if isinstance(value, tuple) else changed
