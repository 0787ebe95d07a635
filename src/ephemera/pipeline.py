"""This module is the whole road, stage by stage; it is the only one that knows them all.

text → `parse` → syntax → `resolve`, `stratify`, `normalize` → rules, which the oracle evaluates → `lower` → plan →
`derive` → facts: how long everything must be kept
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from ephemera.algebra import explain as algebra_explain
from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import Plan, Points
from ephemera.analysis import explain as analysis_explain
from ephemera.analysis import explain_bounds
from ephemera.analysis.findings import tell
from ephemera.analysis.limits import Limits
from ephemera.analysis.nodes import Facts
from ephemera.analysis.relevance import derive
from ephemera.base.diagnostic import Report, Severity, report
from ephemera.base.errors import ProgramError
from ephemera.base.span import Source
from ephemera.engine import batch
from ephemera.engine import tables as columnar
from ephemera.engine.compiled import Compiled, Given, Reading
from ephemera.engine.live import LiveEngine, Stamp, wall_clock
from ephemera.engine.table_rows import read_rows
from ephemera.io.jsonl import (
    BadEvent,
    read_time,
    write_event,
)
from ephemera.physical import explain as physical_explain
from ephemera.rules import explain as rules_explain
from ephemera.rules.findings import Findings
from ephemera.rules.nodes import Catalogue, Ruleset
from ephemera.rules.normalize import normalize
from ephemera.rules.outcome import DeadLetter, World
from ephemera.rules.resolve import resolve
from ephemera.rules.size import check_size
from ephemera.rules.stratify import stratify
from ephemera.semantics.oracle import evaluate
from ephemera.syntax import explain as syntax_explain
from ephemera.syntax.parser import Parsed, parse
from ephemera.terms.events import Event
from ephemera.terms.values import Key

if TYPE_CHECKING:
    from ephemera.spark.streaming import Streaming

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
    rules = Ruleset(resolved, strata, dependencies, normalize(resolved))
    check_size(resolved, rules.normal, findings)
    if found().failed:
        return Checked(parsed, None, None, None, found())
    plan = lower(rules)
    facts = derive(plan)
    tell(rules, plan, facts, findings, unbounded)
    return Checked(parsed, None if found().failed else rules, plan, facts, found())


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run: answers and messages as JSON objects, bad events, and heads that had no value."""

    answers: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    bad: list[BadEvent]
    undefined: list[DeadLetter]
    output: list[tuple[Key, dict[str, Any]]]
    """Answers and messages together, by end, begin, event and data, each behind what it is sorted by."""
    notes: tuple[str, ...] = ()
    """What people should know of the input, such as a key that was missing in every event of its type."""


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
        at_begin = any(schema.arrives_at_begin for schema in self.catalogue.events.values())
        # Engines in one process use an event when its end has passed, even if it was known before.
        kept = derive(checked.plan, at_begin=False) if at_begin else checked.facts
        self._compiled = Compiled(checked.rules, checked.plan, kept, Limits(checked.plan, checked.facts))

    @property
    def compiled(self) -> Compiled:
        """The program as engines need it."""
        return self._compiled

    @property
    def catalogue(self) -> Catalogue:
        """What the program declares."""
        return self._rules.resolved.catalogue

    @overload
    def run(
        self,
        events: Iterable[Mapping[str, Any]],
        *,
        engine: str = ...,
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = ...,
        calendars: Mapping[str, Iterable[Event]] | None = ...,
        until: int | float | str | None = ...,
        lenient: bool = ...,
    ) -> list[dict[str, Any]]: ...

    @overload
    def run(
        self,
        events: Any,
        *,
        engine: str = ...,
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = ...,
        calendars: Mapping[str, Iterable[Event]] | None = ...,
        until: int | float | str | None = ...,
        lenient: bool = ...,
    ) -> Any: ...

    def run(  # noqa: PLR0913 - all of them named
        self,
        events: Any,
        *,
        engine: str = "local",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        until: int | float | str | None = None,
        lenient: bool = False,
    ) -> Any:
        """All that the program derives from events, given and returned as the objects of JSON lines.

        A table of Arrow, pandas, Polars or DuckDB is answered with one of its kind. So is a data frame of Spark, on
        Spark: its answer is computed when somebody reads it. A declared attribute that is no column of it is an error;
        where that is `lenient`, it is null.

        >>> import ephemera
        >>> program = ephemera.compile("late(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);")
        >>> program.run([{"event": "order", "time": 1, "data": ["a"]}])
        [{'event': 'late', 'time': [1, 7], 'data': ['a']}]
        """
        if _is_frame(events):
            if _known(engine) == "oracle":
                raise ValueError("a data frame of Spark runs on Spark; give the oracle what it collects")
            from ephemera.spark.frames import run_frame  # noqa: PLC0415 - only who runs on Spark needs it

            world = self.world(tables, calendars, until, lenient=lenient)
            return run_frame(self._compiled, events, world, lenient=lenient)
        if columnar.is_table(events):
            oracle = partial(evaluate, self._rules) if _known(engine) == "oracle" else None
            world = self.world(tables, calendars, until, lenient=lenient)
            return columnar.run_table(self._compiled, events, world, oracle, lenient=lenient).answers
        more: dict[str, Any] = {"tables": tables, "calendars": calendars, "until": until, "lenient": lenient}
        return self.run_all(list(events), engine=engine, **more).answers

    def run_all(  # noqa: PLR0913 - all of them named
        self,
        events: Iterable[Given],
        *,
        engine: str = "local",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        until: int | float | str | None = None,
        lenient: bool = False,
        progress: Callable[[float], None] = lambda _part: None,
    ) -> Run:
        """The same with what could not be read or computed; events may be lines of JSON, too."""
        reading = self.reading()
        for event in events:
            reading.add(event)
        more: dict[str, Any] = {"tables": tables, "calendars": calendars, "until": until, "lenient": lenient}
        return self.run_read(reading, engine=engine, **more, progress=progress)

    def reading(self) -> Reading:
        """Where the events of a run are gathered as this program reads them, so that several may share the input."""
        return Reading(self._compiled)

    def run_read(  # noqa: PLR0913 - all of them named
        self,
        reading: Reading,
        *,
        engine: str = "local",
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        until: int | float | str | None = None,
        lenient: bool = False,
        progress: Callable[[float], None] = lambda _part: None,
    ) -> Run:
        """All that the program derives from events that have been read."""
        world = self.world(tables, calendars, until, lenient=lenient)
        if _known(engine) == "oracle":
            outcome = evaluate(self._rules, reading.events, world)
        else:
            outcome = batch.run(self._rules, self._plan, self._compiled.facts, reading.events, world, progress)
        written = partial(write_event, catalogue=self.catalogue, as_numbers=reading.as_numbers)
        answers = [written(e) for e in outcome.events]
        messages = [{**written(m.event), "recipient": m.recipient, "transport": m.transport} for m in outcome.messages]
        keys = [e.key for e in outcome.events] + [m.event.key for m in outcome.messages]
        output = sorted(zip(keys, answers + messages, strict=True), key=lambda line: line[0])
        notes = (*reading.notes, *reading.keys.notes())
        return Run(answers, messages, reading.bad, outcome.dead_letters, output, notes)

    def engine(
        self,
        *,
        stamp: Stamp = "event",
        now: Callable[[], int] = wall_clock,
        tables: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
        calendars: Mapping[str, Iterable[Event]] | None = None,
        lenient: bool = False,
    ) -> LiveEngine:
        """The program as an engine in this process, to which events are sent as they come.

        With `stamp="arrival"` events are stamped when they arrive, by `now` in microseconds, and time passes by itself.
        """
        world = self.world(tables, calendars, lenient=lenient)
        return LiveEngine(self._compiled, world, stamp=stamp, now=now, lenient=lenient)

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
        lenient: bool = False,
    ) -> Streaming:
        """The program as a live query on Spark Structured Streaming; `start` on what this returns starts it.

        `source` is a folder in which files arrive, a streaming data frame, or a list of these; without one, the query
        reads what the program declares. A batch takes `most_files` of a folder at most, and runs in one task without
        an exchange where fewer than `small` events are likely to come.
        Answers go to a folder or a table, at `location` if that is given, exactly once, or to functions at least once,
        each with a key.
        """
        from ephemera.spark.streaming import streaming_of  # noqa: PLC0415 - only who runs on Spark needs it

        return streaming_of(
            spark,
            self._compiled,
            self.world(tables, calendars, lenient=lenient),
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
            emit=frozenset(emit),
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
        declared = self.catalogue.tables
        unknown = sorted(set(tables or ()) - set(declared))
        if unknown:
            raise ValueError(f"the program declares no table `{unknown[0]}`")
        rows = {label: read_rows(given, declared[label], lenient=lenient) for label, given in (tables or {}).items()}
        limit = None if until is None else read_time(until, self.catalogue.unit)
        return World(rows, {name: list(given) for name, given in (calendars or {}).items()}, limit)

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
                return physical_explain.as_text(self._plan, self._compiled.facts)

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
                return physical_explain.as_json(self._plan, self._compiled.facts)

    def _planned(self, points: Points) -> tuple[Plan, Facts]:
        if points == "rules":
            return self._plan, self._facts
        plan = lower(self._rules, points)
        return plan, derive(plan)


def _is_frame(given: object) -> bool:
    """Whether something is a data frame of Spark, which need not be installed."""
    return any(c.__name__ == "DataFrame" and c.__module__.startswith("pyspark.sql.") for c in type(given).__mro__)


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
