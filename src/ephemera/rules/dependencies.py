"""This module finds which rules a rule depends on, and how: positively, negatively, by grouping, in time.

The graph has a vertex for each rule and for each shape that is asked for or derived, so its size follows the
program and not the square of it: a thousand rules on one event type are a thousand edges (thesis 10.1.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import Span
from ephemera.base.tree import find, walk
from ephemera.rules.alternatives import cases
from ephemera.rules.nodes import DependencyKind, Resolved
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import bindings
from ephemera.rules.shapes import Shape, Tree, head_shape, may_match, pattern_shape, shape_label
from ephemera.syntax.nodes import (
    Accumulation,
    Algebra,
    AlgebraExpression,
    AtMost,
    Composed,
    Event,
    Limited,
    Rule,
    Timer,
)
from ephemera.terms.nodes import Aggregate, All, Name, Pattern, Var


@dataclass(frozen=True, slots=True)
class Asked:
    """A shape that some pattern asks for."""

    shape: Shape


@dataclass(frozen=True, slots=True)
class Derived:
    """A shape that some head has."""

    shape: Shape


Vertex: TypeAlias = int | Asked | Derived


@dataclass(frozen=True, slots=True)
class Edge:
    """A rule asks for a shape in some way, at some place."""

    asked: Asked
    kind: DependencyKind
    span: Span


class _Heads:
    """The derived shapes of one label, found by the label of a child so that many of them stay apart."""

    def __init__(self) -> None:
        self._all: list[Shape] = []
        self._open: list[Shape] = []
        self._by_child: dict[str, list[Shape]] = {}

    def add(self, shape: Shape) -> None:
        self._all.append(shape)
        children = shape.children if isinstance(shape, Tree) else ()
        labels = {shape_label(child) for child in children}
        if not isinstance(shape, Tree) or None in labels:
            self._open.append(shape)
        else:
            for label in labels:
                self._by_child.setdefault(label or "", []).append(shape)

    def candidates(self, asked: Shape) -> list[Shape]:
        """Those that have the rarest child that is asked for, and those that may have any."""
        needed = [shape_label(child) for child in asked.children] if isinstance(asked, Tree) else []
        found = [self._by_child.get(label, []) for label in needed if label is not None]
        return self._all if not found else min(found, key=len) + self._open


class Graph:
    """What rules ask for, and which rules may answer; see the module."""

    def __init__(self, resolved: Resolved) -> None:
        self._resolved = resolved
        self._heads: dict[Shape, list[int]] = {}
        for number, rule in enumerate(resolved.rules, 1):
            shape = head_shape(rule.head)
            if shape is not None:
                self._heads.setdefault(shape, []).append(number)
        self.edges: dict[int, list[Edge]] = {
            number: list(_edges(rule, resolved)) for number, rule in enumerate(resolved.rules, 1)
        }
        self._asked_by_rule: dict[int, tuple[Asked, ...]] = {
            number: tuple(dict.fromkeys(e.asked for e in edges)) for number, edges in self.edges.items()
        }
        self._answers: dict[Asked, tuple[Derived, ...]] = {}
        self._rules_of: dict[Asked, tuple[int, ...]] = {}

    @cached_property
    def _by_label(self) -> dict[str | None, _Heads]:
        found: dict[str | None, _Heads] = {}
        for shape in self._heads:
            found.setdefault(shape_label(shape), _Heads()).add(shape)
        return found

    def _candidates(self, asked: Shape) -> Iterable[Shape]:
        label = shape_label(asked)
        if label is None:
            return self._heads
        alike = [self._by_label[key] for key in (label, None) if key in self._by_label]
        return (head for heads in alike for head in heads.candidates(asked))

    def answers(self, asked: Asked) -> tuple[Derived, ...]:
        """The derived shapes that may match what is asked for."""
        if asked not in self._answers:
            declared = shape_label(asked.shape) in self._resolved.catalogue.events
            self._answers[asked] = tuple(
                Derived(head)
                for head in self._candidates(asked.shape)
                if may_match(asked.shape, head, declared=declared)
            )
        return self._answers[asked]

    def rules_answering(self, asked: Asked) -> tuple[int, ...]:
        if asked not in self._rules_of:
            found = [number for derived in self.answers(asked) for number in self._heads[derived.shape]]
            self._rules_of[asked] = tuple(sorted(found))
        return self._rules_of[asked]

    def successors(self, vertex: Vertex) -> tuple[Vertex, ...]:
        match vertex:
            case Asked():
                return self.answers(vertex)
            case Derived(shape):
                return tuple(self._heads[shape])
            case number:
                return self._asked_by_rule[number]


def _edges(rule: Rule, resolved: Resolved) -> Iterator[Edge]:
    """What a rule asks for; a rule that aggregates depends by grouping on all of it."""
    groups = next(find(rule.head, (Aggregate, All)), None) is not None
    groups = groups or any(next(find(condition, Aggregate), None) for condition in rule.having)
    for pattern, kind, span in _asked(rule, _anchors(rule)):
        label = pattern_label(pattern)
        if label is not None and (label.prefix == "timer" or str(label) in resolved.catalogue.tables):
            continue
        asked = Asked(pattern_shape(pattern))
        yield Edge(asked, kind, span)
        if groups and kind == "positive":
            yield Edge(asked, "grouping", span)


def _anchors(rule: Rule) -> set[int]:
    """The events that a timer of the same alternative is anchored to, or that say how long one is, by identity."""
    found: set[int] = set()
    for case in cases(rule.body):
        timers = [m for m in case if isinstance(m, Timer)]
        told = [n for timer in timers if isinstance(timer.duration, AtMost) for n in find(timer.duration, (Name, Var))]
        names = {timer.anchor.name for timer in timers} | {n.name for n in told if isinstance(n, Name)}
        variables = {n.name for n in told if isinstance(n, Var)}
        events = [m for m in case if isinstance(m, Event | Algebra)]
        found |= {id(m) for m in events if m.name is not None and m.name.name in names}
        found |= {id(m) for m in events if variables and bindings(m).bound & variables}
    return found


def _asked(rule: Rule, anchors: set[int]) -> Iterator[tuple[Pattern, DependencyKind, Span]]:
    accumulated = {id(a.event) for a in find(rule.body, Accumulation)}
    for node in walk(rule.body):
        match node:
            case Accumulation(_, mode, event, _):
                yield event.pattern, "negative" if mode == "not" else "positive", node.span
            case Event(_, pattern) if id(node) not in accumulated:
                yield pattern, "positive", node.span
                if id(node) in anchors:
                    yield pattern, "temporal", node.span
            case Algebra(_, expression, _):
                for primitive, kind in _primitives(expression, negated=False):
                    yield primitive, kind, node.span
                    if id(node) in anchors and kind == "positive":
                        yield primitive, "temporal", node.span
            case _:
                continue


def _primitives(expression: AlgebraExpression, *, negated: bool) -> Iterator[tuple[Pattern, DependencyKind]]:
    match expression:
        case Composed(operator, left, right):
            yield from _primitives(left, negated=negated)
            yield from _primitives(right, negated=negated or operator == "-")
        case Limited(operand, _):
            yield from _primitives(operand, negated=negated)
        case _:
            yield expression, "negative" if negated else "positive"
