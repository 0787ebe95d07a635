"""This module is the engine as people use it: events in as objects or lines, answers out as soon as they are certain.

Time passes with the events, or with `advance`, or by itself: an engine that stamps events on arrival closes each
instant as it passes, and with `start` a background clock moves it on, so that absence is reported on quiet input.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, get_args

import pyarrow as pa

from ephemera.analysis.flows import Statistics
from ephemera.base.span import Source
from ephemera.engine.change.archive import Archive, ReadOnce
from ephemera.engine.change.change import Change, changed, check_messages, form_of, replanned
from ephemera.engine.change.starts import LookBack
from ephemera.engine.engine import Engine, Found
from ephemera.engine.first_look import as_json, from_json
from ephemera.engine.hosts.batch import answer_parts
from ephemera.engine.hosts.live_host import LiveHost
from ephemera.engine.hosts.tables import is_table, to_arrow
from ephemera.engine.state.identity import program_of, warn_of_changes, world_of
from ephemera.engine.state.snapshot import Snapshot, WrongSnapshot, load, restore, take
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
from ephemera.formats.encode_json import json_objects
from ephemera.formats.flat_reader import FlatReader
from ephemera.formats.json_events import (
    BadEvent,
    Message,
    at_time,
    decode_line,
    named,
    original_text,
    read_time,
    uses_text,
    write_event,
)
from ephemera.formats.reading import Given, Keys, given_message, one, read_event, several
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.kernels.tail import FEW
from ephemera.physical.plan import Compiled
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from ephemera.terms.values import Term

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

    @property
    def written(self) -> Source:
        """Its text."""

    def rows(self, tables: Mapping[str, Iterable[Mapping[str, Any]]], *, lenient: bool) -> Mapping[str, Sequence[Term]]:
        """The rows of declared tables, as engines need them."""

    def archive(self, given: Any, *, lenient: bool) -> Archive:
        """Where added rules find their past: files, sources, tables or events."""


"""From when on answers are exact where nothing has come."""


class LiveEngine(LiveHost):
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
        self.is_delivered = messenger is not None
        """Whether they are, by that or by somebody else."""
        super().__init__(compiled.live(), world)
        self.written: Source | None = None
        """The program as it was written, if that is known."""
        self._look_first()
        self._lenient = lenient
        self._allow_unbounded = allow_unbounded
        self._stamp = stamp
        is_set = now is wall_clock  # by people, and by what keeps it right
        self._now = MonotonicClock(now, passing if is_set else None)
        self._passing = passing if is_set else self._now
        self._silence = self._silence_since()
        self._clock: BackgroundClock | None = None

    def _runs(self, compiled: Compiled, engine: Engine) -> None:
        super()._runs(compiled, engine)
        self._quick = FlatReader(self._catalogue)
        self._lines: dict[str | None, JsonDecoder] = {}
        """For lines of any types, and for those of streams that carry one."""

    def __repr__(self) -> str:
        stats = self.stats()
        heads = dict.fromkeys(self._catalogue.derived)
        return f"<Engine: derives {', '.join(heads) or 'nothing'}; {stats.received:,} events came>"

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
        self.heed(decoded)
        self._hear(part.label for part in decoded.parts)
        found = self._taken(lambda: self._engine.send_parts(decoded.parts, decoded.rows))
        if self._engine.late:
            given = [line for line in lines if line.strip()]
            pairs = zip(decoded.parts, decoded.rows, strict=True)
            known = {e: given[row] for part, rows in pairs for e, row in zip(part.events(), rows.tolist(), strict=True)}
            self._take_late(lambda event: original_text(known[event]))
        return self._written(found)

    def _silence_since(self, heard: Mapping[str, int] | None = None) -> IdleSources | None:
        """The sources that may fall silent, as they were heard, or from now on."""
        idle = {s.name: s.idle for s in self._catalogue.sources if s.idle is not None and self._stamp == "event"}
        return IdleSources(idle, self._passing(), heard) if idle else None

    def behind_the_past(self, keys: Keys) -> None:
        """The same; to read the past was no silence."""
        super().behind_the_past(keys)
        self._silence = self._silence_since()

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

    def _hear(self, labels: Iterable[str]) -> None:
        if self._silence is not None:
            self._silence.heard({self._engine.sources.source(label) for label in labels}, self._passing())

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

    def advance(self, now: float | Decimal | str | None = None) -> list[Answer]:
        """Time passes until then: numbers count the program's unit, texts are ISO 8601; without one, until now."""
        with self._lock:
            bound = self._now() if now is None else read_time(now, self._catalogue.unit, self._catalogue.local)
            return self._let_pass() + self._advanced(bound)

    def _advanced(self, bound: int) -> list[Answer]:
        return self._written(self._taken(lambda: self._engine.advance(bound)))

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

    def answers(self, found: Found) -> list[Answer]:
        """What was found, as `send` gives it."""
        with self._lock:
            return self._written(found)

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

    # ---- rules that change ---------------------------------------------------------------------------------

    def change(
        self,
        program: Changing,
        *,
        look_back: LookBack | Any = "refuse",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
    ) -> Change:
        """Goes on with another program: rules that mean the same go on, others end or begin here.

        An added rule is exact from now on if what it needs of the time before is kept. If it is not, the change is
        refused with what is lacking; or such rules see only what ends from now on (`from-now`), or what there is
        (`available`). Anything else is an archive, in which they find their past: a path of files or a folder, one of
        `sources` or several, a table, or a list of events. `tables` has the rows of declared tables that are new, or
        other rows for those that are there. A change that is refused leaves the engine as it was.

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
        is_way = isinstance(look_back, str) and look_back in get_args(LookBack)
        past = look_back if is_way else ReadOnce(program.archive(look_back, lenient=self._lenient))
        with self._lock:
            physical = self._compiled.physical
            wanted = program.planned_live(physical.emit, allowed=self._allow_unbounded)
            new = wanted.beside(physical.calendars)
            new = (new.seen(self._seen) if self._seen else new).live()
            if self.is_delivered:
                check_messages(self._compiled, new)
            rows = program.rows(tables or {}, lenient=self._lenient)
            world = replace(self._world, tables={**self._world.tables, **rows})
            done = changed(self._compiled, new, self._engine, world, past, as_numbers=self._numbers)
            self._world, self.written = world, program.written
            keys, since = self._keys, self._silence.since if self._silence is not None else None
            self._dead += self._engine.take_dead_letters()
            self._take_close()
            self._runs(done.compiled, done.engine)
            self._keys.add(keys.told())
            self._silence = self._silence_since(since)
            return done.told(self._catalogue.unit, as_numbers=self._numbers)

    # ---- state ---------------------------------------------------------------------------------------------

    def snapshot(self, since: Snapshot | None = None) -> Snapshot:
        """The state as a value; with an earlier one, only what that does not have. `save` writes it to a folder."""
        with self._lock:
            counts = [self._received, self._bad_count, self._engine.late_count]
            sources = self._engine.sources
            more: dict[str, Any] = {"numbers": self._as_numbers, "counts": counts, "stamp": self._stamp}
            more |= {"first": sources.first, "last": sources.last, "world": world_of(self._world)}
            more |= {"form": form_of(self._compiled), **({"seen": as_json(self._seen)} if self._seen else {})}
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
            self._seen = from_json(more["seen"]) if "seen" in more else Statistics()
            compiled = self._compiled if form is None else replanned(self._compiled, form)
            compiled = compiled.seen(self._seen).live() if self._seen else compiled
            self._engine.first = None
            if compiled is not self._compiled:  # it was changed, or planned by what came, and is planned as it was then
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
    def has_idle_sources(self) -> bool:
        """Whether sources are declared that hold no one back when they are silent."""
        return self._silence is not None

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
