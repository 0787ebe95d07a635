"""This module looks at the Python that the workers of a local session run, and says in a line if it cannot run us.

A session that we open runs this Python. One that is there already, of a notebook or a script, runs what PYSPARK_PYTHON
named when it was opened, or else the `python3` of the search path, which need not be that of the environment at hand.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from pyspark.sql import SparkSession

from ephemera.base.errors import EphemeraError

NEEDED = {"lxml": "lxml", "numpy": "numpy", "pyarrow": "pyarrow", "re2": "google-re2"}
"""What workers must have, by module; the package itself is sent."""
_LOOK = (
    "import importlib.util as u, json, sys; print(json.dumps([list(sys.version_info[:2]), "
    "[n for n in sys.argv[1:] if u.find_spec(n) is None]]))"
)
_PATIENCE = 60.0
"""Seconds in which a Python starts, or does not."""


class OtherPython(EphemeraError):
    """Workers run a Python that cannot run the package."""


def is_same(spark: SparkSession) -> bool:
    """Whether the workers of a local session run this Python, by its own path: environments share one behind links."""
    there = shutil.which(spark.sparkContext.pythonExec)
    return there is not None and Path(there).absolute() == Path(sys.executable).absolute()


def check_python(spark: SparkSession) -> None:
    """Refuses a local session whose workers run a Python of another version, or one that lacks something."""
    complaint = _complaint(spark.sparkContext.pythonExec)
    if complaint is not None:
        raise OtherPython(complaint)


@lru_cache(maxsize=100)
def _complaint(python: str) -> str | None:
    """What is wrong with a Python, by its path: it is started once in a process."""
    try:
        looked = subprocess.run([python, "-c", _LOOK, *NEEDED], capture_output=True, timeout=_PATIENCE, check=True)
        version, lacking = json.loads(looked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return f"the Python of the workers, {python}, does not start; {cure()}"
    if tuple(version) != sys.version_info[:2]:
        own = ".".join(map(str, sys.version_info[:2]))
        return f"the workers run Python {'.'.join(map(str, version))} ({python}), and this is {own}; {cure()}"
    if lacking:
        return f"the Python of the workers, {python}, has no {', '.join(NEEDED[n] for n in lacking)}; {cure()}"
    return None


def cure() -> str:
    """What to do about it."""
    return f"set PYSPARK_PYTHON={sys.executable} before the session is opened, and open it anew"
