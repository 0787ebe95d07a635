"""This module lowers normal rules to plans with materialization points (thesis 13.4, 14.4).

Each normal rule is one point, each simple event query one, each stream that queries read one; with `joins` every join
of positive events is one, too, in the order of the body. Recursive rules make points that need each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ephemera.algebra.bodies import Body
from ephemera.algebra.nodes import Input, Plan, Point, Points
from ephemera.algebra.queries import Queries
from ephemera.base.graph import components
from ephemera.base.tree import find
from ephemera.rules.declare import construct_label, head_label
from ephemera.rules.dependencies import Graph
from ephemera.rules.nodes import NormalRule, Ruleset
from ephemera.syntax.nodes import Raise


def lower(rules: Ruleset, points: Points = "rules") -> Plan:
    """The plan of a program."""
    names = _names(rules)
    by_rule: dict[int, list[str]] = {}
    for normal, name in zip(rules.normal, names, strict=True):
        by_rule.setdefault(normal.rule, []).append(name)
    queries = Queries(Graph(rules.resolved), lambda rule: by_rule.get(rule, ()))
    made: dict[str, Point] = {}
    for number, name in enumerate(names):
        made |= Body(rules, number, name, queries, materialize=points == "joins").points()
    made |= queries.points
    order, cycles = _ordered(made)
    return Plan({name: made[name] for name in order}, cycles, rules.resolved.catalogue, rules.growth, rules.normal)


def _names(rules: Ruleset) -> list[str]:
    """A name for each normal rule: the label that it derives, with a number where several do."""
    wanted = [_wanted(normal) for normal in rules.normal]
    total = Counter(wanted)
    seen: dict[str, int] = {}
    names: list[str] = []
    for name in wanted:
        seen[name] = seen.get(name, 0) + 1
        names.append(name if total[name] == 1 else f"{name}#{seen[name]}")
    return names


def _wanted(normal: NormalRule) -> str:
    if isinstance(normal.head, Raise):
        return f"message {construct_label(normal.head.term) or 'any'}"
    return head_label(normal.head) or "any"


def _ordered(points: Mapping[str, Point]) -> tuple[list[str], tuple[tuple[str, ...], ...]]:
    """The points so that each stands behind those it needs, and the cycles."""
    needs = {name: _needs(point) for name, point in points.items()}
    parts = components(points, lambda name: needs[name])
    cycles = [tuple(sorted(p)) for p in parts if len(p) > 1 or p[0] in needs[p[0]]]
    return [name for part in parts for name in sorted(part)], tuple(cycles)


def _needs(point: Point) -> list[str]:
    return list(dict.fromkeys(i.point for i in find(point.expression, Input)))
