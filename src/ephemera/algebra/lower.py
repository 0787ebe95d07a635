"""This module lowers normal rules to plans with materialization points (thesis 13.4, 14.4).

Each normal rule is one point, each simple event query one, each stream that queries read one; with `joins` every join
of positive events is one, too, in the order of the body. Recursive rules make points that need each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ephemera.algebra.attributes import event, variable
from ephemera.algebra.bodies import Body
from ephemera.algebra.fingerprint import EVENTS, VARIABLES
from ephemera.algebra.nodes import Input, Plan, Point, Points
from ephemera.algebra.queries import Queries
from ephemera.base.graph import components
from ephemera.base.tree import find, rebuild, walk
from ephemera.rules.declare import construct_label, head_label
from ephemera.rules.dependencies import Graph
from ephemera.rules.nodes import NormalRule, Ruleset
from ephemera.syntax.nodes import Raise, Rule
from ephemera.terms.nodes import As, Name, Var


def lower(rules: Ruleset, points: Points = "rules") -> Plan:
    """The plan of a program."""
    written = rules.resolved.rules
    rules = replace(rules, normal=tuple(_with_attributes(n, written[n.rule - 1]) for n in rules.normal))
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


def _with_attributes(normal: NormalRule, rule: Rule) -> NormalRule:
    """A normal rule whose variables and events are called as their attributes are."""
    named = [node for node in walk(rule) if isinstance(node, Var | As | Name)]
    written = {n.variable if isinstance(n, As) else n.name for n in named if not isinstance(n, Name)}
    variables: dict[str, str] = {name: attribute for name in written if (attribute := variable(name)) != name}
    events = {n.name: new for n in named if isinstance(n, Name) and (new := event(n.name)) != n.name}
    if not variables and not events:
        return normal

    def change(node: object) -> object:
        names: list[tuple[str, Mapping[str, str]]] = [(own, events) for kind, own in EVENTS if kind is type(node)]
        names += [(own, variables) for kind, own in VARIABLES if kind is type(node)]
        changed = {own: new[getattr(node, own)] for own, new in names if getattr(node, own) in new}
        return replace(node, **changed) if changed else node  # type: ignore[type-var]

    return replace(rebuild(normal, change), unbound=frozenset(variables.get(name, name) for name in normal.unbound))


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
