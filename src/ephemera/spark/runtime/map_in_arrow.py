"""This module sends the rows of a data frame through a Python function in Arrow batches.

It is `DataFrame.mapInArrow` without the demand of PySpark that pandas be installed, which that neither needs nor uses.

Workers are spared what takes longer than a small task itself, and what takes longer than a large one.

Behind each task Spark has Python search all objects of the process for garbage. Modules, programs and shards make that
dear. At the beginning of a task nothing is garbage, since the search is just over; so all that is there is set aside,
and the next search is for what the task leaves behind. Now and then everything is searched again.

Before each task Java sends a few small messages, and holds back the last until the others are acknowledged, which Linux
puts off for 40 ms unless it is asked not to.

And they keep the memory that arrays have left (`base/kept_memory`), for which two workers otherwise wait for each
other.

All is for the whole process, and other code of the user may run there. So a session can switch each off, by settings
that are read when a run is planned; `docs/live.md` has what each saves. In sessions of the command, in which nothing
else runs, workers also do without pandas, which pyarrow would load in each of them.
"""

from __future__ import annotations

import gc
import os
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from threading import Lock

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.classic.dataframe import DataFrame as Classic
from pyspark.sql.pandas import functions
from pyspark.sql.types import StructType
from pyspark.util import PythonEvalType

from ephemera.base.kept_memory import keep_memory
from ephemera.base.without_pandas import do_without_pandas

FREEZE = "spark.ephemera.worker.freezeObjects"
QUICK_ACK = "spark.ephemera.worker.quickAck"
KEEP_MEMORY = "spark.ephemera.worker.keepMemory"
WITHOUT_PANDAS = "spark.ephemera.worker.withoutPandas"
_EVERYTHING = 200
"""Behind one of so many tasks everything is searched."""


_TASKS = count(1)
"""Numbers the tasks of this process."""
_POOL = "EPHEMERA_POOL"
"""The variable that tells pools apart."""
_PACKING = Lock()
"""Whoever packs for a pool has this: queries do so in threads of their own."""
Function = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What tasks may do to their whole process."""

    freezes: bool = True
    """Whether what is there at the beginning of a task is not searched for garbage behind it."""
    acknowledges: bool = True
    """Whether what Java sends is acknowledged at once."""
    keeps_memory: bool = True
    """Whether memory that arrays have left is kept for the next ones."""
    has_pandas: bool = True
    """Whether pyarrow may load pandas, as functions of others may need it to."""


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


# ---- the processes of workers ----------------------------------------------------------------------------------


def worker_settings(spark: SparkSession) -> WorkerSettings:
    """What a session says, and else what is so by default."""
    defaults = {FREEZE: "true", QUICK_ACK: "true", KEEP_MEMORY: "true", WITHOUT_PANDAS: "false"}
    found = {name: str(spark.conf.get(name, value)).lower() == "true" for name, value in defaults.items()}
    return WorkerSettings(found[FREEZE], found[QUICK_ACK], found[KEEP_MEMORY], not found[WITHOUT_PANDAS])


def begin_task(settings: WorkerSettings) -> None:
    """Prepares the process for a task; outside of Spark's tasks nothing is done."""
    if TaskContext.get() is None:
        return
    if not settings.has_pandas:
        do_without_pandas()
    if settings.keeps_memory:
        keep_memory()
    if settings.freezes and next(_TASKS) % _EVERYTHING:
        gc.freeze()
    elif gc.get_freeze_count():
        gc.unfreeze()
    if not settings.acknowledges:
        return
    with suppress(OSError):  # without it all is as right, if later
        for line in _lines(os.getpid()):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


@lru_cache(maxsize=1)
def _lines(_process: int) -> list[socket.socket]:
    """The TCP connections of this process within the machine, of which that to Java is one; found once in each."""
    if not hasattr(socket, "TCP_QUICKACK"):
        return []
    found: list[socket.socket] = []
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if _is_socket(number):
            line = socket.socket(fileno=os.dup(number))
            if _is_at_home(line):
                found.append(line)
            else:
                line.close()
    return found


def _is_at_home(line: socket.socket) -> bool:
    if line.family not in {socket.AF_INET, socket.AF_INET6} or line.type != socket.SOCK_STREAM:
        return False
    try:
        return str(line.getpeername()[0]).startswith(("127.", "::1", "::ffff:127."))
    except OSError:  # it waits for others to call
        return False


def _is_socket(number: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:  # the folder that was listed is closed by now
        return False
