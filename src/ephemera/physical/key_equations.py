"""This module finds computed keys: conditions by which a leaf can be searched, as by a variable that both sides share.

`v = 2 * w` with `w` of the leaf and `v` known is such a search as it stands: what each side computes is a key, and two
keys are equal exactly where the condition is true. `v + w = 9` first has to be solved for `w`. With whole numbers that
changes nothing, since their sums are exact or have no value; with doubles it may, since their sums are rounded. So a
solved equation only says where to look for whole numbers, all else is looked at as if it were not there, and the
condition is tested again.

A variable that a leaf shares with what is known belongs to neither side: where 1 and 1.0 meet, the sum is that of 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ephemera.algebra.attributes import event_of
from ephemera.algebra.scalar import Every, Formula, Holds
from ephemera.base.tree import walk
from ephemera.physical.nodes import KeyEquation, Leaf
from ephemera.rules.scope import event_names
from ephemera.syntax.nodes import Comparison
from ephemera.terms.functions import FUNCTIONS
from ephemera.terms.nodes import Binary, Call, Expression, Negative, Number, Var
from ephemera.terms.values import LARGEST_INTEGER

Signed = tuple[int, Expression]
"""A summand, and whether it is added or taken away: 1 or -1."""


def equations(tests: Iterable[Formula], leaf: Leaf, known: Iterable[Leaf]) -> Iterator[tuple[KeyEquation, Formula]]:
    """The computed keys in some tests, each with the condition that it comes from."""
    before = frozenset[str]().union(*(other.variables for other in known))
    sides = _Sides(leaf.sure - before, before - leaf.variables, frozenset(map(event_of, leaf.stamps)))
    for test in tests:
        for part in test.parts if isinstance(test, Every) else (test,):
            if isinstance(part, Holds) and isinstance(part.condition, Comparison) and part.condition.operator == "=":
                found = sides.separated(part.condition) or sides.solved(part.condition)
                if found is not None:
                    yield found, part


class _Sides:
    """Which variables are the leaf's own, and which are known without it."""

    def __init__(self, own: frozenset[str], known: frozenset[str], events: frozenset[str]) -> None:
        self._own = own
        self._known = known
        self._events = events
        """The events of the leaf; a stored join has several."""

    def separated(self, c: Comparison) -> KeyEquation | None:
        """The condition as it stands, if each side speaks of one thing."""
        for own, known in ((c.left, c.right), (c.right, c.left)):
            if self._is_own(own) and self._is_known(known) and _variables(known):
                return KeyEquation(own, known)
        return None

    def solved(self, c: Comparison) -> KeyEquation | None:
        """The condition solved for the one summand that is the leaf's own."""
        summands = [*_summands(_whole(c.left), 1), *_summands(_whole(c.right), -1)]
        own = [(sign, e) for sign, e in summands if self._is_own(e)]
        known = [(sign, e) for sign, e in summands if self._is_known(e)]
        if len(own) != 1 or len(own) + len(known) < len(summands) or any(_is_double(e) for _, e in summands):
            return None
        if not any(_variables(e) for _, e in known):
            return None
        return KeyEquation(own[0][1], _sum([(-own[0][0] * sign, e) for sign, e in known]), is_solved=True)

    def _is_own(self, e: Expression) -> bool:
        named = _variables(e)
        return bool(named) and named <= self._own and not any(True for _ in event_names(e, frozenset()))

    def _is_known(self, e: Expression) -> bool:
        events = {n.name for n in event_names(e, frozenset())}
        return _variables(e) <= self._known and self._events.isdisjoint(events)


def _variables(e: Expression) -> frozenset[str]:
    return frozenset(n.name for n in walk(e) if isinstance(n, Var))


def _summands(e: Expression, sign: int) -> list[Signed]:
    """What an expression adds up."""
    match e:
        case Binary("+", left, right) | Call("add", (left, right)):
            return [*_summands(left, sign), *_summands(right, sign)]
        case Binary("-", left, right) | Call("subtract", (left, right)):
            return [*_summands(left, sign), *_summands(right, -sign)]
        case Negative(operand):
            return _summands(operand, -sign)
        case _:
            return [(sign, e)]


def _sum(summands: list[Signed]) -> Expression:
    """The same as an expression, what is added first."""
    (first, total), *others = sorted(summands, key=lambda s: -s[0])
    if first < 0:
        total = Negative(total)
    for sign, e in others:
        total = Binary("+" if sign > 0 else "-", total, e)
    return total


def _whole(e: Expression) -> Expression:
    """A side of a comparison; a double that is a whole number compares as that."""
    match e:
        case Number(float() as value) if value.is_integer() and abs(value) <= LARGEST_INTEGER:
            return Number(int(value))
        case _:
            return e


def _is_double(e: Expression) -> bool:
    """Whether an expression is never a whole number, so that solving for it is of no use."""
    match e:
        case Binary("/" | "div") | Call("div"):
            return True
        case Call(function, _) if function in FUNCTIONS:
            return FUNCTIONS[function].gives not in ("number", "any")
        case _:
            return False
