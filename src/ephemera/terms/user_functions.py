"""This module calls functions that people wrote in Python and that programs declare with the types of their arguments.

Such a function gets each argument as its declared type has it: a double for `float`, whatever number came; a time as a
`datetime` in the zone of the program. An argument that is not of the type, null among them, makes the call undefined,
as do an exception and a result that is not of the declared type. `any` takes what comes, null too. A function is
expected to give the same value for the same arguments; it may be called more or less often than there are answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from importlib import import_module
from typing import Any

from ephemera.base.errors import EphemeraError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.errors import BadMessage
from ephemera.terms.functions import Undefined, checked, local_time
from ephemera.terms.values import Term, Time, Value, is_number
from ephemera.terms.zones import LocalTime


class NoFunction(EphemeraError):
    """A function that a program declares, and that is not where it says.

    >>> try:
    ...     loaded("math:squareroot")
    ... except NoFunction as error:
    ...     print(error)
    the module `math` has no function `squareroot`
    """


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A declared function: the types that it takes and gives, and where it is, as `module:function`."""

    name: str
    takes: tuple[str, ...]
    gives: str
    place: str

    @property
    def meaning(self) -> tuple[object, ...]:
        """What tells it apart from others of its name."""
        return self.takes, self.gives, self.place

    def __call__(self, arguments: Sequence[Value], zone: str) -> Value:
        given = [self._given(argument, wanted, zone) for argument, wanted in zip(arguments, self.takes, strict=True)]
        function = loaded(self.place)
        try:
            found = function(*given)
        except Exception as error:  # noqa: BLE001 - whatever it is, the value is not known
            raise Undefined(f"`{self.name}` raised {type(error).__name__}: {error}") from None
        return self._taken(found, zone)

    def _given(self, value: Value, wanted: str, zone: str) -> Any:
        match wanted:
            case "int" if is_number(value) and value == int(value):  # type: ignore[arg-type]
                return int(value)  # type: ignore[arg-type]
            case "float" if is_number(value):
                return float(value)  # type: ignore[arg-type]
            case "string" if isinstance(value, str):
                return value
            case "bool" if isinstance(value, bool):
                return value
            case "time" if isinstance(value, Time):
                return local_time(zone, value)
            case "any" if not isinstance(value, Term):
                return local_time(zone, value) if isinstance(value, Time) else value
            case _:
                raise Undefined(f"`{self.name}` takes a value of type {wanted} here, and this is {value!r}")

    def _taken(self, found: Any, zone: str) -> Value:
        match self.gives:
            case "int" if isinstance(found, int) and not isinstance(found, bool):
                return checked(found)
            case "float" if isinstance(found, int | float) and not isinstance(found, bool):
                return checked(float(found) if math.isfinite(found) else found)
            case "string" if isinstance(found, str):
                return found
            case "bool" if isinstance(found, bool):
                return found
            case "time" if isinstance(found, date):
                return _instant(found, zone)
            case "any" if isinstance(found, date):
                return _instant(found, zone)
            case "any" if found is None or isinstance(found, bool | str):
                return found
            case "any" if isinstance(found, int | float):
                return checked(found)
            case _:
                raise Undefined(f"`{self.name}` gave {found!r}, which is no value of type {self.gives}")


def _instant(moment: date, zone: str) -> Time:
    plain = datetime.fromisoformat(moment.isoformat())
    try:
        return Time(LocalTime(zone, is_declared=True).instant(plain))
    except BadMessage as error:
        raise Undefined(str(error)) from None


def load_all(functions: Mapping[str, UserFunction]) -> None:
    """Finds the functions of a program, so that one that is not there is told before anything is read."""
    for function in functions.values():
        loaded(function.place)


@lru_cache(256)
def loaded(place: str) -> Callable[..., Any]:
    """The function at a place."""
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise NoFunction(
            f"cannot load `{place}`: {error}; the module has to be installed, or in a folder that PYTHONPATH names"
        ) from None
    if not callable(found):
        raise NoFunction(f"the module `{module}` has no function `{name}`")
    return found  # type: ignore[no-any-return]
