"""This module writes the answers of a live batch as lines where they are, and brings them here: for a few of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from ephemera.engine.cluster.message import OUT, Shipment, unpack
from ephemera.formats.encode_json import lines
from ephemera.spark.live.task import At, Last, Turn

LINES = -9
"""The group of answers that have been written as lines of JSON; the load is a list of them."""


def as_lines(shipments: Iterable[Shipment], at: At) -> Iterator[Shipment]:
    """The same, with answers as lines."""
    for shipment in shipments:
        if shipment.group != OUT:
            yield shipment
            continue
        spread = at.spreads[shipment.program]
        catalogue = spread.plan.catalogue
        events = unpack(shipment, catalogue)
        as_numbers = not at.standing(shipment.program).texts
        written = lines(events, catalogue, as_numbers=as_numbers, more=spread.recipient(shipment.rule))
        load = f"[{','.join(written.to_pylist())}]".encode()
        yield Shipment(shipment.program, LINES, at.place, 0, len(events), shipment.label, None, shipment.rule, load)


def _as_they_came(shipments: Iterable[Shipment], at: At) -> Iterator[Shipment]:
    del at
    yield from shipments


@dataclass(slots=True)
class MemorySink:
    """A sink that keeps everything, with the number of its batch; answers as lines, or packed as they came."""

    writes: bool = True
    rows: list[tuple[int, Shipment]] = field(default_factory=list)
    needs_frame: bool = False

    @property
    def last(self) -> Last:
        return as_lines if self.writes else _as_they_came

    def open(self, spark: SparkSession, query: str, batch: int) -> None:
        """Nothing has to be made ready."""

    def take(self, at: At, rows: Sequence[Shipment], frame: DataFrame | None) -> None:
        del frame
        self.rows += [(at.turn.number, row) for row in rows]

    def settle(self, turn: Turn, rows: Sequence[Shipment]) -> None:
        """Nothing has to be tidied."""
