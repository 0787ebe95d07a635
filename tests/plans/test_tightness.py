"""This module shows that relevance conditions are tight: whoever keeps less than they say changes some answer.

For every stamp of every input that has a bound a stream is searched on which nothing changes with the conditions as
derived, and something does as soon as that bound is a microsecond shorter than whole microseconds allow. What is known
not to be tight stands here with its reason, and fails the day it becomes so.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import Points
from ephemera.analysis.nodes import Bound, Relevance
from ephemera.base.diagnostic import render_text
from ephemera.base.span import Source
from ephemera.pipeline import check
from tests.plans.witnesses import Search, Witness

# ---- programs ----------------------------------------------------------------------------------------------

_BENCH = "TIME UNIT 1 ms; " + " ".join(f"EVENT {e}(id: int, x: int, v: int);" for e in "ABDE")
_LIFETIMES = "TIME UNIT 1 ms; EVENT A(id: int, x: int) LASTS AT MOST 2; EVENT B(id: int, x: int) LASTS AT MOST 2;"
_OVERDUE = "overdue(i) <- o: ordered(i), w: extend(o, 6h), while w: not shipped(i);"
_POINTS = "EVENT ordered(id: int); EVENT shipped(id: int);"
_VISITS = "EVENT visit(p: int) LASTS AT MOST 2h; EVENT knock(p: int) LASTS AT MOST 1h;"
_HIVES = "EVENT opened(h: int) LASTS AT MOST 1h; EVENT weighed(h: int, g: int) LASTS AT MOST 10m;"
_STEPS = "EVENT step(a: int, b: int); way(x, y) <- s: step(x, y); "
_ABC = "EVENT a(x: int); EVENT b(x: int); EVENT c(x: int);"
_SIGNS = "TIME UNIT 1 sec; EVENT a(x: int); EVENT b(x: int); EVENT c(x: int);"

PROGRAMS = {
    "the paper's": (
        "TIME UNIT 1 hour; C(x) <- a: A(x), b: B(x), {a,b} within 2;"
        "F(x) <- c: C(x), d: D(x), e: E(x), c before d, {c,d} within 4, d before e, {d,e} within 1;"
    ),
    "completed": "done(i) <- o: ordered(i), s: sent(i), d: delivered(i), o before s, s before d, {o,s,d} within 48h;",
    "overdue, points": f"{_POINTS} {_OVERDUE}",
    "overdue, short orders": f"EVENT ordered(id: int) LASTS AT MOST 1h; EVENT shipped(id: int); {_OVERDUE}",
    "load": f"{_POINTS} {_OVERDUE}"
    "load(i, count(*)) <- v: overdue(i), w: from-end-backward(v, 24h), while w: collect shipped(_);",
    "Q1": f"{_BENCH} Q1(i, j) <- a: A(i, x, _), b: B(j, x, _), {{a,b}} within 2h;",
    "Q2": f"{_BENCH} C(i, j, x) <- a: A(i, x, _), b: B(j, x, _), {{a,b}} within 2h;"
    "Q2(i, j, k, l) <- c: C(i, j, x), d: D(k, x, _), e: E(l, x, _),"
    "  c before d, c before[0h,4h] d, d before e, d before[0h,1h] e;",
    "Q3": f"{_BENCH} Q3(i) <- a: A(i, x, _), w: extend(a, 1h), while(excl,incl) w: not B(_, x, _);",
    "Q4": f"{_BENCH} Q4(i, avg(v)) <- a: A(i, x, _), w: from-start-backward(a, 1h), while w: collect B(_, x, v);",
    "Q5m": f"{_LIFETIMES} Q5m(i, j) <- a: A(i, _), b: B(j, _), b after[1,2] a;",
    "Q5r": f"{_LIFETIMES} Q5r(i, j) <- a: A(i, x), b: B(j, x), b after[1,2] a;",
    "from and until": (
        "quiet(g) <- a: raised(g), c: lowered(g), from a until c: not horn(g, d) where { d > 60 }, {a,c} within 12h;"
        "loud(g, max(d)) <- a: raised(g), c: lowered(g), from a until c: collect horn(g, d), {a,c} within 12h;"
    ),
    "the next one": f"{_ABC} then(x) <- i: a(x), j: next b(x) after i within 4;",
    "the last one": f"{_ABC} cause(x) <- i: a(x), j: last b(x) before i within 4;",
    "the first in a window": f"{_VISITS} first(p, begin(k)) <- v: visit(p), k: first knock(p) in v;",
    "shifted backward": f"{_VISITS} lonely(p) <- v: visit(p), w: shift-backward(v, 1h), while w: not knock(p);",
    "from the start": f"{_VISITS} lonely(p) <- v: visit(p), w: from-start(v, 1h), while w: not knock(p);",
    "a timer, then an event": (
        f"{_VISITS} late(p) <- v: visit(p), w: from-start(v, 1h), k: knock(p), w before k, {{w,k}} within 4h;"
    ),
    "a timer on a timer": (
        f"{_VISITS} r(p) <- v: visit(p), w: shift-forward(v, 2h), u: shorten(w, 10m), k: knock(p), k during u;"
    ),
    "apart and within": (
        "EVENT talk(s: int) LASTS AT MOST 4h; EVENT course(s: int) LASTS AT MOST 3h;"
        "walk(s) <- t: talk(s), c: course(s), {t,c} apart-by 2h, {t,c} within 10h;"
    ),
    "apart, then another": (
        "EVENT talk(s: int) LASTS AT MOST 4h; EVENT course(s: int) LASTS AT MOST 3h; EVENT bell(s: int);"
        "walk(s) <- t: talk(s), c: course(s), b: bell(s), {t,c} apart-by 2h, {t,c} within 10h, c before[*,5h] b;"
    ),
    "apart, one event for both": (
        "EVENT talk(s: int) LASTS AT MOST 4h; walk(s) <- t: talk(s), u: talk(s), {t,u} apart-by 2h, {t,u} within 10h;"
    ),
    "either": f"{_ABC} near(x) <- i: a(x), j: b(x), (i before[1h,2h] j or j before[3h,4h] i);",
    "either, then another": f"{_ABC} near(x) <- i: a(x), j: b(x), k: c(x),"
    "  (i before[1h,2h] j or j before[3h,4h] i), j before k, {j,k} within 1h;",
    "not so soon": f"{_ABC} late(x) <- i: a(x), j: b(x), {{i,j}} within 6h, not i before[0h,2h] j;",
    "told by an event": (
        "TIME UNIT 1 hour; EVENT ordered(id: int, h: int); EVENT shipped(id: int);"
        "late(i) <- o: ordered(i, h), w: extend(o, 6 * h AT MOST 6h), while w: not shipped(i);"
    ),
    "paths": f"{_STEPS} way(x, z) <- w: way(x, y), s: step(y, z), w before s, {{w,s}} within 9h;",
    "three steps": f"{_STEPS} way(x, z) <- w: way(x, y), s: step(y, z), w before[1h,3h] s, {{w,s}} within 9h;",
    "paths without a stone": f"{_STEPS} EVENT stone(a: int);"
    "way(x, z) <- w: way(x, y), s: step(y, z), w before[1h,5h] s, {w,s} within 9h;"
    "clear(x) <- w: way(x, y), while w: not stone(y);",
    "restricted": "TIME UNIT 1 sec; seen(x) <- e: algebra ((A(x); B(x))[5]);",
    "unrestricted": "TIME UNIT 1 sec; seen(x) <- e: algebra unrestricted ((A(x); B(x))[5]);",
    "algebra without": "TIME UNIT 1 sec; seen(x) <- e: algebra ((A(x); B(x))[5] - C(x));",
    "algebra without, all": "TIME UNIT 1 sec; seen(x) <- e: algebra unrestricted ((A(x); B(x))[5] - C(x));",
    "algebra both or one": "TIME UNIT 1 sec; seen(x) <- e: algebra ((A(x) + B(x))[5] | (C(x))[2]);",
    "algebra in a window": f"{_SIGNS} calm(x) <- e: algebra ((a(x); b(x))[5]), while e: not c(x);",
    "algebra, then another": f"{_SIGNS} seen(x) <- e: algebra ((a(x); b(x))[5]), k: c(x), e before[0,10] k;",
    "algebra, one part": (
        "TIME UNIT 1 sec; EVENT a(x: int) LASTS AT MOST 2; EVENT b(x: int); EVENT c(x: int);"
        "seen(x) <- e: algebra (a(x) - b(x)), k: c(x), e before[0,10] k;"
    ),
    "algebra, nested": f"{_SIGNS} s(x) <- e: algebra ((a(x); b(x))[2] - (c(x); (c(x) + a(x))));",
    "average": (
        f"{_HIVES} mean(h, avg(g)) <- o: opened(h), w: from-start-backward(o, 1h), while w: collect weighed(h, g);"
    ),
    "optional": (
        f"{_HIVES} m(h, count(g)) <- o: opened(h), w: extend-begin(o, 1h), while w: collect optional weighed(h, g);"
    ),
    "optional, later": (
        f"{_HIVES} m(h, sum(g)) <- o: opened(h), w: extend(o, 1h), while w: collect optional weighed(h, g);"
    ),
    "derived and absent": f"{_ABC} pair(x) <- i: a(x), j: b(x), i before[0h,2h] j;"
    "lone(x) <- k: c(x), w: extend-begin(k, 3h), while w: not pair(x);",
    "three levels": f"{_ABC} pair(x) <- i: a(x), j: b(x), {{i,j}} within 2h;"
    "trio(x) <- p: pair(x), k: c(x), {p,k} within 4h; five(x) <- t: trio(x), p: pair(x), t before p, {t,p} within 9h;",
    "given, though never derived": f"{_ABC} pair(x) <- i: a(x), j: b(x), i during j;"
    "near(x) <- p: pair(x), k: c(x), p before k, {p,k} within 2h;",
    "one hour or five": f"{_ABC} pair(x) <- i: a(x), j: b(x), (i before[1h] j or i before[5h] j);"
    "near(x) <- p: pair(x), k: c(x), {p} within 4h, p before[0h,2h] k;",
    "either, but only one": f"{_ABC} far(x) <- i: a(x), j: b(x), k: c(x),"
    "  (i before[1h,2h] j or j before[10h,12h] i), j before[9h,11h] k, i before[0h,3h] k;",
    "relay": "EVENT turn(x: int) LASTS AT MOST 1h; EVENT fall(x: int);"
    "relay(x) <- i: turn(x), j: turn(x), k: turn(x), i overlaps j, j overlaps k;"
    "clean(x) <- r: relay(x), while r: not fall(x);",
}
for _window in ("", "(excl,incl)", "(incl,excl)", "(excl,excl)"):
    PROGRAMS[f"while{_window}"] = (
        f"{_VISITS} lonely(p) <- v: visit(p), w: extend(v, 3h), while{_window} w: not knock(p);"
        f"busy(p, count(*)) <- v: visit(p), w: extend-begin(v, 3h), while{_window} w: collect knock(p);"
    )
for _relation in (
    *("before[15]", "before[0, 4h]", "before[*, 20]", "after[1, 1h]", "meets", "meets[30 sec]", "equals"),
    *("equals[1, 2]", "during", "during[30]", "during[10, 1h, 0, 2h]", "contains[*, 2h, 5m, *]"),
    *("overlaps", "overlaps[5]", "overlaps[0, 1h, *, 9h]", "overlapped-by[*, 30, 1h, *]"),
    *("starts", "starts[6h, 9h]", "starts[2m, 6h, *]", "finishes", "finishes[8h]", "finishes[2m, 6h, 9h]"),
):
    PROGRAMS[_relation] = (
        "TIME UNIT 1 min; EVENT call(d: int) LASTS AT MOST 2h; EVENT shift(d: int) LASTS AT MOST 10h;"
        f"r(d) <- i: call(d), j: shift(d), i {_relation} j;"
    )

# ---- what is known not to be tight -------------------------------------------------------------------------

Place = tuple[str, Points, str]
"""A program, what is materialized, and a point."""

A_MICROSECOND: dict[Place, tuple[str, str]] = {
    ("completed", "rules", "done"): ("d.s", "the way through `o`, equally long, has a strict distance more"),
    ("from and until", "rules", "loud"): ("c.s", "the way through the horn has a strict distance more"),
    ("from and until", "joins", "loud"): ("c.s", "the way through the horn has a strict distance more"),
    ("relay", "rules", "relay"): ("i.s", "the way through what the answer covers tells two strict distances as one"),
    ("relay", "rules", "clean"): ("r.s $1.s $1.e", "strict distances within a derived event are told as one"),
    ("relay", "joins", "clean"): ("r.s $1.s $1.e", "strict distances within a derived event are told as one"),
}
"""Stamps from which a microsecond more could be taken than their bounds have strict distances."""

LOOSE: dict[Place, tuple[str, str]] = {
    ("apart, one event for both", "rules", "walk"): ("t.s t.e u.s u.e", "the other name finds the same pair"),
    ("algebra, nested", "rules", "s"): ("e/5.s e/5.e", "restricted, a later `a` takes the place of the first"),
    ("one hour or five", "rules", "near"): ("p.s", "the hull of one hour and five allows four"),
    ("either, but only one", "joins", "far"): ("i.s i.e", "the hull of both alternatives allows what neither does"),
}
"""Stamps whose bounds are longer than needed; none of them loses an answer."""


def stamps(known: dict[Place, tuple[str, str]], program: str) -> set[tuple[Place, str]]:
    return {(place, stamp) for place, (names, _) in known.items() if place[0] == program for stamp in names.split()}


# ---- claims ------------------------------------------------------------------------------------------------


@cache
def search(program: str, points: Points) -> Search:
    checked = check(Source(f"{program}.eq", PROGRAMS[program]))
    assert checked.rules is not None, render_text(checked.report)
    return Search(lower(checked.rules, points))


@cache
def plans(program: str) -> list[Points]:
    """Rules as points, and joins if that makes other points."""
    one, other = search(program, "rules").plan, search(program, "joins").plan
    return ["rules"] if one.points.keys() == other.points.keys() else ["rules", "joins"]


@cache
def witnesses(program: str, points: Points) -> list[tuple[Relevance, Bound, Witness | None]]:
    found = search(program, points)
    return [(relevance, bound, found.witness(relevance, bound)) for relevance, bound in found.bounds()]


@pytest.mark.parametrize("program", PROGRAMS)
def test_whoever_keeps_less_changes_an_answer(program: str) -> None:
    missing = {
        ((program, points, relevance.point), bound.stamp)
        for points in plans(program)
        for relevance, bound, witness in witnesses(program, points)
        if witness is None
    }
    assert missing == stamps(A_MICROSECOND, program) | stamps(LOOSE, program)


@pytest.mark.parametrize("place", A_MICROSECOND, ids=" ".join)
def test_no_more_than_a_microsecond_is_to_be_had(place: Place) -> None:
    program, points, point = place
    found = search(program, points)
    for relevance, bound in found.bounds():
        if relevance.point == point and bound.stamp in A_MICROSECOND[place][0].split():
            assert found.witness(relevance, bound, spare=1), bound


def test_nothing_is_kept_forever() -> None:
    inputs = {(*plan, r.point, r.name): r for plan in every_plan() for r in search(*plan).facts.relevance}
    assert not {key for key, relevance in inputs.items() if not relevance.is_bounded}


def test_positive_events_are_missed_and_negated_ones_let_wrong_answers_through() -> None:
    seen = Counter((r.negated, w.how) for plan in every_plan() for r, _, w in witnesses(*plan) if w is not None)
    assert set(seen) == {(False, "lost"), (False, "refused"), (True, "gained")}
    assert min(seen.values()) > 10


def test_a_tuple_is_refused_only_where_nothing_later_needs_it() -> None:
    """So that it is gone the moment it was there, which no condition can surpass."""
    for plan in every_plan():
        for relevance, bound, witness in witnesses(*plan):
            if witness is not None and witness.how == "refused":
                assert search(*plan).is_gone_at_once(relevance, witness), (plan, relevance.point, bound.stamp)


def every_plan() -> list[tuple[str, Points]]:
    return [(program, points) for program in PROGRAMS for points in plans(program)]
