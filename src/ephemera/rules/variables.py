"""This module checks that rules are safe: every variable that is used has a value when it is needed.

A positive event, a row of a table and a collected event bind variables; an absence, `without` and conditions
do not. Aggregates stand in heads and in `having`, where there is something to aggregate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.suggest import suggestion
from ephemera.base.tree import find, walk
from ephemera.rules.findings import Findings, listed
from ephemera.rules.scope import (
    NOTHING,
    Bindings,
    bindings,
    computed,
    definitions,
    pattern_bindings,
    primitives,
    shared_in_algebra,
    variable_names,
)
from ephemera.syntax.nodes import (
    CONDITIONS,
    Absent,
    Accumulation,
    Algebra,
    AlgebraExpression,
    And,
    At,
    AtMost,
    Comparison,
    Composed,
    Condition,
    Derive,
    Detect,
    Event,
    Or,
    Query,
    Raise,
    Rule,
    Timer,
    Where,
)
from ephemera.terms.nodes import Aggregate, All, Construct, ConstructTerm, Name, Node, OptionalConstruct, Pattern, Var


def _without(found: Bindings, names: frozenset[str]) -> Bindings:
    return Bindings(found.sure - names, found.perhaps - names, found.never, found.optional - names)


def check_variables(rule: Rule, findings: Findings) -> None:
    """Tells variables without a value, and aggregates out of place."""
    checker = _Variables(rule, findings)
    checker.head()
    checker.query(rule.body, NOTHING)
    for condition in rule.having:
        checker.uses(condition, checker.whole, "the condition on the result")
    checker.aggregates()


class _Variables:
    def __init__(self, rule: Rule, findings: Findings) -> None:
        self._rule = rule
        self._findings = findings
        self.whole = bindings(rule.body)
        self._all = self.whole.all
        self._identifiers = frozenset(definitions(rule.body).some)

    # ---- heads ---------------------------------------------------------------------------------------------

    def head(self) -> None:
        match self._rule.head:
            case Derive(_, arguments):
                for argument in arguments:
                    self.uses(argument, self.whole, "the head")
            case Detect(term):
                self._construct(term, optional=False)
            case Raise(recipient, transport, term):
                for part in computed(recipient, transport):
                    self.uses(part, self.whole, "the head")
                self._construct(term, optional=False)
            case _:
                assert_never(self._rule.head)

    def _construct(self, term: ConstructTerm, *, optional: bool) -> None:
        match term:
            case OptionalConstruct(inner, default):
                self._construct(inner, optional=True)
                if default is not None:
                    self._construct(default, optional=optional)
            case Construct(label, _, children):
                if isinstance(label, Var):
                    self._construct(label, optional=optional)
                for child in children:
                    self._construct(child, optional=optional)
            case All(inner, group_by, order_by):
                self._construct(inner, optional=optional)
                for variable in (*(group_by or ()), *(order_by.keys if order_by else ())):
                    self._construct(variable, optional=optional)
            case _:
                seen = self.whole
                if optional:
                    seen = Bindings(seen.sure | seen.optional, seen.perhaps - seen.optional, seen.never)
                self.uses(term, seen, "the head")

    # ---- bodies --------------------------------------------------------------------------------------------

    def query(self, query: Query | Condition, outside: Bindings) -> None:
        match query:
            case And(items):
                seen = outside.joined(bindings(query))
                for item in items:
                    self.query(item, seen)
            case Or(items):
                for item in items:
                    self.query(item, outside)
            case Where(inner, conditions):
                self.query(inner, outside)
                seen = outside.joined(bindings(inner))
                for condition in conditions:
                    self.uses(condition, seen, "the condition")
            case Accumulation(_, mode, event, conditions):
                own = pattern_bindings(event.pattern)
                known = outside if mode == "not" else _without(outside, self._only_collected() - own.all)
                seen = Bindings(own.sure).joined(known)
                what = "the condition of the negated query" if mode == "not" else "the condition of the collected query"
                for condition in conditions:
                    self.uses(condition, seen, what)
                if mode == "not":
                    self._shared(event.pattern, outside, "the negated query")
            case Timer(_, _, _, AtMost() as lasts):
                self.uses(lasts, _without(outside, self._only_collected()), "the length of the timer")
            case Algebra(_, expression, _, per):
                self._correlated(expression, per)
                self._loose(query)
                self._absent_only(query)
            case Absent(pattern) | At(_, pattern, True):
                self._shared(pattern, outside, "the absent row")
            case _ if isinstance(query, CONDITIONS):
                self.uses(query, outside, "the condition")

    def _correlated(self, expression: AlgebraExpression, per: Iterable[Var]) -> None:
        """Instances are found apart only for the values of what some event of the expression surely binds."""
        known = frozenset[str]().union(*(pattern_bindings(p).sure for p in primitives(expression)))
        for variable in (v for v in per if v.name not in known):
            self._findings.add(
                Code.UNBOUND_VARIABLE,
                f"no event of the expression gives `{variable.name}` a value",
                variable.span,
                notes=["instances are found for each value of the variables behind `per` apart"],
                help=[Help(f"use `{variable.name}` in one of its events, or take it out")],
            )

    def _loose(self, algebra: Algebra) -> None:
        """What the whole may occur without is the same nowhere else: it holds for values that nobody knows."""
        loose = shared_in_algebra(algebra) - bindings(algebra).sure
        inside = {id(node) for node in walk(algebra)}
        for node in walk(self._rule) if loose else ():
            if isinstance(node, Name | Var) and node.name in loose and id(node) not in inside:
                self._findings.add(
                    Code.UNBOUND_VARIABLE,
                    f"the algebra expression may occur without an event that has `{node.name}`",
                    node.span,
                    related=[Related(algebra.span, f"this keeps the values of `{node.name}` apart")],
                    notes=["then it occurs for every value, also for those that no event has"],
                    help=[Help(f"give the variable here another name than `{node.name}`")],
                )
                return

    def _absent_only(self, algebra: Algebra) -> None:
        """Warns of shared variables that no event of what must occur has: for some value nothing is there."""
        for composed in find(algebra.expression, Composed):
            if composed.operator != "-":
                continue
            inside = {id(atom) for atom in primitives(composed.right)}
            others = (pattern_bindings(a).all for a in primitives(algebra.expression) if id(a) not in inside)
            only = shared_in_algebra(algebra) - frozenset[str]().union(*others)
            own = [atom for atom in primitives(composed.right) if pattern_bindings(atom).all & only]
            if not own:
                continue
            name = min(pattern_bindings(own[0]).all & only)
            self._findings.add(
                Code.ABSENT_ONLY,
                f"`{name}` stands only in what must be absent, which so keeps nothing out",
                composed.right.span,
                severity="warning",
                notes=[f"the values of `{name}` are kept apart, and there is always one for which this is absent"],
                help=[
                    Help(f"use `{name}` in what must occur, too"),
                    Help("or let a rule derive what must be absent, and take away what that derives"),
                ],
            )
            return

    def _only_collected(self) -> frozenset[str]:
        """The variables that only collections bind: each gathers on its own, and sees none of the others'."""
        accumulations = list(find(self._rule.body, Accumulation))
        inside = {id(a.event) for a in accumulations}
        collected = frozenset[str]().union(
            *(pattern_bindings(a.event.pattern).all for a in accumulations if a.mode != "not")
        )
        outer: list[Event | Algebra | At] = [e for e in find(self._rule.body, Event) if id(e) not in inside]
        outer += [*find(self._rule.body, Algebra), *(at for at in find(self._rule.body, At) if not at.negated)]
        return collected.difference(*(bindings(q).bound for q in outer))

    def _shared(self, pattern: Pattern, outside: Bindings, what: str) -> None:
        """An outer variable of something that must be absent has a value, or the alternatives would differ."""
        for node in walk(pattern):
            if isinstance(node, Name | Var) and node.name in outside.perhaps and node.name not in outside.sure:
                self._unbound(node, outside, what)

    # ---- uses ----------------------------------------------------------------------------------------------

    def uses(self, node: Node, seen: Bindings, what: str) -> None:
        mixed = {id(side) for c in find(node, Comparison) for side in self._mixed(c)}
        aggregated = {id(part) for a in find(node, Aggregate) for part in walk(a)}
        for name in variable_names(node, self._all):
            if name.name in seen.sure or id(name) in mixed:
                continue
            if id(name) in aggregated and name.name in seen.optional:
                continue  # an aggregate ranges over what was there
            self._unbound(name, seen, what)

    def _mixed(self, comparison: Comparison) -> Iterable[Node]:
        """The sides of ``i = x`` where one is an event and the other a variable."""
        left, right = comparison.left, comparison.right
        if comparison.operator not in ("=", "!=") or not (isinstance(left, Name) and isinstance(right, Name)):
            return ()
        variables = [s for s in (left, right) if s.name in self._all]
        events = [s for s in (left, right) if s.name in self._identifiers and s.name not in self._all]
        if len(variables) != 1 or len(events) != 1:
            return ()
        self._findings.add(
            Code.MIXED_COMPARISON,
            f"`{events[0].name}` is an event and `{variables[0].name}` a variable: they cannot be compared",
            comparison.span,
            help=[Help("compare two variables or two events"), *self._instead(events[0], self.whole)],
        )
        return (left, right)

    def _instead(self, name: Name, seen: Bindings) -> list[Help]:
        close = suggestion(name.name, seen.sure)
        return [Help(f"did you mean `{close}`?", (Edit(name.span, close),))] if close else []

    def _unbound(self, name: Name | Var, seen: Bindings, what: str) -> None:
        notes = []
        if name.name in seen.optional or name.name in self.whole.optional:
            notes.append(f"`{name.name}` is bound inside `optional` only, where it may have no value")
        elif name.name in seen.perhaps:
            notes.append(f"`{name.name}` is bound in some branches of the `or` only")
        elif name.name in seen.never | self.whole.never:
            notes.append(f"`{name.name}` occurs only in something that must be absent, which binds nothing")
        elif name.name in self._identifiers:
            notes.append(f"`{name.name}` is an event; `begin({name.name})` and `end({name.name})` are its times")
        elif "-" in name.name and all(part in seen.sure or part.isdigit() for part in name.name.split("-")):
            notes.append("`-` joins names, a minus needs spaces")
        self._findings.add(
            Code.UNBOUND_VARIABLE,
            f"the variable `{name.name}` in {what} {'may have' if name.name in seen.perhaps else 'has'} no value",
            name.span,
            notes=notes,
            help=[self._advice(name, seen, notes)],
        )

    def _advice(self, name: Name | Var, seen: Bindings, notes: list[str]) -> Help:
        spell = "var {}".format if isinstance(name, Var) else str
        if notes and notes[0].startswith("`-`"):
            spaced = name.name.replace("-", " - ")
            return Help(f"write `{spaced}`", (Edit(name.span, spaced),))
        if name.name in seen.optional or name.name in self.whole.optional:
            written = f"optional {spell(name.name)} with default null"
            if isinstance(self._rule.head, Detect | Raise) and self._in_head(name):
                return Help(f"write `{written}`, or another default", (Edit(name.span, written),))
            return Help("bind it outside `optional`, or use it in the head within `optional … with default …`")
        if name.name in seen.perhaps:
            return Help(f"bind `{name.name}` in every branch of the `or`")
        if name.name in self._identifiers and name.name not in self.whole.all:
            return Help(f"write `end({name.name})`", (Edit(name.span, f"end({name.name})"),))
        candidates = seen.sure - {name.name}
        close = suggestion(name.name, candidates)
        if close is None and len(candidates) == 1:
            close = next(iter(candidates))
        if close is not None:
            return Help(f"did you mean `{close}`?", (Edit(name.span, spell(close)),))
        known = f"; those that have one are {listed(sorted(candidates))}" if candidates else ""
        return Help(f"bind it in an event, a table or a collected event of the body{known}")

    def _in_head(self, name: Node) -> bool:
        return any(node is name for node in walk(self._rule.head))

    # ---- aggregates ----------------------------------------------------------------------------------------

    def aggregates(self) -> None:
        body = list(find(self._rule.body, Aggregate))
        for aggregate in body:
            self._findings.add(
                Code.MISPLACED_AGGREGATE,
                f"`{aggregate.function}` in the body: what is collected is counted only when the body is done",
                aggregate.span,
                help=[Help("put the condition into `having { … }` behind the body")],
            )
        outer = [*find(self._rule.head, Aggregate), *(a for c in self._rule.having for a in find(c, Aggregate))]
        nested = {id(inner) for a in outer for inner in find(a, Aggregate) if inner is not a}
        collects = [a for a in find(self._rule.body, Accumulation) if a.mode != "not"]
        for aggregate in outer:
            if id(aggregate) in nested:
                self._findings.add(
                    Code.MISPLACED_AGGREGATE,
                    f"`{aggregate.function}` stands inside another aggregate",
                    aggregate.span,
                    help=[Help("derive the inner one by a rule of its own and aggregate its events")],
                )
            elif aggregate.argument is None and len(collects) > 1:
                self._findings.add(
                    Code.MISPLACED_AGGREGATE,
                    f"`count(*)` does not say which of the {len(collects)} collections it counts",
                    aggregate.span,
                    help=[self._count_help(aggregate, collects)],
                )

    def _count_help(self, aggregate: Aggregate, collects: list[Accumulation]) -> Help:
        names = sorted(pattern_bindings(collects[0].event.pattern).sure)
        if not names:
            return Help("bind a variable in the collection that is meant and count that")
        return Help(
            f"count a variable of one, as in `count({names[0]})`", (Edit(aggregate.span, f"count({names[0]})"),)
        )
