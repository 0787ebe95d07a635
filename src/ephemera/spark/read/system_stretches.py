"""This module reads systems over history on Spark: a topic of Kafka up to its end, or a table, in stretches.

Which stretches there are is asked once, when the run begins. Each is read in a task, by the client and the decoders of
the local engine, so what is read, and what is bad and why, is as there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.registry import declared_columns, in_stretches
from ephemera.connect.systems.stretches import InStretches, Stretch
from ephemera.engine.cluster.message import Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.check_columns import Offer
from ephemera.formats.decode import Decoder, Noticed
from ephemera.formats.decoded import Decoded
from ephemera.formats.reading import Keys
from ephemera.kernels.event_columns import Events
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Catalogue
from ephemera.spark.read.text_files import RoutedEvents
from ephemera.spark.runtime.exchange import SCHEMA, batches
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow

_COLUMNS = "partition string, first string, last string, counts boolean"
_LOOKED_AT = 12
"""So many stretches are looked at, each at its beginning."""


@dataclass(frozen=True, slots=True)
class SystemPlace:
    """Where a system is, as tasks are told of it."""

    name: str
    only: str | None
    columns: tuple[str, ...]
    """The columns that programs declare."""

    def opened(self) -> InStretches:
        """The system itself; raises what is wrong with its address."""
        return in_stretches(self.name, self.only, frozenset(self.columns))


def system_at(name: str, only: str | None, catalogues: Sequence[Catalogue]) -> SystemPlace:
    """The system at an address, for programs that declare these."""
    return SystemPlace(name, only, tuple(sorted(declared_columns(catalogues))))


class SystemDecoder:
    """Decodes what comes from a system, for one program."""

    def __init__(self, compiled: Compiled, keys: Keys, only: str | None, *, lenient: bool) -> None:
        self._compiled = compiled
        self._lenient = lenient
        self._noticed = Noticed(keys)
        self._decoder = Decoder(compiled, self._noticed, only)
        self._offers = 0

    def decode(self, arrived: Arrived) -> Decoded:
        """Some messages or rows; raises what is wrong with their columns."""
        found = self._decoder.decode(arrived.batch)
        if arrived.place is not None and found.bad:
            found.place_bad(arrived.place)
        if len(self._noticed.offers) > self._offers:
            self._offers = len(self._noticed.offers)
            self._noticed.check(self._compiled, lenient=self._lenient)
        return found


@dataclass(frozen=True, slots=True)
class SystemStretches:
    """What a system held when the run began."""

    place: SystemPlace
    stretches: tuple[Stretch, ...]
    lenient: bool = False

    def offers(self) -> list[Offer]:
        """What columns a table has is seen where it is read."""
        return []

    def counts(self, compiled: Compiled) -> bool:
        """Whether it writes times as numbers, by the first good event."""
        for found in self._decoded(compiled, self.stretches):
            if found.as_numbers is not None:
                return found.as_numbers
        return True

    def sampled(self, spread: DistributedProgram) -> list[tuple[Events, float]]:
        """Some events, and for how many each of them stands."""
        step = -(-len(self.stretches) // _LOOKED_AT) or 1
        chosen = self.stretches[::step]
        looks = [next(self._decoded(spread.compiled, [stretch]), Decoded()) for stretch in chosen]
        return [(part, float(step)) for found in looks for part in found.parts]

    def _decoded(self, compiled: Compiled, stretches: Sequence[Stretch]) -> Iterator[Decoded]:
        system = self.place.opened()
        decoder = SystemDecoder(compiled, Keys(compiled.physical), self.place.only, lenient=True)
        for stretch in stretches:
            yield from map(decoder.decode, system.read(stretch))

    def routed(
        self, spark: SparkSession, spreads: Sequence[DistributedProgram], wanted: Mapping[str, frozenset[str]]
    ) -> DataFrame:
        """Their events, on their way."""
        return map_in_arrow(
            self._frame(spark), FromStretches(tuple(spreads), dict(wanted), self.place, self.lenient), SCHEMA
        )

    def ends(self, spark: SparkSession, compiled: Compiled) -> list[int]:
        """The first and the last end of their events."""
        found = map_in_arrow(self._frame(spark), _Ends(compiled, self.place), "first bigint, last bigint")
        row = found.agg(f.min("first"), f.max("last")).first()
        return [int(v) for v in (row or ()) if v is not None]

    def _frame(self, spark: SparkSession) -> DataFrame:
        rows = [(p.partition, str(p.first), str(p.last), isinstance(p.first, int)) for p in self.stretches]
        return spark.createDataFrame(rows, _COLUMNS).repartition(max(1, len(rows)))


def system_stretches(place: SystemPlace, *, lenient: bool) -> SystemStretches:
    """What a system holds now."""
    return SystemStretches(place, tuple(place.opened().history()), lenient)


def _stretches(given: Iterator[pa.RecordBatch]) -> Iterator[Stretch]:
    for batch in given:
        for row in batch.to_pylist():
            kind = int if row["counts"] else str
            yield Stretch(row["partition"], kind(row["first"]), kind(row["last"]))


@dataclass(frozen=True, slots=True)
class FromStretches:
    """Reads stretches, and routes their events to programs."""

    spreads: tuple[DistributedProgram, ...]
    wanted: Mapping[str, frozenset[str]]
    place: SystemPlace
    lenient: bool = False

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches(told_by("read", self._routed(given)))

    def _routed(self, given: Iterator[pa.RecordBatch]) -> Iterator[Shipment]:
        routes = [RoutedEvents(spread, self.wanted) for spread in self.spreads]
        decoders = [
            SystemDecoder(spread.compiled, route.counts.keys, self.place.only, lenient=self.lenient)
            for spread, route in zip(self.spreads, routes, strict=True)
        ]
        system = self.place.opened()
        for stretch in _stretches(given):
            for arrived in system.read(stretch):
                for decoder, route in zip(decoders, routes, strict=True):
                    yield from route.add(decoder.decode(arrived))
        for route in routes:
            yield from route.close()


@dataclass(frozen=True, slots=True)
class _Ends:
    """The first and the last end of the events of stretches."""

    compiled: Compiled
    place: SystemPlace

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = SystemStretches(self.place, ())._decoded(self.compiled, list(_stretches(given)))
        for ends in (one.ends for one in found):
            if ends is not None:
                yield pa.RecordBatch.from_pydict({"first": [ends[0]], "last": [ends[1]]})
