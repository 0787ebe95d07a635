"""This module says how far apart the events are that a primitive of an algebra expression reads, for each value.

`AT LEAST d APART PER x` says so if all that have one value of the shared variables have one value of x: x is one of
them, or a constant. With it a detector that keeps what ends within some time keeps a number of instances.
"""

from __future__ import annotations

from collections.abc import Iterator

from ephemera.algebra.detector import Detector, Slot
from ephemera.algebra.nodes import Composition, Detected, Detection, Input, Limit, Match, Never, Plan, Primitive, Rename
from ephemera.algebra.parts import member_head, position_of
from ephemera.base.tree import find
from ephemera.syntax.nodes import Detect
from ephemera.terms.nodes import Atom, Bool, NamedAtom, Number, Text


def separations(plan: Plan, detection: Detection) -> tuple[int | None, ...]:
    """For each input of an expression how long at least lies between the ends of two events of one value."""
    if any(
        p.kind == "rule" and p.label is None and isinstance(member_head(p).head, Detect) for p in plan.points.values()
    ):
        return (None,) * len(detection.inputs)  # a variable decides what is derived, which is not judged
    shared = frozenset(detection.shared)
    return tuple(_separation(plan, one, shared) for one in detection.inputs)


def _separation(plan: Plan, read: object, shared: frozenset[str]) -> int | None:
    if not isinstance(read, Rename) or not isinstance(read.input, Input):
        return None
    query = plan.points[read.input.point]
    schema = plan.catalogue.events.get(query.label or "")
    if schema is None or schema.apart is None:
        return None
    own = {old for old, new in read.variables if new in shared} | (shared - {old for old, _ in read.variables})
    fixed = {place[1] for name in own if (place := position_of(plan, query.name, name)) is not None}
    fixed |= set(_constants([match.pattern for match in find(query.expression, Match)], schema.names))
    is_told = all(schema.names.index(name) in fixed for name in schema.apart.per)
    return schema.apart.distance if is_told else None


def _constants(patterns: list[object], names: tuple[str, ...]) -> Iterator[int]:
    """Where the one pattern of a query has constants."""
    match patterns:
        case [Atom(_, arguments)]:
            yield from (k for k, a in enumerate(arguments) if isinstance(a, Text | Number | Bool))
        case [NamedAtom(_, fields)]:
            yield from (names.index(x.name) for x in fields if isinstance(x.argument, Text | Number | Bool))
        case _:
            return


def ending(e: Detected) -> Iterator[int]:
    """The primitives with which an instance may end."""
    match e:
        case Primitive(number, _):
            yield number
        case Never():
            return
        case Limit(operand, _) | Composition("-", operand) | Composition(";", _, operand):
            yield from ending(operand)
        case Composition(_, left, right):
            yield from ending(left)
            yield from ending(right)


def most_within(detector: Detector, slot: Slot) -> int | None:
    """How many instances of an operand can end within the label of a slot; None is any number."""
    if not slot.label:
        return slot.label
    apart = [detector.apart[number] for number in ending(slot.operand)]
    known = [one for one in apart if one is not None]
    return sum(-(-slot.label // one) for one in known) if len(known) == len(apart) else None


def most_rows(detector: Detector, slot: Slot) -> int | None:
    """How many rows a slot holds at most for each value of the shared variables; None is any number."""
    if slot.label == 0:
        return 2 if slot.node.operator == ";" else 1
    within = most_within(detector, slot)
    return None if within is None else 1 + within
