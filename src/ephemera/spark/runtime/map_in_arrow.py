"""This module sends the rows of a data frame through a Python function in Arrow batches.

It is `DataFrame.mapInArrow` without the demand of PySpark that pandas be installed, which that neither needs nor uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.classic.dataframe import DataFrame as Classic
from pyspark.sql.pandas import functions
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

from ephemera.spark.runtime.worker_tuning import WorkerSettings, begin_task, worker_settings

_POOL = "EPHEMERA_POOL"
"""The variable that tells pools apart."""
_PACKING = Lock()
"""Whoever packs for a pool has this: queries do so in threads of their own."""
Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class _Task:
    """A function as tasks run it."""

    function: Function
    settings: WorkerSettings

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task(self.settings)
        yield from self.function(given)


def map_in_arrow(frame: DataFrame, function: Function, schema: StructType | str) -> DataFrame:
    """The rows that a function makes of the batches of each partition."""
    if not isinstance(frame, Classic):
        return frame.mapInArrow(_Task(function, worker_settings(frame.sparkSession)), schema)
    return mapped(frame, prepared(frame.sparkSession, function, schema, frame.columns))


def prepared(
    spark: SparkSession, function: Function, schema: StructType | str, names: Sequence[str], *, pool: str = ""
) -> Column:
    """A function on the columns with these names, packed once for `mapped`, which costs little then.

    Its tasks run in processes of the pool of that name, since Spark keeps those apart whose environments differ.
    """
    task = _Task(function, worker_settings(spark))
    made = functions.vectorized_udf(task, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)  # type: ignore[attr-defined]
    with _environment(pool):
        column: Column = made(*[f.col(_quoted(name)) for name in names])
    return column


@contextmanager
def _environment(pool: str) -> Iterator[None]:
    """What is packed meanwhile runs in a pool; nothing changes for the one without a name."""
    context = SparkContext._active_spark_context
    if context is None or not pool:
        yield
        return
    with _PACKING:
        before = context.environment
        context.environment = {**before, _POOL: pool}
        try:
            yield
        finally:
            context.environment = before


def mapped(frame: DataFrame, function: Column) -> DataFrame:
    """The rows that a prepared function makes of the batches of each partition."""
    return Classic(frame._jdf.mapInArrow(function._jc, False, None), frame.sparkSession)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
