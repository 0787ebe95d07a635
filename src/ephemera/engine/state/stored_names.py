"""This module translates between an engine and its stored state: lanes, histories, rules and columns by their meaning.

Nothing that is stored has a name from where something stands in a program, or from what its author called it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from urllib.parse import quote

from ephemera.engine.lane import Lane
from ephemera.kernels.columns import Batch

_CLOCK = "@clock"
"""No source is called so: its name would be quoted."""


def lane_name(sources: frozenset[str]) -> str:
    """A lane by its sources; that of the clock has none, which is not the one source that has no name."""
    return "+".join(quote(source, safe="") for source in sorted(sources)) if sources else _CLOCK


class StoredLane:
    """What a lane holds, by stored names."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        names = lane.state_names
        self.histories = {names.histories[own]: own for own in lane.histories}
        """For each stored name the lane's own."""
        self.rules = {names.rules[own]: own for own in lane.rules}

    @cached_property
    def _columns(self) -> dict[str, tuple[Mapping[str, str], Mapping[str, str]]]:
        found: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {}
        for stored, own in (*self.histories.items(), *self.rules.items()):
            names = self.lane.state_names.columns.get(own, {})
            found[stored] = (names, {name: column for column, name in names.items()})
        return found

    def written(self, stored: str, batch: Batch) -> Batch:
        """Rows as they are stored."""
        return batch.renamed(self._columns[stored][0])

    def read(self, stored: str, batch: Batch) -> Batch:
        """Stored rows as the lane has them."""
        return batch.renamed(self._columns[stored][1])
