"""This module decodes the rows of CSV files as events by columns, in blocks of whole lines.

Cells become columns of texts, and these columns of values by the types that are declared. A row that columns cannot
vouch for is read on its own, exactly as `decode_csv` reads it, and gets the reason if it is no event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv

from ephemera.formats.check_columns import row_label, time_columns
from ephemera.formats.decode_arrow import flat_part, label_rows
from ephemera.formats.decode_csv import BOM, Row, event_of_row, is_blank, row_of
from ephemera.formats.decoded import Decoded
from ephemera.formats.json_events import BadEvent, uses_text
from ephemera.formats.text_columns import cell_column, cell_stamps
from ephemera.kernels.columns import Column, Ints, Mask, objects
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Schema
from ephemera.terms.errors import LARGEST_LINE
from ephemera.terms.events import Event

_PLAIN = pv.ParseOptions(quote_char=False, double_quote=False)
_SEPARATORS = np.frombuffer(b",\n", np.uint8)
_QUOTED = pv.ParseOptions(double_quote=False)


class CellDecoder:
    """Decodes the rows of one CSV file as the events of one program."""

    def __init__(self, compiled: Compiled, name: str, columns: tuple[str, ...], labels: set[str] | None = None) -> None:
        """The types of the rows are added to `labels`."""
        self._compiled = compiled
        self._catalogue = compiled.rules.resolved.catalogue
        self._name = Path(name).name
        self._columns = columns
        self._assumed = self._catalogue.local.assumed
        self._names = list(dict.fromkeys(columns))
        self._only = row_label(columns, self._catalogue)
        self._labels = set[str]() if labels is None else labels

    def decode(self, block: bytes, first: int) -> Decoded:
        """The events of some whole lines, of which the first has a number; blank ones count for nothing."""
        local = self._catalogue.local
        before = local.assumed
        found = self._decoded(block, first)
        if found.bad and self._assumed == before < local.assumed:
            # Whether the first times without a zone that were read stand in good rows, those alone can tell.
            bad = {row for row, _ in found.bad}
            lines = [line for line in block.split(b"\n") if not is_blank(line)]
            local.assumed = before
            self._decoded(b"\n".join(line for row, line in enumerate(lines) if row not in bad), first)
        return found

    def _decoded(self, block: bytes, first: int) -> Decoded:
        lines = cache(lambda: [(n, line) for n, line in enumerate(block.split(b"\n"), first) if not is_blank(line)])
        rows = cache(lambda: [row_of(line, number, self._columns) for number, line in lines()])
        cells = self._quick(block)
        broken: list[int] = []
        places = None
        if cells is None:
            broken = [k for k, row in enumerate(rows()) if row.cells is None]
            good = [k for k, row in enumerate(rows()) if row.cells is not None]
            places = np.array(good, dtype=np.int64)
            cells = self._cells([rows()[k] for k in good])
        found = Decoded(len(cells) + len(broken))
        odd = self._by_columns(cells, places if places is not None else np.arange(len(cells)), found)
        self._one_by_one(sorted([*odd, *broken]), lambda k: row_of(lines()[k][1], lines()[k][0], self._columns), found)
        return found

    def _quick(self, block: bytes) -> pa.Table | None:
        """The cells of a block whose quotes only enclose cells; None if something else is odd about it."""
        if b"\0" in block or len(block) > LARGEST_LINE or len(self._names) < len(self._columns):
            return None
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        if b"\r" in block or block.startswith(BOM) or len(self._columns) == 1:  # of one cell, a line may look blank
            return None
        is_quoted = b'"' in block
        if is_quoted and not _quotes_enclose(block):
            return None
        read = pv.ReadOptions(use_threads=False, column_names=list(self._columns), block_size=len(block) + 1)
        texts = dict.fromkeys(self._columns, pa.string())
        convert = pv.ConvertOptions(column_types=texts, strings_can_be_null=False)
        try:
            found = pv.read_csv(pa.py_buffer(block), read, _QUOTED if is_quoted else _PLAIN, convert)
        except pa.ArrowInvalid:
            return None
        there = block.count(b"\n") + (not block.endswith(b"\n"))
        return found.combine_chunks() if len(found) == there else None

    def _cells(self, rows: Sequence[Row]) -> pa.Table:
        """The cells of rows that have been cut already."""
        lists = [[(row.cells or {})[name] for row in rows] for name in self._names]
        return pa.table([pa.array(cells, pa.string()) for cells in lists], names=self._names)

    def _by_columns(self, cells: pa.Table, places: Ints, found: Decoded) -> list[int]:
        """The events that columns vouch for; the places of the other rows."""
        arrays = {name: _whole(cells.column(name)) for name in self._names}
        labels = arrays["event"] if self._only is None else None
        groups = label_rows(labels) if labels is not None else [(self._only, np.arange(len(cells)))]
        odd: list[int] = []
        for label, rows in groups if len(cells) else ():
            self._labels.add(label or "")
            schema = self._catalogue.events.get(label or "")
            left = rows
            if schema is not None and schema.is_flat:
                good = self._flat(schema, arrays, rows, places, found)
                left = rows[~good]
            odd += places[left].tolist()
        return odd

    def _flat(self, schema: Schema, arrays: dict[str, pa.Array], rows: Ints, places: Ints, found: Decoded) -> Mask:
        unit, local = self._catalogue.unit, self._catalogue.local
        chosen = pa.array(rows)
        is_whole = len(rows) == len(places)
        names = time_columns(arrays, self._catalogue, schema.label)
        if not names:
            return np.zeros(len(rows), dtype=np.bool_)

        def column(name: str, declared: str) -> tuple[Column, Mask]:
            if name not in arrays:
                return Column(objects([None] * len(rows)), "any"), np.ones(len(rows), dtype=np.bool_)
            return cell_column(arrays[name] if is_whole else arrays[name].take(chosen), declared, unit, local)

        stamps = [cell_stamps(arrays[name] if is_whole else arrays[name].take(chosen), unit, local) for name in names]
        (begins, early, one), (ends, late, other) = stamps[0], stamps[-1]
        part, good = flat_part(schema, begins, ends, column)
        good = good & early & late & (begins <= ends)
        as_numbers = one & other
        for form in (True, False):
            mine = good & (as_numbers == form)
            if mine.any():
                found.add(part if mine.all() else part.take(mine), places[rows[mine]], as_numbers=form)
        return good

    def _one_by_one(self, places: Sequence[int], row: Callable[[int], Row], found: Decoded) -> None:
        good: list[tuple[int, Event, bool]] = []
        for place in places:
            event, given = event_of_row(row(place), self._name, self._compiled)
            if isinstance(event, BadEvent):
                found.bad.append((place, event))
            elif event is not None:
                good.append((place, event, not uses_text(given, self._catalogue)))
        found.add_each(good, self._catalogue)


def _quotes_enclose(block: bytes) -> bool:
    """Whether the quotes of a block begin and end cells by turns: so that there are none within cells."""
    around = np.frombuffer(b"\n" + block + b"\n", np.uint8)
    quotes = np.flatnonzero(around == ord('"'))
    begins = np.isin(around[quotes - 1], _SEPARATORS)
    ends = np.isin(around[quotes + 1], _SEPARATORS)
    if len(quotes) % 2 or not begins[0::2].all() or begins[1::2].any() or not ends[1::2].all():
        return False
    return not ends[0::2].any()


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
