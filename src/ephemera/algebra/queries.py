"""This module makes the materialization points for streams and simple event queries, each once for all rules.

A stream is what a pattern may match: events from outside and the results of the rules that may derive them (thesis
14.4.4, both improvements). A query is a pattern with its variables numbered, so that rules which ask for the same
thing by other names share one point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ephemera.algebra.attributes import EVENT, Variable
from ephemera.algebra.nodes import Base, Expression, Input, Match, Point, Rename, Union
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import rebuild, walk
from ephemera.rules.dependencies import Asked, Graph
from ephemera.rules.normalize import without_negations
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import pattern_bindings
from ephemera.rules.shapes import pattern_shape
from ephemera.syntax.format import format_pattern
from ephemera.terms.match import with_or_without
from ephemera.terms.nodes import As, Atom, Name, Pattern, Var

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Asking:
    """How a rule asks for events: a pattern, and whether it must be tested again when other variables are known."""

    pattern: Pattern
    tested: bool = False


class Queries:
    """The points for streams and queries, made as rules ask for them."""

    def __init__(self, graph: Graph, points_of: Callable[[int], Sequence[str]]) -> None:
        self._graph = graph
        self._points_of = points_of
        self._streams: dict[tuple[str | None, tuple[int, ...]], str] = {}
        self._queries: dict[tuple[str, tuple[Pattern, ...]], str] = {}
        self.points: dict[str, Point] = {}

    def use(self, asking: Asking, name: str) -> Expression:
        """The answers to a pattern, with the rule's own names for the event and the variables."""
        variants = superset(asking.pattern) if asking.tested else (asking.pattern,)
        numbers: dict[str, str] = {}
        numbered = tuple(_renamed(variant, numbers) for variant in variants)
        stream = self._stream(asking.pattern)
        query = self._query(stream, numbered)
        known = frozenset[str]().union(*(bound(v) for v in variants))
        variables = tuple((Variable(number), Variable(own)) for own, number in numbers.items() if own in known)
        return Rename(Input(query), ((EVENT, name),), variables)

    def _stream(self, pattern: Pattern) -> Expression:
        label = pattern_label(pattern)
        text = None if label is None else str(label)
        rules = self._graph.rules_answering(Asked(pattern_shape(pattern)))
        if not rules:
            return Base(text)
        if (text, rules) not in self._streams:
            derived = [Input(name) for rule in rules for name in self._points_of(rule)]
            name = self._fresh(f"{text or 'any'}*")
            self.points[name] = Point(name, "stream", Union((Base(text), *derived)), label=text)
            self._streams[text, rules] = name
        return Input(self._streams[text, rules])

    def _query(self, stream: Expression, variants: tuple[Pattern, ...]) -> str:
        key = (repr(stream), variants)
        if key not in self._queries:
            matches = tuple(Match(stream, EVENT, variant) for variant in variants)
            label = pattern_label(variants[0])
            name = self._fresh(format_pattern(_readable(variants[0])))
            expression = matches[0] if len(matches) == 1 else Union(matches)
            self.points[name] = Point(name, "query", expression, label=None if label is None else str(label))
            self._queries[key] = name
        return self._queries[key]

    def _fresh(self, name: str) -> str:
        if name not in self.points:
            return name
        number = 2
        while f"{name}#{number}" in self.points:
            number += 1
        return f"{name}#{number}"


def superset(pattern: P) -> tuple[P, ...]:
    """Patterns that together match wherever the whole may: with and without each optional part, nothing forbidden."""
    return tuple(dict.fromkeys(without_negations(variant) for variant in with_or_without(pattern)))


def bound(pattern: Pattern) -> frozenset[str]:
    """The variables that a pattern binds, surely or perhaps."""
    return pattern_bindings(pattern).bound


def _renamed(pattern: Pattern, numbers: dict[str, str]) -> Pattern:
    """The pattern with its variables numbered in the order of the text; the same numbers for all variants."""
    for name in _names(pattern):
        numbers.setdefault(name, f"v{len(numbers) + 1}")

    def change(node: Any) -> Any:
        match node:
            case Var(name):
                return Var(numbers[name])
            case As(variable, term):
                return As(numbers[variable], term)
            case _:
                return node

    return rebuild(pattern, change)


def _names(pattern: Pattern) -> Iterable[str]:
    for node in walk(pattern):
        match node:
            case Var(name) | As(name, _):
                yield name
            case _:
                continue


def _readable(pattern: Pattern) -> Pattern:
    """Variables of arrow atoms without `var`."""
    if not isinstance(pattern, Atom):
        return pattern
    return rebuild(pattern, lambda n: Name(n.name) if isinstance(n, Var) else n)
