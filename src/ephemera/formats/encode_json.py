"""This module writes answers as lines of JSON, by columns; only what is no flat event is written one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ephemera.algebra.attributes import position
from ephemera.formats.addresses import addresses
from ephemera.formats.answer_order import AnswerPart, in_order
from ephemera.formats.json_events import write_event, write_time, write_value
from ephemera.kernels.columns import Column, Ints
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.rules.nodes import Catalogue
from ephemera.terms.text import iso
from ephemera.terms.values import Time

_ESCAPED = r'["\\\x00-\x1f]'
"""What a text may hold that has to be written otherwise."""
_PLAIN_YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""From the year 1 to 9999 a time has four digits for its year."""


def encode_lines(parts: Sequence[AnswerPart], catalogues: Sequence[Catalogue], *, as_numbers: Sequence[bool]) -> bytes:
    """Answers in their order, a line each; catalogues, and whether times are numbers, are those of each program."""
    filled = [part for part in parts if len(part.events)]
    if not filled:
        return b""
    written = [
        lines(part.events, catalogues[part.program], as_numbers=as_numbers[part.program], more=part.more, end="\n")
        for part in filled
    ]
    whole = pa.concat_arrays([one.cast(pa.large_string()) for one in written]) if len(written) > 1 else written[0]
    order = in_order(filled)
    return _bytes(whole if _is_sorted(order) else whole.take(pa.array(order)))


def json_objects(parts: Sequence[AnswerPart], catalogue: Catalogue, *, as_numbers: bool) -> list[dict[str, Any]]:
    """The same as objects."""
    return [json.loads(line) for line in encode_lines(parts, [catalogue], as_numbers=[as_numbers]).splitlines()]


def _is_sorted(order: Ints) -> bool:
    return bool((order[1:] > order[:-1]).all())


def _bytes(texts: pa.Array) -> bytes:
    """The texts one after the other."""
    size = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(texts.buffers()[1], size, len(texts) + 1, texts.offset * np.dtype(size).itemsize)
    return memoryview(texts.buffers()[2])[int(offsets[0]) : int(offsets[-1])].tobytes()


def lines(
    events: Events,
    catalogue: Catalogue,
    *,
    as_numbers: bool,
    more: Mapping[str, str] | None = None,
    end: str = "",
) -> pa.Array:
    """Each event as a line of JSON; messages have some more keys, unless they say themselves where they go."""
    if events.arity is None:
        written = (write_event(e, catalogue, as_numbers=as_numbers) for e in events.events())
        own = [more or {} if to is None else {"recipient": to[0], "transport": to[1]} for to in addresses(events)]
        told = ({**w, **to} for w, to in zip(written, own, strict=True))
        return pa.array([json.dumps(one, ensure_ascii=False) + end for one in told], pa.string())
    values = [json_cells(events.batch.columns[position(k)], catalogue, as_numbers) for k in range(events.arity)]
    data = [part for k, cells in enumerate(values) for part in ([", ", cells] if k else [cells])]
    label = json.dumps(events.label, ensure_ascii=False)
    rest = json.dumps(more, ensure_ascii=False)[1:] if more else "}"
    return pc.binary_join_element_wise(
        f'{{"event": {label}, "time": ',
        _times(events.batch[BEGIN], events.batch[END], catalogue.unit, as_numbers=as_numbers),
        ', "data": [',
        *data,
        f"]{', ' if more else ''}{rest}{end}",
        "",
    )


def _times(begins: Ints, ends: Ints, unit: int, *, as_numbers: bool) -> pa.Array:
    last = _stamps(ends, unit, as_numbers=as_numbers)
    points = begins == ends
    if points.all():
        return last
    interval = pc.binary_join_element_wise("[", _stamps(begins, unit, as_numbers=as_numbers), ", ", last, "]", "")
    return pc.if_else(pa.array(points), last, interval) if points.any() else interval


def _stamps(stamps: Ints, unit: int, *, as_numbers: bool) -> pa.Array:
    """Points in time as JSON."""
    if not as_numbers:
        return pc.binary_join_element_wise('"', iso_texts(stamps), '"', "")
    if unit == 1 or not (stamps % unit).any():
        return pa.array(stamps // unit).cast(pa.string())
    return pa.array([json.dumps(write_time(t, unit, as_numbers=True)) for t in stamps.tolist()], pa.string())


def iso_texts(stamps: Ints) -> pa.Array:
    """Points in time in ISO 8601, in UTC."""
    first, last = _PLAIN_YEARS
    if not len(stamps):
        return pa.array([], pa.string())
    if int(stamps.min()) < first or int(stamps.max()) > last:
        return pa.array([iso(Time(t)) for t in stamps.tolist()], pa.string())
    is_whole = not (stamps % 1_000_000).any()
    moments = pa.array(stamps // 1_000_000, pa.timestamp("s")) if is_whole else pa.array(stamps, pa.timestamp("us"))
    texts = pc.binary_replace_slice(moments.cast(pa.string()).cast(pa.binary()), 10, 11, b"T").cast(pa.string())
    if not is_whole:  # a fraction is there now, and its zeros and point go
        texts = pc.ascii_rtrim(pc.ascii_rtrim(texts, characters="0"), characters=".")
    return pc.binary_join_element_wise(texts, "Z", "")


def json_cells(c: Column, catalogue: Catalogue, as_numbers: bool) -> pa.Array:
    """Each value as JSON."""
    match c.kind:
        case "int":
            return pa.array(c.values).cast(pa.string())
        case "float":
            return pa.array([json.dumps(v) for v in c.tolist()], pa.string())
        case "text":
            texts = pa.array(c.values, pa.string())
            if pc.any(pc.match_substring_regex(texts, _ESCAPED)).as_py():
                return pa.array([json.dumps(v, ensure_ascii=False) for v in c.tolist()], pa.string())
            return pc.binary_join_element_wise('"', texts, '"', "")
        case "any":
            values = (write_value(v, catalogue.unit, as_numbers=as_numbers) for v in c.tolist())
            return pa.array([json.dumps(v, ensure_ascii=False) for v in values], pa.string())
