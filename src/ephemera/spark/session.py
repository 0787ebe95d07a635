"""This module opens Spark sessions: by default an embedded one in local threads, quiet, that leaves nothing behind.

A session that is there already is used as it is, be it of a notebook or of `spark-submit`. Whatever Spark writes for
itself goes to a folder of the session, which is removed when the process ends.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.sql import SparkSession

from ephemera.base.scratch import scratch_of_process
from ephemera.spark.java import find_java, home_for_spark

_FORKING = "ignore:This process:DeprecationWarning"
"""Newer versions of Python warn where a process with threads is forked, as Spark does with its workers."""
LOCAL = "local[*,4]"
"""All cores, and a task that fails, as when its worker is killed, is tried again."""
BATCH = 100_000
"""Records in an Arrow batch, at most."""
BYTES = 4 << 20
"""Bytes in one, about; shipments of events are large."""
_LOGGING = Path(__file__).with_name("log4j2.properties")
_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Set by `spark-submit`, which has started Java and chosen the master."""


def session(master: str | None = None, *, debug: bool = False, more: Mapping[str, str] | None = None) -> SparkSession:
    """The session that is there, else a new one; `debug` lets Spark say on standard error what it warns of."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder.appName("ephemera")
    settings = _settings()
    if _GATEWAY not in os.environ:
        chosen = master or os.environ.get("MASTER") or LOCAL
        settings |= _launched(chosen, debug=debug)
        builder = builder.master(chosen)
    for name, value in (settings | dict(more or {})).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if not debug:
        _hush(spark)
    return spark


def _hush(spark: SparkSession) -> None:
    """Lets the thread that hears of accumulators end without a word when Java has ended, which others tell."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        before = server.handle_error
        server.handle_error = lambda *given: None if isinstance(sys.exception(), EOFError) else before(*given)


def is_local(spark: SparkSession) -> bool:
    """Whether all tasks run on this machine."""
    return str(spark.sparkContext.master).startswith("local")


def _settings() -> dict[str, str]:
    """What holds for any session that we open."""
    return {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",  # as names are everywhere else here
        "spark.ui.showConsoleProgress": "false",
    }


def _launched(master: str, *, debug: bool) -> dict[str, str]:
    """What holds where we start Java, too; sets the environment in which that happens."""
    os.environ["JAVA_HOME"] = str(home_for_spark(find_java()))
    folder = scratch_of_process("spark")
    atexit.register(_close)
    level = "warn" if debug else "off"
    if not debug:
        _say_nothing()
    options = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", f"-Dephemera.log={level}"]
    hushed = [os.environ.get("PYTHONWARNINGS", ""), _FORKING]
    settings = {
        "spark.executorEnv.PYTHONWARNINGS": ",".join(filter(None, hushed)),
        "spark.driver.extraJavaOptions": " ".join([*options, f'"-Djava.io.tmpdir={folder}"']),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.python.worker.reuse": "true",
        "spark.sql.adaptive.enabled": "false",  # our stages have as many partitions as they need
    }
    if master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": f"{_memory()}m",
        }
    return settings


def _say_nothing() -> None:
    """Keeps Python's side of Spark from printing where its thread for counters was when Java was lost."""
    AccumulatorTCPServer.handle_error = lambda *_given: None  # type: ignore[method-assign]


def _memory() -> int:
    """Megabytes for Java in a local session: a quarter of what there is, from one to four GB."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    except (AttributeError, OSError, ValueError):
        there = 0
    return min(max(there // 4, 1_024), 4_096)


def _close() -> None:
    """Ends the session at the end of the process, so that Java does not write into its folder as it goes."""
    with suppress(Py4JError, OSError):  # Java may be gone
        active = SparkSession.getActiveSession()
        if active is not None:
            active.stop()
