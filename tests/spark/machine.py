"""This module runs Python in processes of its own, with Java hidden or on a real cluster of two workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from ephemera.spark.runtime.java import find_java, home_for_spark

SOURCES = Path(__file__).parents[2] / "src"
PATIENCE = 300.0
"""Seconds after which something that should come never will."""


def run_python(script: str, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a script says when run apart from the tests."""
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=dict(environment), capture_output=True, text=True, timeout=300, check=False)


def without_java(folder: Path) -> dict[str, str]:
    """An environment whose PATH has every program but Java, and that does not name one."""
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    hidden = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {**hidden, "PATH": str(folder), "PYTHONPATH": str(SOURCES)}


def bare_python(folder: Path, without: Sequence[str] = ()) -> Path:
    """A Python that has every installed package except this one and those named."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "ephemera" not in entry.name and entry.suffix != ".pth" and entry.name not in without:
            (packages / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A standalone master with its workers: where it listens, and the processes."""

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A real cluster on this machine; it is gone when the block ends."""
    with ExitStack() as stack:
        master = stack.enter_context(_daemon(folder, "master.Master", "--port", "0"))
        url = _said(master, r"Starting Spark master at (spark://\S+)")
        started = [
            stack.enter_context(
                _daemon(
                    folder, "worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"w{k}"), url
                )
            )
            for k in range(workers)
        ]
        for worker in started:
            _said(worker, r"(Successfully registered with master)")
        yield Cluster(url, tuple(worker.process for worker in started))


@dataclass(frozen=True, slots=True)
class _Daemon:
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def connect_server(folder: Path, python: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """A server of Spark Connect on two cores, whose workers run some Python; gives where clients find it."""
    given = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        **(settings or {}),
    }
    options = [option for name, value in given.items() for option in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = ["SparkSubmit", "--master", "local[2]", "--class", server, *options, "spark-internal"]
    with _process(folder, *command, environment={"PYSPARK_PYTHON": str(python)}) as running:
        yield f"sc://127.0.0.1:{_said(running, r'Spark Connect server started at: .*:([0-9]+)')}"


@contextmanager
def _daemon(folder: Path, name: str, *arguments: str) -> Iterator[_Daemon]:
    with _process(folder, name, "--host", "127.0.0.1", "--webui-port", "0", *arguments) as daemon:
        yield daemon


def spark_environment(folder: Path) -> dict[str, str]:
    """An environment for programs of Spark itself, which write to a folder, and whose Python lacks this package."""
    return {n: v for n, v in os.environ.items() if n != "PYTHONPATH"} | {
        "JAVA_HOME": str(home_for_spark(find_java())),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
    }


@contextmanager
def _process(
    folder: Path, name: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[_Daemon]:
    log = folder / f"{name}-{len(list(folder.glob('*.log')))}.log"
    environment = {**spark_environment(folder), "SPARK_NO_DAEMONIZE": "1", **(environment or {})}
    program = str(Path(environment["SPARK_HOME"], "bin", "spark-class"))
    command = [program, f"org.apache.spark.deploy.{name}", *arguments]
    with log.open("wb") as file, subprocess.Popen(command, env=environment, stdout=file, stderr=file) as process:
        try:
            yield _Daemon(process, log)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def _said(daemon: _Daemon, pattern: str) -> str:
    """What a daemon's log says, as soon as it does."""
    last = time.monotonic() + PATIENCE
    while time.monotonic() < last and daemon.process.poll() is None:
        if (found := re.search(pattern, daemon.log.read_text(errors="replace"))) is not None:
            return found[1]
        time.sleep(0.05)
    raise TimeoutError(f"{daemon.log} never said {pattern}:\n{daemon.log.read_text(errors='replace')}")
