"""This module tells sessions of Spark Connect from those of this process, and has what stands in for what they lack.

A session of Connect speaks to a server. No Java is in this process, and no `SparkContext`: how many cores there are is
counted by a job, and files for workers go with the session. Both happen once in a session. A live query holds a lock,
sinks and connections where its batches are run, which with Connect is another machine; so it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql import is_remote

from ephemera.base.errors import EphemeraError

_MODULE = "pyspark.sql.connect."
_IN_QUERY = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
_REMOTE = "SPARK_REMOTE"
_PARALLELISM = "spark.default.parallelism"
_ROWS = 10_000
"""Of so many rows each core has some."""
_CORES: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_SENT: WeakKeyDictionary[Any, Path] = WeakKeyDictionary()


class NotOnConnect(EphemeraError):
    """Something that a session of Spark Connect cannot do."""


def is_connect(spark: object) -> bool:
    """Whether a session, or a data frame, is one of Spark Connect."""
    return any(kind.__module__.startswith(_MODULE) for kind in type(spark).__mro__)


def names_server() -> bool:
    """Whether sessions of this process are of Spark Connect: one is there, or the environment names a server."""
    return is_remote() or _REMOTE in os.environ


def refuse_server() -> None:
    """Refuses a server of Spark Connect that the environment names, where a session of this process is to be opened."""
    if _REMOTE in os.environ:
        raise NotOnConnect(
            f"{_REMOTE} names a server of Spark Connect, and this opens a session of its own; unset it, or run data "
            "frames of the server from Python"
        )


def refuse_connect(spark: object) -> None:
    """Refuses a session of Spark Connect for what runs in the process of the driver."""
    if is_connect(spark):
        raise NotOnConnect(
            "a live query does not run on Spark Connect: its checkpoint, its sinks and its functions belong to the "
            "process that drives Spark, and this one only speaks to a server; run it with `spark-submit`, or in a "
            'session of this process (`SparkSession.builder.master("local[*]")`). `run` takes data frames of Connect'
        )


@contextmanager
def outside_of_queries() -> Iterator[None]:
    """Tells whoever runs a program in the query function of a pipeline, where Spark lets nobody look at a frame."""
    try:
        yield
    except AnalysisException as error:
        if _IN_QUERY not in str(error):
            raise
        raise NotOnConnect(
            "a program does not run in the query function of a pipeline, where Spark lets nobody look at the columns "
            "of a data frame; run it above the function, `answers = program.run(…)`, and let the function return "
            "`answers`. What is read has to be there before the pipeline runs: files, or tables of others"
        ) from None


def connect_cores(spark: Any) -> int:
    """How many tasks the server runs at once: what it is set to, else how many parts Spark makes of some rows."""
    if spark not in _CORES:
        told = spark.conf.get(_PARALLELISM, None)
        _CORES[spark] = int(told) if told else _counted(spark)
    return _CORES[spark]


def _counted(spark: Any) -> int:
    parts = spark.range(_ROWS).select(f.spark_partition_id().alias("part"))
    return 1 + int(parts.agg(f.max("part")).first()[0])


def send(spark: Any, archive: Callable[[], Path]) -> Path:
    """Sends an archive of Python to the workers of a session, unless it has it."""
    if spark not in _SENT:
        path = archive()
        spark.addArtifacts(str(path), pyfile=True)
        _SENT[spark] = path
    return _SENT[spark]
