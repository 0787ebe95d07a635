"""A process that keeps its memory does not ask the system for it anew with each array."""

from __future__ import annotations

import subprocess
import sys

import pytest

ARRAYS = """
import resource, sys
import numpy as np
from ephemera.base.kept_memory import keep_memory

keep_memory()

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        arrays = [np.ones(65_536) for _ in range(8)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

pages()
print(pages())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only the C library of Linux is told")
def test_arrays_take_the_memory_of_those_before() -> None:
    """Without it each of the 1,600 arrays takes 128 pages anew."""
    done = subprocess.run([sys.executable, "-c", ARRAYS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2_000
