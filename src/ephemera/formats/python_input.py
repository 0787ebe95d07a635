"""This module tells apart what events may be given as in Python, and says what to give instead of anything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from ephemera.formats.json_events import Message
from ephemera.formats.reading import Given
from ephemera.terms.events import Event


class Options(TypedDict, total=False):
    """What a run over a history may be told besides its events."""

    engine: str
    tables: Mapping[str, Iterable[Mapping[str, Any]]] | None
    calendars: Mapping[str, Iterable[Event]] | None
    until: int | float | str | None
    emit: Iterable[str]
    allow_unbounded: bool
    lenient: bool


def is_spark_frame(given: object) -> bool:
    """Whether something is a data frame of Spark, which need not be installed."""
    return any(c.__name__ == "DataFrame" and c.__module__.startswith("pyspark.sql.") for c in type(given).__mro__)


def several(events: Any) -> Iterable[Given]:
    """Events one after the other; what holds none, or is one event itself, is refused."""
    kind = type(events).__name__
    if isinstance(events, Mapping | Message):
        raise TypeError(f"events come as a list or a table, and this is one event (a {kind}); give [event]")
    if isinstance(events, str | bytes):
        raise TypeError(
            f"events come as a list or a table, and this is a text (a {kind}); give its lines, such as "
            "`text.splitlines()`, or for the name of a file `open(name)`"
        )
    if not isinstance(events, Iterable):
        raise TypeError(
            f"events come as a list of objects or lines of JSON, or as a table of Arrow, pandas, Polars, DuckDB or "
            f"Spark, and this is a {kind}"
        )
    return events


def one(event: Any) -> Given:
    """One event; several are refused."""
    if type(event) is not dict and not isinstance(event, Mapping | str | bytes | Message):
        raise TypeError(
            f"an event is an object or a line of JSON, and this is a {type(event).__name__}; "
            "for several, or a table, there is `send_many`"
        )
    return event
