"""This module sends the rows of a data frame through a Python function in Arrow batches.

It is `DataFrame.mapInArrow` without the demand of PySpark that pandas be installed, which that neither needs nor uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.classic.dataframe import DataFrame as Classic
from pyspark.sql.pandas import functions
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

from ephemera.spark.workers import begin_task

Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class _Task:
    """A function as tasks run it."""

    function: Function

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        yield from self.function(given)


def map_in_arrow(frame: DataFrame, function: Function, schema: StructType | str) -> DataFrame:
    """The rows that a function makes of the batches of each partition."""
    if not isinstance(frame, Classic):
        return frame.mapInArrow(_Task(function), schema)
    return mapped(frame, prepared(function, schema, frame.columns))


def prepared(function: Function, schema: StructType | str, names: Sequence[str]) -> Column:
    """A function on the columns with these names, packed once for `mapped`, which costs little then."""
    made = functions.vectorized_udf(_Task(function), schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)  # type: ignore[attr-defined]
    column: Column = made(*[f.col(_quoted(name)) for name in names])
    return column


def mapped(frame: DataFrame, function: Column) -> DataFrame:
    """The rows that a prepared function makes of the batches of each partition."""
    return Classic(frame._jdf.mapInArrow(function._jc, False, None), frame.sparkSession)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
