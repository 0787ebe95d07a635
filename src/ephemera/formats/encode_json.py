"""This module writes events as lines of JSON, by columns where they are flat, else one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ephemera.algebra.attributes import position
from ephemera.formats.json_events import write_event
from ephemera.kernels.columns import Column
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.rules.nodes import Catalogue

_ESCAPED = r'["\\\x00-\x1f\x7f-\x{10FFFF}]'
"""What a text may hold that has to be written otherwise, or might."""


def lines(events: Events, catalogue: Catalogue, *, as_numbers: bool, more: Mapping[str, str] | None = None) -> pa.Array:
    """Each event as a line of JSON; messages have some more keys."""
    quick = _by_columns(events, catalogue.unit) if as_numbers and not more else None
    if quick is not None:
        return quick
    written = (write_event(e, catalogue, as_numbers=as_numbers) for e in events.events())
    return pa.array([json.dumps({**w, **(more or {})}, ensure_ascii=False) for w in written], pa.string())


def _by_columns(events: Events, unit: int) -> pa.Array | None:
    if events.arity is None:
        return None
    begins, ends = events.batch[BEGIN], events.batch[END]
    if unit > 1 and ((begins % unit).any() or (ends % unit).any()):
        return None
    values = [json_cells(events.batch.columns[position(k)]) for k in range(events.arity)]
    found = [v for v in values if v is not None]
    if len(found) < len(values):
        return None
    label = json.dumps(events.label, ensure_ascii=False)
    data = [part for k, v in enumerate(found) for part in ([", ", v] if k else [v])]
    return pc.binary_join_element_wise(
        f'{{"event": {label}, "time": ', _times(begins // unit, ends // unit), ', "data": [', *data, "]}", ""
    )


def _times(begins: np.ndarray, ends: np.ndarray) -> pa.Array:
    first, last = pa.array(begins).cast(pa.string()), pa.array(ends).cast(pa.string())
    interval = pc.binary_join_element_wise("[", first, ", ", last, "]", "")
    return pc.if_else(pa.array(begins == ends), last, interval)


def json_cells(c: Column) -> pa.Array | None:
    """Each value as JSON; None if they have to be looked at one by one."""
    if c.kind == "int":
        return pa.array(c.values).cast(pa.string())
    if c.kind == "float":
        return pa.array([json.dumps(v) for v in c.tolist()], pa.string())
    if c.kind == "text":
        texts = pa.array(c.values, pa.string())
        if pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py():
            return pa.array([json.dumps(v, ensure_ascii=False) for v in c.tolist()], pa.string())
        return pc.binary_join_element_wise('"', texts, '"', "")
    return None
