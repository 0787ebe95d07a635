"""This module shows that a run leaves a session and its process as they were before, however it ends."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.base.errors import EphemeraError
from ephemera.spark.runtime.map_in_arrow import (
    FREEZE,
    KEEP_MEMORY,
    QUICK_ACK,
    WorkerSettings,
    map_in_arrow,
    worker_settings,
)
from ephemera.spark.runtime.session import lent
from tests.spark.test_live import OVERDUE, Place, event

EVENTS = (event("order", 1, "a", 3), event("order", 20, "b", 3))


def settings(spark: SparkSession) -> dict[str, Any]:
    """All that is set of a session and of this process."""
    context = spark.sparkContext
    return {
        "session": spark.conf.getAll,
        "context": dict(context.getConf().getAll()),
        "catalog": (spark.catalog.currentCatalog(), spark.catalog.currentDatabase()),
        "properties": {name: context.getLocalProperty(name) for name in ("ephemera.turn", "spark.jobGroup.id")},
        "workers": dict(context.environment),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "warnings": list(warnings.filters),
        "garbage": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
    }


def batch(spark: SparkSession, _: Place) -> None:
    rows = [(one["event"], one["time"], *one["data"]) for one in EVENTS]
    frame = spark.createDataFrame(rows, "event string, time bigint, id string, qty int")
    assert ephemera.compile(OVERDUE).run(frame, lenient=True).count() == 2


def batch_that_fails(spark: SparkSession, _: Place) -> None:
    with pytest.raises(EphemeraError):
        ephemera.compile(OVERDUE).run(spark.createDataFrame([("order", 1)], "event string, time bigint"))


def live(spark: SparkSession, place: Place) -> None:
    before = settings(spark)
    place.put(*EVENTS)
    query = place.stream(spark).start()
    query.drain()
    assert settings(spark) == before  # nor is anything else while it runs
    query.stop()
    assert len(place.lines("out")) == 1


def live_once(spark: SparkSession, place: Place) -> None:
    place.put(*EVENTS)
    assert place.stream(spark, trigger="once").start().wait()


def live_that_fails(spark: SparkSession, place: Place) -> None:
    def fail(_: object) -> None:
        raise ValueError("on purpose")

    place.put(*EVENTS)
    query = place.stream(spark, sink=ephemera.sinks.Callback(fail)).start()
    with pytest.raises(EphemeraError, match="on purpose"):
        query.drain()
    with suppress(EphemeraError):
        query.stop()


def live_that_does_not_start(spark: SparkSession, place: Place) -> None:
    place.put(*EVENTS)
    with pytest.raises(Exception, match="often"):
        place.stream(spark, trigger="often").start()


@pytest.mark.parametrize(
    "run",
    [batch, batch_that_fails, live, live_once, live_that_fails, live_that_does_not_start],
    ids=lambda f: f.__name__,
)
def test_a_run_leaves_all_settings_as_they_were(
    spark: SparkSession, tmp_path: Path, run: Callable[[SparkSession, Place], None]
) -> None:
    before = settings(spark)
    run(spark, Place(tmp_path))
    assert settings(spark) == before


def test_what_is_lent_is_put_back_even_if_what_needs_it_fails(spark: SparkSession) -> None:
    mine, unset = "spark.sql.shuffle.partitions", "spark.ephemera.test"
    before = settings(spark)
    for name in (mine, unset):
        with pytest.raises(AssertionError, match="on purpose"), lent(spark, name, "7"):
            assert spark.conf.get(name) != "7", "on purpose"
        assert settings(spark) == before


ALONE = """
import sys
import pyarrow as pa
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import session

def look(given):
    for batch in given:
        made = pa.array(batch.column(0).to_pylist())
        yield pa.RecordBatch.from_pydict({"loaded": ["pandas" in sys.modules] * len(made)})

spark = session("local[1]", is_alone=True)
(row,) = map_in_arrow(spark.range(1), look, "loaded boolean").collect()
print(row["loaded"])
"""


def test_workers_of_a_session_in_which_nothing_else_runs_load_no_pandas(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ALONE, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False"], done.stderr


def test_what_tasks_do_to_their_process_can_be_switched_off(spark: SparkSession) -> None:
    def look(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()]})

    def frozen() -> int:
        (row,) = map_in_arrow(spark.range(1).coalesce(1), look, "frozen bigint").collect()
        return int(row["frozen"])

    assert worker_settings(spark) == WorkerSettings(freezes=True, acknowledges=True)
    assert any(frozen() for _ in range(3))  # one of many tasks leaves all to be searched
    with lent(spark, FREEZE, "false"):
        assert worker_settings(spark) == WorkerSettings(freezes=False, acknowledges=True)
        assert frozen() == 0
    with lent(spark, QUICK_ACK, "false"):
        assert worker_settings(spark) == WorkerSettings(freezes=True, acknowledges=False)
    with lent(spark, KEEP_MEMORY, "false"):
        assert worker_settings(spark) == WorkerSettings(keeps_memory=False)
