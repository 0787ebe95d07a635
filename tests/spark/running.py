"""This module runs programs on Spark and gives what comes of it as the local engine would, to be compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ephemera.engine.cluster.message import EngineStats, Shipment
from ephemera.program import Program
from ephemera.rules.outcome import Outcome
from ephemera.spark.batch.job import Started
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.runtime.exchange import is_a, of_rows
from tests.engine.spreading import outcome_of


@dataclass(slots=True)
class Came:
    """What came of one program of a run."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    bad: list[dict[str, Any]] = field(default_factory=list)
    dead: list[dict[str, Any]] = field(default_factory=list)
    stats: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def busy(self) -> int:
        """In how many places engines of the same group had events, at most."""
        return max(Counter(told["group"] for told in self.stats if told["events"]).values(), default=0)


def outcomes(started: Started) -> list[tuple[Outcome, int]]:
    """What each program of a run derived, as events, and in how many places it had some to look at."""
    carried: list[list[Shipment]] = [[] for _ in started.spreads]
    for shipment in of_rows(started.shipped.collect()):
        carried[shipment.program].append(shipment)
    found = []
    for spread, own in zip(started.spreads, carried, strict=True):
        busy = Came(stats=_stats(own)).busy
        found.append((outcome_of(spread.compiled.rules, spread.compiled.plan, own), busy))
    return found


def collected(started: Started) -> list[Came]:
    """What came of each program of a run, brought here."""
    computed = Computed(started)
    told = of_rows(started.shipped.where(is_a(EngineStats)).collect())
    found = [Came(stats=_stats(s for s in told if s.program == n)) for n in range(len(started.spreads))]
    for row in computed.lines().collect():
        found[row.program].answers.append(json.loads(row.line))
    for program, letter in computed.letters():
        (found[program].dead if "rule" in letter else found[program].bad).append(letter)
    computed.close()
    return found


def _stats(shipments: Iterable[Shipment]) -> list[Mapping[str, Any]]:
    return [s.stats for s in shipments if isinstance(s, EngineStats)]


def plain(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Answers in an order that does not depend on where they were found; what is there twice is seen."""
    return sorted(json.dumps(answer, sort_keys=True) for answer in answers)


def local(program: Program, events: Sequence[Mapping[str, Any]], **world: Any) -> list[str]:
    """What the local engine answers."""
    run = program.run_all(events, **world, allow_unbounded=True)
    return plain([answer for _, answer in run.output])
