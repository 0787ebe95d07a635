"""This module is the whole road, stage by stage; it is the only one that knows them all.

text → `parse` → syntax → `resolve`, `stratify`, `normalize` → rules, which the oracle evaluates → `lower` → plan →
`derive` → facts: how long everything must be kept → `prepare`, when a program is first to run: it is planned, by
`optimize` → plan rewritten → `physical_plan` → what engines, Spark and `explain` read
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from ephemera.algebra import explain as algebra_explain
from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import Plan, Points
from ephemera.analysis import explain as analysis_explain
from ephemera.analysis import explain_bounds
from ephemera.analysis.findings import tell, tell_unbounded
from ephemera.analysis.nodes import Facts
from ephemera.analysis.relevance import derive
from ephemera.analysis.unbounded import Use, judge, unbounded_in
from ephemera.base.diagnostic import Report, Severity, report
from ephemera.base.errors import ProgramError, warn
from ephemera.base.span import Source
from ephemera.connect.declared_tables import read_world
from ephemera.engine.engine import Never
from ephemera.engine.hosts.batch import Run, notes_of, run_reading
from ephemera.engine.hosts.live_engine import LiveEngine, Stamp
from ephemera.engine.hosts.tables import run_given
from ephemera.engine.time.processing_time import wall_clock
from ephemera.formats.reading import Options, Reading, is_spark_frame
from ephemera.physical import explain as physical_explain
from ephemera.physical.plan import Compiled, prepare
from ephemera.rules import explain as rules_explain
from ephemera.rules.emitted import asked_for
from ephemera.rules.findings import Findings
from ephemera.rules.growth import growth
from ephemera.rules.nodes import Catalogue, Ruleset
from ephemera.rules.normalize import normalize
from ephemera.rules.outcome import Outcome, World
from ephemera.rules.resolve import resolve
from ephemera.rules.size import check_size
from ephemera.rules.stratify import stratify
from ephemera.semantics.oracle import evaluate
from ephemera.syntax import explain as syntax_explain
from ephemera.syntax.parser import Parsed, parse
from ephemera.terms.events import Event

if TYPE_CHECKING:
    from ephemera.spark.live.query import Streaming

Stage = Literal["syntax", "rules", "plan", "relevance", "bounds", "physical"]
ENGINES = ("local", "oracle")


@dataclass(frozen=True, slots=True)
class Checked:
    """How far a program came: its tree, its rules if they are sound, and all that was found on the way."""

    parsed: Parsed
    rules: Ruleset | None
    plan: Plan | None
    facts: Facts | None
    report: Report


def check(source: Source, *, unbounded: Severity | None = None) -> Checked:
    """Sends a program down the road; every stage adds what it finds, and none goes on where one before failed.

    `unbounded` says what it is if something would be kept forever: an error, a warning, or (None) all right.
    """
    parsed = parse(source)
    findings = Findings()
    resolved = resolve(parsed.program, findings, complete=not parsed.report.failed)

    def found() -> Report:
        return report(source, [*parsed.report.diagnostics, *findings.diagnostics])

    if found().failed:
        return Checked(parsed, None, None, None, found())
    strata, dependencies = stratify(resolved, findings)
    normal = normalize(resolved)
    rules = Ruleset(resolved, strata, dependencies, normal, growth(resolved, normal))
    check_size(resolved, rules.normal, findings)
    if found().failed:
        return Checked(parsed, None, None, None, found())
    plan = lower(rules)
    facts = derive(plan)
    tell(rules, plan, facts, findings, unbounded)
    return Checked(parsed, None if found().failed else rules, plan, facts, found())


class Program:
    """A program that passed its checks, ready to be explained and run.

    >>> import ephemera
    >>> program = ephemera.compile("late(id) <- o: order(id), w: extend(o, 6h), while w: not shipped(id);")
    >>> print(program.explain("rules"))  # doctest: +ELLIPSIS
    rule 1  late(id)...
    """

    def __init__(self, checked: Checked) -> None:
        if checked.rules is None or checked.plan is None or checked.facts is None:
            raise ProgramError(checked.report)
        self._parsed = checked.parsed
        self._rules = checked.rules
        self._plan = checked.plan
        self._facts = checked.facts

    @cached_property
    def compiled(self) -> Compiled:
        """The program as engines need it, with how it runs: planned once, when it is first to run."""
        return prepare(self._rules, self._plan, self._facts)

    @property
    def catalogue(self) -> Catalogue:
        """What the program declares."""
        return self._rules.resolved.catalogue

    @overload
    def run(self, events: Iterable[Mapping[str, Any]], **options: Unpack[Options]) -> list[dict[str, Any]]: ...

    @overload
    def run(self, events: Any, **options: Unpack[Options]) -> Any: ...

    def run(  # noqa: PLR0913 - all of them named
        self,
        events: Any,
        *,
        engine: str = "local",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        until: int | float | str | None = None,
        emit: Iterable[str] = (),
        allow_unbounded: bool = False,
        lenient: bool = False,
    ) -> Any:
        """All that the program derives from events, given and returned as the objects of JSON lines.

        A table of Arrow, pandas, Polars or DuckDB is answered with one of its kind. So is a data frame of Spark, on
        Spark: its answer is computed when somebody reads it. A declared attribute that is no column is an error; where
        that is `lenient`, it is null. What could not be used, and what is to be said of the input, such as that times
        had no zone, is told by an `EphemeraWarning`; `run_all` has it.

        >>> import ephemera
        >>> program = ephemera.compile("EVENT order(id: string); late(id) <- o: order(id), w: extend(o, 6);")
        >>> program.run([{"event": "order", "time": 1, "data": ["a"]}])
        [{'event': 'late', 'time': [1, 7], 'data': ['a']}]
        """
        frame = is_spark_frame(events)
        asked = self._asked(engine, emit, allow_unbounded, frame)
        world = self.world(tables, calendars, until, lenient=lenient)
        compiled = self.compiled.beside(world.calendars)
        if frame:
            from ephemera.spark.batch.frames import run_frame  # noqa: PLC0415 - only who runs on Spark needs it

            answers, said = run_frame(compiled, events, world, asked, lenient=lenient)
            warn(said, stacklevel=3)
            return answers
        found = run_given(compiled, events, world, asked, self._evaluate(engine), lenient=lenient)
        warn([*([] if found.complaint is None else [found.complaint]), *found.said, *found.warnings], stacklevel=3)
        return found.answers

    def run_all(  # noqa: PLR0913 - all of them named
        self,
        events: Any,
        *,
        engine: str = "local",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        until: int | float | str | None = None,
        emit: Iterable[str] = (),
        allow_unbounded: bool = False,
        lenient: bool = False,
    ) -> Run:
        """The same with messages, with what could not be read or computed, and with what was lacking.

        Events may be lines of JSON, too. A data frame of Spark is run at once.

        >>> import ephemera
        >>> program = ephemera.compile("EVENT a(x: int); EVENT b(x: int); p(x) <- i: a(x); q(x) <- i: b(x);")
        >>> run = program.run_all([{"event": "a", "time": 1, "data": [1]}, {"event": "a", "time": 2, "data": ["one"]}])
        >>> len(run.answers), len(run.bad), run.notes
        (1, 1, ('never came: `b`', 'never matched: rule 2 `q` (program.eq:1)'))
        """
        frame = is_spark_frame(events)
        asked = self._asked(engine, emit, allow_unbounded, frame)
        world = self.world(tables, calendars, until, lenient=lenient)
        compiled = self.compiled.beside(world.calendars)
        if not frame:
            evaluate = self._evaluate(engine)
            return self._noted(run_given(compiled, events, world, asked, evaluate, lenient=lenient))
        from ephemera.spark.batch.frames import run_whole_frame  # noqa: PLC0415 - only who runs on Spark needs it

        return self._noted(run_whole_frame(compiled, events, world, asked, lenient=lenient))

    def _asked(self, engine: str, emit: str | Iterable[str], allowed: bool, frame: bool) -> frozenset[str]:
        """What a batch run is asked for, if everything about it is right."""
        if _known(engine) == "oracle" and frame:
            raise ValueError("a data frame of Spark runs on Spark; give the oracle what it collects")
        self._judge("oracle" if engine == "oracle" else "batch", allowed=allowed)
        return asked_for(emit, self._rules.resolved)

    def _evaluate(self, engine: str) -> Callable[[list[Event], World], Outcome] | None:
        return partial(evaluate, self._rules) if _known(engine) == "oracle" else None

    def _judge(self, use: Use, *, allowed: bool) -> None:
        """Refuses state without a bound, or warns of it, as the use asks."""
        severity = unbounded_in(use, allowed=allowed)
        if severity is not None:
            judge(self._unbounded, severity, stacklevel=6)

    @cached_property
    def _unbounded(self) -> Report:
        """What would be kept forever, as `check` tells it."""
        findings = Findings()
        tell_unbounded(self._rules, self._plan, self._facts, findings)
        return report(self._parsed.source, findings.diagnostics)

    def _noted(self, found: Run) -> Run:
        return replace(found, notes=(*found.said, *found.warnings, *self.notes(found.never)))

    def notes(self, lacking: Never) -> tuple[str, ...]:
        """What a run lacked, as people read it."""
        return notes_of(lacking, self._rules, self._parsed.source)

    def reading(self) -> Reading:
        """Where the events of a run are gathered as this program reads them, so that several may share the input."""
        return Reading(self.compiled)

    def run_read(
        self,
        reading: Reading,
        *,
        engine: str = "local",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        emit: Iterable[str] = (),
        progress: Callable[[float], None] = lambda _part: None,
    ) -> Run:
        """All that the program derives from events that have been read; whoever calls has judged the program."""
        world = self.world(tables)
        return self._noted(run_reading(reading, world, frozenset(emit), self._evaluate(engine), progress))

    def engine(  # noqa: PLR0913 - all of them named
        self,
        *,
        stamp: Stamp = "event",
        now: Callable[[], int] = wall_clock,
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        allow_unbounded: bool = False,
        lenient: bool = False,
    ) -> LiveEngine:
        """The program as an engine in this process, to which events are sent as they come.

        With `stamp="arrival"` events are stamped when they arrive, by `now` in microseconds, and time passes by itself.
        A program that would keep something forever is refused unless that is allowed.
        """
        self._judge("live", allowed=allow_unbounded)
        world = self.world(tables, calendars, lenient=lenient)
        return LiveEngine(self.compiled.beside(world.calendars), world, stamp=stamp, now=now, lenient=lenient)

    def stream(  # noqa: PLR0913 - all of them named
        self,
        spark: Any,
        source: Any = None,
        *,
        checkpoint: str | None = None,
        output: str | None = None,
        format: Literal["json", "parquet", "csv"] = "json",
        dead_letters: str | None = None,
        table: str | None = None,
        location: str | None = None,
        foreach: Callable[[dict[str, Any]], object] | None = None,
        foreach_batch: Callable[[list[dict[str, Any]], int], object] | None = None,
        trigger: str | None = None,
        shards: int | None = None,
        most_files: int | None = None,
        small: int | None = None,
        emit: Iterable[str] = (),
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        allow_unbounded: bool = False,
        lenient: bool = False,
    ) -> Streaming:
        """The program as a live query on Spark Structured Streaming; `start` on what this returns starts it.

        `source` is a folder in which files arrive, a streaming data frame, or a list of these; without one, the query
        reads what the program declares. A batch takes `most_files` of a folder at most, and runs in one task without
        an exchange where fewer than `small` events are likely to come.
        Answers go to a folder or a table, at `location` if that is given, exactly once, or to functions at least once,
        each with a key. A program that would keep something forever is refused unless that is allowed.
        """
        self._judge("live", allowed=allow_unbounded)
        from ephemera.spark.live.query import streaming_of  # noqa: PLC0415 - only who runs on Spark needs it

        world = self.world(tables, calendars, lenient=lenient)
        return streaming_of(
            spark,
            self.compiled.beside(world.calendars),
            world,
            source,
            lenient=lenient,
            checkpoint=checkpoint,
            output=output,
            format=format,
            dead_letters=dead_letters,
            table=table,
            location=location,
            foreach=foreach,
            foreach_batch=foreach_batch,
            trigger=trigger,
            shards=shards,
            most_files=most_files,
            small=small,
            emit=asked_for(emit, self._rules.resolved),
        )

    def world(
        self,
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        until: float | str | None = None,
        *,
        lenient: bool = False,
    ) -> World:
        """What the program runs on besides events, as engines need it."""
        return read_world(self.catalogue, tables or {}, calendars or {}, until, lenient=lenient)

    def explain(self, stage: Stage = "rules", *, points: Points = "rules") -> str:
        """What a stage makes of the program, as text; `points` says what is materialized.

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
        match stage:
            case "syntax":
                return syntax_explain.as_text(self._parsed.program)
            case "rules":
                return rules_explain.as_text(self._rules, self._parsed.source)
            case "plan":
                return algebra_explain.as_text(self._planned(points)[0])
            case "relevance":
                return analysis_explain.as_text(*self._planned(points))
            case "bounds":
                return explain_bounds.as_text(self._plan)
            case "physical":
                return physical_explain.as_text(self.compiled.physical)

    def explain_json(self, stage: Stage = "rules", *, points: Points = "rules") -> Any:
        """The same as plain data."""
        match stage:
            case "syntax":
                return syntax_explain.as_json(self._parsed.program, self._parsed.source)
            case "rules":
                return rules_explain.as_json(self._rules, self._parsed.source)
            case "plan":
                return algebra_explain.as_json(self._planned(points)[0])
            case "relevance":
                return analysis_explain.as_json(*self._planned(points))
            case "bounds":
                return explain_bounds.as_json(self._plan)
            case "physical":
                return physical_explain.as_json(self.compiled.physical)

    def _planned(self, points: Points) -> tuple[Plan, Facts]:
        if points == "rules":
            return self._plan, self._facts
        plan = lower(self._rules, points)
        return plan, derive(plan)


def _known(engine: str) -> str:
    if engine not in ENGINES:
        raise ValueError(f"there is no engine `{engine}`; the engines are {', '.join(ENGINES)}")
    return engine


def compile(text: str, name: str = "program.eq") -> Program:
    """Checks a program and returns it; raises `ProgramError` with all that is wrong otherwise.

    >>> import ephemera
    >>> ephemera.compile("seen(id) <- o: order(id);").explain("rules").splitlines()[0]
    'rule 1  seen(id)'
    """
    return Program(check(Source(name, text)))
