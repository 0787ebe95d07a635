"""This module opens files where the session is, of whatever file system and codec Spark knows, in pieces or lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from ephemera.formats.decode_csv import BadFile

_PIECE = 65_536


def name_of(uri: str) -> str:
    """The name of a file for people."""
    return PurePosixPath(unquote(urlsplit(uri).path)).name


def pieces_of(spark: SparkSession, uri: str) -> Iterator[bytes]:
    """What is in a file, unpacked, some of it at a time."""
    jvm: Any = spark._jvm
    conf = spark._jsc.hadoopConfiguration()
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
    stream = path.getFileSystem(conf).open(path)
    codec = jvm.org.apache.hadoop.io.compress.CompressionCodecFactory(conf).getCodec(path)
    source = stream
    try:
        source = stream if codec is None else codec.createInputStream(stream)
        while piece := bytes(source.readNBytes(_PIECE)):
            yield piece
    except Py4JJavaError as error:  # such as what is compressed, and broken
        raise BadFile(f"cannot read {name_of(uri)}: {error.java_exception.getMessage()}") from None
    finally:
        source.close()


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a file that comes in pieces, with their ends."""
    held: list[bytes] = []
    for piece in pieces:
        *whole, last = piece.split(b"\n")
        for line in whole:
            yield b"".join((*held, line, b"\n"))
            held = []
        held.append(last)
    if any(held):
        yield b"".join(held)
