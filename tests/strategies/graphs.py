"""This module makes recursion of size: chains, circles and dense graphs, and rules that go over them in many ways."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from ephemera.rules.nodes import Ruleset
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term

from .cases import compiled

START = "path(x, y) <- e: edge(x, y);"
STEPS = (
    "path(x, z) <- p: path(x, y), e: edge(y, z);",
    "path(x, z) <- e: edge(x, y), p: path(y, z), e before p;",
    "path(x, z) <- p: path(x, y), q: path(y, z), {p, q} within 3;",
    "path(x, z) <- p: path(x, y), e: edge(y, z), q: path(x, z), p != q;",
    "path(y, x) <- p: path(x, y), x < y;",
    "path(x, z) <- b: back(x, y), e: edge(y, z); back(y, x) <- p: path(x, y);",
    "path(x, n + 1) <- p: path(x, n), n < 9;",
    "path(x, z) <- p: path(x, y), w: extend(e, 1), e: edge(y, z), while w: not stop(z);",
    "path(x, y) <- p: path(y, x), e: edge(_, _), while e: collect edge(x, _);",
    "path(x, z) <- e: edge(x, y), w: extend(e, 1), while w: collect path(y, z);",
)
ENDS = ("", "seen(x, count(y)) <- s: stop(x), w: extend-begin(s, 5), while w: collect path(x, y);")


@dataclass(frozen=True, slots=True)
class Graph:
    """A program, and the events that it goes over."""

    program: str
    ruleset: Ruleset
    events: list[Event]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Some rules, and edges in a row, in a circle or anyhow, at one time or several."""
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=2, unique=True))
    program = "\n".join([START, *steps, draw(st.sampled_from(ENDS))])
    rules = compiled(program)
    assert rules is not None, program
    nodes = draw(st.integers(2, 6))
    kind = draw(st.sampled_from(["row", "circle", "any"]))
    pairs = [(k, k + 1) for k in range(nodes)] + ([(nodes, 0)] if kind == "circle" else [])
    if kind == "any":
        place = st.integers(0, 3)
        pairs = draw(st.lists(st.tuples(place, place), min_size=1, max_size=7))
    latest = draw(st.sampled_from([0, 1, 4]))
    times = draw(st.lists(st.integers(0, latest), min_size=len(pairs), max_size=len(pairs)))
    events = [Event(Term("edge", pair), _at(time)) for pair, time in zip(pairs, times, strict=True)]
    stops = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=2))
    events += [Event(Term("stop", (place,)), _at(time)) for place, time in stops]
    return Graph(program, rules, draw(st.permutations(events)))


def _at(time: int) -> Interval:
    return Interval(time * 1_000_000, time * 1_000_000)
