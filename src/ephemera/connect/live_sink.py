"""This module holds where the answers of a live query on Spark go, as values: to a folder, a table or a function."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from ephemera.connect.found_files import check_format, name_of
from ephemera.connect.several_sinks import ToSystem
from ephemera.connect.sink import Callback, Console, Memory

Format = Literal["json", "parquet", "csv"]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of files, exactly once; it belongs to one query.

    >>> import ephemera as eph
    >>> eph.sinks.Folder("answers", format="parquet")
    Folder(path='answers', format='parquet')
    """

    path: str | os.PathLike[str]
    format: Format = "json"

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", name_of(self.path, "sinks.Folder"))
        check_format(self.format, get_args(Format))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of Spark, by its name, exactly once; a new one is made at `location`, if that is given.

    >>> import ephemera as eph
    >>> eph.sinks.Table("shop.overdue")
    Table(name='shop.overdue', location=None)
    """

    name: str
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Batches:
    """A function that is called with the answers of each batch, and the number of the batch, at least once.

    >>> import ephemera as eph
    >>> sink = eph.sinks.Batches(lambda answers, batch: print(batch, len(answers)))
    """

    function: Callable[[list[dict[str, Any]], int], object]


LiveSink: TypeAlias = Folder | Table | Callback | Batches | Console | Memory | ToSystem | Sequence[ToSystem]
"""Where `Program.stream` puts answers; systems, as `sinks.at` makes them, may be several. Functions, the console and
lists get them at least once."""
