"""This module writes answers by columns: `event`, `begin`, `end`, and one for each attribute, as for Arrow tables.

What a column holds is known when all answers are: so they are looked at first, then written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from ephemera.engine.cluster.message import Answers, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.addresses import fixed_address
from ephemera.formats.answer_kinds import SeenKinds, batch_of, cells_of, schema_of
from ephemera.formats.decode_arrow import Read
from ephemera.formats.encode_arrow import Writer
from ephemera.formats.encode_typed_arrow import Counting, Held, layout
from ephemera.kernels.columns import Column
from ephemera.kernels.event_columns import Events
from ephemera.spark.runtime.exchange import answers_of
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow


def as_columns(answers: DataFrame, spreads: Sequence[DistributedProgram], *, as_numbers: bool) -> DataFrame:
    """Packed answers by columns."""
    own = {s.number: s for s in spreads}
    seen = SeenKinds()
    for name, kind in map_in_arrow(answers, Look(own, as_numbers), "name string, kind string").distinct().collect():
        seen.add(name, kind)
    writers = [_writer(s, as_numbers=as_numbers) for s in spreads]
    expected: dict[str, Held] = {}
    for spread in spreads:
        days = [day for given in spread.world.calendars.values() for day in given]
        expected |= layout(spread.compiled.rules, Counting(as_numbers, as_numbers), days, spread.plan.emit).columns
    kinds = seen.columns(writers, expected, stamps=as_numbers, attributes=as_numbers)
    return map_in_arrow(answers, ToColumns(own, as_numbers, kinds), from_arrow_schema(schema_of(kinds)))


def _writer(spread: DistributedProgram, *, as_numbers: bool) -> Writer:
    return Writer(spread.compiled.rules, Read(numbers=as_numbers, plain_numbers=as_numbers), spread.plan.emit)


# ---- in workers ----------------------------------------------------------------------------------------------


def _cells(
    answers: Answers, spread: DistributedProgram, writer: Writer, *, as_numbers: bool
) -> tuple[Events, dict[str, Column]]:
    """The values of some answers by their columns."""
    resolved = spread.compiled.rules.resolved
    events = unpack(answers.events, resolved.catalogue)
    head = resolved.rules[answers.rule - 1].head if answers.rule else None
    return events, cells_of(events, fixed_address(head), writer, numbers=as_numbers)


@dataclass(frozen=True, slots=True)
class Look:
    """Says what kinds of values each column holds."""

    spreads: Mapping[int, DistributedProgram]
    as_numbers: bool

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", self._seen(answers_of(given)))

    def _seen(self, given: Iterable[Answers]) -> Iterator[pa.RecordBatch]:
        writers = {n: _writer(s, as_numbers=self.as_numbers) for n, s in self.spreads.items()}
        seen = SeenKinds()
        for answers in given:
            spread = self.spreads[answers.program]
            events, cells = _cells(answers, spread, writers[answers.program], as_numbers=self.as_numbers)
            seen.look(events, cells, spread.compiled.rules.resolved.catalogue.unit)
        both = [(name, kind) for name, kinds in seen.found.items() for kind in sorted(kinds)]
        if both:
            yield pa.RecordBatch.from_pydict({"name": [n for n, _ in both], "kind": [k for _, k in both]})


@dataclass(frozen=True, slots=True)
class ToColumns:
    """Makes columns of answers."""

    spreads: Mapping[int, DistributedProgram]
    as_numbers: bool
    kinds: Mapping[str, str]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", self._batches(answers_of(given)))

    def _batches(self, given: Iterable[Answers]) -> Iterator[pa.RecordBatch]:
        writers = {n: _writer(s, as_numbers=self.as_numbers) for n, s in self.spreads.items()}
        for answers in given:
            spread, writer = self.spreads[answers.program], writers[answers.program]
            events, cells = _cells(answers, spread, writer, as_numbers=self.as_numbers)
            yield batch_of(events, cells, self.kinds, spread.compiled.rules.resolved.catalogue.unit, writer)
