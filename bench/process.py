"""This module tells the peak memory of this process.

What `getrusage` says begins, in a new process, with the peak of the one that started it. So it is asked only where the
system does not tell the peak of the process itself.
"""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak() -> float:
    """The most memory that this process ever had, in MB."""
    told = re.search(r"VmHWM:\s*(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    if told is not None:
        return int(told[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 * 1024 if sys.platform == "darwin" else 1024)
