"""This module says in one line what is missing where a run needs more than the engine in one process does.

The package is installed without Spark unless that is asked for. Whoever needs it asks here first, before anything is
read or written.
"""

from __future__ import annotations

from importlib.util import find_spec

from ephemera.base.errors import EphemeraError

WITH_SPARK = "pip install 'ephemera-cep[spark]'"
WITH_METRICS = "pip install 'ephemera-cep[metrics]'"
_OLDEST = (4, 2)
"""The oldest PySpark on which programs run."""


class NotInstalled(EphemeraError):
    """Something is asked for that needs a package which is not there."""


def lacking_spark(instead: str = "", *, who: str = "the engine `spark`") -> NotInstalled | None:
    """What to tell whoever needs Spark where there is none, or an old one; `instead` is what would do without."""
    if find_spec("pyspark") is None:
        lack = "PySpark, which is not installed"
    elif (old := _old_spark()) is not None:
        lack = f"PySpark {'.'.join(map(str, _OLDEST))} or newer, and {old} is installed"
    else:
        return None
    return NotInstalled(f"{who} needs {lack}: {WITH_SPARK}{f'; or {instead}' if instead else ''}")


def need_spark(instead: str = "", *, who: str = "the engine `spark`") -> None:
    """Goes on if Spark is there, and says what to do otherwise."""
    lack = lacking_spark(instead, who=who)
    if lack is not None:
        raise lack


def _old_spark() -> str | None:
    """The version of a PySpark that is too old; one that came without pip, as in a cluster, is taken as it is."""
    from importlib import metadata  # noqa: PLC0415 - it takes a while to load, and only runs on Spark ask

    try:
        told = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None
    parts = told.split(".")[:2]
    return told if all(p.isdigit() for p in parts) and tuple(map(int, parts)) < _OLDEST else None


def need(module: str, who: str, cure: str) -> None:
    """Goes on if a module is there; `who` needs it, and `cure` installs it."""
    if find_spec(module) is None:
        raise NotInstalled(f"{who} needs {module}, which is not installed: {cure}")
