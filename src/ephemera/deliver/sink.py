"""This module lets a run over a history deliver its messages: when all of it counts, they go to the outbox first.

A crash between the two sends messages of a run whose answers were not written; it has to be run again, and then its
messages have the same keys. The other way round they would be lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ephemera.connect.sink import OpenSink, Sink
from ephemera.deliver.delivery import Delivery
from ephemera.deliver.message import Outgoing
from ephemera.formats.answers import AnswerBatch


@dataclass(frozen=True, slots=True)
class DeliveringSink:
    """A sink whose messages are delivered, too."""

    inner: Sink
    delivery: Delivery

    def open(self) -> _Delivering:
        return _Delivering(self.inner.open(), self.delivery)


@dataclass(slots=True)
class _Delivering:
    inner: OpenSink
    delivery: Delivery
    held: list[Outgoing] = field(default_factory=list)

    def write(self, answers: AnswerBatch) -> None:
        for part in answers.parts:
            if part.message is not None and len(part.events):
                numbers = answers.form.counting[part.program].stamps
                program = part.program
                self.held += self.delivery.outgoing(part.events, part.message, program=program, as_numbers=numbers)
        self.inner.write(answers)

    def commit(self) -> None:
        self.delivery.put(self.held)
        self.inner.commit()

    def abort(self) -> None:
        self.held.clear()
        self.inner.abort()
