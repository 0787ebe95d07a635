"""This module is the engine as people use it: events in as objects or lines, answers out as soon as they are certain.

Time passes with the events, or with `advance`, or by itself: an engine that stamps events on arrival closes each
instant as it passes, and with `start` a background clock moves it on, so that absence is reported on quiet input.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol

import pyarrow as pa

from ephemera.engine.change.change import Change, Changed, LookBack, changed, check_messages, form_of, replanned
from ephemera.engine.driver import missed
from ephemera.engine.engine import Engine, Found, Never, never
from ephemera.engine.hosts.batch import answer_parts
from ephemera.engine.hosts.tables import is_table, to_arrow
from ephemera.engine.state.identity import program_of, warn_of_changes, world_of
from ephemera.engine.state.snapshot import Snapshot, WrongSnapshot, load, restore, take
from ephemera.engine.stats import Held, Stats, held_by, stats_of
from ephemera.engine.time.event_time import Watermarks
from ephemera.engine.time.processing_time import (
    BackgroundClock,
    Clock,
    IdleSources,
    MonotonicClock,
    passing,
    wall_clock,
)
from ephemera.formats.answer_order import AnswerPart
from ephemera.formats.check_columns import check_columns
from ephemera.formats.decode_arrow import Reader, bad_events, offer_of, stamped
from ephemera.formats.decode_json import JsonDecoder
from ephemera.formats.decoded import Decoded, span_of
from ephemera.formats.encode_json import json_objects
from ephemera.formats.flat_reader import FlatReader
from ephemera.formats.json_events import (
    BadEvent,
    Message,
    at_time,
    bad_of_close,
    decode_line,
    named,
    original_text,
    read_time,
    uses_text,
    write_event,
    write_time,
)
from ephemera.formats.reading import Given, Keys, given_message, one, read_event, several
from ephemera.kernels.event_columns import Events, of_events
from ephemera.kernels.history import FAR
from ephemera.kernels.tail import FEW
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import DeadLetter, LateEvent, World
from ephemera.terms.events import Event

Answer = dict[str, Any]
Stamp = Literal["event", "arrival"]


class Messenger(Protocol):
    """Takes messages that have become certain, and sees to it that they are delivered."""

    def take(self, parts: Sequence[AnswerPart], *, as_numbers: bool) -> None:
        """Some messages; they are safe when this returns."""

    def close(self) -> None:
        """There will be no more."""


class Changing(Protocol):
    """A program that an engine can go on with."""

    def planned_live(self, emit: Iterable[str], *, allowed: bool) -> Compiled:
        """The program as live engines need it, if it may run live."""


LOOK_BACK = ("refuse", "from-now", "available")
BEGINNING = "the beginning"
"""From when on answers are exact where nothing has come."""


class LiveEngine:
    """A program that runs; make one with `Program.engine`.

    >>> import ephemera
    >>> program = ephemera.compile(
    ...     "TIME UNIT 1 hour; EVENT order(id: string); EVENT shipped(id: string);"
    ...     "late(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);"
    ... )
    >>> engine = program.engine()
    >>> engine.send({"event": "order", "time": 1, "data": ["a"]})
    []
    >>> engine.advance(8)
    [{'event': 'late', 'time': [1, 7], 'data': ['a']}]
    """

    def __init__(  # noqa: PLR0913 - all of them named
        self,
        compiled: Compiled,
        world: World,
        *,
        stamp: Stamp = "event",
        now: Clock = wall_clock,
        lenient: bool = False,
        messenger: Messenger | None = None,
        allow_unbounded: bool = False,
    ) -> None:
        """`lenient` says that declared attributes which a table does not have as columns are null.

        `allow_unbounded` says that a changed program, too, may keep something forever.
        """
        self.delivery = messenger
        """What delivers messages, if they are delivered at all."""
        compiled = compiled.live()
        self._world = world
        self._lenient = lenient
        self._allow_unbounded = allow_unbounded
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
        self._stamp = stamp
        is_set = now is wall_clock  # by people, and by what keeps it right
        self._now = MonotonicClock(now, passing if is_set else None)
        self._passing = passing if is_set else self._now
        idle = {s.name: s.idle for s in self._catalogue.sources if s.idle is not None and stamp == "event"}
        self._silence = IdleSources(idle, self._passing()) if idle else None
        self._as_numbers: bool | None = None
        """Whether the first good event wrote its time as a number."""
        self._lock = threading.RLock()
        self._clock: BackgroundClock | None = None

    def _runs(self, compiled: Compiled, engine: Engine) -> None:
        """From now on it runs this."""
        self._compiled = compiled
        self._keys = Keys(compiled.physical)
        self._catalogue = compiled.rules.resolved.catalogue
        self._quick = FlatReader(self._catalogue)
        self._engine = engine
        self._lines: dict[str | None, JsonDecoder] = {}
        """For lines of any types, and for those of streams that carry one."""

    def __repr__(self) -> str:
        stats = self.stats()
        heads = dict.fromkeys(self._catalogue.derived)
        return f"<Engine: derives {', '.join(heads) or 'nothing'}; {stats.received:,} events came>"

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
        """What is likely wrong with the input: keys that were missing in every event of their type."""
        return tuple(self._keys.notes())

    # ---- events in, answers out ----------------------------------------------------------------------------

    def send(self, event: Given) -> list[Answer]:
        """One event; what is certain then."""
        given = one(event)
        with self._lock:
            return self._until_now(self._let_pass() + self._send_each((given,)))

    def send_many(self, events: Iterable[Given] | Any) -> list[Answer]:
        """Several events in the order in which they arrive; what is certain then.

        They may be the rows of a table, of Arrow, pandas, Polars or DuckDB.
        """
        with self._lock:
            answers = self._let_pass()
            answers += self._send_table(to_arrow(events)) if is_table(events) else self._send_each(several(events))
            return self._until_now(answers)

    def send_lines(self, lines: Sequence[bytes], only: str | None = None) -> list[Answer]:
        """The same for lines of JSON, by columns where there are many; those that name no type are of `only`."""
        if len(lines) <= FEW or self._stamp == "arrival":
            catalogue = self._catalogue.carrying(only)
            return self.send_many(lines if only is None else [named(decode_line(line), catalogue) for line in lines])
        with self._lock:
            return self._let_pass() + self._send_block(lines, only)

    def _send_block(self, lines: Sequence[bytes], only: str | None) -> list[Answer]:
        if only not in self._lines:
            self._lines[only] = JsonDecoder(self._compiled.carrying(only), self._keys)
        decoded = self._lines[only].decode(b"\n".join(lines))
        self._received += decoded.count
        self._refuse(decoded.bad_events)
        self._note_form(decoded.as_numbers)
        self._hear(part.label for part in decoded.parts)
        found = self._taken(lambda: self._engine.send_parts(decoded.parts, decoded.rows))
        if self._engine.late:
            given = [line for line in lines if line.strip()]
            pairs = zip(decoded.parts, decoded.rows, strict=True)
            known = {e: given[row] for part, rows in pairs for e, row in zip(part.events(), rows.tolist(), strict=True)}
            self._take_late(lambda event: original_text(known[event]))
        return self._written(found)

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

    # ---- a past that is read first -------------------------------------------------------------------------

    def heed(self, decoded: Decoded) -> None:
        """Something was read: how much, how it writes times, and what of it is no event."""
        self._received += decoded.count
        self._refuse(decoded.bad_events)
        self._note_form(decoded.as_numbers)

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

    def answers(self, found: Found) -> list[Answer]:
        """What was found, as `send` gives it."""
        with self._lock:
            return self._written(found)

    def begin_anew(self) -> None:
        """Forgets all that has come."""
        self._engine = Engine(self._compiled.physical, self._world)
        self._received = self._bad_count = 0
        self._as_numbers = None
        self._dead.clear()
        self.bad.clear()
        self.late.clear()

    def source_of(self, label: str) -> str:
        """The source of a type of events."""
        return self._engine.sources.source(label)

    def watermark(self, source: str) -> int:
        """How late events of a source may be, in microseconds."""
        return self._engine.sources.watermarks.get(source, 0)

    @property
    def last_end(self) -> int | None:
        """When the last event ends that has come, if one has."""
        sources = self._engine.sources
        return None if sources.first is None else sources.last

    @property
    def compiled(self) -> Compiled:
        """What it runs."""
        return self._compiled

    @property
    def writes_numbers(self) -> bool:
        """Whether times are written as numbers, by the first good event."""
        return self._numbers

    @property
    def sources(self) -> frozenset[str]:
        """The names of the sources whose bounds it knows."""
        return frozenset(self._engine.sources.names)

    @property
    def _numbers(self) -> bool:
        """Whether times are written as numbers."""
        return self._as_numbers is not False

    def _note_form(self, as_numbers: bool | None) -> None:
        """How an event writes its time; the first good one decides."""
        if self._as_numbers is None:
            self._as_numbers = as_numbers

    def _until_now(self, answers: list[Answer]) -> list[Answer]:
        """The answers to what came; an engine that stamps it closes the instant."""
        return answers + self._advanced(self._now()) if self._stamp == "arrival" else answers

    def _send_each(self, events: Iterable[Given]) -> list[Answer]:
        good: list[Event] = []
        originals: list[Given] = []
        bad: list[BadEvent] = []
        for given in events:
            self._received += 1
            event = self._read(given)
            if isinstance(event, BadEvent):
                bad.append(event)
            elif event is not None:
                good.append(event)
                originals.append(given)
        if bad:
            self._refuse(bad)
        if self._silence is not None:
            self._hear(event.term.label for event in good)
        found = self._taken(lambda: self._engine.send(good))
        if self._engine.late:
            known = dict(zip(good, originals, strict=True))
            self._take_late(lambda event: original_text(given_message(known[event]).original))
        return self._written(found)

    def _send_table(self, table: pa.Table) -> list[Answer]:
        stamps = stamped(table, self._arrival(), self._catalogue) if self._stamp == "arrival" else table
        check_columns([offer_of(stamps, "the table")], self._catalogue, lenient=self._lenient)
        read = Reader(stamps, self._compiled).read()
        self._received += table.num_rows
        self._refuse(bad_events(read.bad, table))
        self._note_form(read.numbers if read.parts else None)
        self._hear(part.label for part in read.parts)
        found = self._taken(lambda: self._engine.send_parts(read.parts, read.rows))
        self._take_late(lambda event: json.dumps(write_event(event, self._catalogue, as_numbers=self._numbers)))
        return self._written(found)

    def _refuse(self, bad: Sequence[BadEvent]) -> None:
        self._bad_count += len(bad)
        self._engine.came(one.label for one in bad if one.label is not None)
        self.bad += bad

    def _hear(self, labels: Iterable[str]) -> None:
        if self._silence is not None:
            self._silence.heard({self._engine.sources.source(label) for label in labels}, self._passing())

    def _take_late(self, original: Callable[[Event], str]) -> None:
        self.late += [LateEvent(event, original(event)) for event in self._engine.take_late()]

    def tick(self) -> list[Answer]:
        """Looks at the clock: sources that have been silent for their idle time hold no one back; what is certain then.

        Every other call does so, too; this is for when nothing comes at all.
        """
        with self._lock:
            return self._let_pass()

    def _let_pass(self) -> list[Answer]:
        silent = self._silence.passed(self._passing()) if self._silence is not None else None
        if not silent:
            return []
        self._engine.sources.let_pass(silent)
        return self._written(self._engine.advance({}))

    def advance(self, now: float | str | None = None) -> list[Answer]:
        """Time passes until then: numbers count the program's unit, texts are ISO 8601; without one, until now."""
        with self._lock:
            bound = self._now() if now is None else read_time(now, self._catalogue.unit, self._catalogue.local)
            return self._let_pass() + self._advanced(bound)

    def _advanced(self, bound: int) -> list[Answer]:
        return self._written(self._taken(lambda: self._engine.advance(bound)))

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

    def _take_close(self) -> None:
        """What came too close to others of its type."""
        close = self._engine.take_close() if self._engine.separations else None
        if close:
            self._refuse(bad_of_close(close, self._catalogue, as_numbers=self._numbers))

    def finish(self) -> list[Answer]:
        """The input has ended; everything that was pending is decided."""
        with self._lock:
            return self._written(self._engine.finish())

    def _read(self, given: Given) -> Event | BadEvent | None:
        message = given_message(given)
        is_plain = self._stamp == "event" and message.complaint is None
        quick = self._quick.read(message.data) if is_plain else None
        if quick is not None:  # at a time that is a number
            self._note_form(True)
            self._keys.note(message.data)
            return quick
        if self._stamp == "arrival" and isinstance(message.data, Mapping):
            stamped_now = at_time(message.data, _as_text(self._arrival()), self._catalogue)
            message = Message(message.original, stamped_now, message.complaint)
        event = read_event(message, self._compiled)
        if isinstance(event, Event):
            self._keys.note(message.data)
            self._note_form(not uses_text(message.data, self._catalogue))
        return event

    def _arrival(self) -> int:
        """The time at which something arrives: now, but never an instant that is closed already."""
        closed = max(self._engine.sources.bounds.values(), default=-FAR)
        if closed < FAR:
            self._now.reach(closed + 1)
        return self._now()

    def _written(self, found: Found) -> list[Answer]:
        self._take_close()
        if self._compiled.physical.emit:
            found = self._asked(found)
        if not found.few and not found.events and not found.messages:
            return []
        if sum(map(len, found.events)) > FEW:
            few = of_events(found.few, self._catalogue.attributes)
            parts = [AnswerPart(part) for part in (*found.events, *few)]
            answers = json_objects(parts, self._catalogue, as_numbers=self._numbers)
        else:
            events = sorted((*found.few, *(e for part in found.events for e in part.events())), key=lambda e: e.key)
            answers = [write_event(e, self._catalogue, as_numbers=self._numbers) for e in events]
        messages = answer_parts(Found([], [], found.messages), self._compiled.rules) if found.messages else []
        if messages and self.delivery is not None:
            self.delivery.take([part for part, _ in messages], as_numbers=self._numbers)
        for part, _ in messages:
            answers += [
                {**write_event(e, self._catalogue, as_numbers=self._numbers), **(part.more or {})}
                for e in sorted(part.events.events(), key=lambda e: e.key)
            ]
        return answers

    def _asked(self, found: Found) -> Found:
        """What was found without what nobody asked for."""
        gives = self._compiled.physical.gives
        return Found(
            [part for part in found.events if gives(part.label)],
            [event for event in found.few if gives(event.term.label)],
            [(number, part) for number, part in found.messages if gives(part.label)],
        )

    # ---- rules that change ---------------------------------------------------------------------------------

    def change(self, program: Changing, *, look_back: LookBack = "refuse") -> Change:
        """Goes on with another program: rules that mean the same go on, others end or begin here.

        An added rule is exact from now on if what it needs of the time before is kept. If it is not, the change is
        refused with what is lacking; or such rules see only what ends from now on (`from-now`), or what there is
        (`available`). A change that is refused leaves the engine as it was.

        >>> import ephemera
        >>> first = "EVENT order(id: string); EVENT paid(id: string); a(i) <- o: order(i);"
        >>> engine = ephemera.compile(first).engine()
        >>> engine.advance(1)
        []
        >>> print(engine.change(ephemera.compile(first + "b(i) <- p: paid(i);")))
        kept     `a` (rule 1)
        added    `b` (rule 2), exact from 1 on
        >>> engine.send({"event": "paid", "time": 2, "data": ["x"]}) + engine.advance(2)
        [{'event': 'b', 'time': 2, 'data': ['x']}]
        """
        if look_back not in LOOK_BACK:
            raise ValueError(f'look_back is "refuse", "from-now" or "available", and not {look_back!r}')
        with self._lock:
            physical = self._compiled.physical
            wanted = program.planned_live(physical.emit, allowed=self._allow_unbounded)
            new = wanted.beside(physical.calendars).live()
            if self.delivery is not None:
                check_messages(self._compiled, new)
            done = changed(self._compiled, new, self._engine, self._world, look_back)
            keys, since = self._keys, self._silence.since if self._silence is not None else None
            dead = self._engine.take_dead_letters()
            self._dead += dead
            close = self._engine.take_close()
            if close:
                self._refuse(bad_of_close(close, self._catalogue, as_numbers=self._numbers))
            self._runs(done.compiled, done.engine)
            self._keys.add(keys.told())
            sources = self._catalogue.sources
            idle = {s.name: s.idle for s in sources if s.idle is not None and self._stamp == "event"}
            self._silence = IdleSources(idle, self._passing(), since) if idle else None
            return self._told(done)

    def _told(self, done: Changed) -> Change:
        """What a change did, as people read it."""
        both, unit = done.compared, self._catalogue.unit
        times: dict[str, Any] = {}
        for rule, exact in done.exact_from.items():
            (name,) = both.known_as([rule])
            known = None if exact >= FAR else exact
            if name in times and (times[name] is None or known is None):
                times[name] = None
            elif known is not None:
                times[name] = max(known, times.get(name, known))
            else:
                times[name] = None
        written = {
            name: None
            if time is None
            else write_time(time, unit, as_numbers=self._numbers)
            if time > -FAR
            else BEGINNING
            for name, time in times.items()
        }
        return Change(both.rules_kept(), both.rules_removed(), both.rules_added(), written, done.notes)

    # ---- state ---------------------------------------------------------------------------------------------

    def snapshot(self, since: Snapshot | None = None) -> Snapshot:
        """The state as a value; with an earlier one, only what that does not have. `save` writes it to a folder."""
        with self._lock:
            counts = [self._received, self._bad_count, self._engine.late_count]
            sources = self._engine.sources
            more: dict[str, Any] = {"numbers": self._as_numbers, "counts": counts, "stamp": self._stamp}
            more |= {"first": sources.first, "last": sources.last, "world": world_of(self._world)}
            more |= {"form": form_of(self._compiled)}
            program = program_of(self._compiled, self._world)
            return take(self._engine, program, since.names if since is not None else (), more)

    def restore(self, snapshot: Snapshot | str | Path) -> LiveEngine:
        """Goes on from a snapshot of the same program, or from the folder in which one was saved.

        Only an engine that has just been made can.
        """
        snapshot = snapshot if isinstance(snapshot, Snapshot) else load(Path(snapshot))
        with self._lock:
            more = snapshot.manifest["more"]
            if more["stamp"] != self._stamp:
                raise WrongSnapshot(
                    f'the snapshot is of an engine with stamp="{more["stamp"]}", and this has stamp="{self._stamp}"; '
                    "make the engine as the other was made"
                )
            form = more.get("form")
            if form is not None and form != form_of(self._compiled):  # it was changed, and is planned as it was then
                compiled = replanned(self._compiled, form)
                self._runs(compiled, Engine(compiled.physical, self._world))
            restore(self._engine, program_of(self._compiled, self._world), self._catalogue, snapshot)
            warn_of_changes(more["world"], world_of(self._world), "the snapshot was taken")
            self._as_numbers = more["numbers"]
            self._engine.sources.restore(more["first"], more["last"])
            self._received, self._bad_count, late = more["counts"]
            self._engine.count_on(late=late)
        return self

    # ---- what it knows -------------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Catalogue:
        """What the program declares."""
        return self._catalogue

    @property
    def has_idle_sources(self) -> bool:
        """Whether sources are declared that hold no one back when they are silent."""
        return self._silence is not None

    def take_dead_letters(self) -> list[DeadLetter]:
        """The heads that had no value since the last time: the rule, what was bound, and why."""
        with self._lock:
            dead, self._dead = self._dead, []
            return dead + self._engine.take_dead_letters()

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
            return never(self._compiled, engine.awaited, engine.matched, emit)

    # ---- time ----------------------------------------------------------------------------------------------

    def start(self, deliver: Callable[[Sequence[Answer]], None], every: float = 0.1) -> LiveEngine:
        """Lets time pass by itself: what becomes certain with no event is delivered by a background clock."""
        if self._stamp != "arrival" and self._silence is None:
            raise ValueError('only an engine with stamp="arrival" or an IDLE source has a clock of its own')
        self._clock = BackgroundClock(self.advance if self._stamp == "arrival" else self.tick, deliver, every)
        self._clock.start()
        return self

    def stop(self) -> None:
        """Stops the background clock, and delivery."""
        if self._clock is not None:
            self._clock.stop()
            self._clock = None
        if self.delivery is not None:
            self.delivery.close()
            self.delivery = None

    def __enter__(self) -> LiveEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _as_text(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:06d}Z"
