"""This module generates programs by the clock over several streams, and the ways in which their events may arrive.

What the clock derives is joined, collected and forbidden by rules that wait for few sources or for many; types are
carried by streams or by none, and one type is used by no rule. Sources speak in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term

from .cases import Answers, answers

SECOND = 1_000_000
LATEST = 16
TYPES = "abcu"
DECLARED = "EVENT a(x: int); EVENT b(x: int); EVENT c(x: int) LASTS AT MOST 3; EVENT u(x: int);\n"
CLOCKS = [
    "tick(n) <- t: timer:datetime(second: n), n mod 2 = 0;",
    "tick(n) <- t: timer:datetime(second: n), w: extend(t, 2), n mod 4 = 1;",
    "tick(n) <- d: cal:shift(n);",
    "tick(sum(n)) <- t: every 2 sec, while t: collect optional u(n);",
    "tick(count(*)) <- t: window 5 sec every 3 sec offset 1 sec, while t: collect optional u(_);",
]
CHAINS = [
    "even(n) <- h: tick(n), n mod 4 = 0;",
    "even(n + 1) <- h: tick(n);",
    "even(n) <- h: tick(n), i: tick(_), h before[1, 4] i;",
    "even(n) <- h: tick(n), w: extend-begin(h, 3), while w: not u(_);",
]
READERS = [
    "n1(x, n) <- h: T(n), e: a(x), e before[0, 4] h;",
    "n2(x) <- h: T(x), e: b(x), {h, e} within 5;",
    "n3(n) <- h: T(n), w: extend-begin(h, 3), while w: not a(_);",
    "n4(n, count(*)) <- h: T(n), w: extend-begin(h, 5), while w: collect b(_);",
    "n5(x) <- e: a(x), w: extend(e, 3), while w: not T(_);",
    "n6(x, count(n)) <- e: c(x), w: extend(e, 4), while w: collect T(n);",
    "n7(x, n) <- t: timer:datetime(second: n), e: b(x), n mod 4 = 1, e before[0, 3] t;",
    "n8(x, y) <- h: T(_), i: a(x), j: b(y), {h, i, j} within 4;",
    "n9(n, count(*)) <- h: T(n), w: extend-begin(h, 5), while w: collect optional a(_);",
    "n10(x, n) <- h: tick(n), i: even(_), e: b(x), {h, i, e} within 4;",
    "n11(n) <- h: T(n), w: extend-begin(h, 4), while w: not p: a(_) where { p before[1, 3] h };",
    "n12(n, x) <- h: n3(n), e: b(x), h before[0, 5] e;",
    "n13(n) <- h: n3(n), w: extend-begin(h, 3), while w: not b(_);",
    "n14(x) <- e: c(x), f: b(_), {e, f} within 3;",
    "n15(count(*)) <- t: window 4 sec every 2 sec offset 1 sec, while t: collect optional a(_);",
    "n16(n) <- t: every 3 sec, h: T(n), h during t, while t: not b(_);",
    "n17(x, n) <- h: T(n), t: window 5 sec every 2 sec, e: a(x), e starts t, {t, h} within 9;",
    "n18(x, count(*)) <- t: window 4 sec every 2 sec, while t: collect a(x);",
    "n19(x) <- t: every 3 sec, while t: collect c(x), while t: not b(x);",
    "n20(x, sum(n)) <- t: window 5 sec, while t: collect b(x), while t: collect T(n);",
    "n21(x, count(*)) <- t: every 4 sec, while t: collect n17(x, _);",
    'RAISE to(recipient="r", transport="console") { m { var N } } ON event h: tick(var N) END',
]


@dataclass(frozen=True, slots=True)
class Timed:
    """A program by the clock, its events as they arrive, and until when time passes after each, if it does."""

    program: str
    rules: Ruleset
    world: World
    arrivals: tuple[tuple[Event, int | None], ...]
    cuts: tuple[int, ...]

    @property
    def batches(self) -> list[tuple[list[Event], int | None]]:
        """The events in batches, each with the instant that is closed behind it; one that closes ends its batch."""
        found: list[tuple[list[Event], int | None]] = []
        events: list[Event] = []
        for number, (event, closes) in enumerate(self.arrivals):
            events.append(event)
            if closes is not None or number in self.cuts:
                found.append((events, closes))
                events = []
        return [*found, (events, None)] if events else found

    def expected(self) -> Answers:
        """What the oracle answers: an instant that is closed counts as an end."""
        closed = [closes for _, closes in self.arrivals if closes is not None]
        marks = [Event(Term("noise"), Interval(t, t)) for t in closed]
        return answers(evaluate(self.rules, [*(e for e, _ in self.arrivals), *marks], self.world))


@st.composite
def _timed(draw: DrawFn) -> Timed:
    streams = draw(st.lists(st.sampled_from("sdfn"), min_size=4, max_size=4))
    watermarks = {name: draw(st.sampled_from([0, 0, 2, 5])) for name in "sdf"}
    texts = [DECLARED]
    for name, limit in watermarks.items():
        carried = [label for label, stream in zip(TYPES, streams, strict=True) if stream == name]
        if carried:
            texts.append(f"STREAM {name} CARRIES {', '.join(carried)} WATERMARK {limit} sec;")
    chain = draw(st.sampled_from(CHAINS))
    readers = draw(st.lists(st.sampled_from(READERS), min_size=1, max_size=4, unique=True))
    for asked in ("n3(", "n17("):
        if any(asked in reader for reader in readers):
            readers = list(dict.fromkeys([next(r for r in READERS if r.startswith(asked)), *readers]))
    texts += [draw(st.sampled_from(CLOCKS)), chain]
    texts += [reader.replace("T(", draw(st.sampled_from(["tick(", "even("]))) for reader in readers]
    program = "\n".join(texts)
    rules = check(Source("clock.eq", program)).rules
    assert rules is not None, program
    days = [Event(Term("cal:shift", (n,)), Interval(SECOND * (4 * n - 2), SECOND * 4 * n)) for n in range(-3, 7)]
    found = draw(st.lists(_events(), max_size=9))
    source = dict(zip(TYPES, streams, strict=True))
    arrivals = _arriving(draw, found, source, watermarks)
    cuts = tuple(draw(st.lists(st.integers(0, 9), max_size=4)))
    return Timed(program, rules, World(calendars={"cal:shift": days}), arrivals, cuts)


@st.composite
def _events(draw: DrawFn) -> Event:
    label = draw(st.sampled_from(TYPES))
    begin = draw(st.integers(0, LATEST))
    end = begin + (draw(st.integers(0, 3)) if label == "c" else 0)
    return Event(Term(label, (draw(st.integers(0, 6)),)), Interval(SECOND * begin, SECOND * end), positional=True)


def _arriving(
    draw: DrawFn, events: list[Event], source: dict[str, str], watermarks: dict[str, int]
) -> tuple[tuple[Event, int | None], ...]:
    """Events in an order in which none is late: sources in disorder as far as they may be, and one behind another."""

    def arrival(event: Event) -> tuple[str, float]:
        name = source[event.term.label]
        return name, event.time.end + draw(st.sampled_from([0, 0.5, 0.9])) * watermarks.get(name, 0) * SECOND

    in_turn = sorted(((arrival(e), n, e) for n, e in enumerate(events)), key=lambda item: item[:2])
    lines = [[e for _, _, e in own] for _, own in groupby(in_turn, key=lambda item: item[0][0])]
    order: list[Event] = []
    while lines := [line for line in lines if line]:
        order.append(draw(st.sampled_from(lines)).pop(0))
    closes = draw(st.none() | st.integers(0, max(len(order) - 1, 0)))
    later = [e.time.end for e in order[closes + 1 :]] if closes is not None else []
    instant = min([*later, SECOND * (LATEST + 4)]) - draw(st.integers(1, 3)) * SECOND
    return tuple((e, instant if n == closes else None) for n, e in enumerate(order))


def timed() -> SearchStrategy[Timed]:
    """Programs by the clock over several streams, and events that arrive in time."""
    return _timed()
