"""This module finds rules that differ only in constants, so that a thousand of them cost little more than one.

Such rules become one rule, in which a variable stands for each constant, and a table with a row for each of them. What
the rule finds is joined with the table, and each row of it is an answer of the rule that the row is for. Constants in
patterns become variables of the query, so that the rules share its history, too. How far events may lie apart and how
long timers last are such constants where many rules differ in them (`alike_limits`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ephemera.algebra.attributes import Variable, constant, is_constant
from ephemera.algebra.fingerprint import Print
from ephemera.algebra.nodes import (
    Calendar,
    Detection,
    Expression,
    Group,
    Imbed,
    Input,
    Match,
    Merge,
    Plan,
    Point,
    Project,
    Rename,
)
from ephemera.algebra.renaming import Renaming
from ephemera.algebra.scalar import Holds
from ephemera.analysis.nodes import Facts, Relevance
from ephemera.base.tree import find, flattened, rebuild
from ephemera.rewrite.alike_facts import KnownOfRule, cases_of_all, known_of_all, relevance_of_all
from ephemera.rewrite.alike_limits import limits_apart, sizes, together, with_limits
from ephemera.rewrite.optimize import Alike, Rewritten
from ephemera.syntax.nodes import Derive
from ephemera.terms.nodes import Atom, Bool, Label, Number, Text, Var
from ephemera.terms.nodes import Expression as HeadExpression
from ephemera.terms.values import Value

Constant = Number | Text | Bool


def share_alike_rules(given: Rewritten) -> Rewritten:
    """The plan with one rule for all that are alike."""
    plan, facts = given.plan, given.facts
    in_cycles = {name for cycle in plan.cycles for name in cycle}
    relevance: dict[str, list[Relevance]] = {}
    for one in facts.relevance:
        relevance.setdefault(one.point, []).append(one)
    groups: dict[object, list[_Abstract]] = {}
    for point in plan.points.values():
        if point.kind == "rule" and point.name not in in_cycles:
            found = _Abstract(point, plan, given.prints[point.name])
            if found.is_plain:
                known = len(facts.cases.get(point.name, ())), _bounds(relevance.get(point.name, ()), found)
                groups.setdefault((found.signature, known), []).append(found)
    places = {name: place for place, name in enumerate(plan.points)}
    several = {
        min((rule.point.name for rule in rules), key=places.__getitem__): rules
        for group in groups.values()
        for rules in together(group)
        if len(rules) > 1
    }
    return _put_together(given, several, relevance) if several else given


def _bounds(relevance: Sequence[Relevance], rule: _Abstract) -> object:
    """By which stamps it is decided how long inputs matter; how long that is follows from what else is alike."""
    named = rule.canonical
    return tuple(
        (named.event(r.name), r.negated, tuple(named.attribute(b.stamp) for b in r.minimal)) for r in relevance
    )


def _put_together(
    given: Rewritten, several: Mapping[str, list[_Abstract]], of_points: Mapping[str, Sequence[Relevance]]
) -> Rewritten:
    plan, facts = given.plan, given.facts
    points: dict[str, Point] = {}
    alike: dict[str, Alike] = {}
    queries: dict[str, tuple[str, Mapping[str, str]]] = {}
    known, cases, relevance = dict(facts.known), dict(facts.cases), list(facts.relevance)
    for name, point in plan.points.items():
        group = several.get(name)
        if group is not None:
            first, own = group[0], f"{name} and {len(group) - 1} more"
            limits, limit_names = _limits(group)
            written = first.canonical.back()
            inputs: dict[str, str] = {}
            for old, (pattern, names) in first.queries.items():
                new = f"{old} of {own}"
                inputs[old] = new
                points[new] = _query(plan.points[old], new, pattern)
                queries[new] = (own, {number: written.variable(named) for number, named in names.items()})
                known[new] = known[old]
            expression = written.of(with_limits(first.expression, limits))
            points[own] = replace(first.point, name=own, expression=_reading(expression, inputs))
            alike[own] = _alike(group, written, limit_names)
            differing = group if limit_names else group[:1]  # constants say nothing of time
            facts_of = [_known_of(rule, facts, of_points, written, inputs) for rule in differing]
            known[own], cases[own] = known_of_all(facts_of), cases_of_all(facts_of)
            relevance += relevance_of_all(own, facts_of)
        points[name] = point
    made = replace(facts, known=known, cases=cases, relevance=tuple(relevance))
    return replace(given, plan=replace(plan, points=points), facts=made, alike=alike, queries=queries)


def _known_of(
    rule: _Abstract,
    facts: Facts,
    relevance: Mapping[str, Sequence[Relevance]],
    written: Renaming,
    inputs: Mapping[str, str],
) -> KnownOfRule:
    """What is known of one of several rules, for the one that stands for all of them."""
    name, own = rule.point.name, rule.canonical
    events = {event: written.event(number) for event, number in own.events.items()}
    variables = {v: written.variable(number) for v, number in own.variables.items()}
    together = dict(zip(rule.queries, inputs.values(), strict=True))
    return KnownOfRule(
        facts.known[name], facts.cases.get(name, ()), relevance.get(name, ()), Renaming(events, variables), together
    )


def _limits(group: Sequence[_Abstract]) -> tuple[list[int | Variable], dict[Variable, int]]:
    """The limits that all rules have in common, names for the others, and whose place each name stands for."""
    of_all = list(zip(*(rule.limits for rule in group), strict=True))
    names: dict[tuple[int, ...], Variable] = {}
    places: dict[Variable, int] = {}
    limits: list[int | Variable] = []
    for place, one in enumerate(of_all):
        if len(set(one)) == 1:
            limits.append(one[0])
        else:
            name = names.setdefault(one, constant(len(group[0].names) + len(names)))
            places.setdefault(name, place)
            limits.append(name)
    return limits, places


def _alike(group: Sequence[_Abstract], written: Renaming, limits: Mapping[Variable, int]) -> Alike:
    """Rules that are alike, with the names that some rule's author wrote."""
    ordered = sorted(group, key=lambda rule: rule.print.fingerprint)
    others: dict[str, Mapping[str, str]] = {}
    for rule in ordered:
        own: dict[str, str] = {written.variable(name): variable for variable, name in rule.print.variables.items()}
        if any(name != variable for name, variable in own.items()):
            others[rule.point.name] = own
    members = tuple(_with_names_of(group[0], rule, written) for rule in ordered)
    names = (*map(written.variable, group[0].names), *limits)
    rows = tuple((*rule.constants, *(rule.limits[place] for place in limits.values())) for rule in ordered)
    return Alike(members, names, rows, others)


def _with_names_of(first: _Abstract, rule: _Abstract, written: Renaming) -> Point:
    """A rule under the names of another that is like it."""
    if rule.canonical == first.canonical:
        return rule.point
    return replace(rule.point, expression=written.of(rule.canonical.of(rule.point.expression)))


def _query(point: Point, name: str, pattern: Atom) -> Point:
    def change(node: object) -> object:
        return replace(node, pattern=pattern) if isinstance(node, Match) else node

    return replace(point, name=name, expression=rebuild(point.expression, change))


def _reading(e: Expression, inputs: Mapping[str, str]) -> Expression:
    """The expression with other queries in place of some, where a constant of theirs has a name."""

    def change(node: object) -> object:
        match node:
            case Rename(Input(point), _, variables) if point in inputs and any(
                is_constant(old) for old, _ in variables
            ):
                return replace(node, input=Input(inputs[point]))
            case _:
                return node

    return rebuild(e, change)


class _Abstract:
    """A rule with names in place of constants, and canonical names in place of its author's."""

    def __init__(self, point: Point, plan: Plan, own: Print) -> None:
        self.point = point
        self.print = own
        self.canonical = Renaming(own.events, own.variables)
        self._plan = plan
        self._constants: dict[str, Value] = {}
        self._changed: dict[object, object] = {}
        """What stands several times in the expression, as all below an optional collection does, is named once."""
        self.queries: dict[str, tuple[Atom, dict[Variable, Variable]]] = {}
        self.limits: tuple[int, ...] = ()
        """How far its positive events may lie apart, and how long timers last; they have names in the expression."""
        self.is_plain = not any(True for _ in find(point.expression, (Calendar, Detection)))
        if self.is_plain:
            self.expression = self._abstract(self.canonical.of(point.expression))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._constants)

    @property
    def constants(self) -> tuple[Value, ...]:
        return tuple(self._constants.values())

    @property
    def signature(self) -> object:
        """What it has in common with rules that are alike: all but constants and the name of what is derived.

        Of the distances of its events, and of its timers, it is about how long they are.
        """
        patterns = tuple(pattern for pattern, _ in self.queries.values())
        known = {old: f"query {number}" for number, old in enumerate(self.queries)}
        return flattened(rebuild(_reading(self.expression, known), _without_label)), patterns, sizes(self.limits)

    def _abstract(self, e: Expression) -> Expression:
        match e:
            case Project(Merge(Group() | Imbed() as head) as merge, _):
                body, self.limits = limits_apart(head.input)
                inner = replace(head, input=rebuild(body, self._change))
                return replace(e, input=replace(merge, input=inner))
            case _:
                self.is_plain = False
                return e

    def _change(self, node: object) -> object:
        if not isinstance(node, Holds | Rename):
            return node
        if node not in self._changed:
            self._changed[node] = self._with_names(node)
        return self._changed[node]

    def _with_names(self, node: Holds | Rename) -> object:
        match node:
            case Holds(condition):
                return Holds(rebuild(condition, self._named))
            case Rename(Input(point), ((_, event), *_), variables):
                pattern = self._pattern(point)
                if pattern is None:
                    return node
                atom, constants = pattern
                names = {constant(k): constant(k, event) for k in constants}
                self._constants |= {constant(k, event): value for k, value in constants.items()}
                if point in self.queries:
                    self.is_plain = False  # the same query twice: its constants would have two names
                self.queries[point] = (atom, names)
                return replace(node, variables=(*variables, *names.items()))
            case _:
                return node

    def _named(self, node: object) -> object:
        if not isinstance(node, Constant):
            return node
        name = constant(len(self._constants))
        self._constants[name] = node.value
        return Var(name)

    def _pattern(self, point: str) -> tuple[Atom, dict[int, Value]] | None:
        """The pattern of a query with variables in place of its constants, if it has any."""
        matches = list(find(self._plan.points[point].expression, Match))
        if len(matches) != 1 or not isinstance(matches[0].pattern, Atom):
            return None
        atom = matches[0].pattern
        constants: dict[int, Value] = {k: a.value for k, a in enumerate(atom.arguments) if isinstance(a, Constant)}
        if not constants:
            return None
        arguments = tuple(Var(constant(k)) if k in constants else a for k, a in enumerate(atom.arguments))
        return replace(atom, arguments=arguments), constants


def _without_label(node: object) -> object:
    match node:
        case Derive():
            return replace(node, label=Label(""), arguments=tuple(map(_without_value, node.arguments)))
        case _:
            return node


def _without_value(e: HeadExpression) -> HeadExpression:
    return Text("") if isinstance(e, Constant) else e
