"""This module says what is known of a rule that stands for several: what is known of all of them, and no more.

A distance is at most the longest that it is in any of them. What they read matters as long as it does to any of them:
each is a reader of its own, and how long something is kept follows from all of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ephemera.algebra.attributes import Stamp
from ephemera.algebra.renaming import Renaming
from ephemera.analysis.cases import Case, Known
from ephemera.analysis.distances import Closure
from ephemera.analysis.nodes import Bound, Relevance
from ephemera.analysis.weights import Weight
from ephemera.base.lazy_dataclass import dataclass

Table = Mapping[str, Mapping[str, Weight]]
Cases = Sequence[tuple[Case, Closure]]


@dataclass(frozen=True, slots=True)
class KnownOfRule:
    """What is known of one of the rules, and what it calls what the first of them has other names for."""

    known: Known | None
    cases: Cases
    relevance: Sequence[Relevance]
    names: Renaming
    inputs: Mapping[str, str]
    """The queries that the rules read together, by those that it reads alone."""


def known_of_all(rules: Sequence[KnownOfRule]) -> Known | None:
    """What holds for all tuples of some rules."""
    first, *others = (rule.known for rule in rules)
    if first is None:
        return None
    weights = [{(e.start, e.end): e.weight for e in one.edges} for one in others if one is not None]
    edges = [
        edge._replace(weight=max([edge.weight, *(one[edge.start, edge.end] for one in weights)]))
        for edge in first.edges
        if all((edge.start, edge.end) in one for one in weights)
    ]
    return replace(first, edges=tuple(edges))


def cases_of_all(rules: Sequence[KnownOfRule]) -> Cases:
    """The alternatives of the first of some rules, with distances that hold for all; all rules have as many."""
    closures = [[_renamed(closure, rule.names) for _, closure in rule.cases] for rule in rules]
    of_each = zip(rules[0].cases, zip(*closures, strict=True), strict=True)
    return [(case, _widest(several)) for (case, _), several in of_each]


def relevance_of_all(point: str, rules: Sequence[KnownOfRule]) -> tuple[Relevance, ...]:
    """How long the inputs matter to each of some rules, as those of a point that stands for all."""
    found = (
        replace(
            one,
            point=point,
            input=rule.inputs.get(one.input, one.input),
            name=rule.names.event(one.name),
            keep_while=_bounds(one.keep_while, rule.names),
            minimal=_bounds(one.minimal, rule.names),
            partners=tuple(_bounds(bounds, rule.names) for bounds in one.partners),
        )
        for rule in rules
        for one in rule.relevance
    )
    return tuple(dict.fromkeys(found))


def _bounds(bounds: Sequence[Bound], names: Renaming) -> tuple[Bound, ...]:
    """Bounds under other names; why they are so long is told of each rule."""
    return tuple(Bound(Stamp(names.attribute(bound.stamp)), bound.time) for bound in bounds)


def _renamed(closure: Closure, names: Renaming) -> Closure:
    if names.is_idle:
        return closure

    def of(table: Table) -> Table:
        return {
            names.attribute(start): {names.attribute(stop): weight for stop, weight in row.items()}
            for start, row in table.items()
        }

    return Closure(of(closure.table), of(closure.sure))


def _widest(closures: Sequence[Closure]) -> Closure:
    """The longest of each distance."""
    return Closure(_longest([one.table for one in closures]), _longest([one.sure for one in closures]))


def _longest(tables: Sequence[Table]) -> Table:
    first, *others = tables
    found: dict[str, dict[str, Weight]] = {}
    for start, row in first.items():
        theirs = [other.get(start, {}) for other in others]
        found[start] = {
            stop: max([weight, *(one[stop] for one in theirs)])
            for stop, weight in row.items()
            if all(stop in one for one in theirs)
        }
    return found
