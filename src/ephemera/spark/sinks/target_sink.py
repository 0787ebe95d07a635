"""This module puts the answers of runs on Spark to systems, in the driver: live, before a batch is committed.

A batch that is run again gives the same answers under the same number. So a system that remembers the number of its
last commit, in the same transaction as the answers, as Kafka and PostgreSQL do, has each answer exactly once; any other
has it at least once. Answers come to the driver for that: they are few beside the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ephemera.connect.live.target_names import TargetName, target_names
from ephemera.connect.systems.live import OpenTarget, check_last
from ephemera.connect.written_places import Written
from ephemera.engine.cluster.message import Answers, Shipment
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.answers import AnswerBatch
from ephemera.spark.runtime.shipped_answers import answer_batch


@dataclass(slots=True)
class TargetSink:
    """The systems that a query writes to."""

    writes: Sequence[Written]
    spreads: Sequence[DistributedProgram]
    _names: Sequence[TargetName] = field(init=False)
    _opened: list[OpenTarget] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names = target_names([one.target for one in self.writes])

    def open(self, query: str, batch: int, checkpoint: str = "", *, is_again: bool = False) -> None:
        """Before the first batch of a start; it may have been put before if it is done again as it was planned."""
        named = zip(self._names, self.writes, strict=True)
        self.close()
        for name, one in named:  # one by one, so that those before one that fails are closed
            self._opened.append(one.target.open_target(name.identity(query)))
            check_last(str(name), self._opened[-1], batch + is_again, checkpoint)

    def put(self, batch: int, told: Iterable[Shipment], texts: frozenset[int]) -> None:
        """The answers of a batch, which are safe there when this returns; `texts` are programs that write times so."""
        answers = self._answers([one for one in told if isinstance(one, Answers)], texts)
        for written, opened in zip(self.writes, self._opened, strict=True):
            load = opened.encode(written.chosen(answers))
            if load:
                opened.put(load, batch + 1)

    def close(self) -> None:
        """Nobody writes any more."""
        for opened in self._opened:
            opened.close()
        self._opened = []

    def _answers(self, shipments: Sequence[Answers], texts: frozenset[int]) -> AnswerBatch:
        return answer_batch(shipments, self.spreads, [spread.number not in texts for spread in self.spreads])
