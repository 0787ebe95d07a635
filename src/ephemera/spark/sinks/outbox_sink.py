"""This module puts the messages of a live batch into an outbox, in the driver, before the batch is committed.

A batch that is run again gives the same messages, and its segment takes the place of the one before. The sender sees a
segment when the batch has been committed; the bytes that wait are limited, and a full outbox holds the next batch up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ephemera.deliver.delivery import Delivery
from ephemera.engine.cluster.message import MessagesToSend, Shipment, unpack
from ephemera.spark.sinks.encode_answers import AnswerForm


@dataclass(frozen=True, slots=True)
class OutboxSink:
    """Messages of a query, on their way out."""

    forms: Mapping[int, AnswerForm]
    delivery: Delivery

    def open(self, batch: int) -> None:
        """Before the first batch of a start: what was put for later ones, by one that never ended, goes."""
        self.delivery.outbox.discard_after(batch)

    def wait_for_room(self, is_stopping: Callable[[], bool]) -> None:
        """Before a batch."""
        self.delivery.wait_for_room(is_stopping)

    def put(self, batch: int, told: Iterable[Shipment], texts: frozenset[int]) -> None:
        """The messages of a batch, durably when this returns."""
        messages = [
            message
            for shipment in told
            if isinstance(shipment, MessagesToSend)
            for message in self.delivery.outgoing(
                unpack(shipment.events, self.forms[shipment.program].catalogue),
                self.forms[shipment.program].columns.messages.get(shipment.rule),
                program=shipment.program,
                as_numbers=shipment.program not in texts,
            )
        ]
        self.delivery.put(messages, batch)

    def committed(self, batch: int) -> None:
        """A batch counts."""
        self.delivery.committed(batch)
