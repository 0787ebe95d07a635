"""This module tells the peak memory of this process, and what it and all that it started take of memory and time.

What `getrusage` says begins, in a new process, with the peak of the one that started it. So it is asked only where the
system does not tell the peak of the process itself.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

STATUS = Path("/proc/self/status")
PROCESSES = Path("/proc")


def peak() -> float:
    """The most memory that this process ever had, in MB."""
    told = re.search(r"VmHWM:\s*(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    if told is not None:
        return int(told[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 * 1024 if sys.platform == "darwin" else 1024)


def resident() -> float:
    """The memory that this process has now, in MB; its peak where the system does not tell."""
    told = re.search(r"VmRSS:\s*(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    return int(told[1]) / 1024 if told is not None else peak()


@dataclass(frozen=True, slots=True)
class Process:
    """A process as the system tells of it."""

    number: int
    parent: int
    name: str
    """What runs in it: `java` or `python`."""
    memory: float
    """What it has of the memory now, in MB, with what it shares."""
    cpu: float
    """The seconds that it has computed."""


def family() -> list[Process]:
    """This process and all that it has started, where the system tells of them; otherwise nothing."""
    found = [one for one in map(_process, PROCESSES.glob("[0-9]*")) if one is not None]
    own = {os.getpid()}
    while more := {one.number for one in found if one.parent in own} - own:
        own |= more
    return [one for one in found if one.number in own]


def _process(folder: Path) -> Process | None:
    try:
        name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return None  # it has ended meanwhile
    fields = rest.split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    memory = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return Process(int(folder.name), int(fields[1]), name, memory, seconds)
