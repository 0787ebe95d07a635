"""This module has the benchmark's queries as hand-written SQL for Spark, each as a plain join and with buckets of time.

The events are one view `events` (event, id, x, v, time in milliseconds). Every variant gives a row for each answer with
the sum of its ids (and the average of Q4), which are counted and added up but stored nowhere.

PYTHONPATH=. python -m bench.spark_queries EVENTS.parquet [--within MILLISECONDS] [--queries Q1 Q3] [--repeat 3]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench import reference
from bench.data import HOUR, Stream
from bench.reference import Answers
from bench.selection import SUMS, Selection
from ephemera.spark.runtime.session import session

QUERIES = ("Q1", "Q2", "Q3", "Q4")
_LETTERS = "ABDE"


def of(letter: str, *more: str) -> str:
    """The events of one type."""
    return f"(SELECT {', '.join(('id', 'x', 'time', *more))} FROM events WHERE event = '{letter}')"


def bucket(rows: str, width: int, at: str = "time") -> str:
    """Rows with the bucket in which each lies."""
    return f"(SELECT *, ({at} + {8 * width}) div {width} AS bucket FROM {rows})"


def buckets(rows: str, low: str, high: str, width: int) -> str:
    """Rows once for each bucket that a range touches."""
    first, last = (f"({t} + {8 * width}) div {width}" for t in (low, high))
    return f"(SELECT *, explode(sequence({first}, {last})) AS bucket FROM {rows})"


def pairs(within: int, selection: Selection) -> dict[str, str]:
    """Q1 and Q1h."""
    both = f"SELECT {selection.pair} FROM"
    near = f"b.time BETWEEN a.time - {within} AND a.time + {within}"

    def bucketed(width: int) -> str:
        wide = buckets(of("A"), f"time - {within}", f"time + {within}", width)
        return f"{both} {wide} a JOIN {bucket(of('B'), width)} b ON a.x = b.x AND a.bucket = b.bucket AND {near}"

    return {
        "plain": f"{both} {of('A')} a JOIN {of('B')} b ON a.x = b.x AND {near}",
        "buckets of the window": bucketed(within),
        "buckets of two windows": bucketed(2 * within),
        "buckets of four windows": bucketed(4 * within),
    }


def chains(selection: Selection) -> dict[str, str]:
    """Q2."""
    two, four = 2 * HOUR, 4 * HOUR
    after = f"d.time > c.until AND d.time <= c.until + {four}"
    then = f"e.time > d.time AND e.time <= d.time + {HOUR}"
    found = f"SELECT {selection.first_pair}, a.x, greatest(a.time, b.time) AS until FROM"
    near = f"b.time BETWEEN a.time - {two} AND a.time + {two}"
    plain = (
        f"SELECT {selection.chain_of_events} FROM ({found} {of('A')} a JOIN {of('B')} b ON a.x = b.x AND {near}) c "
        f"JOIN {of('D')} d ON c.x = d.x AND {after} JOIN {of('E')} e ON d.x = e.x AND {then}"
    )
    wide = buckets(of("A"), f"time - {two}", f"time + {two}", four)
    c = f"({found} {wide} a JOIN {bucket(of('B'), four)} b ON a.x = b.x AND a.bucket = b.bucket AND {near})"
    q = (
        f"(SELECT {selection.last_pair}, d.x, d.time FROM {buckets(of('D'), 'time', f'time + {HOUR}', four)} d "
        f"JOIN {bucket(of('E'), four)} e ON d.x = e.x AND d.bucket = e.bucket AND {then})"
    )
    bucketed = (
        f"SELECT {selection.chain} FROM {buckets(c, 'until', f'until + {four}', four)} c "
        f"JOIN {bucket(q, four)} q ON c.x = q.x AND c.bucket = q.bucket "
        f"AND q.time > c.until AND q.time <= c.until + {four}"
    )
    return {"plain": plain, "buckets": bucketed}


def absences(selection: Selection) -> dict[str, str]:
    """Q3."""
    alone = selection.absence
    later = f"b.time > a.time AND b.time <= a.time + {HOUR}"
    wide = buckets(of("B"), f"time - {HOUR}", "time", HOUR)
    window = (
        f"SELECT {alone} FROM (SELECT *, min(CASE WHEN event = 'B' THEN time END) OVER (PARTITION BY x ORDER BY time "
        "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next FROM events WHERE event IN ('A', 'B')) a "
        f"WHERE event = 'A' AND (next IS NULL OR next > time + {HOUR})"
    )
    lead = (
        f"SELECT {alone} FROM (SELECT *, lead(CASE WHEN event = 'B' THEN time END) IGNORE NULLS "
        "OVER (PARTITION BY x ORDER BY time) AS next FROM events WHERE event IN ('A', 'B')) a "
        f"WHERE event = 'A' AND (next IS NULL OR next > time + {HOUR})"
    )
    return {
        "plain": f"SELECT {alone} FROM {of('A')} a LEFT ANTI JOIN {of('B')} b ON a.x = b.x AND {later}",
        "buckets": (
            f"SELECT {alone} FROM {bucket(of('A'), HOUR)} a LEFT ANTI JOIN {wide} b "
            f"ON a.x = b.x AND a.bucket = b.bucket AND {later}"
        ),
        "window function": window,
        "lead": lead,
    }


def averages(selection: Selection) -> dict[str, str]:
    """Q4."""
    whose, name, group = selection.average, selection.average_name, selection.group
    before = f"b.time BETWEEN a.time - {HOUR} AND a.time"
    wide = buckets(of("B", "v"), "time", f"time + {HOUR}", HOUR)
    mean = f"SELECT {whose}, avg(b.v) AS {name} FROM"
    window = (
        f"SELECT {whose}, mean AS {name} FROM (SELECT *, avg(CASE WHEN event = 'B' THEN v END) OVER (PARTITION BY x "
        f"ORDER BY time RANGE BETWEEN {HOUR} PRECEDING AND CURRENT ROW) AS mean FROM events "
        "WHERE event IN ('A', 'B')) a WHERE event = 'A' AND mean IS NOT NULL"
    )
    return {
        "plain": f"{mean} {of('A')} a JOIN {of('B', 'v')} b ON a.x = b.x AND {before} GROUP BY {group}",
        "buckets": (
            f"{mean} {bucket(of('A'), HOUR)} a JOIN {wide} b ON a.x = b.x AND a.bucket = b.bucket AND {before} "
            f"GROUP BY {group}"
        ),
        "window function": window,
    }


def variants(query: str, within: int = 2 * HOUR, selection: Selection = SUMS) -> dict[str, str]:
    """The ways to write a query."""
    match query:
        case "Q1" | "Q1w":
            return pairs(within, selection)
        case "Q2":
            return chains(selection)
        case "Q3":
            return absences(selection)
        case "Q4":
            return averages(selection)
        case _:
            raise ValueError(f"there is no query `{query}`; there are {', '.join(QUERIES)}")


def answer(spark: SparkSession, query: str, sql: str) -> tuple[Answers, float]:
    """The answers, and the seconds that they took."""
    means = "sum(mean)" if query == "Q4" else "0"
    start = time.perf_counter()
    row = spark.sql(f"SELECT count(*), sum(ids), {means} FROM ({sql})").first()
    seconds = time.perf_counter() - start
    if row is None:
        raise SystemExit(f"Spark has no answer to {query}")
    return Answers(int(row[0]), int(row[1] or 0), float(row[2] or 0)), seconds


def right_answers(path: str, query: str, within: int) -> Answers:
    """What is right for the events in a file."""
    table = pq.read_table(path, columns=["event", "id", "x", "v", "time"])
    letters = np.asarray(table["event"].to_pylist())
    kind = np.searchsorted(list(_LETTERS), letters).astype(np.int64)
    ids, x, v, at = (table[name].to_numpy().astype(np.int64) for name in ("id", "x", "v", "time"))
    stream = Stream(_LETTERS, kind, ids, x, v, at, at)
    match query:
        case "Q1":
            return reference.pairs(stream, within)
        case "Q2":
            return reference.chains(stream)
        case "Q3":
            return reference.absences(stream)
        case _:
            return reference.averages(stream)


def main() -> None:
    """Runs all variants on a file, warm, checks the answers, and prints the fastest of some runs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("events")
    options.add_argument("--within", type=int, default=2 * HOUR)
    options.add_argument("--queries", nargs="+", default=list(QUERIES))
    options.add_argument("--variants", nargs="+", default=[], help="only those whose names begin so")
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--master", default="local[2]")
    options.add_argument("--partitions", default="4")
    chosen = options.parse_args()
    spark = session(chosen.master, more={"spark.sql.shuffle.partitions": chosen.partitions})
    spark.read.parquet(chosen.events).createOrReplaceTempView("events")
    for query in chosen.queries:
        right = right_answers(chosen.events, query, chosen.within)
        for name, sql in variants(query, chosen.within).items():
            if chosen.variants and not name.startswith(tuple(chosen.variants)):
                continue
            runs = [answer(spark, query, sql) for _ in range(chosen.repeat)]
            is_right = all(right.agree(found) for found, _ in runs)
            seconds = min(s for _, s in runs)
            print(
                f"{query}  {name:<24}{seconds:8.2f} s  {'right' if is_right else f'WRONG {runs[0][0]} {right}'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
