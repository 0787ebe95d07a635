"""This module reads times and cells of CSV from columns of texts, and says which rows it vouches for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ephemera.base.time import LATEST
from ephemera.kernels.columns import Column, Ints, Kind, Mask, objects
from ephemera.terms.errors import BadMessage
from ephemera.terms.values import Time
from ephemera.terms.zones import LocalTime

_IN_UTC = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?Z$"
_EXACT = 2**53
"""Whole numbers up to here are doubles, too."""
_YEAR_1 = -62_135_596_800_000_000


def stamps_of_texts(texts: Sequence[str] | pa.Array, local: LocalTime) -> tuple[Ints, Mask]:
    """Points in time in microseconds from texts in ISO 8601, and which rows they are right for."""
    given = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
    plain = pc.match_substring_regex(given, _IN_UTC).fill_null(False)
    if pc.all(plain).as_py():
        quick = _in_utc(given)
        if quick is not None:
            return quick
    return _one_by_one(given.to_pylist(), local)


def _in_utc(texts: pa.Array) -> tuple[Ints, Mask] | None:
    try:
        moments = pc.utf8_slice_codeunits(texts, 0, -1).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # there is a day that does not exist
        return None
    stamps = moments.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return stamps, stamps >= _YEAR_1


def _one_by_one(texts: Sequence[str | None], local: LocalTime) -> tuple[Ints, Mask]:
    stamps = np.zeros(len(texts), dtype=np.int64)
    good = np.ones(len(texts), dtype=np.bool_)
    for row, text in enumerate(texts):
        try:
            stamps[row] = local.read(text or "")
        except BadMessage:
            good[row] = False
    return stamps, good


# ---- cells of CSV --------------------------------------------------------------------------------------------------


def whole_numbers(cells: pa.Array) -> tuple[Ints, Mask]:
    """Whole numbers, and which cells are such as JSON writes them; what is empty is none."""
    try:
        values = cells.cast(pa.int64())
    except pa.ArrowInvalid:
        plain = pc.match_substring_regex(cells, r"^-?(0|[1-9][0-9]{0,17})$")
        values = pc.if_else(plain, cells, "0").cast(pa.int64())
        return values.to_numpy(), plain.to_numpy(zero_copy_only=False)
    return values.to_numpy(), pc.equal(values.cast(cells.type), cells).to_numpy(zero_copy_only=False)


def doubles(cells: pa.Array) -> tuple[np.ndarray, Mask]:
    """Doubles, and which cells are such numbers of JSON as a double keeps."""
    plain = pc.match_substring_regex(cells, r"^(0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]+)([eE][+-]?[0-9]{1,3})?$")
    values = pc.if_else(plain, cells, "0").cast(pa.float64()).to_numpy()
    good = plain.to_numpy(zero_copy_only=False) & (np.abs(values) < _EXACT)  # of larger ones each digit counts
    return values, good


def cell_stamps(cells: pa.Array, unit: int, local: LocalTime) -> tuple[Ints, Mask, Mask]:
    """Points in time in microseconds, which cells they are right for, and which are numbers."""
    values, good = whole_numbers(cells)
    near = good & (values <= LATEST // unit) & (values >= -(LATEST // unit))
    stamps = np.where(near, values, 0) * unit
    if good.all():
        return stamps, near, good
    others = np.flatnonzero(~good)
    texts = cells.take(pa.array(others))
    dated = pc.match_substring_regex(texts, r"^[0-9]{4}-[0-9]{2}").to_numpy(zero_copy_only=False)
    read, right = stamps_of_texts(texts, local)
    stamps[others] = np.where(right, read, 0)
    near[others] = right & dated  # what may be JSON is read as such
    return stamps, near, good


def cell_column(cells: pa.Array, declared: str, unit: int, local: LocalTime) -> tuple[Column, Mask]:
    """The values of an attribute, and which cells they are right for; an empty one is null."""
    empty = pc.equal(cells, "").to_numpy(zero_copy_only=False)
    kind: Kind = "any"
    match declared:
        case "string":
            values: np.ndarray = cells.to_numpy(zero_copy_only=False)
            good, kind = ~empty, "text"
        case "int":
            (values, good), kind = whole_numbers(cells), "int"
        case "float":
            (values, good), kind = doubles(cells), "float"
        case "bool":
            values = pc.equal(cells, "true").to_numpy(zero_copy_only=False).astype(object)
            good = pc.is_in(cells, pa.array(["true", "false"], cells.type)).to_numpy(zero_copy_only=False)
        case "time":
            stamps, good, _ = cell_stamps(cells, unit, local)
            values = objects([Time(t) for t in stamps.tolist()])
        case _:
            values, good = whole_numbers(cells)
            kind = "int"
            if not (good | empty).all():  # each is what it looks like
                values, good, kind = objects([None] * len(cells)), np.zeros(len(cells), dtype=np.bool_), "any"
    if empty.any():
        values, kind = values.astype(object), "any"
        values[empty] = None
    return Column(values, kind), good | empty
