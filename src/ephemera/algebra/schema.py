"""This module says which attributes an expression has: stamps, references and variables, with their types.

A declared attribute gives its type to the variable that is bound to it; all else is of any type. A variable that only
an optional part binds may have no value. What is read of a stored join has stamps where patterns have variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, TypeAlias, assert_never

from ephemera.algebra.attributes import EVENT, TERM, begin, end, is_stamp, reference
from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Base,
    Calendar,
    Cross,
    Detection,
    Difference,
    Expression,
    Gap,
    Group,
    Imbed,
    Input,
    Join,
    Match,
    Merge,
    Plan,
    Project,
    RelativeTimer,
    Rename,
    Select,
    SemiJoin,
    Table,
    Union,
)
from ephemera.base.lazy_dataclass import dataclass
from ephemera.rules.nodes import Catalogue
from ephemera.rules.scope import pattern_bindings
from ephemera.terms.nodes import Atom, Pattern, Var

Kind = Literal["stamp", "reference", "data"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: a stamp (a time), a reference to an event, or data of a type."""

    kind: Kind
    type: str = "any"
    optional: bool = False


Schema: TypeAlias = Mapping[str, Attribute]

STAMP = Attribute("stamp", "time")
REFERENCE = Attribute("reference")


def schemas(plan: Plan) -> dict[str, Schema]:
    """The schema of every point; a recursive one has that of its other inputs."""
    found: dict[str, Schema] = {}
    for name, point in plan.points.items():
        if point.kind in ("rule", "stream"):
            found[name] = _stream()
    for name, point in plan.points.items():
        if name not in found:
            found[name] = schema(point.expression, found, plan.catalogue)
    return found


def schema(e: Expression, points: Mapping[str, Schema], catalogue: Catalogue) -> Schema:
    """The attributes of an expression, given those of the points."""
    match e:
        case Base():
            return _stream()
        case Input(point):
            return points[point]
        case Match(_, name, pattern) | Calendar(name, pattern):
            return {**_event(name), **_variables(pattern, catalogue)}
        case Table(pattern, _):
            return _variables(pattern, catalogue)
        case Select(inner, _, _):
            return schema(inner, points, catalogue)
        case Project(inner, attributes):
            inside = schema(inner, points, catalogue)
            return {a: v for a, v in inside.items() if a in attributes or is_stamp(a)}
        case Rename(inner, events, variables):
            names: dict[str, str] = dict(variables)
            for old, new in events:
                names |= {begin(old): begin(new), end(old): end(new), reference(old): reference(new)}
            return {names.get(a, a): v for a, v in schema(inner, points, catalogue).items()}
        case Imbed(inner, _):
            return {**schema(inner, points, catalogue), TERM: Attribute("data")}
        case RelativeTimer(inner, name) | Gap(inner, name):
            return {**schema(inner, points, catalogue), **_event(name)}
        case Merge(inner, name, _):
            kept = {a: v for a, v in schema(inner, points, catalogue).items() if v.kind != "stamp"}
            return {**kept, begin(name): STAMP, end(name): STAMP}
        case Group(inner, by):
            inside = schema(inner, points, catalogue)
            return {**{a: inside[a] for a in by if a in inside}, TERM: Attribute("data")}
        case Join(left, right) | Cross(left, right):
            return joined(schema(left, points, catalogue), schema(right, points, catalogue))
        case SemiJoin(left) | AntiSemiJoin(left) | Difference(left):
            return schema(left, points, catalogue)
        case Union(inputs):
            return _either([schema(one, points, catalogue) for one in inputs])
        case Detection(name, inputs):
            bound = _either([schema(one, points, catalogue) for one in inputs])
            return {**_event(name), **{a: v for a, v in bound.items() if v.kind == "data"}}
        case _:
            assert_never(e)


def joined(left: Schema, right: Schema) -> Schema:
    """All attributes; one that is sure on either side is sure."""
    both = {**left, **right}
    for name in left.keys() & right.keys():
        known = left[name] if left[name].type != "any" else right[name]
        both[name] = replace(known, optional=left[name].optional and right[name].optional)
    return both


def _either(parts: list[Schema]) -> Schema:
    """The attributes of any; one that is not sure in all parts is optional."""
    names = dict.fromkeys(name for part in parts for name in part)
    found: dict[str, Attribute] = {}
    for name in names:
        known = [part[name] for part in parts if name in part]
        kinds = {a.type for a in known}
        optional = len(known) < len(parts) or any(a.optional for a in known)
        found[name] = Attribute(known[0].kind, kinds.pop() if len(kinds) == 1 else "any", optional)
    return found


def _stream() -> Schema:
    return {begin(EVENT): STAMP, end(EVENT): STAMP, TERM: Attribute("data")}


def _event(name: str) -> dict[str, Attribute]:
    return {begin(name): STAMP, end(name): STAMP, reference(name): REFERENCE}


def _variables(pattern: Pattern, catalogue: Catalogue) -> dict[str, Attribute]:
    found = pattern_bindings(pattern)
    types: dict[str, str] = {}
    if isinstance(pattern, Atom):
        declared = catalogue.events.get(str(pattern.label)) or catalogue.tables.get(str(pattern.label))
        if declared is not None and declared.attributes is not None:
            pairs = zip(pattern.arguments, declared.attributes, strict=True)
            types = {a.name: kind for a, (_, kind) in pairs if isinstance(a, Var)}
    sure = {v: STAMP if is_stamp(v) else Attribute("data", types.get(v, "any")) for v in sorted(found.sure)}
    return sure | {v: Attribute("data", optional=True) for v in sorted(found.perhaps)}
