"""This module transforms expressions of the event detection algebra so that they can be detected in bounded memory.

`transform` is figure 5 of the paper: temporal restrictions move inwards as far as theorem 3 lets them, and every
sequence is labelled with how long an instance on its right may last (figure 4 keeps no more than that). Before it,
`shrink` makes expressions smaller by theorem 2.

All that is done here keeps *who is picked*, not only when: what a restriction drops earlier than before could not have
been a part of anything that is reported, since of instances that end together the one that starts last is picked, and
that is the shortest. So the tie-break of the meaning stays the same, with the transformation or without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from ephemera.algebra.nodes import Composition, Detected, Limit, Never, Primitive
from ephemera.base.tree import find

Time = int | None
"""A length of time in microseconds; None is any length."""
Same = Callable[[Detected, Detected], bool]


def least(a: Time, b: Time) -> Time:
    """The shorter of two lengths.

    >>> least(3, None), least(None, None), least(2, 5)
    (3, None, 2)
    """
    return b if a is None else a if b is None else min(a, b)


def is_within(length: Time, limit: Time) -> bool:
    """Whether what lasts no longer than one length lasts no longer than another."""
    return limit is None or (length is not None and length <= limit)


def transform(e: Detected, lengths: Sequence[Time], within: Time = None) -> tuple[Detected, Time]:
    """An expression of the same instances with restrictions moved inwards, and how long these last at most.

    `lengths` says how long the events of each primitive last at most, `within` how long an instance may last that
    matters at all.
    """
    match e:
        case Primitive(number, _):
            return e, lengths[number]
        case Never():
            return e, 0
        case Limit(operand, length):
            limit = least(within, length)
            inner, longest = transform(operand, lengths, limit)
            return (inner, longest) if limit is None or is_within(longest, limit) else (Limit(inner, limit), limit)
        case Composition("|", left, right):
            one, first = transform(left, lengths, within)
            other, second = transform(right, lengths, within)
            longest = None if first is None or second is None else max(first, second)
            return Composition("|", one, other, within=within), longest
        case Composition("+", left, right):
            one, _ = transform(left, lengths, within)
            other, _ = transform(right, lengths, within)
            return Composition("+", one, other, within=within), None
        case Composition("-", left, right):
            one, longest = transform(left, lengths, within)
            limit = least(within, longest)
            other, _ = transform(right, lengths, limit)
            return Composition("-", one, other, within=limit), longest
        case Composition(operator, left, right):
            one, _ = transform(left, lengths, within)
            other, second = transform(right, lengths, within)
            if within is None or is_within(second, within):
                return Composition(operator, one, other, second, within), None
            return Composition(operator, one, Limit(other, within), within, within), None
        case _:
            assert_never(e)


# ---- theorem 2, where it shrinks ---------------------------------------------------------------------------


def shrink(e: Detected, same: Same, alike: Same) -> Detected:
    """A smaller expression of the same instances.

    A|A is A; (A-B)-B is A-B; (A-B)-C is A-(B|C); A-(B|(B+C)) is A-B; A[s][t] is A[the shorter]; A-A never occurs, nor
    does what needs it. `same` says whether two expressions mean the same, `alike` whether they have the same instances,
    whatever they bind there.
    """
    match e:
        case Primitive() | Never():
            return e
        case Limit(operand, length):
            inner = shrink(operand, same, alike)
            if isinstance(inner, Never):
                return inner
            if isinstance(inner, Limit):
                return Limit(inner.operand, min(length, inner.length))
            return Limit(inner, length)
        case Composition(operator, left, right):
            one, other = shrink(left, same, alike), shrink(right, same, alike)
            if isinstance(one, Never) or isinstance(other, Never):
                return _with_never(operator, one, other)
            if operator == "|" and same(one, other):
                return one
            if operator == "-" and isinstance(one, Composition) and one.operator == "-":
                return shrink(Composition("-", one.left, Composition("|", one.right, other)), same, alike)
            if operator == "-":
                if any(_implies(one, option, alike) for option in _options(other)):
                    return Never()
                other = _needed(other, alike)
            return Composition(operator, one, other)
        case _:
            assert_never(e)


def _with_never(operator: str, one: Detected, other: Detected) -> Detected:
    """What is left of an expression of which a part never occurs."""
    if operator == "|":
        return other if isinstance(one, Never) else one
    return one if operator == "-" else Never()


def contradictions(e: Detected, same: Same, alike: Same) -> Iterator[tuple[Composition, Detected]]:
    """The absences `A - B` that leave nothing, and of each what must be absent although every `A` has one in it."""
    for absence in find(e, Composition):
        if absence.operator != "-" or isinstance(shrink(absence.left, same, alike), Never):
            continue
        told = (option for option in _options(absence.right) if _implies(absence.left, option, alike))
        first = next(told, None)
        if first is not None:
            yield absence, first


def _needed(e: Detected, same: Same) -> Detected:
    """What must be absent, without alternatives that are there only if another is."""
    options = _options(e)
    kept = [
        option
        for k, option in enumerate(options)
        if not any(
            (_implies(option, other, same) and not _implies(other, option, same)) or (j < k and same(option, other))
            for j, other in enumerate(options)
            if j != k
        )
    ]
    found = kept[0]
    for option in kept[1:]:
        found = Composition("|", found, option)
    return found


def _options(e: Detected) -> list[Detected]:
    return [*_options(e.left), *_options(e.right)] if isinstance(e, Composition) and e.operator == "|" else [e]


def _implies(e: Detected, other: Detected, same: Same) -> bool:
    """Whether within every instance of one expression lies one of the other."""
    if same(e, other):
        return True
    match e:
        case Composition("+" | ";", left, right):
            return _implies(left, other, same) or _implies(right, other, same)
        case Composition("-", left, _):
            return _implies(left, other, same)
        case Limit(operand, _):
            return _implies(operand, other, same)
        case _:
            return False
