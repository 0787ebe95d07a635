"""This module tells keys apart: when values are equal, their hashes, and numbers for distinct hashes, by whole columns.

Equal values have equal hashes whatever their kind, and hashes are verified on match. Numbers hash by value, so that 1
and 1.0 agree; texts by their bytes, as a polynomial that is computed over the whole column at once; the rest by
Python's hash of its key. No table of values is kept, so nothing grows with their number.

Many hashes are numbered by a table of slots: one row of each slot stands for it, and what shares a slot but not its
hash goes to the next table, or is sorted when few are left. So most hashes get ascending numbers, and many are never
sorted by comparing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ephemera.base.lazy_dataclass import dataclass
from ephemera.kernels.columns import UNBOUND, Array, Batch, Column, Hashes, Ints, Mask, column, taken
from ephemera.terms.values import Value, equal, key, merged

# ---- equality ----------------------------------------------------------------------------------------------

_SAME = frozenset({("int", "int"), ("float", "float"), ("text", "text")})


def joins(a: Column, b: Column) -> Mask:
    """Where two values join: they are equal, and neither is null; no value at all joins with anything."""
    if (a.kind, b.kind) in _SAME:
        return np.asarray(a.values == b.values, dtype=np.bool_)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.fromiter((_joins(x, y) for x, y in pairs), dtype=np.bool_, count=len(a))


def _joins(a: Value | object, b: Value | object) -> bool:
    return a is UNBOUND or b is UNBOUND or equal(a, b) is True  # type: ignore[arg-type]


def meeting(a: Column, b: Column) -> Column:
    """What values become that are equal row by row where they meet: integers for doubles; some value for none."""
    if a.kind in ("int", "text") or a.values is b.values:
        return a
    if b.kind in ("int", "text") and a.kind != "any":
        return b
    if a.kind == b.kind == "float":
        zero = a.values == 0
        return Column(np.where(zero, a.values + b.values, a.values), "float") if zero.any() else a
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return column([y if x is UNBOUND else x if y is UNBOUND else merged(x, y) for x, y in pairs])


def same(a: Column, b: Column) -> Mask:
    """Where two values are one: in sets and groups null is a value like others, and so is none at all."""
    if (a.kind, b.kind) in _SAME:
        return np.asarray(a.values == b.values, dtype=np.bool_)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.fromiter((_is_one(x, y) for x, y in pairs), dtype=np.bool_, count=len(a))


def _is_one(a: Value | object, b: Value | object) -> bool:
    if a is UNBOUND or b is UNBOUND:
        return a is b
    return bool(key(a) == key(b))  # type: ignore[arg-type]


def paired(  # noqa: PLR0913, PLR0917 - two batches, their rows, and what is kept
    left: Batch,
    rows: Ints,
    right: Batch,
    others: Ints,
    kept: Collection[str] | None = None,
    settled: Collection[str] = (),
) -> Batch:
    """Rows of two batches side by side that agree; where both have a variable their values meet.

    With `kept` only these columns. What is settled stays as the left batch has it, if it has a value there.
    """
    mine, yours = left.columns, right.columns
    if kept is not None:
        mine = {name: c for name, c in mine.items() if name in kept}
        yours = {name: c for name, c in yours.items() if name in kept}
    done = {name for name in mine if name in yours and mine[name].kind in ("int", "text")}
    columns = taken(mine, rows)
    for name, c in taken({name: c for name, c in yours.items() if name not in done}, others).items():
        own = columns.get(name)
        if own is None:
            columns[name] = c
        else:
            columns[name] = _first_bound(own, c) if name in settled else meeting(own, c)
    return Batch(columns, len(rows))


def _first_bound(a: Column, b: Column) -> Column:
    if a.kind != "any":
        return a
    lacking = a.values == np.array(UNBOUND, dtype=object)
    if not lacking.any():
        return a
    return column([y if x is UNBOUND else x for x, y in zip(a.tolist(), b.tolist(), strict=True)])


# ---- hashes ------------------------------------------------------------------------------------------------

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


# ---- numbers -----------------------------------------------------------------------------------------------

FEW = 512
"""So few hashes are sorted."""
MOST_BITS = 60
"""So many bits of a hash say where it stands."""
SMALL = 1 << 16
"""Numbers below this one are sorted in one pass over their bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbering:
    """Distinct hashes with their numbers."""

    hashes: Hashes
    """By number."""
    rows: Ints
    """For each number a row that has it."""
    levels: tuple[Level, ...]
    """The tables of slots, each for what shares a slot in the one before it."""
    sorted_from: int
    """From this number on the hashes stand in no table, and ascend."""

    def __len__(self) -> int:
        return len(self.hashes)

    def find(self, hashes: Hashes) -> Ints:
        """The number of each hash, or -1."""
        if not self.levels:
            return self._sorted(hashes)
        numbers = self.levels[0].find(hashes)
        left = np.flatnonzero((self.hashes[numbers] != hashes) & (numbers >= 0))
        for level in self.levels[1:]:
            asked = hashes[left]
            found = level.find(asked)
            numbers[left] = found
            left = left[(self.hashes[found] != asked) & (found >= 0)]
        if len(left):
            numbers[left] = self._sorted(hashes[left])
        return numbers

    def _sorted(self, hashes: Hashes) -> Ints:
        ascending = self.hashes[self.sorted_from :]
        if not len(ascending):
            return np.full(len(hashes), -1, dtype=np.int64)
        places = ascending[:-1].searchsorted(hashes)  # what is greater than all but the last can only be the last
        return np.where(ascending[places] == hashes, places + self.sorted_from, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A table of slots: some bits of a hash say where its number stands."""

    slots: npt.NDArray[np.int32]
    skip: np.uint64
    shift: np.uint64

    def find(self, hashes: Hashes) -> Ints:
        return self.slots[_places(hashes, self.skip, self.shift)].astype(np.int64)


def _places(hashes: Hashes, skip: np.uint64, shift: np.uint64) -> Ints:
    return ((hashes << skip if skip else hashes) >> shift).view(np.int64)


def _bits(count: int) -> int:
    """How many bits say the slots for so many hashes: room for some times as many, less where tables would be large."""
    return (4 * count if count < SMALL else 2 * count).bit_length()


def numbered(hashes: Hashes) -> tuple[Numbering, Ints]:
    """The distinct hashes, and the number of each row's."""
    if len(hashes) <= FEW:
        some, numbers = _by_sorting(hashes)
        return Numbering(hashes[some], some, (), 0), numbers
    levels: list[Level] = []
    rows: list[Ints] = []
    count, skip = 0, 0
    left: Ints | None = None
    numbers = np.empty(0, dtype=np.int64)
    while True:
        mine = hashes if left is None else hashes[left]
        bits = _bits(len(mine))
        if len(mine) <= FEW or skip + bits > MOST_BITS:
            break
        places = _places(mine, np.uint64(skip), np.uint64(64 - bits))
        slots = np.full(1 << bits, -1, dtype=np.int32)
        slots[places] = np.arange(len(mine), dtype=np.int32)
        used = np.flatnonzero(slots >= 0)
        first: Ints = slots[used].astype(np.int64)
        slots[used] = np.arange(count, count + len(used), dtype=np.int32)
        found: Ints = slots[places].astype(np.int64)
        distinct = mine[first]
        other = np.flatnonzero(distinct[found - count if count else found] != mine)
        if left is None:
            numbers = found
            rows.append(first)
            left = other
        else:
            numbers[left] = found
            rows.append(left[first])
            left = left[other]
        levels.append(Level(slots, np.uint64(skip), np.uint64(64 - bits)))
        count, skip = count + len(used), skip + bits
    if len(mine) and left is not None:
        first, inner = _by_sorting(mine)
        numbers[left] = inner + count
        rows.append(left[first])
    every = rows[0] if len(rows) == 1 else np.concatenate(rows)
    return Numbering(hashes[every], every, tuple(levels), count), numbers


def _by_sorting(hashes: Hashes) -> tuple[Ints, Ints]:
    """For each hash in their order the first row that has it, and each row's number."""
    order = hashes.argsort(kind="stable")
    if len(hashes) == 1:
        return order, order
    ascending = hashes[order]
    starts = np.empty(len(hashes), dtype=np.bool_)
    starts[:1] = True
    np.not_equal(ascending[1:], ascending[:-1], out=starts[1:])
    numbers = np.empty(len(hashes), dtype=np.int64)
    numbers[order] = starts.cumsum() - 1
    return order[starts], numbers


def sorted_by(numbers: Ints, count: int) -> Ints:
    """The rows by their numbers, all below a count; rows of one number stay in their order."""
    if len(numbers) <= FEW:
        return np.argsort(numbers, kind="stable")
    order = np.argsort(numbers.astype(np.uint16), kind="stable")  # of so few bits numpy sorts without comparing
    while count > SMALL:
        numbers, count = numbers >> 16, -(-count // SMALL)
        order = order[np.argsort(numbers[order].astype(np.uint16), kind="stable")]
    return order


def all_distinct(numbers: Hashes | Ints) -> bool:
    """Whether no number comes twice."""
    ascending = np.sort(numbers)
    return not bool((ascending[1:] == ascending[:-1]).any())
