"""This module opens CSV files as frames of lines, those with the same header together.

Spark's own reader of CSV takes the header of one file for all, fills up rows that are too short, cuts those that are
too long, and replaces bytes that are no text. So it is asked for whole lines only, byte by byte: the characters that
would divide or quote cells are none that a byte stands for. It leaves out the first line of each file, which is the
header, and that is read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from ephemera.formats.csv_rows import BadFile, header_of, is_blank

LINE, FILE = "line", "file"
_PIECE = 65_536
_BYTES = "ISO-8859-1"
_OPTIONS = {
    "header": "true",
    "encoding": _BYTES,
    "sep": "\u0100",
    "quote": "\u0101",
    "escape": "\u0101",
    "nullValue": "\u0101",
    "emptyValue": "",
    "lineSep": "\n",
    "maxCharsPerColumn": "-1",
}


@dataclass(frozen=True, slots=True)
class Sheets:
    """CSV files with the same header: their lines as bytes, without the header, and what file each is from."""

    frame: DataFrame
    columns: tuple[str, ...]
    name: str
    """For people: the first file, and how many more there are."""
    more: tuple[str, ...] = ()
    """What folders say besides, such as `day=1`: further columns of the frame."""


def open_csv(spark: SparkSession, paths: Sequence[str]) -> list[Sheets]:
    """The files at some paths; those that are empty have no header, and nothing else."""
    frame = _lines(spark, paths)
    by_header: dict[tuple[str, ...], list[str]] = {}
    for uri in frame.inputFiles():
        line = first_line(spark, uri)
        if line:
            by_header.setdefault(header_of(line, name_of(uri)), []).append(uri)
    found: list[Sheets] = []
    for columns, files in by_header.items():
        own = frame if len(by_header) == 1 else frame.where(_file().isin([_written(uri) for uri in files]))
        name = name_of(files[0]) if len(files) == 1 else f"{name_of(files[0])} and {len(files) - 1} more"
        more = tuple(column for column in frame.columns if column != LINE)
        data = f.encode(LINE, _BYTES).alias(LINE), _file().alias(FILE)
        found.append(Sheets(own.select(*data, *(f.col(f"`{m}`") for m in more)), columns, name, more))
    return found


def _lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    return spark.read.schema(f"{LINE} string").options(**_OPTIONS).csv(list(paths))


def _file() -> Column:
    return f.col("_metadata.file_path")


def _written(uri: str) -> str:
    """A file as Spark names it beside its rows."""
    return uri.replace("file:///", "file:/", 1)


def name_of(uri: str) -> str:
    """The name of a file for people."""
    return PurePosixPath(unquote(urlsplit(uri).path)).name


def first_line(spark: SparkSession, uri: str) -> bytes:
    """The first line of a file that is not blank; nothing if there is none."""
    jvm: Any = spark._jvm
    conf = spark._jsc.hadoopConfiguration()
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
    stream = path.getFileSystem(conf).open(path)
    codec = jvm.org.apache.hadoop.io.compress.CompressionCodecFactory(conf).getCodec(path)
    source = stream
    try:
        source = stream if codec is None else codec.createInputStream(stream)
        held = b""
        while piece := bytes(source.readNBytes(_PIECE)):
            held += piece
            *lines, _ = held.split(b"\n")
            full = next((line for line in lines if not is_blank(line)), None)
            if full is not None:
                return full
        return next((line for line in held.split(b"\n") if not is_blank(line)), b"")
    except Py4JJavaError as error:  # such as what is compressed, and broken
        raise BadFile(f"cannot read {name_of(uri)}: {error.java_exception.getMessage()}") from None
    finally:
        source.close()
