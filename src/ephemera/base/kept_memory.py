"""This module has a process keep the memory that arrays have left, for the next ones.

Kernels make and drop arrays of half a megabyte all the time. The C library of Linux gives such memory back to the
system at once and asks for it anew, page by page, until a process has dropped an array of 32 MB; then it keeps 64 MB.
Processes with small arrays only never come to that, and where two of them take pages at once they wait for each other:
pairs of events took 14 s of CPU in two workers that take 4 s. So it is told at the beginning.

It is for the whole process, so it is done only in those that are ours: commands, and tasks of Spark.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

LARGE = 32 << 20
"""Bytes from which on memory is given back at once; the C library comes to this by itself, and no further."""
KEPT = 2 * LARGE
"""Bytes that are kept at most at the end of the heap."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What `malloc.h` calls these."""


@cache
def keep_memory() -> None:
    """From here on memory that was freed is kept, where the C library can be told so."""
    if sys.platform != "linux":
        return
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:  # not every C library has it
        change(_MMAP_THRESHOLD, LARGE)
        change(_TRIM_THRESHOLD, KEPT)
