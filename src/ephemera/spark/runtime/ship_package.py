"""This module sees that workers can run the package: it is sent to those that lack it, and their Python is looked at.

The package goes as one zip of sources and their bytecode, so that a worker need not compile it at every start; Spark
wants the same version of Python everywhere anyway. What the package stands on cannot travel so: lxml, msgspec, numpy
and pyarrow have to be where the workers are, and `missing` tells whoever forgot.

A local session that we open runs this Python. One that is there already, of a notebook or a script, runs what
PYSPARK_PYTHON named when it was opened, or else the `python3` of the search path, which need not be that of the
environment at hand.
"""

from __future__ import annotations

import importlib.util
import json
import marshal
import re
import shutil
import subprocess
import sys
import zipfile
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from pyspark.sql import SparkSession

from ephemera.base.errors import EphemeraError
from ephemera.base.scratch import scratch_of_process
from ephemera.spark.runtime.connect_session import is_connect, send
from ephemera.spark.runtime.session import is_local

_PACKAGE = Path(__file__).parents[2]
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""Files in a zip have a date; with the same one the same sources make the same zip."""

NEEDED = {"lxml": "lxml", "msgspec": "msgspec", "numpy": "numpy", "pyarrow": "pyarrow", "re2": "google-re2"}
"""What workers must have, by module; the package itself is sent."""
_LOOK = (
    "import importlib.util as u, json, sys; print(json.dumps([list(sys.version_info[:2]), "
    "[n for n in sys.argv[1:] if u.find_spec(n) is None]]))"
)
_PATIENCE = 60.0
"""Seconds in which a Python starts, or does not."""


class MissingPackage(EphemeraError):
    """Workers lack a package that cannot be sent to them."""


def ship(spark: SparkSession, folder: Path | None = None) -> Path | None:
    """Sends the package to the workers; those of a local session need nothing, if they run this Python."""
    if is_local(spark):
        if is_same(spark):
            return None
        check_python(spark)
    if not _PACKAGE.is_dir():
        return None  # it came in a zip itself, which `spark-submit` has sent
    place = scratch_of_process("ship") if folder is None else folder
    if is_connect(spark):
        return send(spark, lambda: packed(place))
    archive = packed(place)
    spark.sparkContext.addPyFile(str(archive))
    return archive


def packed(folder: Path) -> Path:
    """The package as a zip in a folder, under a name that says its contents."""
    files = {f"{_PACKAGE.name}/{p.relative_to(_PACKAGE).as_posix()}": p.read_bytes() for p in _sources()}
    name = sha256(b"\0".join(part for n, data in sorted(files.items()) for part in (n.encode(), data))).hexdigest()
    archive = folder / f"ephemera-{name[:12]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path, source in sorted(files.items()):
            file.writestr(zipfile.ZipInfo(path, _EARLIEST), source)
            if path.endswith(".py"):
                file.writestr(zipfile.ZipInfo(f"{path}c", _EARLIEST), _bytecode(path, source))
    return archive


def _sources() -> list[Path]:
    return [p for p in _PACKAGE.rglob("*") if p.is_file() and "__pycache__" not in p.parts and p.suffix != ".pyc"]


def _bytecode(path: str, source: bytes) -> bytes:
    """A file of bytecode that is taken without a look at its source (PEP 552)."""
    code = compile(source, path, "exec", dont_inherit=True)
    unchecked = (1).to_bytes(4, "little")
    hashed = importlib.util.source_hash(source)
    return importlib.util.MAGIC_NUMBER + unchecked + hashed + marshal.dumps(code)


def missing(error: BaseException) -> MissingPackage | None:
    """What to tell people if a job failed because of the Python of the workers; None if it failed otherwise."""
    other = re.search(
        r"Python in worker has different version:? \(?([\d., ]+?)\)? than that in driver:? ([\d.]+)", str(error)
    )
    if other is not None:
        return MissingPackage(
            f"the workers run Python {other[1]}, and this is {other[2]}; run both with the same one, "
            "which PYSPARK_PYTHON or --conf spark.pyspark.python names for the workers"
        )
    told = re.search(r"No module named '([A-Za-z0-9_]+)", str(error)) or re.search(
        r"\[PACKAGE_NOT_INSTALLED\] (\w+)", str(error)
    )
    if told is None or told[1].lower() not in NEEDED:
        return None
    return MissingPackage(
        f"the Python of the workers has no {NEEDED[told[1].lower()]}; it needs {', '.join(NEEDED.values())} "
        "(Ephemera itself is sent). "
        "Install them there, or name another Python with PYSPARK_PYTHON or --conf spark.pyspark.python"
    )


# ---- the Python of the workers ---------------------------------------------------------------------------------


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
