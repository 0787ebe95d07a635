"""This module shows that answers have the types that the rules let expect, for stories and random programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import ephemera
from ephemera.base.span import Source
from ephemera.formats.decode_arrow import Read
from ephemera.formats.encode_arrow import Writer
from ephemera.formats.encode_typed_arrow import Counting, Layout, UnlikeType, layout
from ephemera.kernels.event_columns import of_events
from ephemera.pipeline import check
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.atoms import attributes_term
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Time, Value
from tests.plans.meaning import of_story
from tests.strategies.cases import Case, cases

STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))


def times(value: Value) -> Iterator[int]:
    if isinstance(value, Time):
        yield value.microseconds
    elif isinstance(value, Term):
        for child in value.children:
            yield from times(child)


def judge(rules: Ruleset, events: Sequence[Event], world: World) -> tuple[Layout, int]:
    """Compares answers in columns that are known before with those that are chosen after; how many there are."""
    catalogue = rules.resolved.catalogue
    unit = catalogue.unit
    days = [day for own in world.calendars.values() for day in own]
    whole = all(stamp % unit == 0 for e in events for stamp in (e.time.begin, e.time.end))
    counting = Counting(whole, whole and not any(t % unit for e in events for t in times(e.term)))
    columns = layout(rules, counting, days)
    outcome = evaluate(rules, events, world)
    found = sorted(outcome.events, key=lambda e: e.term.label)
    try:
        shaped = of_events(found, catalogue.attributes)
        parts = [columns.batch(part) for part in shaped]
    except UnlikeType:
        assert any(e.term.label in catalogue.derived and e.term.label not in catalogue.events for e in events)
        return columns, 0
    if not parts:
        return columns, 0
    table = pa.Table.from_batches(parts)
    writer = Writer(rules, Read(numbers=columns.counts, plain_numbers=columns.plain))
    # Where some rule derives `p(x, y)`, `p [ 1, 2 ]` of another is such an event, too, and has these columns.
    flat = [p.arity is not None and columns.names.are_flat(p.label, p.arity) for p in shaped]
    written = [replace(e, positional=is_flat) for p, is_flat in zip(shaped, flat, strict=True) for e in p.events()]
    cells = [writer.cells(e, None, columns.counts) for e in written]
    expected = [{n: expected_cell(v, columns, writer, n) for n, v in row.items() if v is not None} for row in cells]
    assert told(found_rows(table, columns)) == told(expected)
    return columns, table.num_rows


def found_rows(table: pa.Table, columns: Layout) -> list[dict[str, Any]]:
    own = [n for n in table.column_names if n not in ("event", "begin", "end")]
    return [
        {n: number(json.loads(row[n]) if columns.columns[n] == "json" else row[n]) for n in own if row[n] is not None}
        for row in table.to_pylist()
    ]


def expected_cell(value: Value, columns: Layout, writer: Writer, name: str) -> Any:
    if not isinstance(value, Time) or columns.columns[name] == "json":
        return number(writer.as_json(value))
    if columns.columns[name] == "int":
        return number(value.microseconds // columns.catalogue.unit)
    return pa.scalar(value.microseconds, pa.timestamp("us", tz="UTC")).as_py()


def number(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def told(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_answers_of_stories_have_the_types_that_rules_let_expect(path: Path) -> None:
    judge(*of_story(path))


@settings(max_examples=40)
@given(cases())
def test_answers_of_random_programs_have_the_types_that_rules_let_expect(case: Case) -> None:
    checked = check(Source("random.eq", case.program))
    assert checked.rules is not None
    judge(checked.rules, case.events, case.world)


@pytest.mark.parametrize(
    ("head", "held"),
    [
        ("x", "int"),
        ("x + 1", "int"),
        ("x / 2", "float"),
        ("x * y", "float"),
        ("y", "float"),
        ("concat(s, x)", "string"),
        ("b", "bool"),
        ("t", "int"),
        ("t + 1", "int"),
        ("t + 1.5", "time"),
        ("t - begin(i)", "int"),
        ("begin(i)", "int"),
        ("duration(i)", "int"),
        ("any", "json"),
        ("any + 1", "json"),
        ("any * 2", "float"),
        ("12", "int"),
        ("2.0", "float"),
        ('"text"', "string"),
        ("null", "string"),
    ],
)
def test_types_follow_from_declarations_and_expressions(head: str, held: str) -> None:
    text = f"""
    EVENT a(x: int, y: float, s: string, b: bool, t: time, any: any);
    p({head}) <- i: a(x, y, s, b, t, any);
    """
    rules = ephemera.compile(text)._rules
    assert list(layout(rules, Counting(True, True)).columns.values()) == [held]


def test_a_variable_that_events_share_has_the_narrowest_of_their_types() -> None:
    text = """
    EVENT a(x: int); EVENT b(x: float); EVENT c(x: any);
    p(x) <- i: a(x), j: b(x), {i, j} within 1;
    q(y) <- i: b(y), j: c(y), {i, j} within 1;
    r(z) <- i: p(z), j: q(z), {i, j} within 1;
    """
    found = layout(ephemera.compile(text)._rules, Counting(True, True)).columns
    assert found == {"x": "int", "y": "float", "z": "int"}


def test_columns_hold_what_terms_of_the_same_label_are_built_of() -> None:
    text = """
    DETECT p [ var X + 1, var Y ] ON event i: b {{ x { var X }, y { var Y } }} END
    p(begin(w), x) <- i: b(x, _), w: shorten-begin(i, 1);
    """
    checked = check(Source("both.eq", f"EVENT b(x: int, y: int) LASTS ANY;{text}"))
    assert checked.rules is not None
    b = attributes_term("b", [("x", 1), ("y", 2)])
    _, count = judge(checked.rules, [Event(b, Interval(0, 5_000_000), positional=True)], World())
    assert count == 2
