"""This module shows what times without a zone mean on Spark, whatever the zone of the session."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.spark.batch.job import Job, start
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.read.scan import Input
from ephemera.terms.zones import NO_ZONE

RULES = 'TIME ZONE "Europe/Berlin"; EVENT a(id: int, at: time); s(id, at) <- i: a(id, at);'
UNDECLARED = "EVENT a(id: int, at: time); s(id, at) <- i: a(id, at);"
QUERY = """
    SELECT 'a' AS event, col1 AS time, col2 AS id, col3 AS at FROM VALUES
        (TIMESTAMP_NTZ'2026-03-01 09:00:00', 1, DATE'2026-07-01'),
        (TIMESTAMP_NTZ'2026-03-29 02:30:00', 2, NULL),
        (TIMESTAMP_NTZ'2026-10-25 02:30:00', 3, NULL)
"""
BAD = "`2026-03-29T02:30:00` does not exist in Europe/Berlin, whose clocks were put forward; give it a zone"


def computed(
    spark: SparkSession, text: str, given: Input
) -> tuple[list[dict[str, object]], list[str], tuple[str, ...]]:
    run = Computed(start(spark, [Job(ephemera.compile(text)._compiled)], [given]))
    try:
        lines = [json.loads(line) for lines in run.lines_in_order() for line in lines.splitlines()]
        return lines, [letter["reason"] for _, letter in run.letters()], run.summary.notes
    finally:
        run.close()


ANSWERS = [
    {"event": "s", "time": "2026-03-01T08:00:00Z", "data": [1, "2026-06-30T22:00:00Z"]},
    {"event": "s", "time": "2026-10-25T00:30:00Z", "data": [3, None]},
]


def test_columns_without_a_zone_are_in_that_of_the_program_whatever_the_session_has(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert computed(spark, RULES, Input(spark.sql(QUERY))) == (ANSWERS, [BAD], ())
        instant = spark.sql("SELECT 'a' AS event, TIMESTAMP'2026-03-01 09:00:00+00:00' AS time, 1 AS id, NULL AS at")
        (answer,), _, notes = computed(spark, UNDECLARED, Input(instant))
        assert (answer["time"], notes) == ("2026-03-01T09:00:00Z", ())
        _, _, notes = computed(spark, UNDECLARED, Input(spark.sql(QUERY)))
        assert notes == (NO_ZONE,)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def test_files_without_a_zone_mean_the_same(spark: SparkSession, tmp_path: Path) -> None:
    local = [datetime(2026, 3, 1, 9), datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30)]  # noqa: DTZ001
    at = [datetime(2026, 6, 30, 22, tzinfo=UTC), None, None]
    table = pa.table({"time": pa.array(local, pa.timestamp("us")), "id": [1, 2, 3], "at": pa.array(at)})
    pq.write_table(table, tmp_path / "a.parquet")
    rows = list(zip(local, (1, 2, 3), ("2026-07-01", "", ""), strict=True))
    (tmp_path / "a.csv").write_text("time,id,at\n" + "".join(f"{t.isoformat()},{k},{d}\n" for t, k, d in rows))
    lines = [{"event": "a", "time": t.isoformat(), "data": [k, d or None]} for t, k, d in rows]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, form in (("a.parquet", "parquet"), ("a.csv", "csv"), ("a.jsonl", "json")):
        given = Input((str(tmp_path / name),), form)  # type: ignore[arg-type]
        bad = f"a.csv, line 3: {BAD}" if form == "csv" else BAD  # lines of CSV are told with where they are
        assert computed(spark, RULES, given) == (ANSWERS, [bad], ()), name
        assert computed(spark, UNDECLARED, given)[2] == (NO_ZONE,), name


def test_a_data_frame_warns(spark: SparkSession) -> None:
    with pytest.warns(UserWarning, match="without a zone"):
        ephemera.compile(UNDECLARED).run(spark.sql(QUERY))
