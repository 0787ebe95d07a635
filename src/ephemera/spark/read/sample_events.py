"""This module looks at some events of an input, before all of it is read.

What is cut along time is cut so that each slice has about as many events, and is cut because one place has more than
its share. For that some events are enough, and where files can be opened anywhere, they are looked up without a job of
Spark. What cannot be read gives no events, and whoever reads it says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from ephemera.connect.found_files import is_packed
from ephemera.engine.cluster.message import PackedEvents, pack, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.decode import Decoder, Noticed
from ephemera.formats.decode_arrow import Reader
from ephemera.formats.reading import Keys
from ephemera.kernels.event_columns import Events, of_events
from ephemera.spark.read.flat_events import ScannedEvents
from ephemera.spark.read.parquet import FromParquet, GroupsOfRows
from ephemera.spark.read.route_rows import FromSource, numbered
from ephemera.spark.read.scan import apart, read_rest
from ephemera.spark.read.system_stretches import SystemStretches
from ephemera.spark.read.text_files import FromText, TextFiles
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.terms.events import Event

_UNITS, _ROWS = 24, 2_048
"""So many groups of rows are opened at most, and so many rows of each are read."""
_BLOCKS, _BLOCK = 48, 1 << 16
"""At so many places text files are opened at most, and so many bytes are read there."""
_ENOUGH = 12
"""Where so many groups are opened, the rows where they begin are enough to say where in time events are."""
_GLANCE = 4
"""At a glance so many times fewer of these are opened."""
_OF_BATCH, _OF_TASK = 32, 1_024
"""So many rows of each of Spark's batches are looked at, and fewer of later ones; that of the n-th has an n-th of the
latter."""
_LOOKED = pa.schema([("weight", pa.float64()), ("label", pa.string()), ("arity", pa.int32()), ("load", pa.binary())])
Source = GroupsOfRows | TextFiles | SystemStretches | ScannedEvents
Sampled = list[tuple[Events, float]]
"""Some events, and for how many each of them stands."""


def sample_events(
    source: Source, spread: DistributedProgram, wanted: Mapping[str, frozenset[str]], *, at_a_glance: bool = False
) -> Sampled:
    """Some of the events that are wanted of a source.

    A glance tells which keys are frequent, but not where in time events are, and nothing of what Spark has to scan.
    """
    try:
        match source:
            case GroupsOfRows():
                return _of_parquet(source, spread, wanted, at_a_glance=at_a_glance)
            case TextFiles():
                return _of_text(source, spread, _BLOCKS // _GLANCE if at_a_glance else _BLOCKS)
            case SystemStretches():
                return [] if at_a_glance else source.sampled(spread)
            case ScannedEvents():
                return [] if at_a_glance else _of_frame(source, spread)
    except (OSError, pa.ArrowException):
        return []


def _of_parquet(
    source: GroupsOfRows, spread: DistributedProgram, wanted: Mapping[str, frozenset[str]], *, at_a_glance: bool
) -> Sampled:
    """Rows from all over some groups of them, or from where they begin."""
    opener = FromParquet([spread], wanted, only=source.only)
    compiled = spread.compiled.carrying(source.only)
    chosen = source.units[:: -(-len(source.units) // (_UNITS // _GLANCE if at_a_glance else _UNITS))]
    is_whole = len(chosen) < _ENOUGH and not at_a_glance
    sampled: Sampled = []
    for path, group in chosen:
        tables = list(opener.tables(path, group) if is_whole else islice(opener.tables(path, group, 2 * _ROWS), 1))
        if not tables:
            continue
        step = -(-sum(table.num_rows for table, _ in tables) // _ROWS)
        seen = int(tables[-1][1][-1]) + 1  # rows of the group, other events included
        weight = step * pq.read_metadata(path).row_group(group).num_rows / seen * len(source.units) / len(chosen)
        for table, _ in tables:
            some = table.take(np.arange(0, table.num_rows, step))
            sampled += [(part, weight) for part in Reader(some, compiled).read().parts]
    return sampled


def _of_text(source: TextFiles, spread: DistributedProgram, blocks: int) -> Sampled:
    """Lines from places at equal distances; packed files cannot be opened in the middle."""
    reader = FromText((spread,), {}, source.format, {p: names for p, (names, _) in source.headers.items()}, source.only)
    sizes = {path: Path(path).stat().st_size for path in source.paths if not is_packed(path)}
    step = max(-(-sum(sizes.values()) // blocks), _BLOCK)
    decoder = Decoder(spread.compiled, Noticed(Keys(spread.plan)), source.only)
    parts: list[Events] = []
    read = 0
    for path, size in sizes.items():
        first = source.headers[path][1] if path in source.headers else 0
        for at in range(first, size, step):
            for batch in reader.read(path, at, min(at + _BLOCK, size)):
                parts += decoder.decode(batch).parts
            read += min(_BLOCK, size - at)
    return [(part, sum(sizes.values()) / max(read, 1)) for part in parts]


def _of_frame(source: ScannedEvents, spread: DistributedProgram) -> Sampled:
    """Some rows of all that Spark reads."""
    labels = sorted(spread.compiled.rules.resolved.catalogue.events)
    reader = FromSource([spread], source.form, dict(source.held), labels, source.only)
    rows = map_in_arrow(numbered(source, labels), _LookedAt(reader), from_arrow_schema(_LOOKED)).collect()
    catalogue = spread.plan.catalogue
    return [(unpack(PackedEvents(r.label, r.arity, 0, 0, bytes(r.load)), catalogue), r.weight) for r in rows]


@dataclass(frozen=True, slots=True)
class _LookedAt:
    """Some events of each batch, with for how many each of them stands."""

    reader: FromSource

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (spread,) = self.reader.spreads
        for number, batch in enumerate(given, 1):
            step = -(-batch.num_rows // max(1, min(_OF_BATCH, _OF_TASK // number))) or 1
            vouched, rest = apart(batch.take(pa.array(range(0, batch.num_rows, step))), self.reader.form)
            parts = list(self.reader.events(vouched)) if vouched.num_rows else []
            read = read_rest(spread.compiled.carrying(self.reader.only), self.reader.form, rest)
            good = [event for event in read if isinstance(event, Event)]
            for part in [*parts, *of_events(good, spread.plan.catalogue.attributes)]:
                packed = pack(part)
                row = {"weight": float(step), "label": part.label, "arity": part.arity, "load": packed.load}
                yield pa.RecordBatch.from_pylist([row], schema=_LOOKED)
