"""This module is what the hand-written side of the benchmark of commands on Spark runs: read, join, sort, write.

Without a job it is the bare start: a session, and one job with one `mapInArrow`.

python -m bench.command_pyspark [JOB]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

SPARK_NAMES = {"jsonl": "json", "csv": "csv", "parquet": "parquet"}


def session() -> SparkSession:
    """As one writes it who knows that all is on this machine."""
    return (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )


def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What `mapInArrow` does here."""
    yield from batches


def bare(spark: SparkSession) -> None:
    """The first job of a session, which starts a worker of Python."""
    spark.range(1_000).mapInArrow(unchanged, "id bigint").count()


def run(spark: SparkSession, job: dict[str, Any]) -> None:
    """From files to files."""
    reader = spark.read.schema(job["schema"])
    if job["format"] == "csv":
        reader = reader.option("header", "true")
    events = reader.format(SPARK_NAMES[job["format"]]).load(job["input"])
    events.selectExpr(*job["columns"]).createOrReplaceTempView("events")
    answers: DataFrame = spark.sql(job["query"])
    if job["sort"]:
        answers = answers.repartition(1).sortWithinPartitions(*job["sort"])
    writer = answers.selectExpr(*job["shown"]).write
    if job["output_format"] == "csv":
        writer = writer.option("header", "true")
    writer.format(SPARK_NAMES[job["output_format"]]).save(job["output"])


if __name__ == "__main__":
    started = session()
    if sys.argv[1:]:
        run(started, json.loads(sys.argv[1]))
    else:
        bare(started)
    started.stop()
