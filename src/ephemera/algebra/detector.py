"""This module says how a restricted algebra expression is detected event by event: by figures 2 and 4 of the paper.

A detector has a few slots for each value of the shared variables. A slot holds instances of a part of the expression
that started later than all before them, its *records*: of the left of a sequence those that may still be followed, of
both sides of a conjunction and of what must be absent the last one. What cannot matter any more is dropped.

Not every expression has a detector. Where a primitive knows some but not all of the shared variables, or tests what
others have bound, or the whole may occur without any of them, which instance is picked depends on values that may come
later. Such expressions, unrestricted ones and those of recursive rules are evaluated over all that is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, assert_never

from ephemera.algebra.attributes import Variable, is_blank
from ephemera.algebra.nodes import Composition, Detected, Detection, Expression, Limit, Never, Primitive, Rename
from ephemera.algebra.scalar import TRUE
from ephemera.algebra.schema import Schema
from ephemera.algebra.transform import Same, Time, shrink, transform
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find


@dataclass(frozen=True, slots=True)
class Slot:
    """Which instances of an operand are kept for each value of the shared variables."""

    node: Composition
    side: Literal["left", "right"]
    label: Time
    """Those that ended less than this before now are all kept, and one more; None is all of them."""
    within: Time
    """None is kept longer than this after its start; None is for ever."""

    @property
    def operand(self) -> Detected:
        return self.node.left if self.side == "left" else self.node.right

    @property
    def is_time(self) -> bool:
        """Whether only its start matters, and what it is made of does not."""
        return self.node.operator == "-"

    @property
    def keeps_one(self) -> bool:
        """Whether only the last record is kept."""
        return self.label == 0


@dataclass(frozen=True, slots=True)
class Detector:
    """How an expression is detected."""

    expression: Detected
    """As `transform` has made it."""
    longest: Time
    """How long an instance that is reported may last."""
    shared: tuple[Variable, ...]
    keyed: tuple[bool, ...]
    """For each primitive whether it knows the shared variables; the others serve all their values."""
    own: tuple[tuple[Variable, ...], ...]
    """For each primitive its other variables."""
    reported: frozenset[int]
    """The primitives that may be parts of what is reported."""
    apart: tuple[Time, ...] = ()
    """For each primitive how long at least lies between the ends of two of its events, for each value; None is any."""
    labels: tuple[str, ...] = ()
    """What each primitive is called: the label of its events."""

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What is kept, in the order of the operators from the innermost on."""
        return tuple(_slots(self.expression))

    @property
    def marks(self) -> bool:
        """Whether it is kept when the last event of a value came.

        Where something may occur without events that know the value, such an event may have kept it out. The value must
        not begin anew, with what occurs for all other values, as long as anything of that is kept.
        """
        return any(True for _ in self._mixed())

    def _mixed(self) -> Iterator[Slot]:
        """The slots that may hold instances with a part that knows the shared variables, and others without one."""
        for slot in self.slots if self.serves_all else ():
            some = any(self.keyed[p.input] for p in find(slot.operand, Primitive))
            if some and not _is_keyed(slot.operand, self.keyed):
                yield slot

    @property
    def limits(self) -> tuple[tuple[Time, Time], ...]:
        """For each slot its label, and how long after its start all is dead; the last for when values came, if kept."""
        every = [(slot.label, slot.within) for slot in self.slots]
        within = [slot.within for slot in self._mixed()]
        if within:
            known = [one for one in within if one is not None]
            every.append((0, max(known) if len(known) == len(within) else None))
        return tuple(every)

    @property
    def held(self) -> frozenset[int]:
        """The primitives that may be parts of records and be reported then."""
        kept = (p.input for slot in self.slots if not slot.is_time for p in find(slot.operand, Primitive))
        return self.reported.intersection(kept)

    @property
    def serves_all(self) -> bool:
        """Whether some events count for all values of the shared variables."""
        return bool(self.shared) and not all(self.keyed[p.input] for p in find(self.expression, Primitive))


def detector(detection: Detection, inputs: Sequence[Schema], lengths: Sequence[Time], within: Time) -> Detector | None:
    """The detector of an expression whose inputs have these attributes and lengths; None if it has none.

    Instances that last longer than `within` are of no use to the rule.
    """
    names = [{a for a, v in schema.items() if v.kind == "data"} for schema in inputs]
    sure = [{a for a, v in schema.items() if v.kind == "data" and not v.optional} for schema in inputs]
    shared = set(detection.shared)
    primitives = list(find(detection.expression, Primitive))
    keyed = [shared <= own for own in sure]
    names = [{v for v in own if not is_blank(v)} for own in names]
    times = Counter(v for own in names for v in own - shared)
    is_plain = (
        detection.restricted
        and all(p.test == TRUE for p in primitives)
        and all(is_keyed or not shared & own for is_keyed, own in zip(keyed, names, strict=True))
        and not any(count > 1 for count in times.values())
        and (not shared or _is_keyed(detection.expression, keyed))
    )
    if not is_plain:
        return None
    smaller = shrink(detection.expression, *comparisons(detection))
    expression, longest = transform(smaller, lengths, within)
    return Detector(
        expression,
        longest,
        detection.shared,
        tuple(keyed),
        tuple(tuple(sorted(Variable(v) for v in own - shared)) for own in names),
        frozenset(_reported(expression)),
        labels=detection.labels,
    )


def comparisons(detection: Detection) -> tuple[Same, Same]:
    """Whether parts of an expression mean the same, and whether they have the same instances, whatever they bind."""
    return _Same(detection.inputs), _Same(detection.inputs, frozenset(detection.shared))


class _Same:
    """Whether two expressions are the same but for the names of the events in them, or of all but some variables."""

    def __init__(self, inputs: Sequence[Expression], names: frozenset[Variable] | None = None) -> None:
        self._inputs = inputs
        self._names = names

    def __call__(self, a: Detected, b: Detected) -> bool:
        match a, b:
            case Primitive(one, test), Primitive(other, tested):
                return test == tested == TRUE and self._read(one) == self._read(other)
            case Limit(one, length), Limit(other, limit):
                return length == limit and self(one, other)
            case Composition(sign, one, other), Composition(operator, left, right):
                return sign == operator and self(one, left) and self(other, right)
            case _:
                return False

    def _read(self, number: int) -> object:
        match self._inputs[number]:
            case Rename(inner, _, variables):
                return inner, tuple(v for v in variables if self._names is None or v[1] in self._names)
            case other:
                return other


def _is_keyed(e: Detected, keyed: Sequence[bool]) -> bool:
    """Whether every instance has a part that knows the shared variables."""
    match e:
        case Primitive(number, _):
            return keyed[number]
        case Never():
            return False
        case Limit(operand, _):
            return _is_keyed(operand, keyed)
        case Composition("|", left, right):
            return _is_keyed(left, keyed) and _is_keyed(right, keyed)
        case Composition("-", left, _):
            return _is_keyed(left, keyed)
        case Composition(_, left, right):
            return _is_keyed(left, keyed) or _is_keyed(right, keyed)
        case _:
            assert_never(e)


def _slots(e: Detected) -> Iterator[Slot]:
    match e:
        case Primitive() | Never():
            return
        case Limit(operand, _):
            yield from _slots(operand)
        case Composition(operator, left, right, label, within):
            yield from _slots(left)
            yield from _slots(right)
            if operator == ";":
                yield Slot(e, "left", label, within)
            if operator == "+":
                yield Slot(e, "left", 0, within)
            if operator in ("+", "-"):
                yield Slot(e, "right", 0, within)
        case _:
            assert_never(e)


def _reported(e: Detected) -> Iterator[int]:
    match e:
        case Primitive(number, _):
            yield number
        case Limit(operand, _) | Composition("-", operand):
            yield from _reported(operand)
        case Composition(_, left, right):
            yield from _reported(left)
            yield from _reported(right)
        case Never():
            return
        case _:
            assert_never(e)
