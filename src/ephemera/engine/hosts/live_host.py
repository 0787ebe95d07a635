"""This module is an engine with what a host counts of it: events by columns in, what is certain by columns out.

Hosts read systems and files themselves. What is no event, late or without a value is kept here until they take it.
`engine/hosts/live_engine` has the engine as people use it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from ephemera.analysis.flows import Statistics
from ephemera.engine.driver import missed
from ephemera.engine.engine import Engine, Found
from ephemera.engine.first_look import FirstLook, is_worthwhile, planned_by
from ephemera.engine.lacking import Never, never
from ephemera.engine.stats import Held, Stats, held_by, stats_of
from ephemera.engine.time.event_time import Watermarks
from ephemera.formats.decoded import Decoded, span_of
from ephemera.formats.json_events import BadEvent, bad_of_close, write_event
from ephemera.formats.reading import Keys
from ephemera.kernels.event_columns import Events
from ephemera.physical.plan import Compiled, PhysicalPlan
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import DeadLetter, LateEvent, World
from ephemera.terms.events import Event


class LiveHost:
    """A program that runs, as whoever hosts it feeds it."""

    def __init__(self, compiled: Compiled, world: World) -> None:
        self._world = world
        self._seen = Statistics()
        """What the first events said, where it is planned by that."""
        self._runs(compiled, Engine(compiled.physical, world))
        self._dead: list[DeadLetter] = []
        """Heads that had no value in what was found only when the input turned out to begin earlier."""
        self._received = 0
        self._bad_count = 0
        self.bad: list[BadEvent] = []
        """What was no event of the program, with the reason; whoever has dealt with it may clear it."""
        self.late: list[LateEvent] = []
        """Events that came behind the bound of their source; whoever has dealt with them may clear it."""
        self._assumed = self._catalogue.local.assumed
        self._as_numbers: bool | None = None
        """Whether the first good event wrote its time as a number."""
        self._lock = threading.RLock()

    def _runs(self, compiled: Compiled, engine: Engine) -> None:
        """From now on it runs this."""
        self._compiled = compiled
        self._keys = Keys(compiled.physical)
        self._catalogue = compiled.rules.resolved.catalogue
        self._engine = engine

    def _look_first(self) -> None:
        """The first events say how it is planned, where nothing else does."""
        if is_worthwhile(self._compiled):
            self._engine.first = FirstLook(self._planned)

    def _planned(self, statistics: Statistics) -> PhysicalPlan | None:
        planned = planned_by(self._compiled, statistics)
        if planned is None:
            return None
        self._compiled, self._seen = planned, statistics
        return planned.physical

    # ---- what it is ----------------------------------------------------------------------------------------

    @property
    def compiled(self) -> Compiled:
        """What it runs."""
        return self._compiled

    @property
    def catalogue(self) -> Catalogue:
        """What the program declares."""
        return self._catalogue

    @property
    def sources(self) -> frozenset[str]:
        """The names of the sources whose bounds it knows."""
        return frozenset(self._engine.sources.names)

    def source_of(self, label: str) -> str:
        """The source of a type of events."""
        return self._engine.sources.source(label)

    def watermark(self, source: str) -> int:
        """How late events of a source may be, in microseconds."""
        return self._engine.sources.watermarks.get(source, 0)

    @property
    def writes_numbers(self) -> bool:
        """Whether times are written as numbers, by the first good event."""
        return self._numbers

    @property
    def _numbers(self) -> bool:
        """Whether times are written as numbers."""
        return self._as_numbers is not False

    @property
    def last_end(self) -> int | None:
        """When the last event ends that has come, if one has."""
        sources = self._engine.sources
        return None if sources.first is None else sources.last

    # ---- events in, by columns -----------------------------------------------------------------------------

    def heed(self, decoded: Decoded) -> None:
        """Something was read: how much, how it writes times, and what of it is no event."""
        self._received += decoded.count
        self._refuse(decoded.bad_events)
        self._note_form(decoded.as_numbers)

    def exchange(self, came: Sequence[tuple[Decoded, Watermarks]], bounds: Callable[[], Mapping[str, int]]) -> Found:
        """What has come in partitions of sources, each with how far it has come; what is certain then, by columns.

        `bounds` is asked when all of it is in, for how far the sources have come by then.
        """
        with self._lock:

            def step() -> Found:
                for decoded, own in came:
                    self._engine.receive(decoded.parts, decoded.rows, own)
                return self._engine.advance(bounds())

            for decoded, _ in came:
                self.heed(decoded)
            found = self._taken(step)
            self._take_late(lambda event: json.dumps(write_event(event, self._catalogue, as_numbers=self._numbers)))
            self._take_close()
            return self._asked(found) if self._compiled.physical.emit else found

    def _note_form(self, as_numbers: bool | None) -> None:
        """How an event writes its time; the first good one decides."""
        if self._as_numbers is None:
            self._as_numbers = as_numbers

    def _refuse(self, bad: Sequence[BadEvent]) -> None:
        self._bad_count += len(bad)
        self._engine.came(one.label for one in bad if one.label is not None)
        self.bad += bad

    def _take_late(self, original: Callable[[Event], str]) -> None:
        self.late += [LateEvent(event, original(event)) for event in self._engine.take_late()]

    def _take_close(self) -> None:
        """What came too close to others of its type."""
        close = self._engine.take_close() if self._engine.separations else None
        if close:
            self._refuse(bad_of_close(close, self._catalogue, as_numbers=self._numbers))

    # ---- a past that is read first -------------------------------------------------------------------------

    def load(self, parts: Sequence[Events]) -> None:
        """Events of which the order means nothing, since all that is there has been read: none of them is late."""
        ends = span_of(parts)
        if ends is not None:
            self._engine.sources.span(*ends)
        self._engine.load(parts)

    def reach(self, bounds: Mapping[str, int]) -> Found:
        """The sources have come so far; what is certain then, by columns."""
        with self._lock:
            found = self._taken(lambda: self._engine.advance(bounds))
            self._take_close()
            return self._asked(found) if self._compiled.physical.emit else found

    def behind_the_past(self, keys: Keys) -> None:
        """All of a past has been read, whose events had some keys."""
        self._keys.add(keys.told())

    def begin_anew(self) -> None:
        """Forgets all that has come."""
        was_looking = self._engine.first is not None
        self._engine = Engine(self._compiled.physical, self._world)
        if was_looking:
            self._look_first()
        self._received = self._bad_count = 0
        self._as_numbers = None
        self._dead.clear()
        self.bad.clear()
        self.late.clear()

    # ---- what is certain -----------------------------------------------------------------------------------

    def _taken(self, step: Callable[[], Found]) -> Found:
        """What is certain after a step, and what was missed if the input turns out to begin earlier."""
        if not self._compiled.physical.clocked:  # nothing is asked for by the clock alone
            return step()
        before = self._engine.sources.copy()
        found = step()
        more = missed(self._compiled.physical, self._world, before, self._engine.sources.first)
        if more is None:
            return found
        earlier, engine = more
        self._engine.count_on(engine.given)
        self._dead += engine.take_dead_letters()
        return Found(found.events + earlier.events, found.few + earlier.few, found.messages + earlier.messages)

    def _asked(self, found: Found) -> Found:
        """What was found without what nobody asked for."""
        gives = self._compiled.physical.gives
        return Found(
            [part for part in found.events if gives(part.label)],
            [event for event in found.few if gives(event.term.label)],
            [(number, part) for number, part in found.messages if gives(part.label)],
        )

    def take_dead_letters(self) -> list[DeadLetter]:
        """The heads that had no value since the last time: the rule, what was bound, and why."""
        with self._lock:
            dead, self._dead = self._dead, []
            return dead + self._engine.take_dead_letters()

    # ---- what it knows -------------------------------------------------------------------------------------

    @property
    def notes(self) -> tuple[str, ...]:
        """All that people should know of the input so far."""
        return (*self.said, *self.warnings)

    @property
    def said(self) -> tuple[str, ...]:
        """What is said of the input in any case, such as that times had no zone."""
        return self._catalogue.local.note_since(self._assumed)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is likely wrong with the input: keys that were missing in every event of their type, wrong names."""
        return (*self._keys.notes(), *self.never().warnings)

    def stats(self) -> Stats:
        """What is stored, for how long, and what became of all events that came in."""
        with self._lock:
            return stats_of(self._engine, self._received, self._bad_count)

    def held(self) -> Held:
        """How much is stored, which costs little to know."""
        with self._lock:
            return held_by(self._engine)

    def never(self, emit: Collection[str] | None = None) -> Never:
        """What has been lacking so far: types of events that never came, and rules that never matched.

        `emit` names some of the events that are asked for; then only what these need counts.
        """
        with self._lock:
            engine = self._engine
            return never(self._compiled, engine.awaited, engine.matched, emit, engine.unread)
