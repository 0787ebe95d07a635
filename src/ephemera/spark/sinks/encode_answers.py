"""This module writes shipped answers as live sinks need them: lines, or columns that are the same in every batch.

In batch mode the columns are chosen when all answers are known. A stream never knows all of them, so here each column
has the type that the rules let expect, and times are instants, whatever the input counts: no event that is yet to come
can change a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ephemera.engine.cluster.message import Shipment, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.encode_json import lines
from ephemera.formats.encode_typed_arrow import Counting, Held, Layout, layout
from ephemera.kernels.event_columns import Events
from ephemera.rules.nodes import Catalogue


@dataclass(frozen=True)
class Form:
    """What is known of the answers of one program."""

    columns: Layout
    names: Mapping[str, str]
    """What its dead letters say of where they come from."""

    @property
    def catalogue(self) -> Catalogue:
        return self.columns.catalogue

    def events(self, shipment: Shipment) -> Events:
        """The answers of a shipment."""
        return unpack(shipment, self.catalogue)

    def recipient(self, rule: int) -> dict[str, str]:
        """What messages of a rule have besides their data; answers that are no messages have nothing."""
        if rule not in self.columns.messages:
            return {}
        recipient, transport = self.columns.messages[rule]
        return {"recipient": recipient, "transport": transport}

    def lines(self, events: Events, rule: int, *, as_numbers: bool) -> pa.Array:
        """Answers as lines of JSON."""
        return lines(events, self.catalogue, as_numbers=as_numbers, more=self.recipient(rule))


def forms_of(spreads: Sequence[DistributedProgram], names: Sequence[Mapping[str, str]] = ()) -> dict[int, Form]:
    """The forms of programs by their numbers; their columns are the same."""
    made = {spread.number: _layout(spread) for spread in spreads}
    columns: dict[str, Held] = {}
    for own in made.values():
        for name, held in own.columns.items():
            columns[name] = _common(columns.get(name, held), held)
    return {
        number: Form(replace(own, columns=columns), names[number] if number < len(names) else {})
        for number, own in made.items()
    }


def _layout(spread: DistributedProgram) -> Layout:
    days = [day for given in spread.world.calendars.values() for day in given]
    return layout(spread.compiled.rules, Counting(stamps=False, attributes=False), days)


def _common(a: Held, b: Held) -> Held:
    if a == b:
        return a
    return "float" if {a, b} == {"int", "float"} else "json"
