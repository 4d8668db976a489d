"""Events, effects and sessions <-> JSON, for the log: {"type": NAME, each field under its name}.

A tuple of ours is a list in JSON and the type of its field says so; inside a provider's own objects, where
any JSON may stand, a tuple (a rope of an unfinished answer) is written as {"$tuple": [...]}, and an object
whose only member begins with $ gets one more $.
"""

import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from bantam.core import effects, events, state
from bantam.core.base import settings
from bantam.core.base.grown import Grown
from bantam.core.base.record import fields, is_dataclass
from bantam.core.base.trie import Address, Trie
from bantam.core.tools import table, toolbox
from bantam.core.wire import assemble

MODULES = (settings, events, effects, assemble, table, toolbox, state)


def encode(value: Any) -> Any:
    """The JSON value of a dataclass of the core, or of anything that may stand in one."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__} | {f.name: _field(getattr(value, f.name)) for f in fields(value)}
    return _field(value)


def decode(value: Any) -> Any:
    """What `encode` was given. Raises ValueError for what it never gives."""
    try:
        return _object(value)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise ValueError(f"not an event of this version: {problem}") from None


def _field(value: Any) -> Any:
    match value:
        case StrEnum():
            return str(value)
        case frozenset():
            return sorted(value)
        case tuple() | Grown():
            return [_field(item) for item in value]
        case Trie():
            return [[list(key), _field(item)] for key, item in value.items()]
        case _:
            return encode(value) if is_dataclass(value) else _opaque(value)


def _opaque(value: Any) -> Any:
    if isinstance(value, tuple):
        return {"$tuple": list(value)}
    if isinstance(value, Mapping):
        mark = "$" if len(value) == 1 and next(iter(value)).startswith("$") else ""
        return {mark + key: _opaque(item) for key, item in value.items()}
    return [_opaque(item) for item in value] if isinstance(value, list) else value


def _revealed(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$tuple"}:
            return tuple(value["$tuple"])
        marked = len(value) == 1 and next(iter(value)).startswith("$$")
        return {key[marked:]: _revealed(item) for key, item in value.items()}
    return [_revealed(item) for item in value] if isinstance(value, list) else value


@cache
def _classes() -> Mapping[str, tuple[type, Mapping[str, Any]]]:
    """Name -> (class, types of its fields); worked out at the first decoding, for it is slow."""
    found = {
        name: thing
        for module in MODULES
        for name, thing in vars(module).items()
        if isinstance(thing, type) and is_dataclass(thing)
    }
    return {name: (thing, typing.get_type_hints(thing)) for name, thing in found.items()}


def _object(value: Any) -> Any:
    kind, hints = _classes()[value["type"]]
    return kind(**{name: _as(hints[name], item) for name, item in value.items() if name != "type"})


def _as(hint: Any, value: Any) -> Any:
    """A JSON value as the type that a field declares."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return _revealed(value)
    if origin in (typing.Union, types.UnionType):
        return _one_of(inner, value)
    if origin in (tuple, frozenset):
        return origin(_as(inner[0], item) for item in _checked(value, isinstance(value, list)))
    if origin is Trie:
        return Trie((_as(Address, key), _as(inner[0], item)) for key, item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _revealed(_checked(value, isinstance(value, dict)))
    if origin is typing.Literal:
        return _checked(value, value in inner)
    if issubclass(hint, StrEnum):
        return hint(value)
    if is_dataclass(hint):
        return _one_of((hint,), value)
    return _checked(value, type(value) is hint or (hint is float and type(value) is int))


def _one_of(options: tuple[Any, ...], value: Any) -> Any:
    """A value as the member of a union that it can be: a dataclass, nothing, a tuple, or a plain value."""
    if isinstance(value, dict):
        made = _object(value)
        return _checked(made, type(made) in options)
    if value is None:
        return _checked(value, type(None) in options)
    wanted = tuple if isinstance(value, list) else None
    possible = [o for o in options if typing.get_origin(o) is wanted and o is not type(None) and not is_dataclass(o)]
    return _as(possible[0], value) if possible else _checked(value, False)


def _checked(value: Any, fits: bool) -> Any:
    if not fits:
        raise TypeError(f"{value!r} does not belong here")
    return value
