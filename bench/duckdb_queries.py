"""This module has the benchmark's queries as hand-written SQL for DuckDB, in several variants each.

The events are in one table for each type (id, x, v, begin, stop). Every variant gives the same answers as rows, which
are counted and added up but stored nowhere. Which one is the fastest depends on the stream: joins on the key alone win
where keys are many and lose by far where they are few or one is hot. So all that have a chance are run on each stream,
and engines are compared with the best.
"""

from __future__ import annotations

import time

import duckdb
import numpy as np
import pyarrow as pa

from bench.data import HOUR, Stream
from bench.queries import Case
from bench.reference import Answers
from bench.selection import SUMS, Selection


def buckets(keys: str, low: str, high: str, width: int, spread: int) -> str:
    """A table with one row for each bucket of time that a range may touch."""
    one = f"SELECT *, ({low}) // {width} + n AS bucket FROM {keys}, generate_series(0, {spread}) AS g(n)"
    return f"(SELECT * FROM ({one}) WHERE bucket <= ({high}) // {width})"


def _pairs(within: int, selection: Selection) -> dict[str, str]:
    near = f"abs(a.begin - b.begin) <= {within}"
    both = f"SELECT {selection.pair} FROM"

    def bucketed(width: int) -> str:
        spread = -(-2 * within // width)
        wide = buckets("A", f"begin - {within} + {width * 8}", f"begin + {within} + {width * 8}", width, spread)
        return (
            f"{both} {wide} a JOIN (SELECT *, (begin + {width * 8}) // {width} AS bucket FROM B) b "
            f"ON a.x = b.x AND a.bucket = b.bucket WHERE {near}"
        )

    return {
        "buckets of twice the window": bucketed(2 * within),
        "buckets of the window": bucketed(within),
        "buckets of four windows": bucketed(4 * within),
        "join on the key": f"{both} A a JOIN B b ON a.x = b.x AND {near}",
    }


def _chains(selection: Selection) -> dict[str, str]:
    def bucketed(*, late: bool) -> str:
        pairs, four = _pair_rows(selection), 4 * HOUR
        d_e = (
            f"SELECT {selection.last_pair}, d.x, d.begin FROM "
            f"{buckets('D', 'begin', f'begin + {HOUR}', HOUR, 1)} d "
            f"JOIN (SELECT *, begin // {HOUR} AS bucket FROM E) e ON d.x = e.x AND d.bucket = e.bucket "
            f"WHERE e.begin > d.begin AND e.begin <= d.begin + {HOUR}"
        )
        if late:
            return (
                f"SELECT {selection.chain} FROM {buckets(f'({pairs})', 'until', f'until + {four}', four, 1)} c "
                f"JOIN (SELECT *, begin // {four} AS bucket FROM ({d_e})) q ON c.x = q.x AND c.bucket = q.bucket "
                f"WHERE q.begin > c.until AND q.begin <= c.until + {four}"
            )
        return (
            f"SELECT {selection.chain} FROM (SELECT *, until // {four} + 1 AS bucket FROM ({pairs})) c "
            f"JOIN {buckets(f'({d_e})', 'begin', f'begin + {four}', four, 1)} q ON c.x = q.x AND c.bucket = q.bucket "
            f"WHERE q.begin > c.until AND q.begin <= c.until + {four}"
        )

    plain = (
        f"WITH c AS (SELECT {selection.first_pair}, a.x, greatest(a.begin, b.begin) AS until FROM A a JOIN B b "
        f"ON a.x = b.x AND b.begin BETWEEN a.begin - {2 * HOUR} AND a.begin + {2 * HOUR}) "
        f"SELECT {selection.chain_of_events} FROM c JOIN D d ON c.x = d.x AND d.begin > c.until "
        f"AND d.begin <= c.until + {4 * HOUR} "
        f"JOIN E e ON d.x = e.x AND e.begin > d.begin AND e.begin <= d.begin + {HOUR}"
    )
    return {
        "buckets, D with E first": bucketed(late=False),
        "buckets, pairs spread": bucketed(late=True),
        "joins on the key": plain,
    }


def _pair_rows(selection: Selection) -> str:
    width = 4 * HOUR
    wide = buckets("A", f"begin + {2 * HOUR}", f"begin + {6 * HOUR}", width, 1)
    return (
        f"SELECT {selection.first_pair}, a.x, greatest(a.begin, b.begin) AS until FROM {wide} a "
        f"JOIN (SELECT *, (begin + {width}) // {width} AS bucket FROM B) b ON a.x = b.x AND a.bucket = b.bucket "
        f"WHERE abs(a.begin - b.begin) <= {2 * HOUR}"
    )


def _absences(selection: Selection) -> dict[str, str]:
    alone = selection.absence
    window = (
        f"SELECT {alone} FROM (SELECT *, min(begin) FILTER (kind = 'B') OVER (PARTITION BY x ORDER BY begin "
        "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next FROM (SELECT *, 'A' AS kind FROM A UNION ALL "
        f"SELECT *, 'B' AS kind FROM B)) a WHERE kind = 'A' AND (next IS NULL OR next > begin + {HOUR})"
    )
    return {
        "anti join of buckets": (
            f"SELECT {alone} FROM (SELECT *, begin // {HOUR} + 1 AS bucket FROM A) a "
            f"ANTI JOIN {buckets('B', 'begin', f'begin + {HOUR}', HOUR, 1)} b "
            f"ON a.x = b.x AND a.bucket = b.bucket AND b.begin > a.begin AND b.begin <= a.begin + {HOUR}"
        ),
        "ASOF join": (
            f"SELECT {alone} FROM A a ASOF LEFT JOIN B b ON a.x = b.x AND b.begin > a.begin "
            f"WHERE b.begin IS NULL OR b.begin > a.begin + {HOUR}"
        ),
        "window function": window,
        "anti join on the key": (
            f"SELECT {alone} FROM A a ANTI JOIN B b ON a.x = b.x AND b.begin > a.begin AND b.begin <= a.begin + {HOUR}"
        ),
    }


def _averages(selection: Selection) -> dict[str, str]:
    whose, name, group = selection.average, selection.average_name, selection.group
    window = (
        f"SELECT {whose}, mean AS {name} FROM (SELECT *, avg(v) FILTER (kind = 'B') OVER (PARTITION BY x "
        f"ORDER BY begin RANGE BETWEEN {HOUR} PRECEDING AND CURRENT ROW) AS mean FROM "
        "(SELECT *, 'A' AS kind FROM A UNION ALL SELECT *, 'B' AS kind FROM B)) a WHERE kind = 'A' AND mean IS NOT NULL"
    )
    sums = (
        "WITH s AS (SELECT x, begin, sum(v) OVER w AS total, row_number() OVER w AS many FROM B "
        "WINDOW w AS (PARTITION BY x ORDER BY begin ROWS UNBOUNDED PRECEDING)) "
        f"SELECT {whose}, (s.total - coalesce(r.total, 0)) / (s.many - coalesce(r.many, 0)) AS {name} "
        "FROM A a ASOF JOIN s ON a.x = s.x AND a.begin >= s.begin "
        f"ASOF LEFT JOIN s r ON a.x = r.x AND a.begin - {HOUR} > r.begin WHERE s.many > coalesce(r.many, 0)"
    )
    return {
        "buckets, then groups": (
            f"SELECT {whose}, avg(b.v) AS {name} FROM (SELECT *, begin // {HOUR} AS bucket FROM A) a "
            f"JOIN {buckets('B', 'begin', f'begin + {HOUR}', HOUR, 1)} b ON a.x = b.x AND a.bucket = b.bucket "
            f"WHERE b.begin <= a.begin AND b.begin >= a.begin - {HOUR} GROUP BY {group}"
        ),
        "window function": window,
        "ASOF joins with running sums": sums,
        "join on the key, then groups": (
            f"SELECT {whose}, avg(b.v) AS {name} FROM A a JOIN B b ON a.x = b.x "
            f"AND b.begin BETWEEN a.begin - {HOUR} AND a.begin GROUP BY {group}"
        ),
    }


def _afterwards(selection: Selection, *, by_key: bool) -> dict[str, str]:
    key = " AND a.x = b.x" if by_key else ""
    both = f"SELECT {selection.pair} FROM"
    return {
        "join on the unit": (
            f"{both} (SELECT *, stop + n AS start FROM A, generate_series(1, 2) AS g(n)) a "
            f"JOIN B b ON b.begin = a.start{key}"
        ),
        "join on a range": f"{both} A a JOIN B b ON b.begin BETWEEN a.stop + 1 AND a.stop + 2{key}",
    }


def variants(case: Case, selection: Selection = SUMS) -> dict[str, str]:
    """The ways to write a query that have a chance on its stream."""
    hopeless: list[str] = []
    if case.hot or 0 < case.keys < 10_000:
        hopeless.append("on the key")
    if case.hot and case.keys >= 10_000 and case.query != "Q1h":
        hopeless.append("buckets")
    return {name: sql for name, sql in _all(case, selection).items() if not any(word in name for word in hopeless)}


def _all(case: Case, selection: Selection) -> dict[str, str]:
    match case.query:
        case "Q1" | "Q1h" | "Q1w":
            return _pairs(case.within, selection)
        case "Q2":
            return _chains(selection)
        case "Q3":
            return _absences(selection)
        case "Q4":
            return _averages(selection)
        case query:
            return _afterwards(selection, by_key=query == "Q5r")


def connect(stream: Stream) -> duckdb.DuckDBPyConnection:
    """DuckDB on one thread, with the stream in its memory."""
    connection = duckdb.connect()
    connection.execute("SET threads=1")
    for number, letter in enumerate(stream.types):
        rows = np.flatnonzero(stream.kind == number)
        columns = {"id": stream.id, "begin": stream.begin, "stop": stream.end}
        small = {"x": stream.x, "v": stream.v}
        events = pa.table(
            {
                **{name: pa.array(c[rows]) for name, c in columns.items()},
                **{name: pa.array(c[rows].astype(np.int32)) for name, c in small.items()},
            }
        )
        connection.register("events", events)
        connection.execute(f"CREATE TABLE {letter} AS SELECT * FROM events")
        connection.unregister("events")
    return connection


def answer(connection: duckdb.DuckDBPyConnection, case: Case, sql: str) -> tuple[Answers, float]:
    """The answers, of which each row gives the sum of its ids, and the CPU seconds of the query alone."""
    means = ", sum(mean)" if case.query == "Q4" else ", 0"
    start = time.process_time()
    row = connection.execute(f"SELECT count(*), sum(ids){means} FROM ({sql})").fetchone()
    seconds = time.process_time() - start
    if row is None:
        raise SystemExit(f"DuckDB has no answer to {case.name}")
    return Answers(int(row[0]), int(row[1] or 0), float(row[2] or 0)), seconds
