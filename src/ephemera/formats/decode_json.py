"""This module decodes lines of JSON as events by columns, in blocks of whole lines.

A first pass reads of each line its label and its time and leaves its data as bytes; a second reads the data of all
lines of a label at once, by the types that are declared. What that cannot vouch for is read line by line, as
`json_events` reads it, which also says what is wrong: lines that are none, other types, times and numbers whose exact
value is not kept, and keys that stand twice. So the events are the same either way, and only the time differs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType

from ephemera.algebra.attributes import position
from ephemera.base.time import LATEST
from ephemera.formats.decoded import Decoded
from ephemera.formats.json_data import ERRORS, SCALAR, DataType, column_of_values
from ephemera.formats.json_events import BadEvent, decode_line, enveloped, uses_text
from ephemera.formats.json_keys import KEY, counted, doubtful
from ephemera.formats.json_lines import TIME, by_label, field_of, has_odd, is_odd, is_text, line_type, lines_of
from ephemera.formats.reading import Keys, read_event
from ephemera.formats.text_columns import stamps_of_texts
from ephemera.kernels.columns import Batch, Column, Ints, Mask, ints
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.physical.plan import Compiled
from ephemera.terms.errors import LARGEST_LINE
from ephemera.terms.events import Event

_SAMPLE = 20
"""So many lines are looked into for keys that nothing declares."""
_ENVELOPE = ("event", "data", "term", "xml")
"""Keys of events that are no plain objects."""


@dataclass(frozen=True, slots=True)
class _Noted:
    """Data of a type whose keys are to be noted, of the lines that are good: by what it was decoded, and its bytes."""

    kind: DataType
    decoded: Sequence[Any]
    rows: Ints
    good: Mask
    raw: Callable[[int], bytes]


class JsonDecoder:
    """Decodes blocks of lines as the events of one program."""

    def __init__(self, compiled: Compiled, keys: Keys) -> None:
        self._compiled = compiled
        self._catalogue = compiled.rules.resolved.catalogue
        self._keys = keys
        self._stamps = {name for label in self._labels() for name in self._catalogue.stamps(label)} | {"time"}
        self._plain = self._plain_type()
        line = line_type(sorted(self._stamps)) if self._plain is None else self._plain.object_type
        self._decoder = msgspec.json.Decoder(line)
        self._types: dict[str, DataType] = {}
        for label, schema in self._catalogue.events.items():
            if schema.is_flat:
                self._types[label] = DataType(schema, self._catalogue)
        self._assumed = self._catalogue.local.assumed
        self._open = msgspec.json.Decoder(list[list[SCALAR]])
        self._is_quick = not self._catalogue.namespaces and (self._catalogue.only is None or self._plain is not None)

    def _plain_type(self) -> DataType | None:
        """Plain objects, whose keys are attributes, of a stream that carries one flat type; None if there are none."""
        schema = self._catalogue.events.get(self._catalogue.only or "")
        if schema is None or not schema.is_flat:
            return None
        stamps = self._catalogue.stamps(schema.label) or ("time",)
        others = [name for name in (*_ENVELOPE, "time", "begin", "end") if name not in stamps]
        if {*stamps, *_ENVELOPE}.intersection(schema.columns):
            return None
        beside: list[tuple[str, str, Any]] = [(field_of(name), name, TIME) for name in stamps]
        beside += [(field_of(name), name, Raw) for name in others if name not in schema.columns]
        self._beside_data = {*stamps, *others}
        self._beside = [field_of(name) for name in others if name not in schema.columns]
        return DataType(schema, self._catalogue, beside)

    def _labels(self) -> Iterator[str]:
        yield from self._catalogue.events
        yield ""  # what is not declared
        yield from (label for source in self._catalogue.sources for label in source.carries)

    def decode(self, block: bytes) -> Decoded:
        """The events of some whole lines; blank ones count for nothing."""
        local = self._catalogue.local
        before = local.assumed
        found = self._decoded(block)
        if found.bad and self._assumed == before < local.assumed:
            # Whether the first times without a zone that were read stand in good lines, those alone can tell.
            bad = {row for row, _ in found.bad}
            good = [line for row, line in enumerate(lines_of(block)) if row not in bad]
            local.assumed = before
            JsonDecoder(self._compiled, Keys(self._compiled.physical))._decoded(b"\n".join(good))
        return found

    def _decoded(self, block: bytes) -> Decoded:
        block = block.replace(b"\r\n", b"\n").strip(b"\n") if b"\r" in block else block.strip(b"\n")
        if not block:
            return Decoded()
        whole = self._whole(block) if self._is_quick and len(block) <= LARGEST_LINE else None
        if whole is not None:
            found = Decoded(len(whole))
            lines = cache(lambda: lines_of(block))
            self._columns(whole, np.arange(len(whole)), lambda row: lines()[row], counted(block), found)
            return found
        return self._each(lines_of(block))

    def _whole(self, block: bytes) -> list[Any] | None:
        """All lines at once; None if one of them is no plain event, or they are not one object each."""
        breaks = block.count(b"\n")
        if block.count(b"}\n{") != breaks or not is_text(block):
            return None
        try:
            found = self._decoder.decode_lines(block)
        except ERRORS:
            return None
        return found if len(found) == breaks + 1 else None

    def _each(self, lines: Sequence[bytes]) -> Decoded:
        """Lines of which some are odd."""
        found = Decoded(len(lines))
        good: list[Any] = []
        rows: list[int] = []
        odd: list[int] = []
        for row, line in enumerate(lines):
            one = self._one(line)
            if one is None:
                odd.append(row)
            else:
                good.append(one)
                rows.append(row)
        keys = counted(*(lines[row] for row in rows))
        self._columns(good, np.array(rows, dtype=np.int64), lines.__getitem__, keys, found)
        self._one_by_one(odd, lines.__getitem__, found)
        return found

    def _one(self, line: bytes) -> Any:
        if not self._is_quick or len(line) > LARGEST_LINE or not is_text(line):
            return None
        try:
            return self._decoder.decode(line)
        except ERRORS:
            return None

    # ---- by columns ----------------------------------------------------------------------------------------

    def _columns(
        self, lines: Sequence[Any], rows: Ints, original: Callable[[int], bytes], keys: int, found: Decoded
    ) -> None:
        """The events of lines, of which the first pass has been done, and which have so many keys in all."""
        if not lines:
            return
        if self._plain is not None:
            self._plain_columns(self._plain, lines, rows, original, keys, found)
            return
        odd = [k for k, line in enumerate(lines) if is_odd(line)] if has_odd(lines) else []
        seen = 0
        if odd:
            seen = sum(original(int(rows[k])).count(KEY) for k in odd)
            unlike = set(odd)
            kept = [k for k in range(len(lines)) if k not in unlike]
            odd = rows[odd].tolist()
            lines, rows = [lines[k] for k in kept], rows[kept]
        unread: list[Ints] = []
        noted: list[_Noted] = []
        for label, places in by_label([line.event for line in lines]).items():
            own = rows[places]
            if self._compiled.is_unread(label):  # nobody looks at its data
                unread.append(own)
            left, known = self._label(label, [lines[place] for place in places], own, found, noted)
            odd += own[left].tolist()
            seen += known
        looked_at = np.setdiff1d(rows, np.concatenate(unread)) if unread else rows
        self._the_rest(odd, looked_at, original, found, noted, is_doubtful=seen != keys)

    def _plain_columns(  # noqa: PLR0913, PLR0917 - as for other lines
        self,
        kind: DataType,
        lines: Sequence[Any],
        rows: Ints,
        original: Callable[[int], bytes],
        keys: int,
        found: Decoded,
    ) -> None:
        """The same for plain objects."""
        columns, good, known = kind.columns(lines)
        begins, ends, right, as_numbers, stamps = self._when(kind.schema.label, lines)
        for name in self._beside:  # what has one of these may be no plain object
            values = list(map(attrgetter(name), lines))
            if values.count(UNSET) < len(lines):
                good = good & np.array([value is UNSET for value in values])
                known += len(lines) - values.count(UNSET)
        good = good & right & kind.lasts(begins, ends)
        noted = []
        if self._keys.lacks(kind.schema.label):
            noted.append(_Noted(kind, lines, rows, good, lambda k: original(int(rows[k]))))
        batch = Batch({BEGIN: ints(begins), END: ints(ends), **columns}, len(lines))
        _add(found, Events(kind.schema.label, batch, len(columns), kind.schema.names), rows, good, as_numbers)
        left = rows[~good].tolist()
        self._the_rest(left, rows, original, found, noted, is_doubtful=known + stamps != keys)

    def _the_rest(  # noqa: PLR0913 - what is known of the lines
        self,
        odd: list[int],
        rows: Ints,
        original: Callable[[int], bytes],
        found: Decoded,
        noted: Sequence[_Noted],
        *,
        is_doubtful: bool,
    ) -> None:
        """Lines that columns cannot vouch for; in doubt, all are looked at once more. Only then keys are noted."""
        twice: set[int] = set()
        if is_doubtful:  # some key stands twice, is not known, looks like one, or not like one
            twice = set(doubtful([original(row) for row in rows.tolist()], rows.tolist()))
            found.leave_out(twice)
            odd = sorted(twice.union(odd))
        for own in noted:
            self._note(own, twice)
        self._one_by_one(odd, original, found)

    def _label(
        self, label: str, lines: Sequence[Any], rows: Ints, found: Decoded, noted: list[_Noted]
    ) -> tuple[Mask, int]:
        """The events of one label; which lines are left, and how many keys of theirs are known."""
        begins, ends, good, as_numbers, keys = self._when(label, lines)
        raws = [line.data for line in lines]
        joined = b"[" + b",".join(raws) + b"]"
        kind = self._types.get(label)
        if kind is None and self._compiled.is_unread(label):
            batch = Batch({BEGIN: ints(begins), END: ints(ends)}, len(lines))
            _add(found, Events(label, batch, 0, ()), rows, good, as_numbers)
            return ~good, keys + joined.count(KEY)
        if kind is None:
            return self._opened(label, joined, (begins, ends, good, as_numbers), rows, found), keys
        decoded = kind.decode(joined, raws)
        columns, fits, inside = kind.columns(decoded)
        good = good & fits & kind.lasts(begins, ends)
        if self._keys.lacks(label):
            noted.append(_Noted(kind, decoded, rows, good, lambda k: bytes(raws[k])))
        batch = Batch({BEGIN: ints(begins), END: ints(ends), **columns}, len(lines))
        _add(found, Events(label, batch, len(columns), kind.schema.names), rows, good, as_numbers)
        return ~good, keys + inside

    def _opened(
        self, label: str, joined: bytes, when: tuple[Ints, Ints, Mask, Mask], rows: Ints, found: Decoded
    ) -> Mask:
        """The events of a type that is not declared, by position; which lines are left."""
        begins, ends, good, as_numbers = when
        everything = np.ones(len(rows), dtype=np.bool_)
        if label in self._catalogue.events or self._compiled.limits.has(label):
            return everything
        try:
            values = self._open.decode(joined)
        except ERRORS:
            return everything
        left = ~good
        for arity, places in by_label([len(value) for value in values]).items():
            own = np.array(places, dtype=np.int64)
            columns: list[Column] = []
            fits = good[own]
            for n in range(arity):
                c, right = column_of_values([values[k][n] for k in places])
                columns.append(c)
                fits = fits & right
            batch = Batch(
                {
                    BEGIN: ints(begins[own]),
                    END: ints(ends[own]),
                    **{position(n): c for n, c in enumerate(columns)},
                },
                len(own),
            )
            _add(found, Events(label, batch, arity, None), rows[own], fits, as_numbers[own])
            left[own] = ~fits
        return left

    def _when(self, label: str, lines: Sequence[Any]) -> tuple[Ints, Ints, Mask, Mask, int]:
        """When events happen, for which of them that is plain, which of them say it as numbers, and their keys."""
        names = self._stamps if self._plain is None else set(self._catalogue.stamps(label) or ("time",))
        by_name = {name: list(map(attrgetter(field_of(name)), lines)) for name in names}
        keys = sum(len(lines) - values.count(UNSET) for values in by_name.values())
        keys += 2 * len(lines) if self._plain is None else 0  # `event` and `data`
        own = [by_name[name] for name in self._catalogue.stamps(label)]
        if all(values.count(UNSET) == len(lines) for values in own) and "time" in by_name:
            own = [by_name["time"]]
        stamps = [self._stamps_of(values) for values in own]
        if len(stamps) == 1:
            begins, ends, good, as_numbers = stamps[0]
        else:
            (begins, first, early, one), (ends, last, late, other) = stamps
            good = early & late & (begins == first) & (ends == last) & (begins <= ends)
            as_numbers = one & other
        return begins, ends, good, as_numbers, keys

    def _stamps_of(self, values: list[Any]) -> tuple[Ints, Ints, Mask, Mask]:
        """Points or pairs of them in microseconds, for which rows these are right, and which are numbers."""
        kinds = set(map(type, values))
        if kinds == {tuple}:
            begins, _, early, one = self._stamps_of([value[0] for value in values])
            ends, _, late, other = self._stamps_of([value[1] for value in values])
            return begins, ends, early & late & (begins <= ends), one & other
        if kinds == {int}:
            points, good = self._units(values)
            return points, points, good, np.ones(len(values), dtype=np.bool_)
        if kinds == {str}:
            points, good = stamps_of_texts(values, self._catalogue.local)
            return points, points, good, np.zeros(len(values), dtype=np.bool_)
        found = np.zeros((2, len(values)), dtype=np.int64)
        masks = np.zeros((2, len(values)), dtype=np.bool_)
        for kind in kinds - {UnsetType}:
            own = np.array([type(value) is kind for value in values])
            begins, ends, good, as_numbers = self._stamps_of([v for v in values if type(v) is kind])
            found[0, own], found[1, own], masks[0, own], masks[1, own] = begins, ends, good, as_numbers
        return found[0], found[1], masks[0], masks[1]

    def _units(self, values: list[int]) -> tuple[Ints, Mask]:
        unit = self._catalogue.unit
        try:
            numbers = np.array(values, dtype=np.int64)
        except OverflowError:
            numbers = np.array([v if abs(v) <= LATEST else LATEST + 1 for v in values], dtype=np.int64)
        near = (numbers <= LATEST // unit) & (numbers >= -(LATEST // unit))
        return np.where(near, numbers, 0) * unit, near

    def _note(self, noted: _Noted, twice: Container[int]) -> None:
        """Which keys the good objects of a type had, so that one which none ever had is told."""
        kind, rows = noted.kind, noted.rows.tolist()
        label = kind.schema.label
        places = [k for k in np.flatnonzero(noted.good).tolist() if rows[k] not in twice]
        decoded = [noted.decoded[k] for k in places]
        if not decoded:
            return
        if any(type(one) is tuple for one in decoded):
            self._keys.saw(label)
            return
        count, lacking = kind.lacking(decoded)
        others: dict[str, None] = {}
        for k in places[:_SAMPLE] if lacking else ():
            with suppress(*ERRORS):
                value = msgspec.json.decode(noted.raw(k))
                others |= dict.fromkeys(value if isinstance(value, dict) else ())
        declared = {*kind.schema.columns, *(() if self._plain is None else self._beside_data)}
        self._keys.add({label: [count, lacking, [name for name in others if name not in declared]]})

    # ---- line by line --------------------------------------------------------------------------------------

    def _one_by_one(self, rows: Sequence[int], original: Callable[[int], bytes], found: Decoded) -> None:
        """What is left, as the same object in Python would be read."""
        good: list[tuple[int, Event, bool]] = []
        for row in rows:
            message = decode_line(original(row))
            event = read_event(message, self._compiled)
            if isinstance(event, BadEvent):
                found.bad.append((row, event))
            elif event is not None:
                self._keys.note(enveloped(message.data, self._catalogue))
                good.append((row, event, not uses_text(message.data, self._catalogue)))
        found.add_each(good, self._catalogue)


def _add(found: Decoded, events: Events, rows: Ints, good: Mask, as_numbers: Mask) -> None:
    """Some events that are right, those first that say when by numbers."""
    if not good.all():
        events, rows, as_numbers = events.take(good), rows[good], as_numbers[good]
    if as_numbers.all() or not as_numbers.any():
        found.add(events, rows, as_numbers=bool(as_numbers.all()))
        return
    for chosen in (as_numbers, ~as_numbers):
        found.add(events.take(chosen), rows[chosen], as_numbers=bool(chosen is as_numbers))
