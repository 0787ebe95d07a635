"""This module says what of its input a program needs: which attributes of which events, and with which constants.

An attribute that no rule looks at may be left out where it makes no difference whether two events are one: where rules
only join, test and show. Where something is counted or collected, or events are told apart, events are needed whole.

A type of events can be filtered only if every use of it in the program asks for a constant: then an event is of use if
it has all constants of one of them. A filter may let too much through, since rules test their patterns anyway, but
never too little. So a constant counts only where equality in columns is surely that of the language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ephemera.algebra.attributes import is_blank
from ephemera.algebra.nodes import Detection, Group, Input, Match, Plan, Point, Rename
from ephemera.algebra.scalar import Matches, SameEvent
from ephemera.base.tree import find
from ephemera.rewrite.optimize import Rewritten
from ephemera.rules.nodes import Schema
from ephemera.terms.nodes import Anonymous, Atom, Bool, NamedAtom, Number, Pattern, Text, Var

Constant: TypeAlias = bool | int | float | str
Asked: TypeAlias = tuple[tuple[str, Constant], ...]
"""Attributes with the constants that one use of a type asks for."""
EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
MANY = 64
"""So many uses of a type are told apart; if there are more, only a common attribute helps."""


def narrow_columns(given: Rewritten) -> Rewritten:
    """The same, with what has to be read of each type of event."""
    return replace(given, columns=wanted(given.plan), reading=given.plan)


def wanted(plan: Plan) -> dict[str, frozenset[str]] | None:
    """For each label the attributes that rules need; None if a rule reads events of any label."""
    reserved = plan.catalogue.reserves
    found = {label: frozenset(plan.catalogue.attributes(label) or ()) for label in reserved}
    for point in plan.points.values():
        if point.kind != "rule":
            continue
        unused = blanks(point)
        whole = any(True for _ in find(point.expression, (Group, Detection, SameEvent, Matches)))
        for use in find(point.expression, Rename):
            if isinstance(use.input, Input):
                query = plan.points[use.input.point]
                if query.label is None:
                    return None
                names = plan.catalogue.attributes(query.label) or ()
                schema = plan.catalogue.events.get(query.label)
                is_judged = schema is not None and schema.apart is not None  # by all that they have
                asked = frozenset(names if whole or is_judged else _asked(query, use, list(names), unused))
                found[query.label] = found.get(query.label, frozenset()) | asked
    return found


def blanks(point: Point) -> frozenset[str]:
    """The variables of a rule that stand for `_`, where they are not used after all."""
    named = Counter(new for use in find(point.expression, Rename) for _, new in use.variables)
    used = {variable.name for variable in find(point.expression, Var)}
    return frozenset(name for name, count in named.items() if is_blank(name) and count == 1 and name not in used)


def _asked(query: Point, use: Rename, names: list[str], unused: frozenset[str]) -> Iterable[str]:
    renamed = dict(use.variables)
    for match in find(query.expression, Match):
        yield from _named_in(match.pattern, names, {old for old, new in renamed.items() if new in unused})


def _named_in(pattern: Pattern, names: list[str], unused: set[str]) -> Iterable[str]:
    match pattern:
        case Atom(_, arguments) if len(arguments) == len(names):
            for name, argument in zip(names, arguments, strict=True):
                is_unused = isinstance(argument, Anonymous) or (isinstance(argument, Var) and argument.name in unused)
                if not is_unused:
                    yield name
        case NamedAtom(_, fields):
            yield from (x.name for x in fields)
        case _:
            yield from names


# ---- constants -----------------------------------------------------------------------------------------------


def constants(plans: Sequence[Plan]) -> Mapping[str, tuple[Asked, ...]]:
    """For each label that can be filtered the constants of its uses, in all of some programs that declare the same."""
    found: dict[str, list[Asked]] = {}
    for plan in plans:
        for query in _uses(plan):
            if query.label is None:
                return {}
            schema = plan.catalogue.events.get(query.label)
            if schema is not None and schema.apart is not None:
                found.setdefault(query.label, []).append(())  # what rules do not ask for may be too close to the rest
                continue
            patterns = [match.pattern for match in find(query.expression, Match)]
            found.setdefault(query.label, []).extend(tuple(_constants_in(p, schema)) for p in patterns)
    several = {label: tuple({repr(use): use for use in uses}.values()) for label, uses in found.items()}
    return {label: uses for label, uses in several.items() if all(uses) and _are_few(uses)}


def _uses(plan: Plan) -> Iterator[Point]:
    """The queries that rules read."""
    for point in plan.points.values():
        if point.kind == "rule":
            for use in find(point.expression, Rename):
                if isinstance(use.input, Input):
                    yield plan.points[use.input.point]


def _are_few(uses: tuple[Asked, ...]) -> bool:
    return len(uses) <= MANY or only_attribute(uses) is not None


def only_attribute(uses: tuple[Asked, ...]) -> str | None:
    """The attribute that all uses ask for, if they ask for no other."""
    names = {name for use in uses for name, _ in use}
    return names.pop() if len(names) == 1 and all(len(use) == 1 for use in uses) else None


def _constants_in(pattern: Pattern, schema: Schema | None) -> Iterator[tuple[str, Constant]]:
    if schema is None or schema.attributes is None:
        return
    types = dict(schema.attributes)
    match pattern:
        case Atom(_, arguments) if len(arguments) == len(types):
            given = list(zip(types, arguments, strict=True))
        case NamedAtom(_, fields):
            given = [(field.name, field.argument) for field in fields if field.name in types]
        case _:
            return
    for name, argument in given:
        if isinstance(argument, Text | Number | Bool):
            constant = comparable(types[name], argument.value)
            if constant is not None:
                yield name, constant


def comparable(kind: str, constant: Constant) -> Constant | None:
    """A constant as a column of a type has it, if it equals there what it equals in the language; otherwise None."""
    if isinstance(constant, bool):
        return constant if kind in ("bool", "any") else None
    if isinstance(constant, str):
        return constant if kind in ("string", "any") else None
    match kind:
        case "any":
            return constant
        case "int" if isinstance(constant, int):
            return constant if -(1 << 63) <= constant < 1 << 63 else None
        case "int":
            return int(constant) if int(constant) == constant and abs(constant) <= EXACT else None
        case "float" if constant and (isinstance(constant, float) or abs(constant) <= EXACT):
            return float(constant)
        case _:
            return None
