"""Frozen dataclasses that cost nothing to define: the core has seventy, and start-up is a feature.

`dataclasses` compiles six methods for each class, 0.3 ms a class, which is a fifth of Bantam's start. Here
all classes share methods that are written once. A type checker sees the standard library's own, and at run
time `dataclasses.replace`, `fields` and `is_dataclass` take these classes too.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass, field, fields, is_dataclass, replace

    __all__ = ["dataclass", "field", "fields", "is_dataclass", "replace"]
else:

    class _Factory:
        __slots__ = ("make",)

        def __init__(self, make):
            self.make = make

    class _Fields:
        """What the standard library asks of a class, worked out when it does: its own dataclass of the same fields."""

        def __get__(self, instance, owner):
            import dataclasses

            members = {
                name: dataclasses.field(default_factory=value.make) if isinstance(value, _Factory) else value
                for name, value in owner.__record_defaults__.items()
            }
            twin = type(owner.__name__, (), {"__annotations__": owner.__annotations__, **members})
            owner.__dataclass_fields__ = dataclasses.dataclass(frozen=True)(twin).__dataclass_fields__
            return owner.__dataclass_fields__

    def field(*, default_factory):
        """A default that is made anew for each instance."""
        return _Factory(default_factory)

    class _Name:
        __slots__ = ("name",)

        def __init__(self, name):
            self.name = name

    @cache
    def _names(kind):
        return tuple(map(_Name, kind.__match_args__))

    def fields(record):
        """A record's fields, each as an object with a `name`."""
        return _names(type(record))

    def is_dataclass(value):
        return hasattr(value, "__record_defaults__")

    def replace(record, /, **changes):
        """The same record with some fields changed. Raises TypeError for a field that it does not have."""
        other = object.__new__(type(record))
        other.__dict__.update(record.__dict__, **changes)
        if len(other.__dict__) != len(record.__dict__):
            raise TypeError(f"{type(record).__name__} has the fields {', '.join(record.__dict__)}")
        return other

    def dataclass(*, frozen):
        """Make a record of a class: its annotated names are its fields."""
        assert frozen
        return _made

    def _made(cls):
        names = (*cls.__annotations__,)
        cls.__record_defaults__ = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
        cls.__match_args__ = names
        cls.__dataclass_fields__ = _Fields()
        cls.__init__, cls.__repr__, cls.__eq__, cls.__hash__ = _init, _repr, _eq, _hash
        cls.__setattr__ = cls.__delattr__ = _refuse
        return cls

    def _init(self, *args, **kwargs):
        names, values = self.__match_args__, self.__dict__
        values.update(zip(names, args, strict=False))
        if kwargs:
            if not values.keys().isdisjoint(kwargs):
                raise TypeError(f"{type(self).__name__}: a field was given twice")
            values.update(kwargs)
        if len(values) != len(names) or kwargs:
            if len(values) < len(names):
                for name, default in self.__record_defaults__.items():
                    if name not in values:
                        values[name] = default.make() if type(default) is _Factory else default
            if values.keys() != {*names}:
                raise TypeError(f"{type(self).__name__} has the fields {', '.join(names)}, not {', '.join(values)}")
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__} has {len(names)} fields, not {len(args)}")

    def _repr(self):
        return f"{type(self).__qualname__}({', '.join(f'{n}={self.__dict__[n]!r}' for n in self.__match_args__)})"

    def _eq(self, other):
        return self.__dict__ == other.__dict__ if type(self) is type(other) else NotImplemented

    def _hash(self):
        return hash((type(self), *(self.__dict__[name] for name in self.__match_args__)))

    def _refuse(self, name: str, *value: Any):
        raise AttributeError(f"{type(self).__name__} is frozen: cannot change {name!r}")
