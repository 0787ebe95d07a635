"""This module lets a live run in one process deliver its messages: they go to the outbox with each commit.

What is kept of a commit until it has been put has its messages, too. So those that a crash left behind are put again,
in the segment of the same number, and what has been delivered of it is passed over. An outbox may have been used
before: segments of a run are counted from behind those of earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from ephemera.deliver.delivery import Delivery
from ephemera.deliver.message import read_line
from ephemera.formats.answers import AnswerBatch


@dataclass(frozen=True, slots=True)
class MessageTarget:
    """Where the messages of a live run go."""

    delivery: Delivery
    name: str = "messages"

    def open_target(self, identity: str, position: int | None = None) -> OpenMessageTarget:
        del identity  # an outbox belongs to one run at a time
        return OpenMessageTarget(self.delivery, self.delivery.outbox.next if position is None else position)


@dataclass(frozen=True, slots=True)
class OpenMessageTarget:
    """A delivery, and behind which segment of its outbox those of the run stand."""

    delivery: Delivery
    position: int

    def encode(self, answers: AnswerBatch) -> bytes:
        """The messages among some answers."""
        found = (
            self.delivery.outgoing(
                part.events,
                part.message,
                program=part.program,
                as_numbers=answers.form.counting[part.program].stamps,
            )
            for part in answers.parts
            if part.message is not None
        )
        return b"".join(message.line() for messages in found for message in messages)

    def put(self, load: bytes, number: int) -> None:
        """The messages of a commit; a full outbox holds the run up, unless that is to end."""
        self.delivery.wait_for_room()
        self.delivery.put([read_line(line) for line in load.splitlines()], self.position + number)
        self.delivery.committed(self.position + number)

    def close(self) -> None:
        """Whoever began the delivery ends it."""
