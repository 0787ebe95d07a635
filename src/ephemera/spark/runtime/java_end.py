"""This module notices that Java has ended while Spark was at work, be it killed or out of memory."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException

from ephemera.base.errors import EphemeraError

GONE = (Py4JError, ConnectionError)
"""What calls raise when Java has ended, among other things."""
_PATIENCE = 5.0
"""Seconds in which a process is over whose connections broke."""


class JavaEnded(EphemeraError):
    """Java ended before the run did."""


def java_ended(error: BaseException) -> JavaEnded | None:
    """What to tell people if a call failed because Java has ended; None if it failed otherwise."""
    is_broken = isinstance(error, Py4JNetworkError | ConnectionError)
    process = getattr(SparkContext._gateway, "proc", None)
    if isinstance(process, subprocess.Popen):
        if is_broken:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
        code = process.poll()
        return None if code is None else JavaEnded(_line(code))
    return JavaEnded(_line(None)) if is_broken else None


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
