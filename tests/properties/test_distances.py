"""This module tests temporal distances against Z3 and plain search, and conditions against the oracle.

Bounds are exact over dense time: a distance is the supremum over real numbers, attained unless it is strict. What has
no solution is decided over whole microseconds, where `<` leaves one less: a system that only fractions solve is
contradictory. So a closure is never tighter than whole numbers allow, and may be looser by a microsecond for each `<`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ephemera.algebra import truth
from ephemera.algebra.conditions import formula
from ephemera.algebra.scalar import Formula, every
from ephemera.analysis.cases import MOST_CASES, alternatives
from ephemera.analysis.distances import Closure, Edge, close, hull, whole_distances
from ephemera.analysis.weights import Weight, at_most, strict
from ephemera.base.tree import find
from ephemera.rules.nodes import Ruleset
from ephemera.semantics.conditions import holds, related
from ephemera.syntax.nodes import Relation
from ephemera.terms.compute import Scope
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term
from tests.strategies.cases import compiled
from tests.strategies.constraints import (
    FEW,
    MOMENTS,
    SHADOWED,
    STAMPS,
    TURNED,
    TWO_DATES,
    Greatest,
    System,
    assignments,
    between_moments,
    constraints,
    guaranteed,
    pairs_of,
    satisfies,
    solvable,
    stamps_of,
    systems,
    total,
)

Distances = dict[tuple[str, str], Weight]


def closed(edges: System) -> Closure:
    closure = close(edges)
    assert closure is not None
    return closure


def distances(closure: Closure) -> Distances:
    return {(i, j): w for i, row in closure.table.items() for j, w in row.items()}


def said(found: Distances) -> dict[tuple[str, str], tuple[int, bool]]:
    """Bounds and strictness, whoever vouches for them."""
    return {pair: (w.bound, w.inclusive) for pair, w in found.items()}


# ---- Z3 and search -----------------------------------------------------------------------------------------


@given(systems())
def test_a_contradiction_is_what_no_whole_numbers_solve(edges: System) -> None:
    assert (close(edges) is not None) is Greatest(edges, whole=True).is_possible()


def test_what_only_fractions_solve_is_a_contradiction() -> None:
    edges = (Edge("b", "a", strict(0)), Edge("c", "b", strict(0)), Edge("a", "c", at_most(1)))
    assert Greatest(edges, whole=False).is_possible()
    assert close(edges) is None


@settings(max_examples=100)
@given(solvable())
def test_a_distance_is_the_greatest_difference_of_reals(edges: System) -> None:
    closure, greatest = closed(edges), Greatest(edges, whole=False)
    for i, j in pairs_of(edges):
        distance = closure.distance(i, j)
        assert greatest.difference(i, j) == (None if distance is None else (distance.bound, distance.inclusive))


@settings(max_examples=100)
@given(solvable())
def test_a_whole_distance_is_the_greatest_difference_of_whole_numbers(edges: System) -> None:
    greatest = Greatest(edges, whole=True)
    for start in stamps_of(edges):
        found = whole_distances(edges, start)
        assert found is not None
        for end in stamps_of(edges):
            assert greatest.difference(start, end) == ((found[end], True) if end in found else None)


@settings(max_examples=60)
@given(st.lists(constraints(FEW, -2, 2), min_size=1, max_size=5).map(tuple))
def test_plain_search_finds_the_same(edges: System) -> None:
    # Two steps of at most 3 (a strict 2 downwards) lead to the farthest stamp that is bound, and past it there is room.
    closure = close(edges)
    for start in stamps_of(edges):
        found = list(assignments(edges, range(-14, 15), start))
        assert bool(found) is (closure is not None)
        if closure is None:
            continue
        whole = whole_distances(edges, start)
        assert whole is not None
        for end in stamps_of(edges):
            distance = closure.distance(start, end)
            assert (distance is None) is (end not in whole)
            if distance is not None:
                assert max(values[end] for values in found) == whole[end]
                assert all(satisfies(values, Edge(start, end, distance)) for values in found)


# ---- closures ----------------------------------------------------------------------------------------------


@given(systems())
def test_many_stamps_are_closed_as_few_are(edges: System) -> None:
    by_rows = close(edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ephemera.analysis.distances.FEW_STAMPS", 0)
        by_arrays = close(edges)
    assert by_arrays == by_rows
    assert by_arrays is None or by_rows is None or by_arrays.sure == by_rows.sure


@given(solvable())
def test_closing_a_closure_changes_nothing(edges: System) -> None:
    found = distances(closed(edges))
    again = closed(tuple(Edge(i, j, w) for (i, j), w in found.items()))
    assert distances(again) == found


@given(solvable())
def test_no_way_round_is_shorter(edges: System) -> None:
    closure = closed(edges)
    for i, k, j in product(closure.table, repeat=3):
        first, second, whole = closure.distance(i, k), closure.distance(k, j), closure.distance(i, j)
        if first is not None and second is not None:
            assert whole is not None
            assert whole <= first.plus(second)


@given(systems(), constraints((*STAMPS, *MOMENTS)))
def test_another_constraint_never_loosens_a_distance(edges: System, more: Edge) -> None:
    before, after = close(edges), close((*edges, more))
    if before is None:
        assert after is None
    elif after is not None:
        tighter = said(distances(after))
        assert all(tighter[pair] <= bound for pair, bound in said(distances(before)).items())


@given(solvable().flatmap(lambda edges: st.tuples(st.just(edges), st.permutations(edges))))
def test_the_order_of_constraints_does_not_matter(orders: tuple[System, list[Edge]]) -> None:
    edges, shuffled = orders
    assert said(distances(closed(edges))) == said(distances(closed(tuple(shuffled))))


@example(SHADOWED)
@given(solvable())
def test_a_distance_is_guaranteed_if_guaranteed_edges_alone_reach_it(edges: System) -> None:
    sure = closed((*guaranteed(edges), *between_moments(edges)))
    for (i, j), weight in distances(closed(edges)).items():
        alone = sure.distance(i, j)
        assert weight.doubtful is (alone is None or not alone.says_the_same(weight))


@example(TURNED)
@given(solvable())
def test_guarantees_mind_no_order(edges: System) -> None:
    assert distances(closed(edges)) == distances(closed(edges[::-1]))


@example(TWO_DATES)
@given(solvable())
def test_a_path_consists_of_constraints_that_add_up_to_the_distance(edges: System) -> None:
    closure = closed(edges)
    for i, j in pairs_of(edges):
        path, whole = closure.path(i, j), closure.distance(i, j)
        assert bool(path) is (whole is not None)
        assert all(edge in (*edges, *between_moments(edges)) for edge in path)
        assert [e.end for e in path] == [e.start for e in path[1:]] + [j] * bool(path)
        assert whole is None or (path[0].start == i and total(path).says_the_same(whole))


@settings(max_examples=60)
@given(st.lists(solvable(FEW), min_size=1, max_size=3))
def test_a_hull_is_what_all_cases_have_in_common_and_no_more(cases: list[System]) -> None:
    common = hull([closed(edges) for edges in cases], FEW)
    assert all(e.weight == e.weight.guaranteed() for e in common)
    for values in (v for edges in cases for v in assignments(edges, range(-4, 5))):
        assert all(satisfies(values, e) for e in common if {e.start, e.end} <= values.keys())
    found = {(e.start, e.end): (e.weight.bound, e.weight.inclusive) for e in common}
    greatest = [Greatest(edges, whole=False) for edges in cases]
    for i, j in product(FEW, FEW):
        suprema = [g.difference(i, j) for g in greatest]
        known = [s for s in suprema if s is not None]
        expected = max(known) if i != j and len(known) == len(suprema) else None
        assert found.get((i, j)) == expected


# ---- conditions as distances -------------------------------------------------------------------------------

NAMES = ("i", "j", "k")
RELATIONS = """
    before after meets met-by overlaps overlapped-by starts started-by during contains finishes finished-by equals
    before[2] before[0,2] before[*,2] before[1,*] after[2] after[1,3] meets[1] meets[*] met-by[1] equals[1] equals[0,2]
    equals[*,1] during[1] during[1,2] during[0,1,0,2] during[*,2,1,*] contains[1] contains[0,2] contains[*,*,0,1]
    overlaps[1] overlaps[1,2] overlaps[0,2,0,2] overlaps[*,1,1,*] overlapped-by[1] overlapped-by[2,1]
    overlapped-by[0,2,*,2] starts[1] starts[0,2] starts[*,2] starts[1,0,2] starts[*,1,*] started-by[2] started-by[1,*]
    started-by[1,0,2] finishes[1] finishes[0,2] finishes[1,*] finishes[1,0,2] finished-by[2] finished-by[0,2]
    finished-by[*,1,2]
""".split()
CONDITIONS = (
    *("{i} within 2", "{i,j} within 2", "{i,j,k} within 2", "{i,j} apart-by 0", "{i,j} apart-by 2"),
    *("not i before j", "not i overlaps j", "not {i,j} within 2", "not {i,j} apart-by 1", "not i equals[1] j"),
    *("i before j or j before i", "i meets j and j meets k", "i before j, j before k", "not (i before j or j meets k)"),
    "not (i before j and (j before k or not {j,k} within 1))",
    "({i,j} apart-by 0 or i equals j) and ({j,k} apart-by 1 or j overlaps k)",
    'i before datetime("1970-01-01T00:00:00.000002Z")',
    'datetime("1970-01-01T00:00:00.000001Z") during j or not i after[1,2] datetime("1970-01-01T00:00:00.000001Z")',
)


@cache
def rules_with(condition: str) -> Ruleset:
    rules = compiled(f"TIME UNIT 1 us; p(x) <- i: a(x), j: b(x), k: c(x), {condition};")
    assert rules is not None
    return rules


def lowered(condition: str) -> Formula:
    rules = rules_with(condition)
    return every(formula(c, rules.resolved.catalogue.zone) for c in rules.normal[0].conditions)


def intervals(latest: int, count: int) -> Iterator[tuple[Interval, ...]]:
    """All tuples of so many intervals between 0 and the latest time."""
    every_one = [Interval(*ends) for ends in combinations_with_replacement(range(latest + 1), 2)]
    return product(every_one, repeat=count)


def stamps(times: tuple[Interval, ...]) -> dict[str, int]:
    named = list(zip(NAMES, times, strict=False))
    return {f"{n}.s": t.begin for n, t in named} | {f"{n}.e": t.end for n, t in named}


def truth_of(condition: str, f: Formula, values: dict[str, int]) -> bool:
    """Whether the formula holds, after its cases have been seen to hold or not as it does."""
    found = truth.Tester(rules_with(condition).resolved.catalogue, {}).truth(f, values)
    assert found is not None
    moments = {s: int(s[1:]) for case in alternatives(f) for s in stamps_of(case) if s.startswith("@")}
    assert any(all(satisfies(values | moments, e) for e in case) for case in alternatives(f)) is found
    return found


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_relation_is_the_distances_that_the_oracle_tests(relation: str) -> None:
    condition = f"i {relation} j"
    f = lowered(condition)
    (written,) = find(rules_with(condition).resolved.rules[0], Relation)
    for i, j in intervals(5, 2):
        assert truth_of(condition, f, stamps((i, j))) is related(written.relation, i, j, written.parameters)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_the_distances_that_the_oracle_tests(condition: str) -> None:
    f, rules = lowered(condition), rules_with(condition)
    for times in intervals(3, 3):
        trace = {n: Event(Term(n, ()), t) for n, t in zip(NAMES, times, strict=True)}
        scope = Scope(1, rules.resolved.catalogue.zone, {n: e.time for n, e in trace.items()})
        oracle = all(holds(c, {}, trace, scope, {}) for c in rules.normal[0].conditions)
        assert truth_of(condition, f, stamps(times)) is oracle


def test_too_many_cases_become_few_that_leave_nothing_out() -> None:
    choices = " and ".join(f"({{i,j}} apart-by {n} or {{i}} within {n})" for n in range(1, 6))
    f, sure = lowered(f"{{i,j}} within 4 and {choices}"), lowered("{i,j} within 4")
    cases = alternatives(f)
    assert len(cases) <= MOST_CASES < 3**5
    assert all(set(case) >= set(alternatives(sure)[0]) for case in cases)
    tester = truth.Tester(rules_with("i before j").resolved.catalogue, {})
    for values in map(stamps, intervals(5, 2)):
        if tester.truth(f, values):
            assert any(all(satisfies(values, e) for e in case) for case in cases)
