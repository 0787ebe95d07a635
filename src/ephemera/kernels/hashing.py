"""This module hashes columns: equal values have equal hashes whatever their kind, and hashes are verified on match.

Numbers hash by value, so that 1 and 1.0 agree; texts by their bytes, as a polynomial that is computed over the whole
column at once; the rest by Python's hash of its key. No table of values is kept, so nothing grows with their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ephemera.kernels.columns import UNBOUND, Array, Column, Hashes
from ephemera.terms.values import key

_SEED = np.uint64(0x9E3779B97F4A7C15)
_BASE = np.uint64(0x100000001B3)
_TWO_TO_63 = float(2**63)


def _powers(count: int) -> Hashes:
    """As many powers of the base, from that to 0 on."""
    found = np.full(count, _BASE)
    found[0] = 1
    np.multiply.accumulate(found, out=found)
    found.setflags(write=False)
    return found


_POWERS = _powers(1 << 12)
"""Enough for most texts; for longer ones they are computed, which takes no longer than to look at the texts."""


def hash_columns(columns: Sequence[Column], length: int) -> Hashes:
    """One hash for each row over some columns; without columns all rows are alike."""
    if not columns:
        return np.zeros(length, dtype=np.uint64)
    total = hash_column(columns[0])
    for c in columns[1:]:
        total = _mixed(total * _BASE + hash_column(c))
    return total


def fingerprints(columns: Sequence[Column], length: int) -> Hashes:
    """One hash for each row over some columns, to be compared only with others of the same call; cheaper than hashes.

    Numbers are multiplied, added up, and mixed once.
    """
    total = np.zeros(length, dtype=np.uint64)
    factor = int(_SEED)
    with np.errstate(over="ignore"):
        for c in columns:
            values = c.values + 0.0 if c.kind == "float" else c.values  # zero has two signs
            total += (values.view(np.uint64) if c.kind in ("int", "float") else hash_column(c)) * np.uint64(factor)
            factor = factor * int(_SEED) & 0xFFFFFFFFFFFFFFFF
    return _mixed(total)


def hash_column(c: Column) -> Hashes:
    """A hash for each value."""
    match c.kind:
        case "int":
            return _mixed(c.values.view(np.uint64))
        case "float":
            return _floats(c.values)
        case "text":
            return _texts(c.values)
        case "any":
            return _anything(c.values)


def _mixed(h: Hashes) -> Hashes:
    """The finalizer of splitmix64."""
    with np.errstate(over="ignore"):
        h = h + _SEED
        shifted = h >> np.uint64(30)
        h ^= shifted
        h *= np.uint64(0xBF58476D1CE4E5B9)
        h ^= np.right_shift(h, np.uint64(27), out=shifted)
        h *= np.uint64(0x94D049BB133111EB)
        h ^= np.right_shift(h, np.uint64(31), out=shifted)
        return h


def _floats(values: Array) -> Hashes:
    """A double that is a whole number hashes as that."""
    whole = (values == np.floor(values)) & (values >= -_TWO_TO_63) & (values < _TWO_TO_63)  # as 64 bits have them
    as_int = np.where(whole, values, 0.0).astype(np.int64).view(np.uint64)
    return np.where(whole, _mixed(as_int), _mixed(values.view(np.uint64) ^ _SEED))


def _texts(values: Array) -> Hashes:
    """A polynomial over the bytes of each text."""
    encoded = pa.array(values, type=pa.large_string())
    offsets = np.frombuffer(encoded.buffers()[1], dtype=np.int64)[: len(values) + 1]
    data = encoded.buffers()[2]
    sizes = np.diff(offsets)
    if data is None or not len(values) or offsets[-1] == 0:
        return _mixed(sizes.astype(np.uint64) ^ _SEED)
    raw = np.frombuffer(data, dtype=np.uint8)[: offsets[-1]].astype(np.uint64) + np.uint64(1)
    places = np.arange(offsets[-1], dtype=np.int64) - np.repeat(offsets[:-1], sizes)
    with np.errstate(over="ignore"):
        longest = int(sizes.max())
        terms = raw * (_POWERS if longest <= len(_POWERS) else _powers(longest))[places]
        sums = np.zeros(len(values), dtype=np.uint64)
        filled = sizes > 0
        sums[filled] = np.add.reduceat(terms, offsets[:-1][filled])
    return _mixed(sums ^ (sizes.astype(np.uint64) << np.uint64(40)) ^ _SEED)


def _anything(values: Array) -> Hashes:
    """Each type by its own; what is left by the hash of its key."""
    found = np.empty(len(values), dtype=np.uint64)
    types = np.fromiter((_TYPES.get(type(v), 3) for v in values), dtype=np.int8, count=len(values))
    for number, (dtype, hasher) in enumerate(((np.int64, _whole), (np.float64, _floats), (object, _texts))):
        rows = types == number
        if rows.any():
            found[rows] = hasher(values[rows].astype(dtype))
    for row in np.flatnonzero(types == 3):
        value = values[row]
        found[row] = 0 if value is UNBOUND else hash(key(value)) & 0xFFFFFFFFFFFFFFFF
    return found


_TYPES = {int: 0, float: 1, str: 2}


def _whole(values: Array) -> Hashes:
    return _mixed(values.view(np.uint64))
