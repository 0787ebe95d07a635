"""This module has the functions of expressions: what each takes and gives, and how its value is computed.

A function is undefined where a value is not of the kind that it takes, null among them; `coalesce` alone takes null.
What depends on a zone goes by that of the program. Positions in texts count characters from 1. Numbers that are whole
come as integers from `floor`, `ceil` and `round` without digits; others are rounded once from the exact result.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Literal

from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.dates import BadPattern, local_moment, written_date
from ephemera.terms.errors import BadMessage
from ephemera.terms.regex import NoRegex, is_match
from ephemera.terms.text import iso
from ephemera.terms.values import LARGEST_INTEGER, Time, Value, equal, is_number, less, merged
from ephemera.terms.zones import LocalTime

Kind = Literal["number", "string", "bool", "time", "any"]


class Undefined(Exception):
    """An expression has no value."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function: the kinds that it takes, of which the last may be repeated, and the kind that it gives."""

    takes: tuple[Kind, ...]
    gives: Kind
    compute: Callable[..., Value]
    """Called with the values of the arguments; one that goes by the zone, with that before them."""
    fewest: int
    most: int | None
    is_zoned: bool = False
    is_same: bool = True
    """Whether it gives equal values for equal arguments, such as 1 and 1.0."""

    def kind(self, place: int) -> Kind:
        """What it takes in a place."""
        return self.takes[min(place, len(self.takes) - 1)]

    def __call__(self, name: str, arguments: Sequence[Value], zone: str) -> Value:
        for place, argument in enumerate(arguments):
            if not _is_of(argument, self.kind(place)):
                raise Undefined(f"`{name}` takes {_A[self.kind(place)]}, and this is {_what(argument)}")
        return self.compute(zone, *arguments) if self.is_zoned else self.compute(*arguments)


_A: dict[Kind, str] = {
    "number": "a number",
    "string": "a text",
    "bool": "a truth value",
    "time": "a time",
    "any": "a value",
}


def _is_of(value: Value, kind: Kind) -> bool:
    match kind:
        case "number":
            return is_number(value)
        case "string":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "time":
            return isinstance(value, Time)
        case _:
            return True


def _what(value: Value) -> str:
    for kind in ("number", "string", "bool", "time"):
        if _is_of(value, kind):
            return _A[kind]
    return "null" if value is None else "a term"


def written(value: Value) -> str:
    """A value as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or is_number(value):
        return json.dumps(value)
    if isinstance(value, Time):
        return iso(value)
    raise Undefined(f"only strings, numbers, truth values and times are written as text, and this is {_what(value)}")


def checked(number: float) -> int | float:
    """A number that fits: 64 bits, or finite."""
    if isinstance(number, int):
        if not -LARGEST_INTEGER - 1 <= number <= LARGEST_INTEGER:
            raise Undefined("the number has more than 64 bits")
    elif not math.isfinite(number):
        raise Undefined("the number is infinite")
    return number


# ---- texts -------------------------------------------------------------------------------------------------


def _substring(text: str, first: float, count: float | None = None) -> str:
    begin = _whole(first, "a position")
    if begin < 1:
        raise Undefined(f"positions in texts count from 1, and this is {begin}")
    if count is None:
        return text[begin - 1 :]
    length = _whole(count, "a number of characters")
    if length < 0:
        raise Undefined(f"{length} characters are less than none")
    return text[begin - 1 : begin - 1 + length]


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        raise Undefined("the empty text cannot be replaced: it is everywhere")
    return text.replace(old, new)


def _matches(text: str, expression: str) -> bool:
    try:
        return is_match(expression, text)
    except NoRegex as error:
        raise Undefined(str(error)) from None


_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def _number(text: str) -> int | float:
    """What JSON would read."""
    if not _NUMBER.fullmatch(text):
        raise Undefined(f"{json.dumps(text[:40], ensure_ascii=False)} is no number")
    return checked(json.loads(text) if len(text) < 400 else float(text))


# ---- numbers -----------------------------------------------------------------------------------------------


def _whole(number: float, what: str) -> int:
    if number != int(number):
        raise Undefined(f"{what} is a whole number, and this is {number}")
    return int(number)


def _round(number: float, digits: float = 0) -> int | float:
    """To so many digits behind the point, halves away from zero; without digits an integer."""
    places = _whole(digits, "a number of digits")
    if abs(places) > 400:
        raise Undefined(f"{places} digits are too many")
    scale = Fraction(10) ** places
    scaled = Fraction(number) * scale
    away = math.floor(abs(scaled) + Fraction(1, 2))
    rounded = Fraction(-away if scaled < 0 else away) / scale
    if isinstance(number, int) or places <= 0:
        return checked(rounded.numerator if rounded.denominator == 1 else float(rounded))
    return float(rounded)


def _power(base: float, exponent: float) -> int | float:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if abs(base) > 1 and exponent > 64:
            raise Undefined("the number has more than 64 bits")
        return checked(base**exponent)
    return _real(lambda: math.pow(base, exponent))


def _real(compute: Callable[[], float]) -> float:
    try:
        return checked(compute())
    except (ValueError, OverflowError, ZeroDivisionError):
        raise Undefined("the result is no number") from None


def _extreme(values: Sequence[Value], *, greatest: bool) -> Value:
    found = values[0]
    for value in values[1:]:
        is_less = less(found, value) if greatest else less(value, found)
        if is_less is None:
            raise Undefined(f"{_what(found)} and {_what(value)} are in no order")
        found = value if is_less else merged(found, value) if equal(found, value) else found
    if less(found, found) is None:
        raise Undefined(f"{_what(found)} is in no order")
    return found


# ---- times -------------------------------------------------------------------------------------------------


def _part(name: str) -> Callable[[str, Time], int]:
    def part(zone: str, time: Time) -> int:
        local = local_time(zone, time)
        match name:
            case "weekday":
                return local.isoweekday()
            case "week":
                return local.isocalendar().week
            case _:
                found: int = getattr(local, name)
                return found

    return part


def local_time(zone: str, time: Time) -> datetime:
    """What a calendar and a clock of the zone show."""
    try:
        return local_moment(time, zone)
    except OverflowError:
        raise Undefined("the time is too far from 1970 to be in a calendar") from None


def _format(zone: str, time: Time, pattern: str) -> str:
    try:
        return written_date(local_time(zone, time), pattern)
    except BadPattern as error:
        raise Undefined(str(error)) from None


def _time(zone: str, text: str) -> Time:
    try:
        return Time(LocalTime(zone, is_declared=True).read(text))
    except BadMessage as error:
        raise Undefined(str(error)) from None


def _coalesce(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


# ---- all of them -------------------------------------------------------------------------------------------


def _of(takes: tuple[Kind, ...], gives: Kind, compute: Callable[..., Value], fewest: int = 0) -> Function:
    return Function(takes, gives, compute, fewest or len(takes), len(takes))


def _zoned(takes: tuple[Kind, ...], gives: Kind, compute: Callable[..., Value]) -> Function:
    return Function(takes, gives, compute, len(takes), len(takes), is_zoned=True)


def _many(takes: Kind, gives: Kind, compute: Callable[..., Value], *, is_same: bool = True) -> Function:
    return Function((takes,), gives, compute, 1, None, is_same=is_same)


FUNCTIONS: dict[str, Function] = {
    "concat": _many("any", "string", lambda *values: "".join(map(written, values)), is_same=False),
    "text": Function(("any",), "string", written, 1, 1, is_same=False),
    "upper": _of(("string",), "string", str.upper),
    "lower": _of(("string",), "string", str.lower),
    "trim": _of(("string",), "string", str.strip),
    "length": _of(("string",), "number", len),
    "substring": _of(("string", "number", "number"), "string", _substring, fewest=2),
    "replace": _of(("string", "string", "string"), "string", _replace),
    "contains": _of(("string", "string"), "bool", lambda text, part: part in text),
    "starts-with": _of(("string", "string"), "bool", lambda text, part: text.startswith(part)),
    "ends-with": _of(("string", "string"), "bool", lambda text, part: text.endswith(part)),
    "matches": _of(("string", "string"), "bool", _matches),
    "number": _of(("string",), "number", _number),
    "abs": _of(("number",), "number", lambda number: checked(abs(number))),
    "floor": _of(("number",), "number", lambda number: checked(math.floor(number))),
    "ceil": _of(("number",), "number", lambda number: checked(math.ceil(number))),
    "round": _of(("number", "number"), "number", _round, fewest=1),
    "sqrt": _of(("number",), "number", lambda number: _real(lambda: math.sqrt(number))),
    "power": Function(("number", "number"), "number", _power, 2, 2, is_same=False),
    "exp": _of(("number",), "number", lambda number: _real(lambda: math.exp(number))),
    "ln": _of(("number",), "number", lambda number: _real(lambda: math.log(number))),
    "least": _many("any", "any", lambda *values: _extreme(values, greatest=False)),
    "greatest": _many("any", "any", lambda *values: _extreme(values, greatest=True)),
    "coalesce": _many("any", "any", _coalesce),
    **{n: _zoned(("time",), "number", _part(n)) for n in ("year", "month", "day", "hour", "minute", "second")},
    "weekday": _zoned(("time",), "number", _part("weekday")),
    "week": _zoned(("time",), "number", _part("week")),
    "format": _zoned(("time", "string"), "string", _format),
    "time": _zoned(("string",), "time", _time),
}
"""The functions of values; those of events (`begin`, `end`, `duration`) and of arithmetic stand beside them."""
