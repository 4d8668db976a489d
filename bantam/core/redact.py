"""The key's value never gets further than the event that brought it: it becomes `[key]` there."""

from typing import Any

from bantam.core.events import ConfigChanged, Event, Failure
from bantam.core.messages import map_text
from bantam.core.record import fields, replace

MARK = "[key]"
KEY_LENGTH_MIN = 6  # a shorter value is a placeholder such as `k`, and a common word


def text(secret: str | None, value: str) -> str:
    return value.replace(secret, MARK) if secret and len(secret) >= KEY_LENGTH_MIN else value


def event(secret: str | None, told: Event) -> Event:
    """The same event without the key, wherever it stood: typed, printed by a command, echoed by a server."""
    if not secret or len(secret) < KEY_LENGTH_MIN or isinstance(told, ConfigChanged):
        return told
    cleaned: Event = _record(secret, told)
    return cleaned


def _record(secret: str, record: Any) -> Any:
    return replace(record, **{f.name: _value(secret, getattr(record, f.name)) for f in fields(record)})


def _value(secret: str, value: Any) -> Any:
    if isinstance(value, str) and type(value) is not str:  # a StrEnum is ours
        return value
    if isinstance(value, Failure):
        return _record(secret, value)
    changed = map_text(value, lambda string: text(secret, string))
    return tuple(changed) if isinstance(value, tuple) else changed
