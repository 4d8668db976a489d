"""Events, effects and sessions <-> JSON, for the log: {"type": NAME, each field under its name}.

A tuple of ours is a list in JSON and the type of its field says so; inside a provider's own objects, where
any JSON may stand, a tuple (a rope of an unfinished answer) is written as {"$tuple": [...]}.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from bantam.core import assemble, effects, events, settings, state, tools

MODULES = (settings, events, effects, assemble, tools, state)


def encode(value: Any) -> Any:
    """The JSON value of a dataclass of the core, or of anything that may stand in one."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__} | {f.name: _field(getattr(value, f.name)) for f in fields(value)}
    return _field(value)


def decode(value: Any) -> Any:
    """What `encode` was given. Raises ValueError for what it never gives."""
    try:
        return _object(value)
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"not an event of this version: {problem}") from None


def _field(value: Any) -> Any:
    match value:
        case StrEnum():
            return str(value)
        case frozenset():
            return sorted(value)
        case tuple():
            return [_field(item) for item in value]
        case Mapping() if value and all(isinstance(key, tuple) for key in value):
            return [[list(key), _field(item)] for key, item in value.items()]
        case Mapping():
            return {key: _opaque(item) for key, item in value.items()}
        case _:
            return encode(value) if is_dataclass(value) else value


def _opaque(value: Any) -> Any:
    if isinstance(value, tuple):
        return {"$tuple": list(value)}
    if isinstance(value, Mapping):
        return {key: _opaque(item) for key, item in value.items()}
    return [_opaque(item) for item in value] if isinstance(value, list) else value


def _revealed(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$tuple"}:
            return tuple(value["$tuple"])
        return {key: _revealed(item) for key, item in value.items()}
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
    if value is None or hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return _object(value) if isinstance(value, dict) and "type" in value else _as(_only(inner, value), value)
    if origin is tuple:
        return tuple(_as(inner[0], item) for item in value)
    if origin is frozenset:
        return frozenset(value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if isinstance(value, list):
            return {tuple(key): _as(inner[1], item) for key, item in value}
        return _revealed(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    if isinstance(hint, type) and is_dataclass(hint):
        return _object(value)
    return value


def _only(options: tuple[Any, ...], value: Any) -> Any:
    """The member of a union that a list, or a plain value, can be."""
    wanted = tuple if isinstance(value, list) else None
    return next((o for o in options if typing.get_origin(o) is wanted and o is not type(None)), Any)
