"""This module opens Spark sessions: by default an embedded one in local threads, quiet, that leaves nothing behind.

A session that is there already is used as it is, be it of a notebook or of `spark-submit`. Whatever Spark writes for
itself goes to a folder of the session, which is removed when the process ends.

What is asked of a session is set where it is opened, and nowhere else: one that is there already keeps its settings,
and the environment in which Java is started is as before when it has been. `lent` is the one exception.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from ephemera.base.scratch import scratch_of_process
from ephemera.spark.runtime.class_archive import Length, start_of
from ephemera.spark.runtime.connect_session import is_connect, refuse_server
from ephemera.spark.runtime.java import OUTLIVES, find_java, home_for_spark
from ephemera.spark.runtime.map_in_arrow import WITHOUT_PANDAS

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
_LENDING = Lock()
"""Whoever changes a setting for a while has this, so that each puts back what was there before all of them."""


def session(  # noqa: PLR0913 - what is asked of a session
    master: str | None = None,
    *,
    debug: bool = False,
    more: Mapping[str, str] | None = None,
    length: Length = "long",
    may_archive: bool = False,
    is_alone: bool = False,
) -> SparkSession:
    """The session that is there, else a new one; `debug` lets Spark say on standard error what it warns of.

    `length` says what is going to be done with it, `may_archive` that Java may go on behind its end, and `is_alone`
    that no functions of others are going to run in its workers.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    refuse_server()
    builder = SparkSession.builder.appName("ephemera")
    settings = _settings() | ({WITHOUT_PANDAS: "true"} if is_alone else {})
    environment: dict[str, str] = {}
    if _GATEWAY not in os.environ:
        chosen = master or os.environ.get("MASTER") or LOCAL
        java = find_java()
        start = start_of(java, length, may_make=may_archive and not debug)
        settings |= _launched(start.options, debug=debug)
        environment = {"JAVA_HOME": str(home_for_spark(java)), **({OUTLIVES: "1"} if start.makes else {})}
        if chosen.startswith("local"):
            settings |= _at_home()
            environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
            environment |= {"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")}
        builder = builder.master(chosen)
    for name, value in (settings | dict(more or {})).items():
        builder = builder.config(name, value)
    with _environment(environment):
        spark = builder.getOrCreate()
    if not debug and not is_connect(spark):
        _hush(spark, is_ours=bool(environment))
    return spark


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets variables of this process for as long as Java is being started, which has them from then on."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def lent(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Sets something of a session for a while, whosesoever it is; afterwards it is as before."""
    with _LENDING:
        before = spark.conf.getAll.get(name)
        spark.conf.set(name, value)
        try:
            yield
        finally:
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)


def _hush(spark: SparkSession, *, is_ours: bool) -> None:
    """Keeps the thread that hears of accumulators from printing where it was when Java was lost, which others tell.

    Where Java is not ours, only that it has ended is passed over.
    """
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        before = server.handle_error

        def handle_error(*given: object) -> None:
            if not is_ours and not isinstance(sys.exception(), EOFError):
                before(*given)

        server.handle_error = handle_error


def is_local(spark: SparkSession) -> bool:
    """Whether all tasks run on this machine, as far as this process knows; where a server has them, nobody does."""
    return not is_connect(spark) and str(spark.sparkContext.master).startswith("local")


def _settings() -> dict[str, str]:
    """What holds for any session that we open."""
    return {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",  # as names are everywhere else here
        "spark.ui.showConsoleProgress": "false",
    }


def _launched(given: Sequence[str], *, debug: bool) -> dict[str, str]:
    """What holds where we start Java, too."""
    folder = scratch_of_process("spark")
    atexit.register(_close)
    level = "warn" if debug else "off"
    options = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", f"-Dephemera.log={level}", *given]
    hushed = [os.environ.get("PYTHONWARNINGS", ""), _FORKING]
    return {
        "spark.executorEnv.PYTHONWARNINGS": ",".join(filter(None, hushed)),
        "spark.driver.extraJavaOptions": " ".join([*options, f'"-Djava.io.tmpdir={folder}"']),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.python.worker.reuse": "true",
        "spark.sql.adaptive.enabled": "false",  # our stages have as many partitions as they need
    }


def _at_home() -> dict[str, str]:
    """What holds where all of Spark is in this machine."""
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": f"{_memory()}m",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),  # of what Spark sums up and sorts by itself
    }


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
