"""This module describes the state of a lane once, for all who write it: tables of rows, by names of their meaning.

Each table is what one operator of the lane keeps. Nothing that is stored has a name from where something stands in a
program, or from what its author called it. Here, and nowhere else, names are translated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import quote

from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.lane import Lane
from ephemera.engine.operators.operator import Rows
from ephemera.kernels.columns import Batch, Ints
from ephemera.kernels.history import Run

HISTORY, PENDING = "h", "p"
"""What a table holds: the history of a query, a timer or an expression, or the tuples of a rule that wait.

Those of an algebra expression that wait for others are its records.
"""


_CLOCK = "@clock"
"""No source is called so: its name would be quoted."""


def lane_name(sources: frozenset[str]) -> str:
    """A lane by its sources; that of the clock has none, which is not the one source that has no name."""
    return "+".join(quote(source, safe="") for source in sorted(sources)) if sources else _CLOCK


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The rows of an operator as they are stored: the names of their columns are those of their meaning."""

    _rows: Rows
    _stored: Mapping[str, str]
    """For the lane's names of columns the stored ones."""
    _names: Mapping[str, str]
    """The other way round."""

    def checkpoint(self) -> Iterator[Run]:
        """All rows, in runs."""
        for run in self._rows.checkpoint():
            yield replace(run, batch=run.batch.renamed(self._stored), indexes={})

    def added(self) -> Batch | None:
        """The rows that were added since this was last asked."""
        batch = self._rows.added()
        return batch.renamed(self._stored) if batch is not None else None

    def restore(self, batch: Batch, step: int = 0, number: int | None = None) -> None:
        """Gives stored rows back to the operator."""
        self._rows.restore(batch.renamed(self._names), step, number)

    def expiry(self, batch: Batch) -> Ints | None:
        """The bound from which on each of some stored rows is dead; None if they live for ever."""
        return self._rows.expiry(batch.renamed(self._names))


def tables_of(lane: Lane) -> dict[tuple[str, str], StoredTable]:
    """What a lane keeps, by what it is and its stored name; histories first."""
    names = lane.state_names
    tables: dict[tuple[str, str], StoredTable] = {}

    def add(kind: str, name: str, own: str, rows: Rows) -> None:
        stored = names.columns.get(own, {})
        tables[kind, name] = StoredTable(rows, stored, {new: old for old, new in stored.items()})

    for own, history in lane.histories.items():
        add(HISTORY, names.histories[own], own, history)
    for own, rule in lane.rules.items():
        add(PENDING, names.rules[own], own, rule.pending)
        for source, past in rule.pasts.items():
            add(HISTORY, f"past.{names.rules[own]}.{names.histories[source]}", source, past)
    for own, records in lane.records.items():
        add(PENDING, names.histories[own], own, records)
    return tables
