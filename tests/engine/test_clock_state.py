"""This module shows that the lane of the clock keeps its state apart from that of events which no stream carries."""

from __future__ import annotations

import ephemera
from ephemera.analysis.sources import UNNAMED
from ephemera.engine.engine import Engine
from ephemera.engine.state.changelog import Changelog
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.physical.lanes import CLOCK
from ephemera.rules.outcome import World
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term

SECOND = 1_000_000
PROGRAM = """
    EVENT a(x: int); EVENT b(x: int);
    STREAM s CARRIES a WATERMARK 0 sec;
    tick(n) <- t: timer:datetime(second: n), n mod 2 = 0;
    counted(n, count(*)) <- h: tick(n), w: extend-begin(h, 5 sec), while w: collect b(_);
"""


def test_an_engine_goes_on_where_the_clock_was_ahead_of_a_source_without_a_name() -> None:
    plan = ephemera.compile(PROGRAM)._compiled.physical
    first, second = Engine(plan, World()), Engine(plan, World())
    assert {CLOCK, frozenset([UNNAMED])} < first.lanes.keys()
    log, other = Changelog(first, "0/all"), Changelog(second, "0/all")
    first.sources.limit(0, None)
    event = Event(Term("b", (Term("x", (1,)),), ordered=False), Interval(4 * SECOND, 4 * SECOND))
    first.load(of_events([event], plan.catalogue.attributes))
    first.advance({"s": 10 * SECOND})
    assert first.lanes[CLOCK].bound == 10 * SECOND
    other.recall(log.words(), log.take())
    assert {names: lane.bound for names, lane in second.lanes.items()} == {
        names: lane.bound for names, lane in first.lanes.items()
    }
    assert {names: second.waiting_in(names) for names in second.lanes} == {
        names: first.waiting_in(names) for names in first.lanes
    }
    answers = []
    for engine in (first, second):
        engine.sources.limit(0, 12 * SECOND)
        given = engine.advance({"s": FAR, UNNAMED: FAR})
        assert not engine.take_late()
        events = [*given.few, *(event for part in given.events for event in part.events())]
        answers.append(sorted((e.term.label, e.time.end // SECOND) for e in events))
    expected = [*(("counted", time) for time in (4, 6, 8)), *(("tick", time) for time in (0, 2, 4, 6, 8, 10, 12))]
    assert answers == [sorted(expected), sorted(expected)]
