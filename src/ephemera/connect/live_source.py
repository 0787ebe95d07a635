"""This module holds what a live query on Spark reads, as values: folders, sockets, tables and streaming data frames."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from ephemera.connect.found_files import check_format, name_of
from ephemera.connect.source import Source, check_only

Format = Literal["json", "parquet", "csv", "xml"]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder in which files arrive, or a pattern such as `in/*.jsonl`; each file appears as a whole.

    >>> import ephemera as eph
    >>> eph.sources.Folder("arriving", most_files=10)
    Folder(path='arriving', format=None, most_files=10, only=None)
    """

    path: str | os.PathLike[str]
    format: Format | None = None
    """What the files hold; what their names say otherwise, and else JSON lines."""
    most_files: int | None = None
    """How many files a batch takes; all that are there otherwise."""
    only: str | None = None
    """The type of all events that do not name theirs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", name_of(self.path, "sources.Folder"))
        check_only(self.only, "sources.Folder")
        if self.format is not None:
            check_format(self.format, get_args(Format))


@dataclass(frozen=True, slots=True)
class Socket:
    """Lines of JSON from a socket; for demonstrations, as each is read at most once.

    >>> import ephemera as eph
    >>> eph.sources.Socket("localhost", 9999)
    Socket(host='localhost', port=9999)
    """

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class SparkTable:
    """A table of Spark, by its name, to which rows are added.

    >>> import ephemera as eph
    >>> eph.sources.SparkTable("shop.orders")
    SparkTable(name='shop.orders', only=None)
    """

    name: str
    only: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A streaming data frame of Spark: rows with columns, or with one column `value` lines of JSON.

    >>> import ephemera as eph
    >>> def orders(spark):
    ...     return eph.sources.Frame(spark.readStream.format("kafka").load())
    """

    frame: Any
    only: str | None = None


LiveSource: TypeAlias = Folder | Socket | SparkTable | Frame | Source
"""What `Program.stream` reads; of other sources those that `sources.at` makes and many machines can read."""
