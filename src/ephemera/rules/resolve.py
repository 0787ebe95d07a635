"""This module resolves a syntax tree: every name is looked up, every rule checked, all mistakes gathered.

In what comes out, `Var` is a variable, `Name` an event identifier, and durations are in microseconds; otherwise
the rules are as they were written. Checks that lean on others run only on rules that passed those.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from ephemera.base.diagnostic import Code, Help
from ephemera.base.span import Span
from ephemera.base.time import microseconds
from ephemera.base.tree import find, rebuild, walk
from ephemera.rules.alternatives import MOST_ALTERNATIVES, alternatives, groups
from ephemera.rules.declare import declare
from ephemera.rules.findings import Findings
from ephemera.rules.functions import check_functions
from ephemera.rules.identifiers import check_identifiers
from ephemera.rules.namespaces import check_prefixes, read_namespaces, spelled
from ephemera.rules.nodes import Catalogue, Resolved
from ephemera.rules.patterns import check_patterns, pattern_label
from ephemera.rules.scope import bindings, event_names
from ephemera.rules.selections import expanded
from ephemera.rules.times import check_times
from ephemera.rules.types import check_types
from ephemera.rules.variables import check_variables
from ephemera.syntax.nodes import (
    Algebra,
    And,
    At,
    Between,
    Condition,
    Event,
    Or,
    Program,
    Query,
    Rule,
    Timer,
    Where,
    While,
)
from ephemera.terms.nodes import Duration, Name, Quantity, Var


def resolve(program: Program, findings: Findings, *, complete: bool = True) -> Resolved:
    """`complete` is False where parts of the text could not be read: then nothing is said about what is missing."""
    program = expanded(program, findings)
    namespaces = read_namespaces(program, findings)
    check_prefixes(program, namespaces, findings)
    resolved = declare(spelled(program, namespaces), findings, namespaces=namespaces, complete=complete)
    sound: set[int] = set()
    for number, rule in enumerate(resolved.rules, 1):
        before = len(findings)
        if alternatives(rule.body, optional=not groups(rule)) > MOST_ALTERNATIVES:
            _tell_alternatives(rule, findings)
            continue
        check_identifiers(rule, findings)
        check_patterns(resolved, number, findings, complete=complete)
        check_functions(rule, resolved.catalogue.functions, findings)
        check_variables(rule, findings)
        check_times(rule, resolved.catalogue, findings)
        if not _has_event(rule.body, resolved.catalogue):
            _tell_no_event(rule, resolved.catalogue, findings)
        if len(findings) == before:
            sound.add(number)
    check_types(resolved, sound, findings)
    unit = resolved.catalogue.unit
    return replace(resolved, rules=tuple(_named(rule, unit) for rule in resolved.rules))


def _tell_alternatives(rule: Rule, findings: Findings) -> None:
    findings.add(
        Code.TOO_MANY_ALTERNATIVES,
        f"the rule has more than {MOST_ALTERNATIVES} alternatives",
        Span(rule.span.start, rule.head.span.end),
        help=[Help("derive parts of it by rules of their own, which share their alternatives")],
    )


def _has_event(query: Query | Condition, catalogue: Catalogue) -> bool:
    """Whether every alternative has an event, and so a time at which it happens."""
    match query:
        case Event(_, pattern):
            label = pattern_label(pattern)
            return label is None or str(label) not in catalogue.tables
        case Algebra():
            return True
        case And(items):
            return any(_has_event(item, catalogue) for item in items)
        case Or(items):
            return all(_has_event(item, catalogue) or _has_timer(item) for item in items)
        case Where(inner, _):
            return _has_event(inner, catalogue)
        case _:
            return False


def _has_timer(query: Query | Condition) -> bool:
    """A branch with a timer leans on the event outside that anchors it."""
    return next(find(query, Timer), None) is not None


def _tell_no_event(rule: Rule, catalogue: Catalogue, findings: Findings) -> None:
    branch = _branch_without_event(rule.body, catalogue)
    what = "this alternative" if branch is not None else "the rule"
    findings.add(
        Code.NO_EVENT,
        f"{what} asks for no event, so nothing says when its answers happen",
        branch.span if branch is not None else rule.body.span,
        help=[Help("ask for an event or an absolute timer" + (" in every alternative" if branch is not None else ""))],
    )


def _branch_without_event(query: Query | Condition, catalogue: Catalogue) -> Query | None:
    """The alternative that lacks an event where others have one."""
    for choice in find(query, Or):
        found = [item for item in choice.items if _has_event(item, catalogue) or _has_timer(item)]
        if found:
            return next((item for item in choice.items if item not in found), None)
    return None


def _named(rule: Rule, unit: int) -> Rule:
    """The rule with every bare name decided, and durations in microseconds."""
    events = {id(name) for name in event_names(rule, bindings(rule.body).all)}
    for node in walk(rule.body):
        match node:
            case Event(name, _) | Algebra(name, _, _):
                events.add(id(name))
            case Timer(name, _, anchor, _):
                events.update((id(name), id(anchor)))
            case While(event, _, _):
                events.add(id(event))
            case Between(first, last):
                events.update((id(first), id(last)))
            case At(moment, _, _):
                events.add(id(moment))

    def change(node: Any) -> Any:
        if isinstance(node, Name) and id(node) not in events:
            return Var(node.name, span=node.span)
        if isinstance(node, Duration):
            length = microseconds(((p.amount, p.unit) for p in node.parts), unit) or 0
            return Duration((Quantity(Decimal(length), "us", span=node.span),), span=node.span)
        return node

    return rebuild(rule, change)
