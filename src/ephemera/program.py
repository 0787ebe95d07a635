"""This module is a program as people have it in hand: compiled once, explained, run over histories and live.

Each verb loads what it needs when it is called: engines and formats with numpy and Arrow, Spark with all of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Unpack, overload

from ephemera import pipeline
from ephemera.algebra.nodes import Points
from ephemera.analysis.findings import tell_unbounded
from ephemera.analysis.unbounded import Use, judge, unbounded_in
from ephemera.base.diagnostic import Report, report
from ephemera.base.errors import warn
from ephemera.base.installed import need_spark
from ephemera.base.span import Source
from ephemera.engine.time.processing_time import wall_clock
from ephemera.pipeline import Checked, Stage, sound
from ephemera.rules.emitted import asked_for, emitted_label
from ephemera.rules.findings import Findings
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import Outcome, World
from ephemera.terms.events import Event
from ephemera.terms.values import Term

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from ephemera.connect.archive import SourceArchive
    from ephemera.connect.live_sink import LiveSink
    from ephemera.connect.live_source import LiveSource
    from ephemera.connect.sink import Sink
    from ephemera.connect.source import Source as EventSource
    from ephemera.engine.hosts.batch import Run
    from ephemera.engine.hosts.live_engine import LiveEngine, Stamp
    from ephemera.engine.lacking import Never
    from ephemera.formats.answer_list import Answers
    from ephemera.formats.reading import Options, Reading
    from ephemera.physical.explain_analysis import Seen
    from ephemera.physical.plan import Compiled, PhysicalPlan
    from ephemera.spark.batch.frames import SparkFrame
    from ephemera.spark.live.query import Streaming

    class ArrowLike(Protocol):
        """Tables and frames of Arrow, pandas and others that Arrow can read, whether or not they have types."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

    Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame, duckdb.DuckDBPyRelation, SparkFrame)
    Table = TypeVar("Table", bound=ArrowLike)

ENGINES = ("local", "oracle", "spark")
Deliver: TypeAlias = bool | Mapping[str, Callable[[dict[str, Any]], object]]
"""Whether messages are delivered, or functions that take some of them, by recipient or transport."""
_NAMED = 6
"""So many events are named where a program is shown."""


class Program:
    """A program that passed its checks, ready to be explained and run; `compile` and `load` make one.

    >>> import ephemera
    >>> program = ephemera.compile("late(id) <- o: order(id), w: extend(o, 6h), while w: not shipped(id);")
    >>> program
    <Program program.eq: 1 rule, derives late>
    >>> print(program.explain("rules"))  # doctest: +ELLIPSIS
    rule 1  late(id)...
    """

    def __init__(self, checked: Checked) -> None:
        self._sound = sound(checked)
        self._rules = self._sound.rules
        self._source = self._sound.parsed.source
        self._plans: dict[tuple[frozenset[str], Points | None], Compiled] = {}

    def __repr__(self) -> str:
        heads = (emitted_label(rule.head) for rule in self._rules.resolved.rules)
        names = list(dict.fromkeys(name for name in heads if name is not None))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        rules = f"{(count := len(self._rules.resolved.rules))} rule{'' if count == 1 else 's'}"
        return f"<Program {self._source.path}: {rules}, derives {', '.join(names[:_NAMED]) or 'nothing'}{more}>"

    @cached_property
    def _compiled(self) -> Compiled:
        """The program as engines need it, with how it runs: planned once, when it is first to run."""
        return pipeline.prepare(self._sound)

    def _planned(self, emit: Iterable[str] = (), points: Points | None = None) -> Compiled:
        """The same as it runs if it is asked for some events, or stores what it is told to; planned once for each."""
        asked = frozenset(emit)
        if not asked and points is None:
            return self._compiled
        if (asked, points) not in self._plans:
            self._plans[asked, points] = pipeline.prepare(self._sound, asked, points)
        return self._plans[asked, points]

    @property
    def catalogue(self) -> Catalogue:
        """What the program declares."""
        return self._rules.resolved.catalogue

    # ---- over a history ------------------------------------------------------------------------------------

    @overload
    def run(self, events: Any, *, sink: Sink, **options: Unpack[Options]) -> Answers: ...

    @overload
    def run(self, events: Iterable[Mapping[str, Any]], *, sink: None = None, **options: Unpack[Options]) -> Answers: ...

    @overload
    def run(
        self,
        events: Iterable[Mapping[str, Any] | str | bytes] | EventSource | Sequence[EventSource],
        *,
        sink: None = None,
        **options: Unpack[Options],
    ) -> Answers: ...

    @overload
    def run(self, events: Frame, *, sink: None = None, **options: Unpack[Options]) -> Frame: ...

    @overload
    def run(self, events: Table, *, sink: None = None, **options: Unpack[Options]) -> Table: ...

    def run(  # noqa: PLR0913 - all of them named
        self,
        events: Any,
        *,
        sink: Sink | None = None,
        engine: str = "local",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        until: int | float | str | None = None,
        emit: Iterable[str] = (),
        points: Points | None = None,
        allow_unbounded: bool = False,
        lenient: bool = False,
        deliver: Deliver = False,
        outbox: str | None = None,
    ) -> Any:
        """All that the program derives from events, given and returned as the objects of JSON lines.

        A table of Arrow, pandas, Polars or DuckDB is answered with one of its kind. So is a data frame of Spark, on
        Spark: its answer is computed when somebody reads it. `engine="spark"` has Spark run what lies in this process,
        in the session that is there or a new one. One of `sources` is read in a limited memory, and answers that go to
        one of `sinks` are not returned. A declared attribute that is no column is an error; where that is `lenient`, it
        is null. `points` has no joins stored, or all of them, where the planner would choose. Messages are only
        returned, by `run_all`, unless it says to `deliver` them: `True`, or functions by recipient or transport; then
        they wait in the folder `outbox` until they are taken. What could not be used,
        and what is to be said of the input, such as that times had no zone, is told by an `EphemeraWarning`; `run_all`
        has it.

        >>> import ephemera
        >>> program = ephemera.compile("EVENT order(id: string); late(id) <- o: order(id), w: extend(o, 6);")
        >>> program.run([{"event": "order", "time": 1, "data": ["a"]}])
        [{'event': 'late', 'time': [1, 7], 'data': ['a']}]
        """
        from ephemera.formats.reading import is_spark_frame

        frame = is_spark_frame(events)
        asked = self._asked(engine, emit, allow_unbounded, frame)
        _check_sink(engine, sink, frame)
        world = self._world(tables, calendars, until, lenient=lenient)
        if frame:
            _check_deliver(deliver)
            from ephemera.spark.batch.frames import run_frame

            compiled = self._planned(asked, points).beside(world.calendars)
            answers, said = run_frame(compiled, events, world, lenient=lenient)
            warn(said, stacklevel=3)
            return answers
        with self._delivering(self._planned(asked, points), deliver, outbox, engine, events) as around:
            found = self._found(events, engine, world, self._planned(asked, points), sink, around, lenient=lenient)
        warn([*([] if found.complaint is None else [found.complaint]), *found.said, *found.warnings], stacklevel=3)
        return found.answers

    def run_all(  # noqa: PLR0913 - all of them named
        self,
        events: Any,
        *,
        sink: Sink | None = None,
        engine: str = "local",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        until: int | float | str | None = None,
        emit: Iterable[str] = (),
        points: Points | None = None,
        allow_unbounded: bool = False,
        lenient: bool = False,
        deliver: Deliver = False,
        outbox: str | None = None,
    ) -> Run:
        """The same with messages, with what could not be read or computed, and with what was lacking.

        Events may be lines of JSON, too. A data frame of Spark is run at once.

        >>> import ephemera
        >>> program = ephemera.compile("EVENT a(x: int); EVENT b(x: int); p(x) <- i: a(x); q(x) <- i: b(x);")
        >>> run = program.run_all([{"event": "a", "time": 1, "data": [1]}, {"event": "a", "time": 2, "data": ["one"]}])
        >>> len(run.answers), len(run.bad), run.notes
        (1, 1, ('never came: `b`', 'never matched: rule 2 `q` (program.eq:1)'))
        """
        from ephemera.formats.reading import is_spark_frame

        frame = is_spark_frame(events)
        asked = self._asked(engine, emit, allow_unbounded, frame)
        _check_sink(engine, sink, frame)
        world = self._world(tables, calendars, until, lenient=lenient)
        if not frame:
            planned = self._planned(asked, points)
            with self._delivering(planned, deliver, outbox, engine, events) as around:
                return self._found(events, engine, world, planned, sink, around, lenient=lenient)
        _check_deliver(deliver)
        from ephemera.spark.batch.frames import run_whole_frame

        compiled = self._planned(asked, points).beside(world.calendars)
        return self._noted(run_whole_frame(compiled, events, world, lenient=lenient))

    def _found(  # noqa: PLR0913, PLR0917 - what a run needs
        self,
        events: Any,
        engine: str,
        world: World,
        planned: Compiled,
        sink: Sink | None,
        around: Callable[[Sink], Sink],
        *,
        lenient: bool,
    ) -> Run:
        """What comes of events that lie in this process, or of a source."""
        from ephemera.connect.source_run import are_sources, run_sources, sources_of
        from ephemera.engine.hosts.tables import is_table, run_given
        from ephemera.formats.answer_list import Answers

        compiled = planned.beside(world.calendars)
        is_source = sink is not None or are_sources(events)
        if is_source and engine != "local":
            raise ValueError(f"sources are read by the engine `local`, and `{engine}` is asked for")
        if is_source or (engine == "local" and not is_table(events)):
            path = Path(self._source.path)
            found = run_sources(compiled, sources_of(events), world, sink, path=path, lenient=lenient, around=around)
        elif engine == "spark":
            from ephemera.spark.batch.local_data import run_local_data

            found = run_local_data(compiled, events, world, lenient=lenient)
        else:
            found = run_given(compiled, events, world, self._evaluate(engine, compiled), lenient=lenient)
        found = self._noted(found)
        if not isinstance(found.answers, list):
            return found
        more: dict[str, Any] = {"messages": found.messages, "dead_letters": found.dead_letters, "notes": found.notes}
        return replace(found, answers=Answers(found.answers, self._rules, as_numbers=found.as_numbers, **more))

    @contextmanager
    def _delivering(
        self, planned: Compiled, deliver: Deliver, outbox: str | None, engine: str, events: Any
    ) -> Iterator[Callable[[Sink], Sink]]:
        """What lets the messages of a run be delivered when it has succeeded, if that is wanted."""
        if deliver is False:
            yield lambda sink: sink
            return
        from ephemera.engine.hosts.tables import is_table

        if engine != "local" or is_table(events):
            _check_deliver(deliver)
        from ephemera.deliver.delivery import Delivery, Wanted
        from ephemera.deliver.sink import DeliveringSink

        delivery = Delivery([planned], Wanted.of(deliver, outbox)).start()
        try:
            yield lambda sink: DeliveringSink(sink, delivery)
            warn(delivery.settle(), stacklevel=5)
        finally:
            delivery.close(0.0)

    def _asked(self, engine: str, emit: str | Iterable[str], allowed: bool, frame: bool) -> frozenset[str]:
        """What a batch run is asked for, if everything about it is right."""
        if engine not in ENGINES:
            raise ValueError(f"there is no engine `{engine}`; the engines are {', '.join(ENGINES)}")
        if engine == "oracle" and frame:
            raise ValueError("a data frame of Spark runs on Spark; give the oracle what it collects")
        if engine == "spark":
            need_spark('run with engine="local"')
        self._judge("oracle" if engine == "oracle" else "batch", allowed=allowed)
        return asked_for(emit, self._rules.resolved)

    def _evaluate(self, engine: str, compiled: Compiled) -> Callable[[list[Event], World], Outcome] | None:
        if engine != "oracle":
            return None
        from ephemera.semantics.oracle import evaluate

        return partial(evaluate, self._rules, running=compiled.physical.running)

    def _judge(self, use: Use, *, allowed: bool, as_they_come: bool = True) -> None:
        """Refuses state without a bound, or warns of it, as the use asks."""
        severity = unbounded_in(use, allowed=allowed)
        if severity is not None:
            judge(self._unbounded(as_they_come=as_they_come), severity, stacklevel=6)

    def _unbounded(self, *, as_they_come: bool) -> Report:
        """What would be kept forever, as `check` tells it, or where all events are used when they have ended."""
        findings = Findings()
        facts = self._sound.facts if as_they_come else self._compiled.facts
        tell_unbounded(self._rules, self._sound.plan, facts, findings)
        return report(self._source, findings.diagnostics)

    def _noted(self, found: Run) -> Run:
        return replace(found, notes=(*found.said, *found.warnings, *self.notes(found.never)))

    def notes(self, lacking: Never) -> tuple[str, ...]:
        """What a run lacked, as people read it."""
        from ephemera.engine.hosts.batch import notes_of

        return notes_of(lacking, self._rules, self._source)

    def _reading(self, emit: Iterable[str] = ()) -> Reading:
        """Where the events of a run are gathered as this program reads them, so that several may share the input."""
        from ephemera.formats.reading import Reading

        return Reading(self._planned(emit))

    def _run_read(
        self,
        reading: Reading,
        *,
        engine: str = "local",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        until: float | str | None = None,
        progress: Callable[[float], None] = lambda _part: None,
    ) -> Run:
        """All that the program derives from events that have been read; whoever calls has judged the program."""
        from ephemera.engine.hosts.batch import run_reading

        world = self._world(tables, until=until)
        return self._noted(run_reading(reading, world, self._evaluate(engine, reading.compiled), progress))

    # ---- live ----------------------------------------------------------------------------------------------

    def engine(  # noqa: PLR0913 - all of them named
        self,
        *,
        stamp: Stamp = "event",
        now: Callable[[], int] = wall_clock,
        emit: Iterable[str] = (),
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        allow_unbounded: bool = False,
        lenient: bool = False,
        deliver: Deliver = False,
        outbox: str | None = None,
    ) -> LiveEngine:
        """The program as an engine in this process, to which events are sent as they come.

        With `stamp="arrival"` events are stamped when they arrive, by `now` in microseconds, and time passes by itself.
        A program that would keep something forever is refused unless that is allowed. Messages are delivered if it says
        to `deliver` them: `True`, or functions by recipient or transport. They wait in the folder `outbox` until they
        are taken; without one, `stop` waits for them.

        >>> import ephemera
        >>> taken = []
        >>> program = ephemera.compile(
        ...     'EVENT late(id: string); RAISE to(recipient="desk", transport="python") { bell { id { var I } } } '
        ...     "ON event l: late(var I) END"
        ... )
        >>> with program.engine(deliver={"desk": taken.append}) as engine:
        ...     answers = engine.send_many([{"event": "late", "time": k, "data": [f"a{k}"]} for k in (1, 2)])
        >>> [(one["recipient"], one["data"]) for one in taken]
        [('desk', {'id': 'a1'})]
        """
        self._judge("live", allowed=allow_unbounded)
        world = self._world(tables, calendars, lenient=lenient)
        asked = asked_for(emit, self._rules.resolved)
        messenger = None
        if deliver is not False:
            from ephemera.deliver.delivery import Delivery, Wanted

            messenger = Delivery([self._planned(asked)], Wanted.of(deliver, outbox)).start()
        return self._engine(
            asked,
            world,
            stamp=stamp,
            now=now,
            lenient=lenient,
            messenger=messenger,
            allow_unbounded=allow_unbounded,
        )

    def planned_live(self, emit: Iterable[str], *, allowed: bool) -> Compiled:
        """The program as a live engine goes on with it; engines ask for that, people need not."""
        self._judge("live", allowed=allowed)
        return self._planned(emit)

    def planned_spread(self, emit: Iterable[str], *, allowed: bool) -> tuple[Compiled, Source]:
        """The same for live queries on Spark, with its text."""
        self._judge("live", allowed=allowed, as_they_come=False)
        return self._planned(emit), self._source

    @property
    def written(self) -> Source:
        """The program as it was written."""
        return self._source

    def rows(
        self, tables: Mapping[str, Iterable[Mapping[str, Any]]], *, lenient: bool = False
    ) -> Mapping[str, Sequence[Term]]:
        """The rows of declared tables; engines ask for that, people need not."""
        return self._world(tables, lenient=lenient).tables

    def archive(self, given: Any, *, lenient: bool = False) -> SourceArchive:
        """Where rules that are added to an engine find their past; engines ask for that, people need not."""
        from ephemera.connect.archive import archive_of

        return archive_of(given, lenient=lenient)

    def _engine(self, emit: Iterable[str], world: World, *, points: Points | None = None, **options: Any) -> LiveEngine:
        """An engine that is asked for some events, of which the program may have none."""
        from ephemera.engine.hosts.live_engine import LiveEngine

        engine = LiveEngine(self._planned(emit, points).beside(world.calendars), world, **options)
        engine.written = self.written
        return engine

    def engine_of(self, told: Mapping[str, Any], tables: Mapping[str, Any]) -> LiveEngine:
        """An engine of the program that a checkpoint is of; who changes checkpoints asks for that, people need not."""
        before = Program(pipeline.check(Source(told["path"], told["text"]), unbounded=None))
        rows = {label: given for label, given in tables.items() if label in before.catalogue.tables}
        return before._engine(told["emit"], before._world(rows), allow_unbounded=True)

    def stream(  # noqa: PLR0913 - all of them named
        self,
        spark: Any,
        source: LiveSource | SparkFrame | str | Sequence[LiveSource | SparkFrame | str] | None = None,
        sink: LiveSink | None = None,
        *,
        past: LiveSource | str | Sequence[LiveSource | str] | None = None,
        checkpoint: str | None = None,
        dead_letters: str | None = None,
        trigger: str | None = None,
        shards: int | None = None,
        small: int | None = None,
        emit: Iterable[str] = (),
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        allow_unbounded: bool = False,
        lenient: bool = False,
        deliver: Deliver = False,
        outbox: str | None = None,
        **old: Any,
    ) -> Streaming:
        """The program as a live query on Spark Structured Streaming; `start` on what this returns starts it.

        `source` is one of `sources`, a folder in which files arrive, a streaming data frame, or a list of these;
        without one, the query reads what the program declares. `past` is a folder of files that is read first, all of
        it, so that the query goes on from there. `sink` is one of `sinks`. Dead letters go to a folder.
        A batch runs in one task without an exchange where fewer than `small` events are likely to come. A program that
        would keep something forever is refused unless that is allowed. Messages are delivered if it says to `deliver`
        them, `True` or functions by recipient or transport; they wait in the checkpoint, or in the folder `outbox`.
        Other keywords (`output`, `format`, `table`, `location`, `foreach`, `foreach_batch`, `most_files`) are those of
        the version before; each warns, and says what to write instead.

        >>> import ephemera as eph
        >>> program = eph.compile("EVENT order(id: string); seen(id) <- o: order(id);")
        >>> def start(spark):
        ...     source, sink = eph.sources.Folder("arriving"), eph.sinks.Table("shop.seen")
        ...     return program.stream(spark, source, sink, checkpoint="checkpoint").start()
        """
        need_spark("make an engine in this process with `program.engine()`", who="`stream`")
        from ephemera.spark.runtime.connect_session import refuse_connect

        refuse_connect(spark)
        self._judge("live", allowed=allow_unbounded, as_they_come=False)
        from ephemera.deliver.delivery import Wanted
        from ephemera.spark.live.query import streaming_of

        world = self._world(tables, calendars, lenient=lenient)
        return streaming_of(
            spark,
            self._planned(asked_for(emit, self._rules.resolved)).beside(world.calendars),
            world,
            source,
            sink,
            past=past,
            old=old,
            text=self._source,
            lenient=lenient,
            checkpoint=checkpoint,
            dead_letters=dead_letters,
            trigger=trigger,
            shards=shards,
            small=small,
            deliver=None if deliver is False else Wanted.of(deliver, outbox),
        )

    def _world(
        self,
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        until: float | str | None = None,
        *,
        lenient: bool = False,
    ) -> World:
        """What the program runs on besides events, as engines need it."""
        from ephemera.connect.declared_tables import read_world

        return read_world(self.catalogue, tables or {}, calendars or {}, until, lenient=lenient)

    # ---- what is known of it -------------------------------------------------------------------------------

    def explain(
        self, stage: Stage = "rules", *, points: Points | None = None, emit: Iterable[str] = (), analyze: Any = None
    ) -> str:
        """What a stage makes of the program, as text; `points` says what is materialized.

        `emit` names events: the physical plan is that of a run which is asked for these only. With events to `analyze`,
        which may be whatever `run` takes, they are run, and what was expected of the plan stands beside what was seen.

        >>> import ephemera
        >>> program = ephemera.compile("EVENT a(x: int); EVENT b(x: int); p(x) <- i: a(x), j: b(x), {i, j} within 2h;")
        >>> print(program.explain("relevance"))
        p  (rule 1)
          a as i: kept while i.s >= now - 2h
            i.s: {i, j} within 2h
          b as j: kept while j.s >= now - 2h
            j.s: {i, j} within 2h
          an answer lasts at most 2h
        <BLANKLINE>
        histories
          a(v1): kept while begin >= now - 2h (for p)
          b(v1): kept while begin >= now - 2h (for p)
        """
        compiled = self._explained(stage, emit, points)
        if analyze is not None:
            from ephemera.physical.explain_analysis import as_text

            return as_text(*self._analyzed(stage, compiled, analyze))
        return pipeline.explain(self._sound, compiled, stage, points)

    def explain_json(
        self, stage: Stage = "rules", *, points: Points | None = None, emit: Iterable[str] = (), analyze: Any = None
    ) -> Any:
        """The same as plain data."""
        compiled = self._explained(stage, emit, points)
        if analyze is not None:
            from ephemera.physical.explain_analysis import as_json

            return as_json(*self._analyzed(stage, compiled, analyze))
        return pipeline.explain_json(self._sound, compiled, stage, points)

    def _analyzed(self, stage: Stage, compiled: Compiled | None, events: Any) -> tuple[PhysicalPlan, Seen]:
        """How events were run, and what was seen."""
        if stage != "physical" or compiled is None:
            raise ValueError(f"what is run is the stage `physical`, and `{stage}` is to be explained")
        from ephemera.connect.source_run import analyze_sources, sources_of

        return analyze_sources(compiled, sources_of(events), self._world())

    def _explained(self, stage: Stage, emit: Iterable[str], points: Points | None) -> Compiled | None:
        asked = asked_for(emit, self._rules.resolved)
        if stage == "physical":
            return self._planned(asked, points)
        if asked:
            raise ValueError(f"what is asked for changes the stage `physical` only, and `{stage}` is to be explained")
        return None


def _check_deliver(deliver: Deliver) -> None:
    if deliver is not False:
        raise ValueError(
            "messages are delivered by the engine `local`, of events or sources, by live queries, and by `ephemera run`"
        )


def _check_sink(engine: str, sink: Sink | None, frame: bool) -> None:
    if sink is not None and (frame or engine != "local"):
        raise ValueError("answers go to a sink from the engine `local`; write what Spark or the oracle returns")
