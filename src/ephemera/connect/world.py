"""This module reads what a program runs on besides events, as Python gives it: tables, calendars, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ephemera.connect.declared_tables import read_rows
from ephemera.formats.json_events import read_time
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import World
from ephemera.terms.events import Event


def read_world(
    catalogue: Catalogue,
    tables: Mapping[str, Iterable[Mapping[str, Any]]],
    calendars: Mapping[str, Iterable[Event]],
    until: float | str | None,
    *,
    lenient: bool,
) -> World:
    """What engines need; a table that is not declared, or lacks columns, is refused."""
    unknown = sorted(set(tables) - set(catalogue.tables))
    if unknown:
        raise ValueError(f"the program declares no table `{unknown[0]}`")
    rows = {
        label: read_rows(given, catalogue.tables[label], catalogue, lenient=lenient) for label, given in tables.items()
    }
    limit = None if until is None else read_time(until, catalogue.unit, catalogue.local)
    return World(rows, {name: list(given) for name, given in calendars.items()}, limit)
