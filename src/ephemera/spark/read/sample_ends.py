"""This module looks at when some events of an input end, before all of it is read.

Rules that are cut along time are cut so that each slice has about as many events. For that some ends are enough, and
where files can be opened anywhere, they are looked up without a job of Spark. What cannot be read gives no ends, and
whoever reads it says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from ephemera.connect.found_files import is_packed
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.decode import Decoder, Noticed
from ephemera.formats.decode_arrow import Reader
from ephemera.formats.reading import Keys
from ephemera.kernels.columns import Ints
from ephemera.kernels.event_columns import END as ENDS
from ephemera.kernels.event_columns import Events
from ephemera.physical.plan import Compiled
from ephemera.spark.read.flat_events import END, REST, Form, ScannedEvents
from ephemera.spark.read.parquet import FromParquet, GroupsOfRows
from ephemera.spark.read.scan import apart, read_rest
from ephemera.spark.read.text_files import FromText, TextFiles
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.terms.events import Event

_UNITS, _ROWS = 24, 2_048
"""So many groups of rows are opened at most, and so many rows of each are read."""
_BLOCKS, _BLOCK = 48, 1 << 16
"""At so many places text files are opened at most, and so many bytes are read there."""
_OF_BATCH = 32
"""So many rows of each of Spark's batches are looked at."""
_QUANTILES = 400
Source = GroupsOfRows | TextFiles | ScannedEvents
SampledEnds = tuple[Ints, float]
"""Some ends, and about how many events there are."""


def sample_ends(source: Source, spread: DistributedProgram, wanted: Mapping[str, frozenset[str]]) -> SampledEnds:
    """Some ends of the events that are wanted of a source."""
    try:
        match source:
            case GroupsOfRows():
                return _of_parquet(source, spread, dict.fromkeys(wanted, frozenset[str]()))
            case TextFiles():
                return _of_text(source, spread)
            case ScannedEvents():
                return _of_frame(source, spread.compiled)
    except (OSError, pa.ArrowException):
        return _ends([]), 0


def _ends(parts: Sequence[Events]) -> Ints:
    return np.concatenate([np.empty(0, dtype=np.int64), *(part.batch[ENDS] for part in parts)])


def _of_parquet(source: GroupsOfRows, spread: DistributedProgram, wanted: Mapping[str, frozenset[str]]) -> SampledEnds:
    """Rows from all over some groups of them."""
    opener = FromParquet([spread], wanted, only=source.only)
    compiled = spread.compiled.carrying(source.only)
    chosen = source.units[:: -(-len(source.units) // _UNITS)]
    parts: list[Events] = []
    count = 0
    for path, group in chosen:
        tables = [table for table, _ in opener.tables(path, group)]
        rows = sum(table.num_rows for table in tables)
        count += rows
        for table in tables:
            some = table.take(np.arange(0, table.num_rows, -(-rows // _ROWS)))
            parts += Reader(some, compiled).read().parts
    return _ends(parts), count * len(source.units) / max(len(chosen), 1)


def _of_text(source: TextFiles, spread: DistributedProgram) -> SampledEnds:
    """Lines from places at equal distances; packed files cannot be opened in the middle."""
    reader = FromText((spread,), {}, source.format, {p: names for p, (names, _) in source.headers.items()}, source.only)
    sizes = {path: Path(path).stat().st_size for path in source.paths if not is_packed(path)}
    step = max(-(-sum(sizes.values()) // _BLOCKS), _BLOCK)
    decoder = Decoder(spread.compiled, Noticed(Keys(spread.plan)), source.only)
    parts: list[Events] = []
    read = 0
    for path, size in sizes.items():
        first = source.headers[path][1] if path in source.headers else 0
        for at in range(first, size, step):
            for batch in reader.read(path, at, min(at + _BLOCK, size)):
                parts += decoder.decode(batch).parts
            read += min(_BLOCK, size - at)
    ends = _ends(parts)
    return ends, len(ends) * sum(sizes.values()) / max(read, 1)


def _of_frame(source: ScannedEvents, compiled: Compiled) -> SampledEnds:
    """Quantiles of the ends of some rows of all that Spark reads."""
    used = [END, REST] if source.has_columns else [REST]
    looked = _LookedAt(compiled.carrying(source.only), source.form)
    found = map_in_arrow(source.frame.select(*used), looked, "end bigint, count double")
    quantiles = f.percentile_approx("end", [k / _QUANTILES for k in range(_QUANTILES + 1)], 10_000)
    row = found.agg(quantiles.alias("ends"), f.sum("count").alias("count")).first()
    if row is None or row["ends"] is None:
        return _ends([]), 0
    return np.array(row["ends"], dtype=np.int64), float(row["count"])


@dataclass(frozen=True, slots=True)
class _LookedAt:
    """The ends of some rows of each batch, each with how many events it stands for."""

    compiled: Compiled
    form: Form

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in given:
            step = -(-batch.num_rows // _OF_BATCH) or 1
            vouched, rest = apart(batch.take(pa.array(range(0, batch.num_rows, step))), self.form)
            ends = [e.time.end for e in read_rest(self.compiled, self.form, rest) if isinstance(e, Event)]
            if vouched.num_rows:
                ends += vouched.column(END).to_pylist()
            if ends:
                yield pa.RecordBatch.from_pydict({"end": ends, "count": [float(step)] * len(ends)})
