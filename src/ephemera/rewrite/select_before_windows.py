"""This module tests what a window asks of one event before the event is stored (thesis 14.5.1).

Law: an absence or a collection looks for events in a window, and may have conditions of its own. One that only compares
values of such an event with each other and with constants has the same truth in every window. So an event for which it
is not true may be left out of the history of its query, and the window need not test it.

Side conditions: all that read the query are windows, and all ask for that; where others need more of it they keep one
history, which is worth more than two. All variables of the query have a value. Rules have been put together before,
since what is tested here is not seen to be alike any more.

Conditions of positive events are no business of this: they are tested as soon as the event is new (`Order.tests`), and
alternatives are rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ephemera.algebra.nodes import AntiSemiJoin, Cross, Expression, Input, Join, Match, Point, Rename, Select, SemiJoin
from ephemera.algebra.parts import accumulates, member_head
from ephemera.algebra.renaming import Renaming
from ephemera.algebra.scalar import Formula, every
from ephemera.base.tree import find, rebuild, walk
from ephemera.rewrite.derived_readers import conjuncts, is_plain
from ephemera.rewrite.optimize import Rewritten
from ephemera.terms.nodes import Atom, NamedAtom, Var

Window = Join | Cross | SemiJoin | AntiSemiJoin


def select_before_windows(given: Rewritten) -> Rewritten:
    """The plan with queries that leave out what no window that reads them would look at."""
    points = dict(given.plan.points)
    reading = _readings(given)
    tested: dict[str, Formula] = {}
    for name, leaves in reading.items():
        query = points[name]
        first, *others = [list(asked) for asked in leaves.values()]
        common = [part for part in first if all(part in other for other in others)]
        if not common or not _is_plain(query) or name in given.queries:
            continue
        tested[name] = every(common)
        points[name] = replace(query, expression=Select(query.expression, tested[name]))
        for (rule, leaf), asked in leaves.items():
            own = [asked[part] for part in common]
            points[rule] = replace(points[rule], expression=_without(points[rule].expression, leaf, own))
    return replace(given, plan=replace(given.plan, points=points), tested=tested) if tested else given


def _readings(given: Rewritten) -> dict[str, dict[tuple[str, Rename], dict[Formula, Formula]]]:
    """For each query where it is read, and what is asked there: by the variables of the query, and by those there."""
    found: dict[str, dict[tuple[str, Rename], dict[Formula, Formula]]] = {}
    for rule in given.rules:
        windows = dict(_conditions(rule))
        for leaf in dict.fromkeys(find(rule.expression, Rename)):
            if isinstance(leaf.input, Input):
                back = Renaming({}, {new: old for old, new in leaf.variables})
                asked = {back.of(condition): condition for condition in windows.get(leaf, ())}
                found.setdefault(leaf.input.point, {})[rule.name, leaf] = asked
    return found


def _conditions(rule: Point) -> Iterator[tuple[Rename, Sequence[Formula]]]:
    """The events that a rule looks for in windows, and what it asks of their values alone, in every place the same."""
    found: dict[Rename, list[tuple[Formula, ...]]] = {}
    for node in walk(member_head(rule).input):
        if isinstance(node, Window) and accumulates(node) and isinstance(node.right, Rename):
            found.setdefault(node.right, []).append(conjuncts(node.condition))
    for leaf, places in found.items():
        own = {new for _, new in leaf.variables}
        asked = [part for part in places[0] if is_plain(part) and _speaks_of(part) and _speaks_of(part) <= own]
        if asked and all(place == places[0] for place in places):
            yield leaf, asked


def _speaks_of(f: Formula) -> set[str]:
    return {v.name for v in find(f, Var)}


def _is_plain(query: Point) -> bool:
    match query.expression:
        case Match(_, _, Atom() | NamedAtom()):
            return True
        case _:
            return False


def _without(e: Expression, leaf: Rename, conditions: Sequence[Formula]) -> Expression:
    """The expression without some conditions on what lies in a window."""

    def change(node: object) -> object:
        if isinstance(node, Window) and node.right == leaf and accumulates(node):
            return replace(node, condition=every(part for part in conjuncts(node.condition) if part not in conditions))
        return node

    return rebuild(e, change)
