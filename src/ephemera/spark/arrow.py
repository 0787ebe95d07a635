"""This module sends the rows of a data frame through a Python function in Arrow batches.

It is `DataFrame.mapInArrow` without the demand of PySpark that pandas be installed, which that neither needs nor uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as Classic
from pyspark.sql.pandas import functions
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, function: Function, schema: StructType | str) -> DataFrame:
    """The rows that a function makes of the batches of each partition."""
    if not isinstance(frame, Classic):
        return frame.mapInArrow(function, schema)
    made = functions.vectorized_udf(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)  # type: ignore[attr-defined]
    column = made(frame[frame.columns[0]])  # which only has to be one of the frame: all columns are passed
    return Classic(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)
