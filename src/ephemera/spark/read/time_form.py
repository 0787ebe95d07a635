"""This module decides how an input writes its times, as numbers or as text, by the first good event in it.

Files are looked at where the session is, without a job: a later event of the other form changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from pyspark.sql import SparkSession

from ephemera.formats.decode_csv import BOM, Sheet, is_blank, object_of_cells
from ephemera.formats.json_events import Message, decode_line, uses_text
from ephemera.formats.reading import given_message, read_event
from ephemera.formats.xml_messages import messages
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Catalogue
from ephemera.spark.read.file_bytes import lines_of, name_of, pieces_of
from ephemera.spark.read.flat_events import Form
from ephemera.terms.events import Event


def counts(found: Iterable[Message], compiled: Compiled) -> bool:
    """Whether the first good event among some has a number for its time; so it is where there is none."""
    for message in found:
        if isinstance(read_event(message, compiled), Event):
            return not uses_text(message.data, compiled.rules.resolved.catalogue)
    return True


def messages_there(spark: SparkSession, uris: Sequence[str], form: Form, catalogue: Catalogue) -> Iterator[Message]:
    """What files hold that Spark knows how to open."""
    for uri in uris:
        yield from _messages(pieces_of(spark, uri), name_of(uri), form, catalogue)


def _messages(pieces: Iterator[bytes], name: str, form: Form, catalogue: Catalogue) -> Iterator[Message]:
    match form:
        case "cells":
            rows = Sheet(lines_of(pieces), name).rows()
            cells = (row.cells for row in rows if row.cells is not None)
            yield from (given_message(object_of_cells(own, catalogue)) for own in cells)
        case "documents":
            yield from (message for _, message in messages(pieces, name))
        case _:
            lines = lines_of(pieces)
            first = next(lines, b"").removeprefix(BOM)
            yield from (decode_line(line.rstrip(b"\n")) for line in chain([first], lines) if not is_blank(line))
