"""This module runs stories and compares what their programs derive with what the stories say they must."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from ephemera.base.diagnostic import render_text
from ephemera.base.errors import EphemeraError
from ephemera.base.span import Source
from ephemera.formats.json_events import BadEvent, read_object, read_time
from ephemera.physical.plan import Compiled
from ephemera.pipeline import check
from ephemera.program import Program
from ephemera.rules.emitted import unknown_emitted
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.semantics.arrival import Arrival, late_arrivals
from ephemera.stories.read import BadStory, Rows, Story
from ephemera.stories.streams import by_streams, unknown_name
from ephemera.terms.events import Event
from ephemera.terms.values import Key

Tables: TypeAlias = Mapping[str, list[dict[str, Any]]]


ENGINES = ("local", "oracle", "spark", "stream")


@dataclass(frozen=True, slots=True)
class Ready:
    """A story whose program passed its checks."""

    story: Story
    program: Program
    tables: Tables

    @property
    def until(self) -> Any:
        """The latest time until which time passes, if the story says any."""
        catalogue = self.program.catalogue
        return max(self.story.advances, key=lambda t: read_time(t, catalogue.unit, catalogue.local), default=None)

    @property
    def emit(self) -> frozenset[str]:
        """What the program is asked for; nothing is everything."""
        return self.story.emit or frozenset()

    @property
    def compiled(self) -> Compiled:
        """The program as it runs for what it is asked for."""
        return self.program._planned(self.emit)


@dataclass(slots=True)
class Found:
    """What a program made of a story."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    after: list[int] | None = None
    """For each answer the row that made it certain, if the engine was asked row by row; 0 is the end."""
    bad: list[BadEvent] = field(default_factory=list)
    late: list[Event] = field(default_factory=list)


def judge(story: Story, name: str = "story.eq", *, engine: str = "oracle") -> list[str]:
    """What is wrong, a line each; nothing if the story holds."""
    return judge_all([(name, story)], engine=engine)[0]


def judge_all(stories: Sequence[tuple[str, Story]], *, engine: str = "oracle") -> list[list[str]]:
    """What is wrong with each of some named stories; on Spark all of them run at once, and those that fail once more.

    A story that does not apply to the engine holds.
    """
    given = [prepared(name, story) for name, story in stories]
    ready = [one for one in given if isinstance(one, Ready) and applies(one.story, engine)]
    if engine == "spark":
        from ephemera.stories.on_spark import run_on_spark  # noqa: PLC0415 - other engines do without Spark

        found = judged_together(ready, run_on_spark)
    elif engine == "stream":
        from ephemera.stories.on_stream import run_on_stream  # noqa: PLC0415

        found = judged_together(ready, partial(run_on_stream, at_once=False))
    else:
        found = [_judged(one, partial(run_on, one, engine)) for one in ready]
    told = iter(found)
    return [one if not isinstance(one, Ready) else next(told) if applies(one.story, engine) else [] for one in given]


def applies(story: Story, engine: str) -> bool:
    """Whether a story can be told to an engine: to one that knows only whole histories nothing arrives live."""
    return engine != "spark" or not story.is_live


def judged_together(ready: Sequence[Ready], run: Callable[[Sequence[Ready]], Sequence[Found]]) -> list[list[str]]:
    """What is wrong with each of some stories that run at once; those with which something is are run alone."""
    try:
        found = run(ready) if ready else []
    except EphemeraError as error:
        if len(ready) == 1:
            return [[str(error)]]
        half = len(ready) // 2
        return judged_together(ready[:half], run) + judged_together(ready[half:], run)
    wrong = [differences(one, f) for one, f in zip(ready, found, strict=True)]
    if len(ready) == 1:
        return wrong
    return [_alone(one, w, run) if w else w for one, w in zip(ready, wrong, strict=True)]


def _alone(one: Ready, wrong: list[str], run: Callable[[Sequence[Ready]], Sequence[Found]]) -> list[str]:
    """What is wrong with a story by itself, or with the run of all, if nothing is."""
    (again,) = judged_together([one], run)
    return again or ["it holds alone, but not in one run with the others:", *wrong]


def prepared(name: str, story: Story) -> Ready | list[str]:
    """A story that can be run, or what is wrong with its program."""
    # Lines are counted as in the file that the program stands in.
    place = (
        Source(name, "\n" * story.line + story.program)
        if story.path is None
        else Source(str(story.path), story.program)
    )
    checked = check(place)
    if checked.rules is None:
        return ["the program does not pass:", *render_text(checked.report).splitlines()]
    unknown = unknown_emitted(story.emit or (), [checked.rules.resolved])
    if unknown is not None:
        return [f"Emit: {unknown}"]
    program = Program(checked)
    try:
        story = by_streams(story, program.catalogue)
    except BadStory as error:
        return [str(error)]
    unknown_table = unknown_name(story.tables, program.catalogue.tables)
    if unknown_table is not None:
        return [f"Table `{unknown_table[0]}`: {unknown_table[1]}"]
    tables = {label: typed_rows(program.catalogue.tables[label], rows) for label, rows in story.tables.items()}
    return Ready(story, program, tables)


def _judged(one: Ready, run: Callable[[], Found]) -> list[str]:
    try:
        return differences(one, run())
    except EphemeraError as error:
        return [str(error)]


def differences(one: Ready, found: Found) -> list[str]:
    """What is wrong with a story, a line each, by what its program made of it."""
    story, catalogue = one.story, one.program.catalogue
    wrong = _differences(story, found, catalogue)
    if Counter(e.label or "" for e in found.bad) != Counter(story.bad):
        wrong.append(f"bad events: expected {sorted(story.bad)}, found {[(e.label, e.reason) for e in found.bad]}")
    wrong += _late_differences(story, found.late, catalogue)
    if not story.steps:
        wrong.append("the story has no input")
    return wrong


def run_on(one: Ready, engine: str) -> Found:
    """What an engine in this process, or the oracle, makes of a story."""
    if one.story.is_live and engine == "local":
        return _run_live(one)
    return _run_whole(one, engine)


def on_time(one: Ready) -> tuple[list[dict[str, Any]], list[Event]]:
    """The events of a story that are in time, and those that are late, if it stands in the order of arrival."""
    program, story = one.program, one.story
    arrivals = _arrivals(program, story)
    late = late_arrivals(arrivals, program.catalogue) if story.is_live else []
    given = [step.event for k, step in enumerate(story.steps) if step.event is not None and k not in late]
    return given, [e for k in late if (e := arrivals[k].event)]


def _run_whole(one: Ready, engine: str) -> Found:
    """All of the input at once, without what is late."""
    program = one.program
    given, late = on_time(one)
    run = program.run_all(given, engine=engine, tables=one.tables, until=one.until, emit=one.emit, allow_unbounded=True)
    return Found([*run.answers, *run.messages], None, run.bad, late)


def _arrivals(program: Program, story: Story) -> list[Arrival]:
    """The rows as events that arrive; bad ones do not."""
    unit, local = program.catalogue.unit, program.catalogue.local
    found: list[Arrival] = []
    for step, now in zip(story.steps, clock_of(story, unit), strict=True):
        event = read_object(step.event, program.catalogue) if step.event is not None else None
        closes = None if step.advance is None else read_time(step.advance, unit, local)
        found.append(Arrival(event if isinstance(event, Event) else None, closes, now))
    return found


def clock_of(story: Story, unit: int) -> list[int]:
    """What the clock says at each row."""
    found: list[int] = []
    for step in story.steps:
        found.append(read_time(step.now, unit) if step.now is not None else found[-1] if found else 0)
    return found


def _run_live(one: Ready) -> Found:
    """Row by row, by the clock of the story."""
    program, story = one.program, one.story
    clock = clock_of(story, program.catalogue.unit)
    now = clock[0] if clock else 0
    live = program.engine(now=lambda: now, emit=one.emit, tables=one.tables, allow_unbounded=True)
    answers: list[tuple[int, dict[str, Any]]] = []
    for number, step in enumerate(story.steps, 1):
        now = clock[number - 1]
        given = live.tick()
        given += live.send(step.event) if step.event is not None else []
        given += live.advance(step.advance) if step.advance is not None else []
        answers += [(number, answer) for answer in given]
    answers += [(0, answer) for answer in live.finish()]
    late = [late.event for late in live.late]
    return Found([answer for _, answer in answers], [number for number, _ in answers], live.bad, late)


def typed_rows(schema: Schema, rows: Rows) -> list[dict[str, Any]]:
    """The rows of a table as objects, each cell as its attribute is declared."""
    kinds = [(column, kind) for column, (_, kind) in zip(schema.columns, schema.attributes or (), strict=True)]
    return [{column: _cell(row[column], kind) for column, kind in kinds} for row in rows]


def _cell(cell: str, declared: str) -> Any:
    plain = cell.strip("`")
    if not plain:
        return None
    if declared == "string" and not plain.startswith('"'):
        return plain
    try:
        return json.loads(plain)
    except ValueError:
        return plain


def canonical(answer: Mapping[str, Any], catalogue: Catalogue) -> Key:
    """What an answer is compared by, however it is written."""
    plain = {k: v for k, v in answer.items() if k not in ("recipient", "transport")}
    event = read_object(plain, replace(catalogue, events={}))
    if isinstance(event, BadEvent):
        return ("unreadable", event.reason, json.dumps(dict(answer), default=str))
    return (event.key, event.positional, answer.get("recipient"))


def _differences(story: Story, found: Found, catalogue: Catalogue) -> list[str]:
    """The answers that are missing, those that are too much, and those that come at another row, as JSON."""
    after: Sequence[int | None] = found.after if found.after is not None else [None] * len(found.answers)
    wanted = {canonical(a, catalogue): (a, row) for a, row in zip(story.answers, story.after, strict=True)}
    given = {
        canonical(a, catalogue): (a, row)
        for a, row in zip(found.answers, after, strict=True)
        if story.emit is None or a["event"] in story.emit
    }
    wrong = [f"missing:  {json.dumps(a, default=float)}" for k, (a, _) in wanted.items() if k not in given]
    wrong += [f"too much: {json.dumps(a, default=float)}" for k, (a, _) in given.items() if k not in wanted]
    for k, (answer, row) in wanted.items():
        came = given[k][1] if k in given else None
        if row is not None and came is not None and row != came:
            text = json.dumps(answer, default=float)
            wrong.append(f"given {_row(came)}, and not {_row(row)}: {text}")
    return wrong


def _row(number: int) -> str:
    return f"after row {number}" if number else "at the end"


def _late_differences(story: Story, late: list[Event], catalogue: Catalogue) -> list[str]:
    expected = Counter((e["event"], *_times(e["time"], catalogue)) for e in story.late)
    found = Counter((e.term.label, e.time.begin, e.time.end) for e in late)
    if expected == found:
        return []
    described = sorted(f"{e.term.label} at {e.time.end / catalogue.unit:g}" for e in late)
    return [f"late events: expected {sorted(e['event'] for e in story.late)}, found {described}"]


def _times(time: Any, catalogue: Catalogue) -> tuple[int, int]:
    begin, end = time if isinstance(time, list) else (time, time)
    return read_time(begin, catalogue.unit, catalogue.local), read_time(end, catalogue.unit, catalogue.local)
