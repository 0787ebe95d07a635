"""This module expands selections into what they stand for, before anything else is asked of a rule.

- `j: next b(x) after i` is `j: b(x)` and `from i until j: not b(x)`;
- `j: last b(x) before i` is `j: b(x)` and `from j until i: not b(x)`;
- `j: first b(x) in w` is `j: b(x)` that lies in w, and `while w: not k: b(x) where { k before j }`; for `last` the
  condition is `j before k`;
- `within d` is `{i, j} within d`, and `without { c, d(x) }` the same absence of `c {{ }}` and of `d(x)`.

What must not come between is like the event in everything that the author says of it: it matches the same pattern,
meets the conditions behind it, and has the same values where a variable is bound by the rest of the rule, too. The
other variables of the pattern are its own, so they have other names there, or none.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any, assert_never

from ephemera.base.suggest import fresh
from ephemera.base.tree import find, rebuild, walk
from ephemera.rules.findings import Findings
from ephemera.rules.scope import bindings, event_names, pattern_bindings
from ephemera.syntax.nodes import (
    Accumulation,
    And,
    Between,
    Condition,
    Event,
    Or,
    Program,
    Query,
    Relation,
    Rule,
    Selection,
    Unlimited,
    Where,
    While,
    Window,
    Within,
)
from ephemera.terms.nodes import Anonymous, AnyEvent, As, Atom, Duration, Element, Name, Pattern, Quantity, Var


def expanded(program: Program, findings: Findings) -> Program:
    """The program without selections."""
    selections = list(find(program, Selection))
    if not selections:
        return program
    for selection in selections:
        findings.double(selection.span)
    return rebuild(program, lambda node: _Expansion(node).rule() if isinstance(node, Rule) else node)


class _Expansion:
    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._taken = {n.name for n in walk(rule) if isinstance(n, Name | Var)}
        self._taken |= {n.variable for n in find(rule, As)}

    def rule(self) -> Rule:
        return replace(self._rule, body=self._query(self._rule.body, frozenset()))

    def _query(self, query: Any, around: frozenset[str]) -> Any:
        """A query without selections; `around` are the variables that the rest of its alternative binds."""
        match query:
            case And(items):
                bound = [bindings(item).bound for item in items]
                outside = [around.union(*bound[:k], *bound[k + 1 :]) for k in range(len(items))]
                return replace(query, items=tuple(map(self._query, items, outside)))
            case Or(items):
                return replace(query, items=tuple(self._query(item, around) for item in items))
            case Where(inner, _):
                return replace(query, query=self._query(inner, around))
            case Selection():
                return self._selected(query, around)
            case _:
                return query

    def _selected(self, selection: Selection, around: frozenset[str]) -> Query:
        pattern, span, anchor = selection.event.pattern, selection.span, selection.anchor
        name = selection.event.name or Name(self._unnamed(), span=pattern.span)
        event: Query = replace(selection.event, name=name)
        if selection.conditions:
            event = Where(event, selection.conditions, span=span)
        parts: list[Query | Condition] = [event]
        other = Name(self._fresh(name.name), span=name.span)
        between, conditions = self._other(selection, name, other, around)
        order: tuple[Condition, ...] = ()
        match selection.relation:
            case "after":
                window: Window = Between(anchor, name, span=span)
            case "before":
                window = Between(name, anchor, span=span)
            case "in":
                window = While(anchor, span=span)
                parts.append(Relation("during", name, anchor, _INSIDE, span=span))
                earlier, later = (other, name) if selection.which == "first" else (name, other)
                order = (Relation("before", earlier, later, span=span),)
            case _:
                assert_never(selection.relation)
        if selection.within is not None:
            parts.append(Within((anchor, name), selection.within, span=selection.within.span))
        parts.append(_absent(window, other, between, (*conditions, *order), selection))
        parts += [_absent(window, other, pattern, order, selection) for pattern in map(_whole, selection.without)]
        return And(tuple(parts), span=span)

    def _other(
        self, selection: Selection, name: Name, other: Name, around: frozenset[str]
    ) -> tuple[Pattern, tuple[Condition, ...]]:
        """The pattern of what must not come between, and its conditions."""
        pattern, conditions = selection.event.pattern, selection.conditions
        every = bindings(self._rule.body).all
        events = {id(n) for condition in conditions for n in event_names(condition, every)}
        own = sorted(pattern_bindings(pattern).all - around)
        parts = (node for part in (pattern, *conditions) for node in walk(part))
        mentioned = Counter(n.name for n in parts if isinstance(n, Name | Var) and id(n) not in events)
        free = {n: self._fresh(n) for n in own if not isinstance(pattern, Atom) or mentioned[n] > 1}

        def renamed(node: Any) -> Any:
            match node:
                case Name(called) if id(node) in events:
                    return replace(node, name=other.name) if called == name.name else node
                case Name(called) | Var(called) if called in own:
                    return replace(node, name=free[called]) if called in free else Anonymous(span=node.span)
                case As(variable) if variable in own:
                    return replace(node, variable=free[variable])
                case _:
                    return node

        return rebuild(pattern, renamed), tuple(rebuild(condition, renamed) for condition in conditions)

    def _unnamed(self) -> str:
        """A name for an event to which the author gives none."""
        free = next(name for k in count(1) if (name := f"${k}") not in self._taken)
        self._taken.add(free)
        return free

    def _fresh(self, name: str) -> str:
        free = fresh(name, self._taken)
        self._taken.add(free)
        return free


def _absent(
    window: Window, name: Name, pattern: Pattern, conditions: tuple[Condition, ...], selection: Selection
) -> Accumulation:
    """What must not come between; it has a name if something is said of it."""
    is_named = any(n.name == name.name for condition in conditions for n in find(condition, Name))
    event = Event(name if is_named else None, pattern, span=pattern.span)
    return Accumulation(window, "not", event, conditions, span=selection.span)


def _whole(pattern: Pattern) -> Pattern:
    """A bare label as the term that every event which carries it matches."""
    if isinstance(pattern, AnyEvent):
        return Element(pattern.label, ordered=False, partial=True, children=(), span=pattern.span)
    return pattern


_INSIDE = (Duration((Quantity(Decimal(0), ""),)), Unlimited()) * 2
"""The parameters with which `during` admits what begins or ends with the other."""
