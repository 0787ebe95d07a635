"""This module asks Q1 of Spark's own streaming: a join of two streams with watermarks, as one writes it by hand.

Its state is kept by either of Spark's two stores; which is faster depends on the size of batches.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
STORES = {
    "memory": f"{_PACKAGE}.HDFSBackedStateStoreProvider",
    "rocksdb": f"{_PACKAGE}.RocksDBStateStoreProvider",
}
"""The first is Spark's default."""


def pairs(frame: DataFrame, within: int) -> DataFrame:
    """Pairs of A and B with the same `x` that are at most so many milliseconds apart."""
    stamped = frame.select("event", "id", "x", f.timestamp_millis("time").alias("at")).withWatermark("at", "0 seconds")
    a, b = _of(stamped, "A"), _of(stamped, "B")
    apart = f.expr(f"INTERVAL {within} MILLISECONDS")
    near: Column = (b["b_at"] >= a["a_at"] - apart) & (b["b_at"] <= a["a_at"] + apart)
    return a.join(b, (a["a_x"] == b["b_x"]) & near).select("a_id", "b_id")


def _of(frame: DataFrame, letter: str) -> DataFrame:
    names = {name: f"{letter.lower()}_{name}" for name in ("id", "x", "at")}
    return frame.where(f.col("event") == letter).select(*[f.col(old).alias(new) for old, new in names.items()])


def start(frame: DataFrame, within: int, *, store: str, checkpoint: str, output: str) -> StreamingQuery:
    """The join as a query that writes its answers to Parquet files."""
    frame.sparkSession.conf.set(PROVIDER, STORES[store])
    writer = pairs(frame, within).writeStream.format("parquet").option("checkpointLocation", checkpoint)
    return writer.option("path", output).start()
