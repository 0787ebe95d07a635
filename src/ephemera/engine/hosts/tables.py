"""This module runs programs on what people have in hand: a list of events, or a table.

Arrow, pandas, Polars and DuckDB go in, and the same kind comes out.

A table has a column `event` (or the program one type of input), `time` or `begin` and `end`, and a column for each
attribute; one that is missing is an error, unless the run is lenient: then it is null. Whole numbers count the
program's time unit. Timestamps are instants, in the program's zone unless they have one of their own, and what is finer
than a microsecond is floored.

Rows of declared types go from columns to columns. Only what that cannot vouch for is read row by row, exactly as the
same JSON object would be: other types and undeclared labels, and whatever may be bad, which gets its reason there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import pyarrow as pa

from ephemera.engine.hosts.batch import BatchRun, Evaluate, Run, parts_of, run_of, run_reading
from ephemera.formats.answer_order import AnswerPart
from ephemera.formats.check_columns import check_columns
from ephemera.formats.decode_arrow import BadRow, Read, Reader, bad_events, offer_of
from ephemera.formats.encode_arrow import Writer
from ephemera.formats.encode_json import json_objects
from ephemera.formats.json_events import bad_of_close
from ephemera.formats.reading import Reading, several
from ephemera.physical.plan import Compiled
from ephemera.rules.outcome import DeadLetter, Outcome, World

_KINDS = frozenset(
    "pyarrow.Table pyarrow.RecordBatch pyarrow.RecordBatchReader pandas.DataFrame polars.DataFrame polars.LazyFrame "
    "duckdb.DuckDBPyRelation".split()
)


@dataclass(frozen=True, slots=True)
class TableRun:
    """What came of a run: answers and messages in a table, bad rows, and heads that had no value."""

    answers: Any
    bad: list[BadRow]
    outcome: Outcome
    """What came of it besides answers."""
    given: pa.Table
    read: Read
    messages: list[AnswerPart]
    said: tuple[str, ...] = ()
    """What is to be said of the input, such as that times had no zone."""

    @property
    def undefined(self) -> list[DeadLetter]:
        return self.outcome.dead_letters


def is_table(given: object) -> bool:
    """Whether something is a table that programs run on."""
    return _kind(given) is not None


def run_given(
    compiled: Compiled,
    events: Any,
    world: World,
    evaluate: Evaluate | None = None,
    *,
    lenient: bool = False,
) -> Run:
    """All that comes of events, or of the rows of a table."""
    if not is_table(events):
        reading = Reading(compiled)
        for event in several(events):
            reading.add(event)
        return run_reading(reading, world, evaluate)
    table = run_table(compiled, events, world, evaluate, lenient=lenient)
    catalogue = compiled.rules.resolved.catalogue
    close = bad_of_close(table.outcome.close, catalogue, as_numbers=table.read.numbers)
    bad = [*bad_events(table.bad, table.given), *close]
    labels = [part.label for part in table.read.parts]
    messages = json_objects(table.messages, compiled.rules.resolved.catalogue, as_numbers=table.read.numbers)
    found = run_of(compiled, table.answers, messages, table.outcome, bad, labels, table.given.num_rows)
    return replace(found, said=table.said)


def run_table(
    compiled: Compiled,
    given: Any,
    world: World,
    evaluate: Evaluate | None = None,
    *,
    lenient: bool = False,
) -> TableRun:
    """All that a program derives from the rows of a table, as a table of the same kind.

    `evaluate` runs the events instead of the engine. A column that is missing is an error, or null if that is lenient.
    """
    local = compiled.rules.resolved.catalogue.local
    assumed = local.assumed
    table = to_arrow(given)
    check_columns([offer_of(table, "the table")], compiled.rules.resolved.catalogue, lenient=lenient)
    read = Reader(table, compiled).read()
    rules = compiled.rules
    if evaluate is not None:
        outcome = evaluate([event for part in read.parts for event in part.events()], world)
        answers = parts_of(outcome, rules.resolved.catalogue.attributes)
    else:
        batch = BatchRun(compiled, (), world, read.parts)
        batch.go_through(batch.slices())
        outcome, answers = batch.rest(), batch.answers
    asked = [part for part in answers if compiled.physical.gives(part.events.label)]
    written = Writer(rules, read, compiled.physical.emit).table(asked)
    messages = [part for part in asked if part.message is not None]
    bad = sorted(read.bad, key=lambda bad: bad.row)
    return TableRun(like(given, written), bad, outcome, table, read, messages, local.note_since(assumed))


# ---- kinds of tables ---------------------------------------------------------------------------------------


def _kind(given: object) -> str | None:
    names = (f"{c.__module__.partition('.')[0]}.{c.__name__}" for c in type(given).__mro__)
    return next((name for name in names if name in _KINDS), None)


def to_arrow(given: Any) -> pa.Table:
    """A table of any kind as one of Arrow."""
    match _kind(given):
        case "pandas.DataFrame":
            try:
                return pa.Table.from_pandas(given, preserve_index=False)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise ValueError(f"a column holds values of several kinds; give each column one: {error}") from None
        case "polars.LazyFrame":
            return given.collect().to_arrow()
        case "polars.DataFrame":
            return given.to_arrow()
        case "duckdb.DuckDBPyRelation":
            return given.to_arrow_table()
        case "pyarrow.RecordBatchReader":
            return given.read_all()
        case "pyarrow.RecordBatch":
            return pa.Table.from_batches([given])
        case "pyarrow.Table":
            return given
        case _:
            raise TypeError(f"a {type(given).__name__} is no table; give Arrow, pandas, Polars or DuckDB")


def like(given: Any, answers: pa.Table) -> Any:
    """The answers as a table of the given one's kind; integers stay such where some are null."""
    match _kind(given):
        case "pandas.DataFrame":
            return answers.to_pandas(integer_object_nulls=True)
        case "polars.LazyFrame":
            return import_module("polars").from_arrow(answers).lazy()
        case "polars.DataFrame":
            return import_module("polars").from_arrow(answers)
        case "duckdb.DuckDBPyRelation":
            return _relation(given, answers)
        case "pyarrow.RecordBatchReader":
            return answers.to_reader()
        case "pyarrow.RecordBatch":
            return pa.RecordBatch.from_arrays([c.combine_chunks() for c in answers.columns], schema=answers.schema)
        case _:
            return answers


def _relation(given: Any, ephemera_answers: pa.Table) -> Any:  # noqa: ARG001 - DuckDB finds the table by its name
    """A relation of the same connection, so that it can be joined with others."""
    return given.query("ephemera_events", "SELECT * FROM ephemera_answers")
