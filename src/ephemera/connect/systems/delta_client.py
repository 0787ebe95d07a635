"""This module finds tables of Delta Lake by their addresses, with the package `deltalake`, which needs no Java.

A table is a folder with a log: version by version, which files have come and which have gone. What a store needs to
know besides, such as keys of S3, `deltalake` takes from the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ephemera.base.installed import need
from ephemera.connect.systems.address import Address, NoAnswer

if TYPE_CHECKING:
    from deltalake import DeltaTable

WITH_DELTA = "pip install 'ephemera-cep[delta]'"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_READABLE = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "columnMapping", "deletionVectors"})
"""What tables may need of who reads them; of the last two it is looked at whether they are used."""


def check_delta(address: Address) -> None:
    """Raises what is missing."""
    need("deltalake", f"`{address}`", WITH_DELTA)


def loaded(address: Address, version: int | None = None) -> DeltaTable:
    """The table as it is, or as it was at a version; raises `NoAnswer` if there is none."""
    from deltalake import DeltaTable  # noqa: PLC0415 - only who uses Delta Lake needs it
    from deltalake.exceptions import DeltaError, TableNotFoundError  # noqa: PLC0415 - only who uses Delta Lake

    try:
        found = DeltaTable(address.path)
    except TableNotFoundError:
        raise NoAnswer(
            f"`{address}`: there is no table of Delta Lake yet; it must be there, even if it is empty"
        ) from None
    except (DeltaError, OSError, ValueError) as error:
        raise refused(address, error) from None
    last = found.version()
    if version is not None and version > last:
        raise NoAnswer(f"`{address}`: the table has no version {version} yet; its last one is {last}")
    try:
        if version is not None and version < last:
            found.load_as_version(version)
    except (DeltaError, OSError, ValueError) as error:
        raise NoAnswer(
            f"`{address}`: version {version} of the table cannot be read any more: {_first_line(error)}; "
            f"name a later one, up to {last}, or none"
        ) from None
    return found


def check_readable(address: Address, table: DeltaTable) -> None:
    """Raises if rows are kept in a way that is not known here, so that they would be read wrongly."""
    protocol = table.protocol()
    unknown = sorted({*(protocol.reader_features or ())} - _READABLE)
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if unknown or mode != "none":
        what = unknown[0] if unknown else "columnMapping"
        raise NoAnswer(f"`{address}`: the table uses `{what}`, which is not read here; copy it to one without")


@contextmanager
def told(address: Address) -> Iterator[None]:
    """What goes wrong with a table or its files is told in a line, whoever noticed it."""
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 - only who uses Delta Lake needs it

    try:
        yield
    except (DeltaError, OSError, ValueError) as error:  # Arrow's errors are ValueErrors
        raise refused(address, error) from None


def refused(address: Address, error: Exception) -> NoAnswer:
    """What was said, as people read it."""
    return NoAnswer(f"`{address}`: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    lines = [_COLOUR.sub("", line).strip(" ↳") for line in str(error).splitlines()]
    return next((line for line in lines if line), type(error).__name__)
