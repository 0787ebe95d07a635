"""This module reads what a program runs on besides events: the tables that it declares, calendars, and until when.

Tables come as objects, as tables of Arrow and the like, or as CSV files. They are part of what a program means. So
nothing of them is left out: what is wrong with a row is an error, with its place, and so is a declared column that no
row has, unless the run is lenient.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ephemera.connect.atomic_files import opened
from ephemera.engine.hosts.tables import is_table, to_arrow
from ephemera.formats.arrow_columns import plain
from ephemera.formats.check_columns import OTHERWISE, WrongColumns, shown_columns, told_missing
from ephemera.formats.decode_csv import BadFile, Sheet, place_of, read_cell
from ephemera.formats.json_events import read_row, read_time
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.rules.outcome import World
from ephemera.terms.errors import BadMessage
from ephemera.terms.events import Event
from ephemera.terms.values import Term


def read_rows(given: Any, schema: Schema, catalogue: Catalogue, *, lenient: bool = False) -> list[Term]:
    """The rows of a table: objects, or a table of Arrow, pandas, Polars or DuckDB."""
    name = f"the table `{schema.label}`"
    if is_table(given):
        table = to_arrow(given)
        _check(table.column_names, schema, name, lenient=lenient)
        return _read(({n: plain(v) for n, v in row.items()} for row in table.to_pylist()), schema, catalogue, name)
    rows = list(given)
    if rows and not lenient:
        _check(list(dict.fromkeys(column for row in rows for column in row)), schema, name)
    return _read(rows, schema, catalogue, name)


def _read(rows: Iterable[Mapping[str, Any]], schema: Schema, catalogue: Catalogue, name: str) -> list[Term]:
    found: list[Term] = []
    for number, row in enumerate(rows, 1):
        try:
            found.append(read_row(row, schema, catalogue))
        except BadMessage as error:
            raise BadMessage(f"{name}, row {number}: {error}") from None
    return found


def read_file(path: Path, schema: Schema, catalogue: Catalogue, *, lenient: bool = False) -> list[dict[str, Any]]:
    """The rows of a table from a CSV file, as objects."""
    types = {column: kind for column, (_, kind) in zip(schema.columns, schema.attributes or (), strict=True)}
    found: list[dict[str, Any]] = []
    with opened(path) as file:
        sheet = Sheet(file, str(path))
        if sheet.is_empty:
            raise BadFile(f"cannot read {path}: it is empty; it needs at least a header, {', '.join(types)}")
        _check(sheet.columns, schema, str(path), lenient=lenient)
        for row in sheet.rows():
            if row.cells is None:
                raise BadFile(f"cannot read {place_of(str(path), row)}: {row.complaint}")
            found.append({name: read_cell(row.cells.get(name), kind) for name, kind in types.items()})
            try:
                read_row(found[-1], schema, catalogue)
            except BadMessage as error:
                raise BadFile(f"cannot read {place_of(str(path), row)}: {error}") from None
    return found


def _check(columns: Iterable[str], schema: Schema, name: str, *, lenient: bool = False) -> None:
    there = list(columns)
    lacking = [n for n, column in zip(schema.names, schema.columns, strict=True) if column not in there]
    if lacking and not lenient:
        raise WrongColumns(
            "\n".join(
                f"{told_missing(n, name, there, schema)}\n"
                f"  the program declares it: TABLE {schema.label}(… {n} …)\n"
                f"  the columns are {shown_columns(there)}\n  {OTHERWISE}"
                for n in lacking
            )
        )


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
