"""This module runs a program in several places: events are routed to where they meet, and each place has engines.

A place is a partition of whatever hosts this: a process, or Spark. First all events are routed to the groups that read
them. Level by level the engines of the groups run in all places, each through its own events in the order of time, and
route what they derive to the groups of later levels. What several places may derive meets once more at the end, so
that it is given once. Nothing here knows where a place is or how shipments travel.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ephemera.algebra.nodes import Match
from ephemera.algebra.parts import position_of
from ephemera.base.tree import find
from ephemera.engine.cluster.message import (
    Answers,
    BadInput,
    EngineStats,
    EventsFor,
    ScatteredAnswers,
    Shipment,
    UndefinedHead,
    bad_line,
    letter_line,
    pack,
    unpack,
)
from ephemera.engine.cluster.run_stats import RunStats
from ephemera.engine.cluster.time_slices import TimeSlices, slice_places
from ephemera.engine.driver import SLICE, drive
from ephemera.engine.engine import Engine, Found, Part
from ephemera.engine.operators.match import Matcher, asked_for
from ephemera.engine.separation import places_of
from ephemera.engine.time.event_time import sources_of
from ephemera.formats.addresses import fixed_address, with_address
from ephemera.formats.json_events import bad_of_close, write_event
from ephemera.kernels.columns import Batch, Hashes, Ints, Mask, ints
from ephemera.kernels.event_columns import BEGIN, END, REFERENCE, Events, distinct, of_events
from ephemera.kernels.history import FAR
from ephemera.kernels.keys import hash_columns
from ephemera.physical.placement import WHOLE, Placement
from ephemera.physical.plan import Compiled, PhysicalPlan
from ephemera.rules.outcome import World
from ephemera.syntax.nodes import Derive, Raise
from ephemera.terms.addresses import Address
from ephemera.terms.nodes import Pattern


@dataclass(frozen=True)
class DistributedProgram:
    """A program, how it is spread, and what it runs on; the same in all places."""

    compiled: Compiled
    world: World
    number: int
    """Which of the programs of a run it is."""
    places: int
    first: int
    last: int
    """The earliest and the latest end of all events; time passes from the one to the other."""
    slices: Mapping[tuple[int, int], TimeSlices] = field(default_factory=dict)
    """What is cut along time, and how: of a group that which has its home in a place. Each slice has a place."""
    visited: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """What is cut along time where it arrives, into how many slices: all of these places have all of its events."""

    def __getstate__(self) -> dict[str, object]:
        """What is made when it is first asked for does not travel."""
        made = ("_routes", "_stored", "_terms", "clock_group", "group_names")
        return {k: v for k, v in self.__dict__.items() if k not in made}

    @property
    def plan(self) -> PhysicalPlan:
        """How the program runs."""
        return self.compiled.physical.distributed

    @property
    def stages(self) -> Placement:
        """How it is spread over partitions."""
        return self.plan.stages

    # ---- routing -------------------------------------------------------------------------------------------

    @cached_property
    def _routes(self) -> dict[str | None, list[tuple[int, Matcher, str | None]]]:
        """For each label the groups that read it, by which query, and how that is cut."""
        found: dict[str | None, list[tuple[int, Matcher, str | None]]] = {}
        for number, group in enumerate(self.stages.groups):
            for name, cut in group.cuts.items():
                label, patterns = self._query(name)
                only = asked_for(self.plan.rewritten, name)
                query = Matcher(patterns, self.plan.catalogue, keeps_events=False, only=only)
                found.setdefault(label, []).append((number, query, cut))
        return found

    def _query(self, name: str) -> tuple[str | None, Sequence[Pattern]]:
        """What a query, or what is reserved, asks for."""
        point = self.plan.plan.points.get(name)
        if point is not None:
            return point.label, [m.pattern for m in find(point.expression, Match)]
        reserved = next(lane.queries[name] for lane in self.plan.lanes.plans.values() if name in lane.queries)
        return reserved.label, reserved.patterns

    def route(self, parts: Iterable[Events], after: int = -1) -> Iterator[Shipment]:
        """Events to all groups of later levels that read them; what comes from outside is no stored join."""
        for part in parts:
            if after < 0 and part.label in self._stored:
                continue
            if after < 0 and part.label in self.plan.judged:
                yield from self._to_be_judged(part)
                continue
            asking = [*self._routes.get(part.label, ()), *self._routes.get(None, ())]
            groups = {number for number, _, _ in asking if self.stages.groups[number].level > after}
            for number in sorted(groups):
                rows, hashes = self.keys(part, number)
                for home, several in _apart(rows, self._of_hashes(hashes)):
                    yield from self._sent(part, several, number, home)

    def _to_be_judged(self, part: Events) -> Iterator[Shipment]:
        """Events to where all of their type and values come together, to be judged by how close they are."""
        group = self.stages.judging
        if group is not None and len(part):
            places = self._of_hashes(places_of(part, self.plan.judged[part.label]))
            for home, rows in _apart(np.arange(len(part)), places):
                yield EventsFor(self.number, home, group, home, pack(part.take(rows)))

    def _sent(self, part: Events, rows: Ints, group: int, home: int) -> Iterator[Shipment]:
        """Events to their home, or to the places that have slices of what is at home there."""
        slices = self.slices.get((group, home))
        places = self.slice_places(group, home)
        if slices is None:
            packed = pack(part.take(rows))
            yield from (EventsFor(self.number, place, group, home, packed) for place in places)
            return
        again, numbers = slices.needing(part.batch[BEGIN][rows], part.batch[END][rows])
        for number, several in _apart(rows[again], numbers):
            yield EventsFor(self.number, places[number], group, home, pack(part.take(several)))

    @cached_property
    def _stored(self) -> frozenset[str]:
        """What stored joins are called where events have labels."""
        return frozenset(name for name, point in self.plan.plan.points.items() if point.kind == "join")

    def keys(self, part: Events, group: int) -> tuple[Ints, Hashes]:
        """The rows of some events that a group needs, once for each place where they are at home, by hashes of keys."""
        numbered = part.batch.with_columns({REFERENCE: ints(np.arange(len(part)))})
        known = Events(part.label, numbered, part.arity, part.names)
        found: list[tuple[Ints, Hashes]] = []
        for query, cut in self._asking(part.label, group):
            matched = query.match(known)
            if matched is not None:
                rows = matched[REFERENCE]
                found.append((rows, self._hashed(matched, rows, part, group, cut)))
        if not found:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
        rows = np.concatenate([r for r, _ in found])
        hashes = np.concatenate([h for _, h in found])
        if len(found) == 1 and len(rows) <= len(part) and bool((np.diff(rows) > 0).all()):
            return rows, hashes
        _, first = np.unique(rows * self.places + self._of_hashes(hashes), return_index=True)
        return rows[first], hashes[first]

    def _hashed(self, matched: Batch, rows: Ints, part: Events, group: int, cut: str | None) -> Hashes:
        if cut is None:
            return np.full(len(rows), self.pinned(group), dtype=np.uint64)
        if cut == WHOLE:
            return _hash_of(part)[rows]
        return hash_columns([matched.columns[cut]], len(matched))

    def _of_hashes(self, hashes: Hashes) -> Ints:
        return np.asarray(hashes % np.uint64(self.places), dtype=np.int64)

    def pinned(self, group: int) -> int:
        """The one place where all is at home that a group without a key reads."""
        return zlib.crc32(f"{self.number}/{self.group_names[group]}".encode()) % self.places

    def slice_places(self, group: int, home: int) -> list[int]:
        """The places of the slices of what is at home in one, from the first to the last, which is there."""
        slices = self.slices.get((group, home))
        return slice_places(home, len(slices) if slices else self.visited.get((group, home), 1), self.places)

    def for_batch(self, visited: Mapping[tuple[int, int], int]) -> DistributedProgram:
        """The same for a live batch in which some of it is cut along time; what has been made is not made again."""
        if not visited and not self.visited:
            return self
        other = object.__new__(DistributedProgram)
        other.__dict__.update(self.__dict__, visited=visited)
        return other

    def _asking(self, label: str, group: int) -> list[tuple[Matcher, str | None]]:
        """The queries of a group that ask for a label, and how they are cut."""
        asking = [*self._routes.get(label, ()), *self._routes.get(None, ())]
        return [(query, cut) for number, query, cut in asking if number == group]

    def sources(self, group: int) -> frozenset[str]:
        """The sources that the rules of a group depend on."""
        own = self.stages.groups[group]
        if own.judges:
            every = sources_of(self.plan.catalogue)
            return frozenset(every.source(label) for label in own.judges)
        return frozenset[str]().union(*self.plan.lanes.of(own.rules, own.reserves))

    def has_keys(self, group: int) -> bool:
        """Whether what a group reads is spread by keys, over all places."""
        return None not in self.stages.groups[group].cuts.values()

    @property
    def look_backs(self) -> dict[int, int]:
        """The groups that can be cut along time, and how far each slice looks back; whole events are spread anyway."""
        groups = enumerate(self.stages.groups)
        return {n: g.look_back for n, g in groups if g.look_back is not None and {*g.cuts.values()} != {WHOLE}}

    @cached_property
    def group_names(self) -> list[str]:
        """The groups by the rules that run in them, in whatever order these are written."""
        names = self.plan.rewritten.names
        return [
            "apart" if group.judges else "reserve" if group.reserves else names.together(group.rules)
            for group in self.stages.groups
        ]

    # ---- engines -------------------------------------------------------------------------------------------

    def needs_no_events(self, group: int) -> bool:
        """Whether a group may derive something with no event at all, by the clock."""
        return any(
            self.plan.plan.points[r].rule in self.plan.clocked and self.stages.placed[r].key is None
            for r in self.stages.groups[group].rules
        )

    @property
    def needs_gathering(self) -> bool:
        """Whether several places may give the same answer."""
        sends = any(isinstance(rule.head, Raise) for rule in self.compiled.rules.resolved.rules)
        return sends or bool(self.stages.scattered)

    def run(self, group: int, home: int, place: int, shipments: Iterable[EventsFor]) -> Iterator[Shipment]:
        """What the engine of a group makes of its shipments in one place, which come by their earliest end.

        It has all that is at home there, or a slice of time of what is at home there or elsewhere.
        """
        engine = self.engine(group, home)
        engine.sources.limit(self.first, self.last)
        slices = self.slices.get((group, home))
        after, until = slices.span(self.slice_places(group, home).index(place)) if slices else (-FAR, FAR)
        stats = RunStats(after)
        level = self.stages.groups[group].level
        yield from self.drive(engine, level, place, shipments, dict.fromkeys(engine.sources.names, until), stats)
        yield from self.close(engine, as_numbers=False)
        told = {"group": group, "level": level, **stats.told(engine)}
        yield EngineStats(self.number, place, told)

    def drive(  # noqa: PLR0913, PLR0917 - an engine, where it is, and what it runs on
        self,
        engine: Engine,
        level: int,
        place: int,
        shipments: Iterable[EventsFor],
        bounds: Mapping[str, int],
        stats: RunStats | None = None,
        needed: Callable[[Events], Mask] | None = None,
    ) -> Iterator[Shipment]:
        """What an engine makes of shipments, or what is needed of them, and of the bounds that hold behind them.

        It may be measured. What goes wrong says which events were the last to come in.
        """
        last: EventsFor | None = None
        counted = RunStats() if stats is None else stats

        def opened() -> Iterator[tuple[int, list[Events]]]:
            nonlocal last
            for shipment in shipments:
                part = unpack(shipment.events, self.plan.catalogue)
                part = part if needed is None else part.take(needed(part))
                counted.saw(part)
                yield shipment.events.first, [part]
                last = shipment  # asked for the next one, the driver has taken it in

        try:
            for found in drive(engine, opened(), bounds, after=counted.after):
                yield from self.given(found, level, place)
                if stats is not None:
                    stats.measure(engine)
        except Exception as error:
            if last is not None:
                error.add_note(f"the last event taken in was {self._shown(last)}")
            raise
        yield from self.letters(engine, place)

    def _shown(self, shipment: EventsFor) -> str:
        """The last event of a shipment, as people read it."""
        event = max(unpack(shipment.events, self.plan.catalogue).events(), key=lambda e: e.key)
        return json.dumps(write_event(event, self.plan.catalogue, as_numbers=False), ensure_ascii=False)

    def close(self, engine: Engine, *, as_numbers: bool) -> Iterator[Shipment]:
        """The events that came too close to others since this was last asked."""
        for bad in bad_of_close(engine.take_close(), self.plan.catalogue, as_numbers=as_numbers):
            yield BadInput(self.number, 0, 1, bad_line(bad))

    def letters(self, engine: Engine, place: int) -> Iterator[Shipment]:
        """The heads of an engine that had no value since this was last asked."""
        for letter in engine.take_dead_letters():
            yield UndefinedHead(self.number, place, 1, letter_line(letter))

    def engine(self, group: int, home: int) -> Engine:
        """An engine of a group for what is at home in a place."""
        return Engine(self.plan, self.world, self._part(group, home))

    @cached_property
    def clock_group(self) -> int | None:
        """The first group that may derive something with no event at all; all others do so only with its help."""
        return next((n for n in range(len(self.stages.groups)) if self.needs_no_events(n)), None)

    def _part(self, group: int, home: int) -> Part:
        own = self.stages.groups[group]
        return Part(frozenset(own.rules), self._mine(group, home), judges=bool(own.judges), reserves=own.reserves)

    def _mine(self, group: int, home: int) -> dict[str, Callable[[Batch], Batch]]:
        """For each query of a group which matches are at home in a place; most events are only sent for those."""
        cuts = self.stages.groups[group].cuts
        found: dict[str, Callable[[Batch], Batch]] = {}
        for name, cut in cuts.items():
            if cut is None:
                is_here = home == self.pinned(group)
                found[name] = (lambda batch: batch) if is_here else (lambda batch: batch.cut(0, 0))
            elif cut != WHOLE and not self._is_alone(name, cuts):
                found[name] = lambda batch, cut=cut: self._belonging(batch, cut, home)  # type: ignore[misc]
        return found

    def _belonging(self, batch: Batch, cut: str, home: int) -> Batch:
        here: Mask = self._of_hashes(hash_columns([batch.columns[cut]], len(batch))) == home
        return batch if here.all() else batch.take(here)

    def _is_alone(self, name: str, cuts: Mapping[str, str | None]) -> bool:
        """Whether all that read a label find its key at one place in it, so that no event is anywhere else."""
        points = self.plan.plan.points
        label = points[name].label
        readers = [n for n in cuts if points[n].label in (label, None)]
        places = {self._position(n, cuts[n]) for n in readers}
        return len(places) == 1 and None not in places

    def _position(self, name: str, cut: str | None) -> tuple[str, int] | None:
        return None if cut is None or cut == WHOLE else position_of(self.plan.plan, name, cut)

    # ---- what comes of it ----------------------------------------------------------------------------------

    def given(self, found: Found, level: int, place: int) -> Iterator[Shipment]:
        """What an engine of a level found: to those who asked, and to the groups of later levels."""
        few = of_events(found.few, self.plan.catalogue.attributes)
        for part in [*found.events, *few]:
            if len(part) and self.plan.gives(part.label):
                if part.label in self.stages.scattered:
                    yield from self._scatter(part)
                else:
                    yield Answers(self.number, place, 0, pack(part))
        for rule, part in found.messages:
            if len(part) and self.plan.gives(part.label):
                yield from self._scatter(with_address(part, self._fixed(rule)) if self._computes else part, rule)
        yield from self.route([part for part in found.derived if len(part)], level)

    def _scatter(self, part: Events, rule: int = 0) -> Iterator[Shipment]:
        """Events to the place where all that are equal to them meet."""
        whole = part.as_terms() if part.label in self._terms else part
        places = self._of_hashes(_hash_of(whole))
        for place, rows in _apart(np.arange(len(whole)), places):
            yield ScatteredAnswers(self.number, place, rule, pack(whole.take(rows)))

    @cached_property
    def _terms(self) -> frozenset[str]:
        """The labels that some rule derives as terms; all of their events are compared as such."""
        heads = {n: rule.head for n, rule in enumerate(self.compiled.rules.resolved.rules, 1)}
        derived = self.compiled.rules.resolved.catalogue.derived
        return frozenset(
            label for label, rules in derived.items() if any(not isinstance(heads[n], Derive) for n in rules)
        )

    def gather(self, place: int, shipments: Iterable[ScatteredAnswers]) -> Iterator[Shipment]:
        """The answers that several places may have given, each once; they come by their earliest end."""
        waiting: dict[int, list[Events]] = {}
        loaded = 0
        for shipment in shipments:
            if loaded >= SLICE:
                yield from self._gathered(waiting, shipment.events.first - 1, place)
                loaded = 0
            waiting.setdefault(self._sender(shipment.rule), []).append(unpack(shipment.events, self.plan.catalogue))
            loaded += shipment.events.count
        yield from self._gathered(waiting, FAR, place)

    def _sender(self, rule: int) -> int:
        """The first rule that sends messages where this one does: equal ones are sent once."""
        rules = self.compiled.rules.resolved.rules
        if not rule:
            return rule
        others = [n for n, r in enumerate(rules, 1) if isinstance(r.head, Raise)]
        return others[0] if self._computes else next(n for n in others if self._fixed(n) == self._fixed(rule))

    def _fixed(self, rule: int) -> Address | None:
        return fixed_address(self.compiled.rules.resolved.rules[rule - 1].head) if rule else None

    @cached_property
    def _computes(self) -> bool:
        """Whether a rule computes where its messages go: then all say it themselves, so that equal ones meet."""
        heads = [rule.head for rule in self.compiled.rules.resolved.rules]
        return any(isinstance(head, Raise) and fixed_address(head) is None for head in heads)

    def _gathered(self, waiting: dict[int, list[Events]], bound: int, place: int) -> Iterator[Shipment]:
        for rule, parts in waiting.items():
            ready = [part.batch[END] <= bound for part in parts]
            due = [part if r.all() else part.take(r) for part, r in zip(parts, ready, strict=True) if r.any()]
            waiting[rule] = [part.take(~r) for part, r in zip(parts, ready, strict=True) if not r.all()]
            for part in distinct(due) if due else ():
                yield Answers(self.number, place, rule, pack(part))

    def recipient(self, rule: int) -> dict[str, str]:
        """What the messages of a rule have besides their data, unless they say it themselves; answers have nothing."""
        to = None if self._computes else self._fixed(rule)
        return {} if to is None else {"recipient": to[0], "transport": to[1]}


def _apart(rows: Ints, numbers: Ints) -> Iterator[tuple[int, Ints]]:
    """Rows by their numbers: each number that there is, in ascending order, with the rows that have it."""
    if not len(rows):
        return
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    for several in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        yield int(numbers[several[0]]), rows[several]


def _hash_of(events: Events) -> Hashes:
    """A hash of each event as a whole."""
    columns = [c for name, c in events.batch.columns.items() if name != REFERENCE]
    return hash_columns(columns, len(events))
