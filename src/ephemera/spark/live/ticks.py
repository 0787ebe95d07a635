"""This module has the time of a live query: what passes for silent sources, and the ticks that make batches for them.

How much time has passed is measured in the driver, by a clock that nobody sets, and counts on from what the checkpoint
has seen: whether the time of day is set back or ahead, or the query was down for a day, no source seems silent for it.
What a batch was told is written down before it begins, so that it sees the same if it is done again.

The ticks are rows of Spark's rate source, one for each second since it was made. It goes by the time of day, and fails
at a start if that has been set back behind its last tick. So its beginning is set back, too, then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ephemera.engine.state.durable_files import Files
from ephemera.engine.time.processing_time import passing, wall_clock
from ephemera.spark.live.checkpoint import Checkpoint, Standings

_MADE = re.compile(rb"v1\n(\d+)\s*")
"""The file in which the rate source remembers when it was made, in milliseconds."""


@dataclass(slots=True)
class Ticking:
    """The time of a query, in microseconds."""

    ledger: Checkpoint
    passed: Callable[[], int] = passing
    _ahead: int | None = None
    """What is to be added to what has passed in this process."""

    def at(self, batch: int, before: Standings) -> int:
        """What time it is for a batch, however often it is done."""
        if self._ahead is None:
            latest = max((s.now for s in before.values() if s.now is not None), default=None)
            self._ahead = (wall_clock() if latest is None else latest) - self.passed()
            known = self.ledger.time_of(batch)
            if known is not None:
                self._ahead = max(self._ahead, known - self.passed())
                return known
        now = self._ahead + self.passed()
        self.ledger.note_time(batch, now)
        return now


def set_ticks(files: Files, checkpoint: str, now: Callable[[], int] = wall_clock) -> None:
    """Lets the rate source of a query go on from its last tick, if the time of day is behind that."""
    folder = f"{checkpoint}/spark"
    batches = [int(name) for name in files.names(f"{folder}/offsets") if name.isdigit()]
    if not batches:
        return
    _, *offsets = bytes(files.read(f"{folder}/offsets/{max(batches)}")).split(b"\n")
    for number, offset in enumerate(offsets[1:]):
        path = f"{folder}/sources/{number}/0"
        if not offset.strip().isdigit() or "0" not in files.names(f"{folder}/sources/{number}"):
            continue
        made = _MADE.fullmatch(bytes(files.read(path)))
        latest = now() // 1_000 - 1_000 * int(offset)
        if made is not None and int(made[1]) > latest:
            files.remove(f"{folder}/sources/{number}/.0.crc")  # which would be that of what was there
            files.put(path, [b"v1\n%d" % latest], lambda _: None)
