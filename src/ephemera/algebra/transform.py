"""This module transforms expressions of the event detection algebra so that they can be detected in bounded memory.

`transform` is figure 5 of the paper: temporal restrictions move inwards as far as theorem 3 lets them, and every
sequence is labelled with how long an instance on its right may last (figure 4 keeps no more than that). Before it,
`shrink` makes expressions smaller by theorem 2.

All that is done here keeps *who is picked*, not only when: what a restriction drops earlier than before could not have
been a part of anything that is reported, since of instances that end together the one that starts last is picked, and
that is the shortest. So the tie-break of the meaning stays the same, with the transformation or without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from ephemera.algebra.nodes import Composition, Detected, Limit, Primitive

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


def shrink(e: Detected, same: Same) -> Detected:
    """A smaller expression of the same instances; `same` says whether two expressions mean the same.

    A|A is A; (A-B)-B is A-B; (A-B)-C is A-(B|C); A-(B|(B+C)) is A-B; A[s][t] is A[the shorter].
    """
    match e:
        case Primitive():
            return e
        case Limit(operand, length):
            inner = shrink(operand, same)
            if isinstance(inner, Limit):
                return Limit(inner.operand, min(length, inner.length))
            return Limit(inner, length)
        case Composition(operator, left, right):
            one, other = shrink(left, same), shrink(right, same)
            if operator == "|" and same(one, other):
                return one
            if operator == "-" and isinstance(one, Composition) and one.operator == "-":
                return shrink(Composition("-", one.left, Composition("|", one.right, other)), same)
            if operator == "-":
                other = _needed(other, same)
            return Composition(operator, one, other)
        case _:
            assert_never(e)


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


def is_never(e: Detected, same: Same) -> bool:
    """Whether an expression has no instance, whatever happens: `A - A`, and all that needs it."""
    match e:
        case Primitive():
            return False
        case Limit(operand, _):
            return is_never(operand, same)
        case Composition("|", left, right):
            return is_never(left, same) and is_never(right, same)
        case Composition("-", left, right):
            return is_never(left, same) or any(_implies(left, option, same) for option in _options(right))
        case Composition(_, left, right):
            return is_never(left, same) or is_never(right, same)
        case _:
            assert_never(e)
