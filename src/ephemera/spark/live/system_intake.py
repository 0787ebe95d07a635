"""This module reads stretches of systems in the tasks of a live query, and decodes them where they are let in.

Each stretch is of one partition, so late events are told by the bound of their partition. The rows that Spark gives are
shares: all of a batch are there once, each in some task, and with a share go those stretches that have its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ephemera.analysis.sources import UNNAMED
from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.stretches import Stretch
from ephemera.engine.cluster.message import Shipment
from ephemera.engine.time.event_time import sources_of
from ephemera.rules.nodes import Catalogue
from ephemera.spark.live.intake import Entrance, Entrances
from ephemera.spark.read.parquet import pruned
from ephemera.spark.read.system_stretches import SystemDecoder, SystemPlace

SHARES = 16
"""Rows of each batch. Checkpoints rely on it, since a batch that is done again has as many as when it was planned."""
_SHARE = "value"


@dataclass(frozen=True, slots=True)
class SystemReader:
    """A system, for programs that declare its events alike."""

    programs: tuple[int, ...]
    place: SystemPlace
    wanted: Mapping[str, frozenset[str]]
    number: int
    """The number of the input."""
    key: str
    """What the system is known by, which tells its partitions from those of others."""
    lenient: bool = False

    def read(self, stretches: Sequence[Stretch], entrances: Entrances) -> Iterator[Shipment]:
        """The events of some stretches."""
        here = [entrances[number] for number in self.programs]
        decoders = [
            SystemDecoder(entrance.spread.compiled, entrance.counts.keys, self.place.only, lenient=self.lenient)
            for entrance in here
        ]
        system = self.place.opened()
        for stretch in stretches:
            partition = f"{self.key}/{stretch.partition}"
            for entrance in here:
                yield from entrance.come_from(partition)
                if stretch.is_behind:
                    entrance.gate.behind[partition] = carried(self.place, entrance.spread.plan.catalogue)
            for arrived in system.read(stretch):
                for entrance, decoder in zip(here, decoders, strict=True):
                    yield from _taken(arrived, entrance, decoder, self.wanted)
        for entrance in here:
            yield from entrance.come_from(None)


@dataclass(frozen=True, slots=True)
class FromSystems:
    """The events of all systems of a query; rows are shares of a batch."""

    systems: tuple[SystemReader, ...]

    def read(self, batch: pa.RecordBatch, entrances: Entrances) -> Iterator[Shipment]:
        shares = {value % SHARES for value in batch.column(_SHARE).to_pylist()}
        for system in self.systems:
            stretches = entrances.turn.stretches.get(system.number, ())
            own = [stretch for k, stretch in enumerate(stretches) if k % SHARES in shares]
            if own:
                yield from system.read(own, entrances)


def carried(place: SystemPlace, catalogue: Catalogue) -> tuple[str, ...] | None:
    """The sources whose events stand in a place, as streams declare it; None if that may be any.

    Events that no stream carries may stand anywhere. One that is where its stream is not declared may come too late.
    """
    declared = [source for source in catalogue.sources if source.location == place.name]
    if place.only is not None:
        labels = {place.only}
    elif declared and all(source.carries for source in declared):
        labels = {label for source in declared for label in source.carries}
    else:
        return None
    marks = sources_of(catalogue)
    return tuple(sorted({UNNAMED, *map(marks.source, labels)}))


def _taken(
    arrived: Arrived, entrance: Entrance, decoder: SystemDecoder, wanted: Mapping[str, frozenset[str]]
) -> Iterator[Shipment]:
    """Some messages or rows, for one program."""
    found = decoder.decode(arrived)
    entrance.gate.texts = entrance.gate.texts or not all(found.forms)
    yield from entrance.add([pruned(part, wanted) for part in found.parts if len(part)])
    yield from entrance.add_each(found.bad_events)


def shares(spark: SparkSession, tasks: int) -> DataFrame:
    """A stream with the shares of a batch in each of its batches, for so many tasks."""
    beats = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", SHARES)
    return beats.option("numPartitions", min(tasks, SHARES)).load().select(_SHARE)
