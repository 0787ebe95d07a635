"""This module writes answers as lines of JSON in their order, though they come from several places.

Each shipment says when the first of its answers ends, and shipments come in this order. So whatever ends before the
next one begins can be written, and only what overlaps has to wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ephemera.engine.cluster.message import Answers, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.addresses import by_address
from ephemera.formats.answer_order import AnswerPart
from ephemera.formats.encode_json import encode_lines
from ephemera.kernels.columns import stack
from ephemera.kernels.event_columns import END, Events
from ephemera.kernels.history import FAR

_SOME = 250_000
"""Answers that are sorted at a time, about."""
_Kind = tuple[int, int, str, int | None]
"""Answers that are of one program, rule, label and shape can be one batch."""


def lines_in_order(
    shipments: Iterable[Answers], spreads: Mapping[int, DistributedProgram], *, as_numbers: bool
) -> Iterator[bytes]:
    """The answers of all shipments, which come by their earliest end."""
    catalogues = [spreads[number].plan.catalogue for number in sorted(spreads)]
    waiting: dict[_Kind, list[Events]] = {}
    loaded = 0
    for shipment in shipments:
        if loaded >= _SOME:
            parts = list(_taken(waiting, shipment.events.first, spreads))
            yield encode_lines(parts, catalogues, as_numbers=[as_numbers] * len(catalogues))
            loaded = 0
        packed = shipment.events
        kind = (shipment.program, shipment.rule, packed.label, packed.arity)
        waiting.setdefault(kind, []).append(unpack(packed, catalogues[shipment.program]))
        loaded += packed.count
    parts = list(_taken(waiting, FAR + 1, spreads))
    yield encode_lines(parts, catalogues, as_numbers=[as_numbers] * len(catalogues))


def _taken(
    waiting: dict[_Kind, list[Events]], before: int, spreads: Mapping[int, DistributedProgram]
) -> Iterator[AnswerPart]:
    """What ends before a time, which then waits no more."""
    for kind, several in waiting.items():
        if not several:
            continue
        program, rule, _, _ = kind
        whole = _joined(several)
        due = whole.batch[END] < before
        waiting[kind] = [] if due.all() else [whole.take(~due)]
        ready = whole if due.all() else whole.take(due)
        sent = spreads[program].recipient(rule)
        if rule:
            to = (sent["recipient"], sent["transport"]) if sent else None
            yield from (AnswerPart(part, address, program) for address, part in by_address(ready, to))
        else:
            yield AnswerPart(ready, None, program)


def _joined(several: list[Events]) -> Events:
    one = several[0]
    return one if len(several) == 1 else Events(one.label, stack([e.batch for e in several]), one.arity, one.names)
