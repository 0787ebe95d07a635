"""This module spares workers two things that take longer than a small task itself.

Behind each task Spark has Python search all objects of the process for garbage. Modules, programs and shards make that
dear. At the beginning of a task nothing is garbage, since the search is just over; so all that is there is set aside,
and the next search is for what the task leaves behind. Now and then everything is searched again.

Before each task Java sends a few small messages, and holds back the last until the others are acknowledged, which Linux
puts off for 40 ms unless it is asked not to.

Both are for the whole process, and other code of the user may run there. So a session can switch them off, by settings
that are read when a run is planned; `docs/live.md` has what each saves.
"""

from __future__ import annotations

import gc
import os
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

FREEZE = "spark.ephemera.worker.freezeObjects"
QUICK_ACK = "spark.ephemera.worker.quickAck"
_EVERYTHING = 200
"""Behind one of so many tasks everything is searched."""


_TASKS = count(1)
"""Numbers the tasks of this process."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What tasks may do to their whole process."""

    freezes: bool = True
    """Whether what is there at the beginning of a task is not searched for garbage behind it."""
    acknowledges: bool = True
    """Whether what Java sends is acknowledged at once."""


def worker_settings(spark: SparkSession) -> WorkerSettings:
    """What a session says, and else what is so by default."""
    freezes, acknowledges = (str(spark.conf.get(name, "true")).lower() == "true" for name in (FREEZE, QUICK_ACK))
    return WorkerSettings(freezes, acknowledges)


def begin_task(settings: WorkerSettings) -> None:
    """Prepares the process for a task; outside of Spark's tasks nothing is done."""
    if TaskContext.get() is None:
        return
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
