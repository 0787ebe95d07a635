"""This module computes expressions over values; what has no value is `Undefined`.

A sum of integers is an integer, `/` and `div` give doubles, `mod` has the sign of the dividend. Unlike kinds, null
among them, division by zero and overflow are undefined. A length of time is a number that counts the program's
time unit; two times have a length between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import LATEST, TOO_FAR
from ephemera.terms.events import Interval
from ephemera.terms.functions import FUNCTIONS, Undefined, checked
from ephemera.terms.nodes import (
    Aggregate,
    Binary,
    Bool,
    Call,
    ComparisonOperator,
    Duration,
    Expression,
    Name,
    Negative,
    Null,
    Number,
    Text,
    Var,
)
from ephemera.terms.user_functions import UserFunction
from ephemera.terms.values import Time, Value, equal, is_number, less
from ephemera.terms.zones import LocalTime


def no_aggregate(aggregate: Aggregate) -> Value:
    """For places where there is nothing to aggregate."""
    raise Undefined(f"{aggregate.function} outside a head")


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may speak of besides variables: events' times, the program's unit and zone, aggregates."""

    unit: int
    zone: str
    times: Mapping[str, Interval]
    aggregate: Callable[[Aggregate], Value] = no_aggregate
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    """Those that people wrote."""


def compute(e: Expression, variables: Mapping[str, Value], scope: Scope) -> Value:
    """The value of an expression; a variable without one is null."""
    match e:
        case Var(name):
            return variables.get(name)
        case Text(value) | Number(value) | Bool(value):
            return value
        case Null():
            return None
        case Duration(parts):
            return length(int(sum(part.amount for part in parts)), scope.unit)
        case Negative(operand):
            return arithmetic("-", 0, compute(operand, variables, scope), scope.unit)
        case Binary(operator, left, right):
            return arithmetic(operator, compute(left, variables, scope), compute(right, variables, scope), scope.unit)
        case Call("begin" | "end" | "duration" as function, (Name(event),)):
            return _time_of(function, scope.times[event], scope.unit)
        case Call("datetime", (Text(text),)):
            return Time(moment(text, scope.zone))
        case Call(function, arguments):
            return apply(function, [compute(a, variables, scope) for a in arguments], scope)
        case Aggregate():
            return scope.aggregate(e)
        case Name(name):
            raise Undefined(f"{name} is an event")
        case _:
            assert_never(e)


def compare(operator: ComparisonOperator, a: Value, b: Value) -> bool | None:
    """Whether two values stand in a relation; unknown where they cannot be compared."""
    match operator:
        case "=":
            return equal(a, b)
        case "!=":
            return _negated(equal(a, b))
        case "<":
            return less(a, b)
        case ">":
            return less(b, a)
        case "<=":
            return _negated(less(b, a))
        case ">=":
            return _negated(less(a, b))
        case _:
            assert_never(operator)


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _time_of(function: str, time: Interval, unit: int) -> Value:
    match function:
        case "begin":
            return Time(time.begin)
        case "end":
            return Time(time.end)
        case _:
            return length(time.end - time.begin, unit)


def length(microseconds: int, unit: int) -> int | float:
    """A length of time in the program's unit, an integer where it is whole."""
    whole, rest = divmod(microseconds, unit)
    return whole if not rest else microseconds / unit


def moment(text: str, zone: str) -> int:
    """A date and time as microseconds; without a zone it is in the program's."""
    return LocalTime(zone).read(text)


OPERATORS = {"add": "+", "mult": "*", "subtract": "-", "div": "div", "mod": "mod"}


def apply(function: str, arguments: list[Value], scope: Scope) -> Value:
    """A function of values."""
    if function not in OPERATORS:
        if function in scope.functions:
            return scope.functions[function](arguments, scope.zone)
        if function not in FUNCTIONS:
            raise Undefined(f"there is no function {function}")
        return FUNCTIONS[function](function, arguments, scope.zone)
    result = arguments[0]
    for argument in arguments[1:]:
        result = arithmetic(OPERATORS[function], result, argument, scope.unit)
    return result


def lasting(e: Expression, variables: Mapping[str, Value], scope: Scope, longest: int) -> int | None:
    """How long a timer is of which an expression says how many time units, in microseconds; what is finer is cut off.

    None if it is no length: no number, less than nothing, or more than the longest that there may be.
    """
    try:
        value = compute(e, variables, scope)
    except Undefined:
        return None
    if not is_number(value):
        return None
    exact = Decimal(repr(value)) if isinstance(value, float) else value
    length = math.floor(Fraction(exact) * scope.unit)  # type: ignore[arg-type]
    return length if 0 <= length <= longest else None


def arithmetic(operator: str, a: Value, b: Value, unit: int) -> Value:
    """Two values joined by an operator."""
    if isinstance(a, Time) or isinstance(b, Time):
        return _with_time(operator, a, b, unit)
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, int | float) or not isinstance(b, int | float):
        raise Undefined(f"`{operator}` takes numbers")
    try:
        return checked(_numbers(operator, a, b))
    except ZeroDivisionError:
        raise Undefined("division by zero") from None
    except (OverflowError, ValueError):
        raise Undefined("the result is no number") from None


def _numbers(operator: str, a: float, b: float) -> int | float:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "mod" if isinstance(a, int) and isinstance(b, int):
            rest = abs(a) % abs(b)
            return rest if a >= 0 else -rest
        case "mod":
            if b == 0:
                raise ZeroDivisionError
            return math.fmod(a, b)
        case _:
            return float(Fraction(a) / Fraction(b))


def _with_time(operator: str, a: Value, b: Value, unit: int) -> Value:
    """Two times differ by a length; a time and a length make another time."""
    if isinstance(a, Time) and isinstance(b, Time) and operator == "-":
        return length(a.microseconds - b.microseconds, unit)
    if isinstance(b, Time) and operator == "+":
        a, b = b, a
    if isinstance(a, Time) and is_number(b) and operator in ("+", "-"):
        step = Fraction(b) * unit  # type: ignore[arg-type]
        if step.denominator != 1:
            raise Undefined("times are whole microseconds")
        moved = a.microseconds + (int(step) if operator == "+" else -int(step))
        if abs(moved) > LATEST:
            raise Undefined(TOO_FAR)
        return Time(moved)
    raise Undefined(f"`{operator}` does not take these")
