"""This module runs a program live over thirty simulated days, and prints what each batch held and what it took.

Joins, an absence, a collection, and a rule on another key than the rules before it; events come in some disorder. Each
batch is three hours of the stream. What is printed is one JSON object.

python -m tests.spark.soaking FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import ephemera
from bench.process import family
from ephemera import sinks
from ephemera.spark.live.report import BatchReport
from ephemera.spark.runtime.session import session

PROGRAM = """
TIME UNIT 1 sec;
EVENT order(id: int, customer: int);
EVENT paid(id: int, customer: int, amount: int);
EVENT shipped(id: int);
STREAM shop CARRIES order, paid, shipped WATERMARK 10 min;

bought(id, c) <- o: order(id, c), p: paid(id, c, _), o before p, {o,p} within 6h;
overdue(id) <- o: order(id, _), w: extend(o, 12h), while w: not shipped(id);
spent(id, sum(a)) <- o: order(id, c), w: from-start-backward(o, 24h), while w: collect paid(_, c, a);
again(c, i, j) <- a: bought(i, c), b: bought(j, c), a before b, {a,b} within 9h;
"""
HOUR = 3_600
DAYS = 30
BATCHES = DAYS * 8
ROWS = 5_000
"""Events in a batch of three hours."""
CUSTOMERS = 500
LABELS = ("order", "paid", "shipped")


def made_up(seed: int = 11) -> pa.Table:
    """The events in the order in which they arrive: at most ten minutes late."""
    random = np.random.default_rng(seed)
    count = BATCHES * ROWS
    ids = np.arange(count)
    ordered = ids * (3 * HOUR * 2.7 / ROWS)
    paid = np.where(random.random(count) < 0.8, ordered + random.integers(60, 8 * HOUR, count), np.inf)
    shipped = np.where(random.random(count) < 0.9, ordered + random.integers(60, 14 * HOUR, count), np.inf)
    times = np.concatenate([ordered, paid, shipped])
    order = np.argsort(times + random.uniform(0, 600, 3 * count), kind="stable")[:count]
    kind, row = order // count, order % count
    return pa.table(
        {
            "event": pa.array(np.array(LABELS)[kind]),
            "time": times[order].astype(np.int64),
            "id": row,
            "customer": pa.array(row * 7_919 % CUSTOMERS, mask=kind == 2),
            "amount": pa.array(row % 100, mask=kind != 1),
        }
    )


def main(folder: Path) -> None:
    """Runs it."""
    events = made_up()
    (folder / "in").mkdir()
    for number in range(BATCHES):
        path = folder / "in" / f"{number:04d}.parquet"
        pq.write_table(events.slice(number * ROWS, ROWS), path)
        os.utime(path, (1e9 + number, 1e9 + number))  # they are read in this order
    program = ephemera.compile(PROGRAM)
    spark = session("local[2]", more={"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "600m"})
    kinds = "event string, time bigint, id bigint, customer bigint, amount bigint"
    frame = spark.readStream.schema(kinds).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    found: list[dict[str, Any]] = []
    answers: Counter[str] = Counter()

    def watch(report: BatchReport) -> None:
        answers.update({label: count for (_, label), count in report.answers.items()})
        found.append(_told(report) | _memory())

    begin = time.perf_counter()
    streaming = program.stream(spark, frame, sinks.Folder(str(folder / "out")), checkpoint=str(folder / "checkpoint"))
    query = streaming.start(watch)
    query.drain()
    query.stop()
    taken = time.perf_counter() - begin
    groups = query.host.spreads[0].stages.groups
    holders = Counter(name for group in groups for name in group.cuts)
    files = sum(len(names) for _, _, names in os.walk(folder / "checkpoint" / "state"))
    bound = found[-1]["bound"]
    local = program.run(events)
    certain = local.filter(pc.less_equal(local["end"], bound // 1_000_000))
    counted = Counter(certain["event"].to_pylist())
    rates = Counter(events["event"].to_pylist()) + counted
    print(
        json.dumps(
            {
                "batches": found,
                "answers": answers,
                "right": counted,
                "rates": rates,
                "holders": holders,
                "files": files,
                "seconds": taken,
            }
        )
    )


def _told(report: BatchReport) -> dict[str, Any]:
    return {
        "bound": report.sources[0].bound,
        "events": report.events,
        "turned away": report.late + report.bad + report.dead,
        "histories": {h.name: [h.tuples, h.bytes, h.reach] for h in report.histories},
        "pending": report.pending,
        "waiting": report.waiting,
        "live": report.state.live,
        "written": report.state.fresh + report.state.merged,
        "segments": report.state.segments,
        "millis": 1e3 * report.seconds,
    }


def _memory() -> dict[str, float]:
    """What the driver, Java and the largest worker have, in MB."""
    own = os.getpid()
    processes = family()
    java = [p.memory for p in processes if p.name == "java"]
    workers = [p.memory for p in processes if p.number != own and p.name.startswith("python")]
    driver = [p.memory for p in processes if p.number == own]
    return {"driver": sum(driver), "java": sum(java), "workers": max(workers, default=0.0)}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
