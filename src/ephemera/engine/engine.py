"""This module is the engine in one process: events arrive, wait for the bounds of their sources, and meet the rules.

Rules that depend on the same sources share a lane and a bound; so a slow source holds back only those that need it.
What is given by a bound is exactly what happens until then, however the events were cut into batches and in whatever
order they arrived within their bounds.

What a run lacked is found out on the way: types are struck off a list when they come, batch by batch, and rules that
gave something are put down; so nothing is counted for each event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ephemera.analysis.sources import UNNAMED
from ephemera.base.errors import InternalError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.first_look import FirstLook
from ephemera.engine.lacking import UNREAD
from ephemera.engine.lane import Lane
from ephemera.engine.operators.head import is_message
from ephemera.engine.separation import Separation
from ephemera.engine.time.event_time import Clock, Watermarks, sources_of
from ephemera.engine.waiting import WaitingEvents
from ephemera.kernels.columns import Batch, Ints, Mask
from ephemera.kernels.event_columns import BEGIN, END, Events, distinct, of_events
from ephemera.physical.lanes import CLOCK
from ephemera.physical.plan import PhysicalPlan
from ephemera.rules.outcome import CloseEvent, DeadLetter, World
from ephemera.terms.atoms import Names
from ephemera.terms.events import Event, event_of_both


@dataclass(slots=True)
class Found:
    """What is certain now: events by label or one by one, and messages by the rule that sends them."""

    events: list[Events] = field(default_factory=list)
    few: list[Event] = field(default_factory=list)
    """Events that are too few for columns."""
    messages: list[tuple[int, Events]] = field(default_factory=list)
    derived: list[Events] = field(default_factory=list)
    """Where only some rules of a program run: all that others may read, asked for or not."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some rules of a program, and for their queries which matches belong here."""

    rules: frozenset[str]
    mine: Mapping[str, Callable[[Batch], Batch]]
    judges: bool = False
    """Whether it judges which events come too close to others; elsewhere only good ones come."""
    reserves: frozenset[str] = frozenset()
    """The histories of events that are kept for rules that come later, which are here."""


class Engine:
    """A program at work.

    Events that arrive are sent, and may be late; those of which the order means nothing are loaded. Time passes with
    what is sent, or as the sources advance, until the input is finished.
    """

    def __init__(self, plan: PhysicalPlan, world: World, part: Part | None = None) -> None:
        """A part runs only some of the rules."""
        if plan.calendars != world.calendars.keys():
            raise InternalError("engine", "the plan is for other calendars than there are")
        self._plan = plan.plan
        self._world = world
        self._part = part
        self.first: FirstLook | None = None
        """What looks at the first events, if somebody wants that."""
        self._letters: list[DeadLetter] = []
        """Heads that had no value in lanes that another plan has taken the place of."""
        self.sources: Watermarks = sources_of(plan.catalogue)
        self.clock = Clock(plan, world.calendars, self.sources)
        self._attributes = {label: plan.catalogue.attributes(label) for label in plan.catalogue.events}
        self._laid_out = plan.lanes
        self.lanes: dict[frozenset[str], Lane] = {}
        self.waiting_parts: dict[frozenset[str], WaitingEvents] = {}
        """For each lane the events that wait for its bound to pass them."""
        mine = part.mine if part is not None else {}
        own = plan.lanes.of(plan.rules, plan.reserved) if part is None else plan.lanes.of(part.rules, part.reserves)
        for names, lane in own.items():
            self.lanes[names] = Lane(lane, plan, world.tables, self.clock, mine)
            self.waiting_parts[names] = WaitingEvents(plan.plan.early)
        judges = part is None or part.judges
        self.separations = {
            label: Separation(label, apart, self.attributes(label)) for label, apart in plan.judged.items() if judges
        }
        """For each type that is judged by how close its events come what waits for that, and what that needs."""
        self.late: list[Event] = []
        """Events that came behind the bound of their source, until somebody takes them."""
        self.late_count = 0
        self.given = 0
        """How many answers there were."""
        self.awaited = set(plan.awaited)
        """The types of events from outside that have not come yet."""
        self._is_unread = plan.is_unread
        self.unread: set[str] = set()
        """Some of the types that came and that no rule reads."""
        self.outside: set[str] | None = set()
        """The types of which events came from outside; None if that is not known."""
        self.matched: set[int] = set()
        """The numbers of the rules that have given something, or a head without a value."""
        self.by_rule: Counter[str] | None = None
        """How many answers each rule has given, and each stored join tuples, if somebody wants to know."""
        self._added: dict[frozenset[str], list[Events]] | None = None
        """For each lane what came to wait since somebody asked for that; None if nobody ever did."""

    # ---- events in -----------------------------------------------------------------------------------------

    def send(self, events: Sequence[Event]) -> Found:
        """Events in the order in which they arrive; what is certain then."""
        if len(events) == 1:
            return self._send_one(events[0])
        by_source: dict[str, list[int]] = {}
        for number, event in enumerate(events):
            by_source.setdefault(self.sources.source(event.term.label), []).append(number)
        late: set[int] = set()
        for name, numbers in by_source.items():
            times = np.array([self._arrival(events[n]) for n in numbers], dtype=np.int64)
            in_time = self.sources.arrive(name, times, np.array([events[n].time.end for n in numbers], dtype=np.int64))
            late.update(n for n, good in zip(numbers, in_time.tolist(), strict=True) if not good)
        self._be_late([events[n] for n in sorted(late)])
        good = [event for n, event in enumerate(events) if n not in late]
        self.load(of_events(good, self._plan.catalogue.attributes))
        return self._step()

    def send_parts(self, parts: Sequence[Events], orders: Sequence[Ints]) -> Found:
        """Events by columns, each with its place in the order in which they arrive; what is certain then."""
        self._take_in(parts, orders, self.sources)
        return self._step()

    def receive(self, parts: Sequence[Events], orders: Sequence[Ints], own: Watermarks) -> None:
        """The same for events of one partition of their sources: they are judged by how far that has come.

        How far the sources have come then is for others to tell, who know all partitions; `advance` is told.
        """
        self._take_in(parts, orders, own)
        if own.first is not None:
            self.sources.span(own.first, own.last)

    def _take_in(self, parts: Sequence[Events], orders: Sequence[Ints], sources: Watermarks) -> None:
        for part, late in zip(parts, self._late_rows(parts, orders, sources), strict=True):
            self._be_late(part.take(late).events() if late.any() else [])
            self._wait(part.take(~late) if late.any() else part)

    def _late_rows(self, parts: Sequence[Events], orders: Sequence[Ints], sources: Watermarks) -> list[Mask]:
        """For each part which of its events come behind the bound of their source."""
        found: list[Mask] = [np.zeros(len(part), dtype=np.bool_) for part in parts]
        by_source: dict[str, list[int]] = {}
        for k, part in enumerate(parts):
            if len(part):
                by_source.setdefault(sources.source(part.label), []).append(k)
        for name, own in sorted(by_source.items(), key=lambda item: min(int(orders[k].min()) for k in item[1])):
            order = np.argsort(np.concatenate([orders[k] for k in own]))
            times = np.concatenate([parts[k].batch[self._stamp(parts[k].label)] for k in own])
            late = np.empty(len(order), dtype=np.bool_)
            ends = np.concatenate([parts[k].batch[END] for k in own])
            late[order] = ~sources.arrive(name, times[order], ends[order])
            for k, rows in zip(own, np.split(late, np.cumsum([len(parts[k]) for k in own])[:-1]), strict=True):
                found[k] = rows
        return found

    def _send_one(self, event: Event) -> Found:
        if self.sources.arrive_one(self.sources.source(event.term.label), self._arrival(event), event.time.end):
            self.load(of_events((event,), self._attributes.get))
        else:
            self._be_late([event])
        return self._step()

    def _be_late(self, events: Sequence[Event]) -> None:
        self.late += events
        self.late_count += len(events)
        self.came(event.term.label for event in events)

    def _stamp(self, label: str) -> str:
        """The stamp by which events of a type arrive."""
        return BEGIN if self._plan.catalogue.arrives_at_begin(label) else END

    def _arrival(self, event: Event) -> int:
        """When an event is known: at its end, or at its begin if its type is declared so."""
        return event.time.begin if self._plan.catalogue.arrives_at_begin(event.term.label) else event.time.end

    def load(self, parts: Iterable[Events]) -> None:
        """Events of which the order means nothing: all is known, and nothing is late."""
        for part in parts:
            self._wait(part)

    def _wait(self, part: Events) -> None:
        """An event waits in every lane that depends on its source.

        One that no stream carries also waits in all lanes if rules derive it, and in those that ask for any label.
        """
        self._came(part.label)
        if self.first is not None:
            self.first.came(part)
        if self.outside is not None:
            self.outside.add(part.label)
        separation = self.separations.get(part.label)
        if separation is None:
            self._admit(part)
            return
        late = part.batch[END] <= separation.bound
        if late.any():  # of a source that nobody waits for
            self._be_late(part.take(late).events())
        separation.hold([part.take(~late)] if late.any() else [part])

    def _admit(self, part: Events) -> None:
        """A good event waits in lanes."""
        source = self.sources.source(part.label)
        is_derived = part.label in self._plan.catalogue.derived
        late: Mask | None = None
        for names in self.waiting_parts:
            if source in names:
                self.hold(names, [part])
            elif names == CLOCK and not self.lanes[names].asks_for(part.label):
                continue
            elif source == UNNAMED and (is_derived or self.lanes[names].asks_for(None)):
                in_time = part.batch[END] > self.lanes[names].bound
                late = ~in_time if late is None else late | ~in_time
                self.hold(names, [part.take(in_time)])
        if late is not None and late.any():
            self._be_late(part.take(late).events())

    # ---- time passes, answers out --------------------------------------------------------------------------

    def advance(self, reached: int | Mapping[str, int]) -> Found:
        """All sources have come so far, or each as it is told; what is certain then."""
        if isinstance(reached, int):
            self.sources.close(reached)
        else:
            self.sources.advance(reached)
        return self._step()

    def pass_over(self, reached: Mapping[str, int]) -> None:
        """The sources have come so far, and nothing that ended since counts: neither answers nor dead letters."""
        given, matched = self.given, set(self.matched)
        self.advance(reached)
        self.take_dead_letters()
        self.take_close()
        self.given, self.matched = given, matched

    def finish(self) -> Found:
        """The input has ended: what is pending is decided."""
        self.sources.finish()
        return self._step()

    def _step(self) -> Found:
        """What is certain where the sources stand."""
        found = Found()
        if self.first is not None and self.first.is_over:
            self._decide(self.first)
        for label, separation in self.separations.items():
            source = self.sources.source(label)
            awaited = frozenset((source,)) if source in self._laid_out.every else self._laid_out.every
            for part in separation.step(self.sources.bound(awaited)):
                self._admit(part)
                found.derived += [part] if self._part is not None else []
        for names, lane in self.lanes.items():
            bound = self.sources.bound(names) if names != CLOCK else self.sources.fastest(self._laid_out.every)
            if bound <= lane.bound:
                continue
            released = self.release(names, bound)
            if self.first is not None:
                self.first.stepped(names, released, bound)
            derived = lane.step(released, bound)
            for name, parts in derived.items():
                self._give(name, parts, names, found)
            for name, event in lane.few:
                rule = self._plan.points[name].rule
                self.matched.add(rule or 0)
                if names != CLOCK and self.clock.asks_for(rule, event.time.end):
                    found.few.append(event)
            if self.by_rule is not None and names != CLOCK:
                self._count(derived, lane.few)
        if found.few and found.events:
            found.events += of_events(found.few, self._plan.catalogue.attributes)
            found.few = []
        found.few = _once(found.few) if len(found.few) > 1 else found.few
        found.events = distinct(found.events) if len(found.events) > 1 else found.events
        self.given += len(found.few) + sum(map(len, found.events)) + sum([len(part) for _, part in found.messages])
        return found

    def _give(self, name: str, parts: Sequence[Events], names: frozenset[str], found: Found) -> None:
        """What a rule derived, to those who asked, and to the lanes that go on from it."""
        point = self._plan.points[name]
        lane = self.lanes[names]
        wanted: list[Events] = []
        if point.kind == "rule":  # a stored join is for other rules only
            self.matched.add(point.rule or 0)
            wanted = self.clock.asked(point.rule, parts) if names != CLOCK else []
        if is_message(lane.builders[name].head):
            found.messages += [(point.rule or 0, p) for p in distinct(wanted)]
            return
        found.events += wanted
        if names != CLOCK and name in self._laid_out.told_ahead:
            return
        found.derived += parts if self._part is not None else []
        for others in self.waiting_parts:
            if others > names and not (names == CLOCK and others == self._laid_out.every):
                self.hold(others, parts)

    def _decide(self, first: FirstLook) -> None:
        """Goes on by the plan that is best for what came first; its lanes stand where those before did."""
        self.first = None
        plan = first.better_plan()
        if plan is None:
            return
        self._letters += self.take_dead_letters()
        ticks = sum(lane.tick for lane in self.lanes.values())
        runs = max((h.next_number for lane in self.lanes.values() for h in lane.histories.values()), default=0)
        self._plan, self._laid_out = plan.plan, plan.lanes
        for names, lane_plan in plan.lanes.plans.items():
            lane = Lane(lane_plan, plan, self._world.tables, self.clock)
            lane.number_from(ticks + 1, runs)
            for released, bound in first.steps.get(names, ()):
                lane.step(released, bound)
            lane.take_dead_letters()
            self.lanes[names] = lane

    def _count(self, derived: Mapping[str, Sequence[Events]], few: Sequence[tuple[str, Event]]) -> None:
        """Counts what rules gave in a step, each answer of a rule once, and the tuples of stored joins."""
        by_rule = self.by_rule if self.by_rule is not None else Counter[str]()
        for name, parts in derived.items():
            point = self._plan.points[name]
            given = distinct(self.clock.asked(point.rule, parts)) if point.kind == "rule" else parts
            by_rule[name] += sum(map(len, given))
        for name, event in set(few):
            by_rule[name] += self.clock.asks_for(self._plan.points[name].rule, event.time.end)

    # ---- what waits, and what is kept of it ----------------------------------------------------------------

    def hold(self, names: frozenset[str], parts: Sequence[Events]) -> None:
        """Events wait in a lane."""
        self.waiting_parts[names].hold(parts)
        if self._added is not None:
            self._added.setdefault(names, []).extend(parts)

    def release(self, names: frozenset[str], bound: int) -> list[Events]:
        """The events that wait in a lane no longer, as its bound passes them."""
        return self.waiting_parts[names].release(bound)

    def released_by(self, label: str) -> str:
        """The stamp that the bound has to pass for an event to wait no longer."""
        return BEGIN if label in self._plan.early else END

    @property
    def waiting(self) -> int:
        """How many events wait for a bound to pass them."""
        unjudged = sum(len(one.waiting) for one in self.separations.values())
        return unjudged + max((self.waiting_in(names) for names in self.lanes), default=0)

    def waiting_in(self, names: frozenset[str]) -> int:
        """How many events wait in one lane."""
        return len(self.waiting_parts[names])

    def count_on(self, given: int = 0, late: int = 0) -> None:
        """Others gave so many answers, and turned so many events away, of which this goes on."""
        self.given += given
        self.late_count += late

    # ---- state ---------------------------------------------------------------------------------------------

    def added(self) -> dict[frozenset[str], list[Events]]:
        """For each lane what came to wait since this was last asked; from the first time on it is written down."""
        added, self._added = self._added, {}
        return added or {}

    def checkpoint(self) -> dict[str, Any]:
        """How far its sources are and how much it has given, as JSON has it; the state of lanes is with them."""
        return {"bounds": self.sources.bounds, "first": self.sources.first, "given": self.given}

    def restore(self, counted: Mapping[str, Any]) -> None:
        """Stands where another stood."""
        self.sources.advance(counted["bounds"])
        self.sources.limit(counted.get("first", self.sources.first), self.sources.ended)
        self.given = counted["given"]
        self.outside = None

    # ---- what became of events -----------------------------------------------------------------------------

    def attributes(self, label: str) -> Names:
        """The attributes of a type, if it is declared with them."""
        return self._plan.catalogue.attributes(label)

    def take_dead_letters(self) -> list[DeadLetter]:
        """The heads that had no value since the last time; what the clock tells ahead is found once more."""
        found = {names: lane.take_dead_letters() for names, lane in self.lanes.items()}
        letters = [letter for names, letters in found.items() if names != CLOCK for letter in letters]
        letters, self._letters = [*self._letters, *letters], []
        self.matched.update(letter.rule for letter in letters)
        return letters

    def take_close(self) -> list[CloseEvent]:
        """The events that came too close to others since the last time."""
        return [one for separation in self.separations.values() for one in separation.take_close()]

    def take_late(self) -> list[Event]:
        """The events that were late since the last time."""
        late, self.late = self.late, []
        return late

    def came(self, labels: Iterable[str]) -> None:
        """Something of these types has come, if only what is no event of the program."""
        for label in labels:
            self._came(label)

    def _came(self, label: str) -> None:
        if label in self.awaited:
            self.awaited.discard(label)
        elif len(self.unread) < UNREAD and self._is_unread(label):
            self.unread.add(label)


def _once(events: Iterable[Event]) -> list[Event]:
    found: dict[Event, Event] = {}
    for event in events:
        found[event] = event_of_both(found.get(event, event), event)
    return list(found.values())
