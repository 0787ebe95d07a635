"""This module runs a command and tells what it took: seconds of the processor, seconds that passed, and memory.

Of a new process the system tells a peak of memory that is at least that of the process which started it. So a command
is started by a process that is small: this module as a program of its own, which imports little. On Linux it also
inherits what the command leaves behind, such as the Java of Spark, which ends a moment later, and waits for it.

python -m bench.usage REPORT COMMAND…
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SUBREAPER = 36
"""What `prctl` calls the wish to inherit processes whose parents end."""
MOST_TOLD = 2_000
"""Characters of what a failed command said last."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a command took."""

    cpu: float
    """Seconds of user and system, with those of all processes that it started."""
    wall: float
    """Seconds until it ended itself."""
    peak: float
    """The most memory of one of these processes, in MB."""


class Failed(Exception):
    """The command did not end well, or not in time."""


def used(command: Sequence[str], folder: Path, *, limit: float, more: Mapping[str, str] | None = None) -> Usage:
    """Runs a command to its end; `folder` is for the report, `more` are variables of its environment."""
    report = folder / "usage.json"
    report.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.usage", str(report), *command],
        env=os.environ | dict(more or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # a group of its own, so with all that it started
        process.communicate()
        raise Failed(f"{' '.join(command)} took more than {limit:g} s") from None
    if process.returncode:
        raise Failed(f"{' '.join(command)} ended with {process.returncode}:\n{told[-MOST_TOLD:]}")
    return Usage(**json.loads(report.read_text()))


def main() -> None:
    """Runs a command, writes what it took to a file, and ends as the command did."""
    report, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    begin = time.perf_counter()
    number = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(number, 0)
    wall = time.perf_counter() - begin
    usages = [usage]
    with suppress(ChildProcessError):  # there are no more
        while True:
            usages.append(os.wait4(-1, 0)[2])
    peak = max(u.ru_maxrss for u in usages) / (1024 * 1024 if sys.platform == "darwin" else 1024)
    cpu = sum(u.ru_utime + u.ru_stime for u in usages)
    Path(report).write_text(json.dumps({"cpu": cpu, "wall": wall, "peak": peak}))
    sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
