"""This module lets rules that have the same join share it, whatever they call its events and variables (T§14.5.4).

A ⋈ B in one rule and A ⋈ B in another are computed once, and stored as long as either needs it. Two joins are the same
if they read the same queries, share variables in the same places, and lie in time to each other as the other does; what
both test of their data is tested there, and what only one of them tests it goes on testing itself. It is done where it
is expected to cost less than to join anew in each rule. When that is exact is told in `rule_parts`. Rules that wait for
different sources share nothing, since one of them would wait for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from ephemera.algebra.attributes import is_blank
from ephemera.algebra.nodes import Select
from ephemera.algebra.renaming import Renaming
from ephemera.algebra.scalar import Formula
from ephemera.analysis.flows import tests_of
from ephemera.analysis.join_estimates import JoinEstimates
from ephemera.analysis.sources import awaited_sources, every_source
from ephemera.base.lazy_dataclass import dataclass
from ephemera.rewrite.optimize import Rewritten
from ephemera.rewrite.rule_parts import BUILD, Part, RuleParts, changed, open_rules

READ = 0.5
"""What it costs to read a tuple of a stored join, in candidates."""
FEW = 4
"""Of more parts than these only the whole join and joins of two are looked at."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A join of a rule that others may have, too."""

    rule: RuleParts
    parts: tuple[Part, ...]
    names: Renaming
    tests: Mapping[Formula, Select]
    """What can be tested there, by the names of the shape."""

    def estimates(self, tests: Iterable[Formula]) -> JoinEstimates:
        """What is expected of the join with some of the tests."""
        parts = [self.rule.join_part(part) for part in self.parts]
        return JoinEstimates(parts, self.rule.closures, tests_of((self.tests[t].condition for t in tests), parts))


def share_joins(given: Rewritten) -> Rewritten:
    """The plan with one stored join for rules that have the same."""
    rules = open_rules(given)
    used: set[str] = set()
    for candidates in sorted(_alike(given, rules), key=_gain, reverse=True):
        left = [one for one in candidates if one.rule.name not in used]
        if len(left) > 1 and _gain(left) > 0:
            _share(given, left, list(rules))
            used |= {one.rule.name for one in left}
    return changed(given, {name: rules[name].points() for name in rules if name in used}) if used else given


def _alike(given: Rewritten, rules: Mapping[str, RuleParts]) -> Iterator[list[_Candidate]]:
    """The joins that several rules have."""
    by_sources: dict[tuple[str, ...], list[tuple[RuleParts, tuple[Part, ...]]]] = {}
    for rule in rules.values():
        for parts in _subsets(rule.parts):
            by_sources.setdefault(tuple(part.source for part in parts), []).append((rule, parts))
    written = given.written or given.plan
    sources = awaited_sources(written, given.calendars, every_source(written, given.calendars))
    for found in by_sources.values():
        if len({rule.name for rule, _ in found}) < 2:
            continue
        by_shape: dict[object, dict[str, _Candidate]] = {}
        for rule, parts in found:
            shape, names = rule.shape(parts)
            own = by_shape.setdefault((shape, sources.get(rule.name)), {})
            own.setdefault(rule.name, _Candidate(rule, parts, names, rule.tests_of(parts, names)))
        for own in by_shape.values():
            yield from _with_common_tests(list(own.values()))


def _with_common_tests(candidates: Sequence[_Candidate]) -> Iterator[list[_Candidate]]:
    """Those that test the same, and all of them, which may have less in common."""
    by_tests: dict[frozenset[Formula], list[_Candidate]] = {}
    for one in candidates:
        by_tests.setdefault(frozenset(one.tests), []).append(one)
    yield from (same for same in by_tests.values() if len(same) > 1)
    if len(by_tests) > 1:
        yield list(candidates)


def _subsets(parts: Sequence[Part]) -> Iterator[tuple[Part, ...]]:
    """The parts of a rule that may be joined first, each in one order."""
    in_order = sorted(parts, key=lambda part: (part.source, parts.index(part)))
    sizes = range(2, len(parts) + 1) if len(parts) <= FEW else {2, len(parts)}
    for size in sizes:
        yield from combinations(in_order, size)


def _common(candidates: Sequence[_Candidate]) -> list[Formula]:
    """What all of them test."""
    first, *others = candidates
    return [test for test in first.tests if all(test in other.tests for other in others)]


def _gain(candidates: Sequence[_Candidate]) -> float:
    """What is saved if some rules share a join, and each tests what is left on what it finds there."""
    shared = candidates[0].estimates(_common(candidates))
    apart = {frozenset(one.tests): one.estimates(one.tests).cost() for one in candidates}
    saved = sum(apart[frozenset(one.tests)] for one in candidates)
    return saved - shared.cost() - shared.rate() * (BUILD + len(candidates) * READ)


def _share(given: Rewritten, candidates: Sequence[_Candidate], in_order: Sequence[str]) -> None:
    """Stores a join once, by the names of the rule whose fingerprint is least: the order of rules does not matter."""
    owner = min(candidates, key=lambda one: (given.prints[one.rule.name].fingerprint, one.rule.name))
    common = _common(candidates)
    query = owner.rule.store(owner.parts, [owner.tests[test] for test in common])
    for one in candidates:
        if one is not owner:
            back = one.names.back()
            events = {own: back.event(name) for own, name in owner.names.events.items()}
            variables = {own: back.variable(name) for own, name in owner.names.variables.items() if not is_blank(own)}
            own = [one.tests[test] for test in common]
            one.rule.share(owner.rule, query, one.parts, own, Renaming(events, variables))
    first = min(candidates, key=lambda one: in_order.index(one.rule.name)).rule
    if first is not owner.rule:
        owner.rule.give_away(first)
