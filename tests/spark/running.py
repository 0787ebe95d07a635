"""This module runs programs on Spark and gives what comes of it as the local engine would, to be compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from ephemera.engine.cluster.message import STATS, Shipment
from ephemera.pipeline import Program
from ephemera.rules.outcome import Outcome
from ephemera.spark.batch.answer_lines import as_lines
from ephemera.spark.batch.job import Started
from tests.engine.spreading import outcome_of


@dataclass(slots=True)
class Came:
    """What came of one program of a run."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    bad: list[dict[str, Any]] = field(default_factory=list)
    dead: list[dict[str, Any]] = field(default_factory=list)
    stats: list[dict[str, Any]] = field(default_factory=list)

    @property
    def busy(self) -> int:
        """In how many places engines of the same group had events, at most."""
        return max(Counter(told["group"] for told in self.stats if told["events"]).values(), default=0)


def outcomes(started: Started) -> list[tuple[Outcome, int]]:
    """What each program of a run derived, as events, and in how many places it had some to look at."""
    carried: list[list[Shipment]] = [[] for _ in started.spreads]
    for row in started.shipped.collect():
        carried[row.program].append(Shipment(**{**row.asDict(), "load": bytes(row.load)}))
    found = []
    for spread, own in zip(started.spreads, carried, strict=True):
        busy = Came(stats=[json.loads(s.load) for s in own if s.group == STATS]).busy
        found.append((outcome_of(spread.compiled.rules, spread.compiled.plan, own), busy))
    return found


def collected(started: Started) -> list[Came]:
    """What came of each program of a run, brought here."""
    return came_of(as_lines(started.shipped, started.spreads, as_numbers=started.as_numbers), len(started.spreads))


def came_of(lines: DataFrame, programs: int) -> list[Came]:
    found = [Came() for _ in range(programs)]
    for row in lines.collect():
        here = found[row.program]
        {"answer": here.answers, "bad": here.bad, "dead": here.dead, "stats": here.stats}[row.kind].append(
            json.loads(row.line)
        )
    return found


def plain(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Answers in an order that does not depend on where they were found; what is there twice is seen."""
    return sorted(json.dumps(answer, sort_keys=True) for answer in answers)


def local(program: Program, events: Sequence[Mapping[str, Any]], **world: Any) -> list[str]:
    """What the local engine answers."""
    run = program.run_all(events, **world, allow_unbounded=True)
    return plain([answer for _, answer in run.output])
