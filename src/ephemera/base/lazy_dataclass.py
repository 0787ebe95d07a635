"""This module makes slotted dataclasses whose `__init__` is compiled when the first one is made, not with the class.

Python writes and compiles six functions for each frozen dataclass, which takes half a millisecond. There are hundreds
of nodes, and a command that looks at a program needs few of them, so most of its time went there. What is made here
behaves as what `dataclasses` makes, and its functions `fields`, `replace` and `is_dataclass` take it: fields and slots
are made by Python itself, which takes no compiler; comparing, printing and pickling go by the names of the fields.

Those that are frozen inherit from frozen ones of this module, others from others. Order is not among the options.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - type checkers know it, and it is offered here
else:

    def dataclass(*, slots: bool, frozen: bool = False, eq: bool = True) -> Callable[[type], type]:
        """The decorator, used as `dataclass(frozen=True, slots=True)`."""
        if not slots:
            raise TypeError("dataclasses without slots are made by `dataclasses`")
        return lambda cls: _made(cls, frozen=frozen, eq=eq)


def _made(cls: type, *, frozen: bool, eq: bool) -> type:
    cls.__doc__ = cls.__doc__ or cls.__name__  # or Python would write one, with a signature that takes a while
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    own = {"__init__": _first_init(cls, frozen=frozen), "__repr__": _repr(cls)}
    if eq:
        own |= _comparison(cls, frozen=frozen)
    if frozen:
        own |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        own |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in own.items():
        if cls.__dict__.get(name) is None:  # Python puts a None where only `__eq__` is defined, for `__hash__`
            setattr(cls, name, method)
    return cls


# ---- construction ----------------------------------------------------------------------------------------------


def _first_init(cls: type, *, frozen: bool) -> Callable[..., None]:
    """An `__init__` that puts a better one in its place."""

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:  # noqa: N807
        cls.__init__ = compiled = _compiled_init(cls, frozen=frozen)  # type: ignore[misc]
        compiled(self, *values, **named)

    return __init__


def _compiled_init(cls: type, *, frozen: bool) -> Callable[..., None]:
    """The `__init__` that somebody would write for these fields."""
    names: dict[str, Any] = {"_MISSING": MISSING}
    positional: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(cls):
        parameter = value = name = field.name
        if field.default_factory is not MISSING:
            names[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_MISSING"
            value = f"_make_{name}() if {name} is _MISSING else {name}" if field.init else f"_make_{name}()"
        elif field.default is not MISSING:
            names[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
            value = name if field.init else f"_default_{name}"
        elif not field.init:
            continue  # whoever declares such a field sets it
        if field.init:
            (keywords if field.kw_only else positional).append(parameter)
        if frozen:  # slots can be set past what refuses it, and that is the fastest way, too
            names[f"_set_{name}"] = getattr(cls, name).__set__
        lines.append(f"_set_{name}(self, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({parameters}):\n    {body}", names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


# ---- what needs no compiler ------------------------------------------------------------------------------------


def _comparison(cls: type, *, frozen: bool) -> dict[str, Any]:
    values = _values([field.name for field in dataclasses.fields(cls) if field.compare])

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What takes the values of some fields."""
    match names:
        case []:
            return lambda _: ()
        case [name]:
            only = attrgetter(name)
            return lambda one: (only(one),)
        case _:
            return attrgetter(*names)


def _repr(cls: type) -> Callable[[Any], str]:
    names = [field.name for field in dataclasses.fields(cls) if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _refuse_to_set(self: object, name: str, value: object) -> None:
    del self, value
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    del self
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
