"""This module evaluates plans step by step, and after each step deletes what the relevance conditions call irrelevant.

Each point is evaluated on histories of its own, one for each input, so that every condition is put to the test alone.
At a step the bound moves from one time to the next: what ends by then arrives, the answers that happen since the last
step are found from the histories, and then, with `now` a microsecond behind the bound, what is irrelevant goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ephemera.algebra.attributes import is_stamp
from ephemera.algebra.interpret import Given, Interpreter, Relation, Tuple, identity, interpret
from ephemera.algebra.nodes import Calendar, Expression, Input, Plan, Point, Rename
from ephemera.analysis.nodes import Bound, Facts, Length, Relevance
from ephemera.base.tree import walk

Conditions = Mapping[tuple[str, str], Sequence[Bound] | Relevance]
"""For each point and name of an input when its tuples are kept: while bounds hold, or as engines store them."""

Identity = frozenset[tuple[str, object]]


@dataclass(slots=True)
class Outcome:
    """What came of it: the answers of each point that differ, and how much was stored and deleted."""

    lost: dict[str, set[Identity]]
    gained: dict[str, set[Identity]]
    stored: int = 0
    deleted: int = 0

    @property
    def is_same(self) -> bool:
        return not any(self.lost.values()) and not any(self.gained.values())


def conditions_of(facts: Facts) -> dict[tuple[str, str], Sequence[Bound]]:
    """The minimal conditions."""
    return {(r.point, r.name): r.minimal for r in facts.relevance}


def stored_by(facts: Facts) -> dict[tuple[str, str], Relevance]:
    """When engines store tuples: while one of the others may still arrive, and if they last as long as it takes."""
    return {(r.point, r.name): r for r in facts.relevance}


def step_by_step(plan: Plan, conditions: Conditions, given: Given, only: Iterable[str] | None = None) -> Outcome:
    """Evaluates all points (or only some) with deletion, and compares them with what they hold without."""
    whole = interpret(plan, given)
    interpreter = Interpreter(plan, given)
    outcome = Outcome({}, {})
    for name, point in plan.points.items():
        if point.kind in ("rule", "join") and (only is None or name in only):
            leaves = {leaf: _tuples(leaf, whole, interpreter) for leaf in _leaves(point.expression)}
            times = sorted({happened(t) for relation in (*leaves.values(), whole[name]) for t in relation})
            found = _Steps(point, leaves, conditions, interpreter).run(times, outcome)
            expected = {identity(t) for t in whole[name]}
            outcome.lost[name] = expected - found
            outcome.gained[name] = found - expected
    return outcome


def _leaves(e: Expression) -> list[Expression]:
    """The inputs of a point."""
    inside = {id(n.input) for n in walk(e) if isinstance(n, Rename)}
    leaves = (n for n in walk(e) if isinstance(n, Rename | Calendar) or (isinstance(n, Input) and id(n) not in inside))
    return list(dict.fromkeys(leaves))


def leaf_name(leaf: Expression, tuples: Relation) -> str:
    """What the rule calls an input."""
    match leaf:
        case Rename(_, ((_, name),), _) | Calendar(name, _):
            return name
        case _:
            events = dict.fromkeys(a.rpartition(".")[0] for t in tuples for a in t if is_stamp(a))
            return ",".join(events)


def _tuples(leaf: Expression, whole: Mapping[str, Relation], interpreter: Interpreter) -> Relation:
    return interpreter.evaluate(leaf, lambda e: whole[e.point] if isinstance(e, Input) else None)


def happened(t: Tuple) -> int:
    """When a tuple is there: the last of its ends."""
    return max(int(value) for attribute, value in t.items() if attribute.endswith(".e"))


class _Steps:
    """The evaluation of one point."""

    def __init__(
        self, point: Point, leaves: Mapping[Expression, Relation], conditions: Conditions, interpreter: Interpreter
    ) -> None:
        self._point = point
        self._leaves = leaves
        names = {leaf: (point.name, leaf_name(leaf, leaves[leaf])) for leaf in leaves}
        self._bounds = {leaf: conditions.get(name) for leaf, name in names.items()}
        """What no condition speaks of is not kept at all."""
        self._interpreter = interpreter
        self._histories: dict[Expression, list[Tuple]] = {leaf: [] for leaf in leaves}
        self._found: set[Identity] = set()

    def run(self, times: Sequence[int], outcome: Outcome) -> set[Identity]:
        last: float = float("-inf")
        for bound in times:
            for leaf, relation in self._leaves.items():
                new = [t for t in relation if last < happened(t) <= bound]
                outcome.stored += len(new)
                self._histories[leaf] += new
            self._answer(last, bound)
            for leaf, history in self._histories.items():
                bounds = self._bounds[leaf]
                kept = [t for t in history if bounds is not None and _is_kept(t, bounds, bound + 1)]
                outcome.deleted += len(history) - len(kept)
                self._histories[leaf] = kept
            last = bound
        self._answer(last, float("inf"))
        return self._found

    def _answer(self, last: float, bound: float) -> None:
        """The answers that happen between two bounds, from what is stored."""
        for t in self._interpreter.evaluate(self._point.expression, self._histories.get):
            if last < happened(t) <= bound:
                self._found.add(identity(t))


def _is_kept(t: Tuple, bounds: Sequence[Bound] | Relevance, now: int) -> bool:
    if not isinstance(bounds, Relevance):
        return is_relevant(t, bounds, now)
    begins, ends = bounds.keep_while[0].stamp, bounds.keep_while[1].stamp
    lasts = Length(t[ends] - t[begins], t[ends] - t[begins])
    if len(bounds.keep_while) == 2 and not bounds.length.covers(lasts):
        return False
    return not bounds.minimal or any(is_relevant(t, partner, now) for partner in bounds.partners)


def is_relevant(t: Tuple, bounds: Sequence[Bound], now: int) -> bool:
    """Whether a tuple is to be kept."""
    for bound in bounds:
        if bound.time is not None:
            age = now - t[bound.stamp]
            if age > bound.time.bound or (age == bound.time.bound and bound.time.is_strict):
                return False
    return True
