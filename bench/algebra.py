"""This module measures the event detection algebra beside the same situation as a rule, on the streams of the engine.

`((A; B)[2h] - D)` for each key: a B with the latest A before it, no longer than two hours ago, and no D between them.
Only the engine is measured, in CPU seconds: events are given as columns, as to the queries of the engine's benchmark.
Both run in turn in several rounds, of which the best counts: the first run of a process makes what later ones find.
Then events are sent one at a time, and what a send takes and how the process grows is told. With `--spark` the
expression runs on Spark with two cores instead, over Parquet files, beside Q3 of the benchmark there, warm, the fastest
of three.

scripts/bench algebra [--events 1000000 5000000] [--keys 1000] [--live 1000000] [--batch 100000]
    [--rounds 3] [--spark]
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import ephemera
from bench.data import Stream, keyed
from bench.feeding import MICROSECONDS, engine, parts
from bench.process import resident
from bench.queries import KEYED, Case
from bench.reference import Answers
from ephemera.engine.stats import stats_of
from ephemera.kernels.history import FAR

ALGEBRA = KEYED + "P(i, j) <- e: algebra ((A(i, x, _); B(j, x, _))[2h] - D(_, x, _));"
RULE = KEYED + (
    "P(i, j) <- a: A(i, x, _), b: B(j, x, _), {a,b} within 2h, "
    "from a until b: not A(_, x, _), from a until b: not D(_, x, _);"
)


def expected(stream: Stream) -> tuple[int, int]:
    """How many answers there are, and the sum of their numbers, by a loop over the events."""
    last: dict[int, tuple[int, int]] = {}
    count = total = 0
    limit = 2 * 3_600_000
    for kind, number, x, at in zip(
        stream.kind.tolist(), stream.id.tolist(), stream.x.tolist(), stream.end.tolist(), strict=True
    ):
        if kind == 0:
            last[x] = (at, number)
        elif kind == 2:
            last.pop(x, None)
        elif kind == 1 and x in last and at - last[x][0] <= limit and last[x][0] < at:
            count += 1
            total += number + last[x][1]
    return count, total


def cut(stream: Stream, first: int, count: int) -> Stream:
    """Some neighbouring events."""
    some = slice(first, first + count)
    columns = (stream.kind, stream.id, stream.x, stream.v, stream.begin, stream.end)
    return Stream(stream.types, *(own[some] for own in columns))


def measure(program: str, stream: Stream, batch: int) -> tuple[float, int, int, int]:
    """CPU seconds, answers, the sum of their numbers, and the most tuples that were kept."""
    at_work = engine(program)
    seconds, count, total, kept = 0.0, 0, 0, 0
    for first in range(0, len(stream) + batch, batch):
        some = cut(stream, first, batch)
        given = parts(some, 3) if len(some) else []
        until = int(some.end.max()) * MICROSECONDS - 1 if len(some) else FAR
        start = time.process_time()
        if given:
            at_work.load(given)
        found = at_work.advance(until)
        seconds += time.process_time() - start
        for part in found.events:
            count += len(part)
            total += sum(int(part.batch[f"@{k}"].sum()) for k in range(2))
        for answer in found.few:
            count += 1
            total += sum(v for v in answer.term.children if isinstance(v, int))
        kept = max(kept, stats_of(at_work, 0, 0).stored)
    return seconds, count, total, kept


def one_by_one(stream: Stream) -> None:
    """Events one at a time: what a send takes, and how much the process grows after the first tenth."""
    at_work = ephemera.compile(ALGEBRA, "bench.eq").engine()
    taken = np.zeros(len(stream), dtype=np.int64)
    letters = [stream.types[k] for k in stream.kind.tolist()]
    rows = zip(letters, stream.end.tolist(), stream.id.tolist(), stream.x.tolist(), stream.v.tolist(), strict=True)
    answers, begun = 0, 0.0
    for k, (letter, at, number, x, v) in enumerate(rows):
        if k == len(stream) // 10:
            begun = resident()
        event = {"event": letter, "time": at, "data": [number, x, v]}
        before = time.thread_time_ns()
        found = at_work.send(event)
        taken[k] = time.thread_time_ns() - before
        answers += len(found)
    high = float(np.percentile(taken, 99)) / 1000
    print(
        f"live, {len(stream):,} events one at a time: median {statistics.median(taken.tolist()) / 1000:.1f} us, "
        f"99 of 100 within {high:.1f} us, {answers:,} answers, {at_work.stats().stored:,} tuples kept, "
        f"{resident() - begun:+.1f} MB after the first tenth"
    )


def on_spark(sizes: list[int], keys: int) -> None:
    """The expression and Q3 in one session, on the same files."""
    from bench.spark import ours, save, timed  # noqa: PLC0415 - nothing else here needs Spark
    from ephemera.spark.runtime.session import session  # noqa: PLC0415

    spark = session("local[2]", more={"spark.sql.shuffle.partitions": "4"}, is_alone=True)
    absence = Case("Q3", keys)

    def seconds(program: str, query: str, path: Path, right: Answers) -> float:
        return timed(lambda: ours(spark, program, query, path), right, 3, 60)[0]

    with TemporaryDirectory() as folder:
        for events in sizes:
            stream, path = keyed(keys, events), Path(folder) / f"{events}.parquet"
            save(stream, path)
            own = seconds(ALGEBRA, "P", path, Answers(*expected(stream)))
            other = seconds(absence.program, "Q3", path, absence.answers(stream))
            print(f"Spark, {events:,} events: {own:.2f} s, Q3 {other:.2f} s, {own / other:.2f} times", flush=True)
    spark.stop()


def main() -> None:
    """The algebra beside the rule, and one event at a time."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, nargs="*", default=[1_000_000, 5_000_000])
    options.add_argument("--keys", type=int, default=1_000)
    options.add_argument("--batch", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--live", type=int, default=1_000_000)
    options.add_argument("--spark", action="store_true")
    chosen = options.parse_args()
    if chosen.spark:
        on_spark(chosen.events, chosen.keys)
        return
    print(f"{'events':>10}{'':>10}{'CPU':>10}{'a million':>11}{'answers':>12}{'kept':>10}")
    for events in chosen.events:
        stream = keyed(chosen.keys, events)
        right = expected(stream)
        best: dict[str, tuple[float, int]] = {}
        for _ in range(chosen.rounds):
            for name, program in (("algebra", ALGEBRA), ("rule", RULE)):
                seconds, count, total, kept = measure(program, stream, chosen.batch)
                if (count, total) != right:
                    raise SystemExit(f"{name} has {count} answers of sum {total}; right is {right}")
                best[name] = min(best.get(name, (seconds, kept)), (seconds, kept))
        for name, (seconds, kept) in best.items():
            share = seconds / events * 1_000_000
            print(f"{events:>10,}{name:>10}{seconds:>9.3f}s{share:>10.3f}s{right[0]:>12,}{kept:>10,}", flush=True)
    if chosen.live:
        one_by_one(keyed(chosen.keys, chosen.live))


if __name__ == "__main__":
    main()
