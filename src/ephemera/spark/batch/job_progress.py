"""This module looks at how far Spark has come with a run: the stage, its tasks, and how much was read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from ephemera.spark.batch.job import Started

PAUSE = 0.25
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen at a look."""

    stage: str
    done: float
    """The part of the whole that is done, from 0 to 1; every stage counts the same."""
    read: int
    written: int


@dataclass(frozen=True, slots=True)
class JobStages:
    """The stages of a run by their names, and how often each record of the input is scanned."""

    stages: tuple[str, ...]
    scans: int


def stages_of(started: Started, inputs: int) -> JobStages:
    """What Spark is going to do."""
    levels = max((s.stages.levels for s in started.spreads), default=0)
    named = [f"level {n} of {levels}" for n in range(1, levels + 1)] if levels > 1 else ["rules"] * levels
    gathering = ["gathering"] if any(s.needs_gathering for s in started.spreads) else []
    leaves = started.shipped._jdf.queryExecution().analyzed().collectLeaves().size()
    return JobStages(("reading", *named, *gathering, "writing"), max(leaves // max(inputs, 1), 1))


@contextmanager
def watched(spark: SparkSession, stages: JobStages, tell: Callable[[Sight], None]) -> Iterator[None]:
    """Looks at what Spark does until the block ends, and tells it."""
    over = Event()
    watch = _Watch(spark, stages)

    def look() -> None:
        while not over.wait(PAUSE):
            sight = watch.look()
            if sight is not None:
                tell(sight)

    thread = Thread(target=look, name="ephemera-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Watch:
    """Remembers what was seen of each stage."""

    def __init__(self, spark: SparkSession, stages: JobStages) -> None:
        self._context = spark.sparkContext
        self._stages = stages
        self._tracker = spark.sparkContext.statusTracker()
        self._first: int | None = None
        self._read: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._done = 0.0

    def look(self) -> Sight | None:
        """What can be seen now; nothing if Spark is gone or between two stages."""
        try:
            active = sorted(self._tracker.getActiveStageIds())
            info = self._tracker.getStageInfo(active[0]) if active else None
            if info is None:
                return None
            self._first = active[0] if self._first is None else self._first
            for stage in range(self._first, active[0] + 1):
                self._count(stage)
        except Py4JError:
            return None
        names = self._stages.stages
        number = min(active[0] - self._first, len(names) - 1)
        part = info.numCompletedTasks / max(info.numTasks, 1)
        self._done = max(self._done, (number + part) / len(names))
        read = sum(self._read.values()) // self._stages.scans
        return Sight(names[number], min(self._done, 0.99), read, sum(self._written.values()))

    def _count(self, stage: int) -> None:
        store = self._context._jsc.sc().statusStore()
        try:
            data = store.lastStageAttempt(stage)
        except Py4JError:  # there is no such stage
            return
        if not self._read or stage in self._read:
            self._read[stage] = data.inputRecords()
        self._written[stage] = data.outputRecords()
