"""This module counts what the engine of a partition does: what it took in, what it held at most, what it gave."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from ephemera.engine.engine import Engine
from ephemera.kernels.event_columns import END, Events
from ephemera.kernels.history import FAR


@dataclass(slots=True)
class RunStats:
    """What is counted while an engine runs."""

    after: int = -FAR
    """What ends by then belongs to other slices of time, and is only looked back to."""
    events: int = 0
    looked_back: int = 0
    peaks: dict[str, int] = field(default_factory=dict)
    """The most tuples that each history has held after a step."""
    began: float = field(default_factory=time.process_time)

    def saw(self, part: Events) -> None:
        """Some events have come."""
        own = len(part) if self.after == -FAR else int(np.count_nonzero(part.batch[END] > self.after))
        self.events += own
        self.looked_back += len(part) - own

    def measure(self, engine: Engine) -> None:
        """A step is done."""
        for lane in engine.lanes.values():
            for name, history in lane.histories.items():
                self.peaks[name] = max(self.peaks.get(name, 0), len(history))
            for name, records in lane.records.items():
                self.peaks[name] = max(self.peaks.get(name, 0), len(records))

    def told(self, engine: Engine) -> dict[str, object]:
        """All of it, as JSON has it."""
        rules = [rule for lane in engine.lanes.values() for rule in lane.rules.values()]
        reaches = {name: h.relevant for lane in engine.lanes.values() for name, h in lane.histories.items()}
        return {
            "events": self.events,
            "looked_back": self.looked_back,
            "examined": sum(rule.examined for rule in rules),
            "given": engine.given,
            "matched": sorted(engine.matched),
            "histories": {name: [peak, reaches.get(name)] for name, peak in self.peaks.items()},
            "cpu": time.process_time() - self.began,
            "peak_mb": peak_memory(),
        }


def peak_memory() -> float:
    """The most memory that this process has had, in MB, where the system tells."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
