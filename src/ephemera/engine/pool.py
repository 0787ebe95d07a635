"""This module holds the events of one step: each once, whoever gave it, with a reference that tells it from others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ephemera.engine.events import BEGIN, END, REFERENCE, Events, distinct, position
from ephemera.kernels.columns import Column, Ints, ints
from ephemera.kernels.tail import plain_key
from ephemera.terms.values import Key


class Pool:
    """What is released or derived in a step, by label; readers take up what they have not seen yet.

    Events from outside have references from 0 upwards, derived ones from -1 downwards.
    """

    def __init__(self, next_reference: int, next_derived: int) -> None:
        self.next_reference = next_reference
        self.next_derived = next_derived
        self._events: dict[str, list[Events]] = {}
        self._seen: dict[str, _Seen] = {}
        self._read: dict[tuple[str, str], int] = {}
        self.portion: int | None = None
        """How many events a reader is given at a time; None is all."""
        self._left: dict[str, list[Events]] = {}
        """What readers have not been given yet."""

    def add(self, parts: Sequence[Events], *, derived: bool = True) -> int:
        """More events; says how many of them are new."""
        total = 0
        for new in distinct(parts):
            fresh = self._unknown(new)
            if len(fresh):
                references = self._references(len(fresh), derived=derived)
                batch = fresh.batch.with_columns({REFERENCE: ints(references)})
                self._events.setdefault(fresh.label, []).append(Events(fresh.label, batch, fresh.arity, fresh.names))
                total += len(fresh)
        return total

    def _references(self, count: int, *, derived: bool) -> Ints:
        if derived:
            self.next_derived -= count
            return np.arange(self.next_derived + count, self.next_derived, -1)
        self.next_reference += count
        return np.arange(self.next_reference - count, self.next_reference)

    def _unknown(self, new: Events) -> Events:
        known = self._events.get(new.label)
        if not known or not len(new):
            return new
        return self._seen.setdefault(new.label, _Seen()).without(new, known)

    def unread(self, reader: str, label: str | None) -> list[Events]:
        """The events of a label, or of any, that a reader has not taken yet; of many a portion, the newest."""
        found = self._left.pop(reader, [])
        for name in list(self._events) if label is None else [label]:
            parts = self._events.get(name, [])
            found += parts[self._read.get((reader, name), 0) :]
            self._read[reader, name] = len(parts)
        most = self.portion
        if most is None or sum(map(len, found)) <= most:
            return found
        taken: list[Events] = []
        while found and most:
            part = found.pop()
            if len(part) > most:
                found.append(part.take(np.arange(len(part) - most)))
                part = part.take(np.arange(len(part) - most, len(part)))
            taken.append(part)
            most -= len(part)
        if found:
            self._left[reader] = found
        return taken

    @property
    def has_left(self) -> bool:
        """Whether a reader was not given all."""
        return bool(self._left)


class _Seen:
    """What tells the events of one label apart, taken down when some more may equal them, and each once."""

    def __init__(self) -> None:
        self._keys: set[Key] = set()
        self._count = 0
        """Of how many parts the keys are."""
        self._is_flat = True

    def without(self, new: Events, known: Sequence[Events]) -> Events:
        """Those of some events that are not among the known ones, which are as before and more behind them."""
        if self._is_flat and any(part.arity is None for part in (new, *known[self._count :])):
            self._keys, self._count, self._is_flat = set(), 0, False
        for part in known[self._count :]:
            self._keys.update(self._keys_of(part))
        self._count = len(known)
        mask = np.fromiter((k not in self._keys for k in self._keys_of(new)), dtype=np.bool_, count=len(new))
        return new if mask.all() else new.take(mask)

    def _keys_of(self, events: Events) -> Iterable[Key]:
        """Events of both shapes are told apart as terms, flat ones by their values."""
        times = [events.batch[BEGIN].tolist(), events.batch[END].tolist()]
        if not self._is_flat:
            return zip(*times, (term.key for term in events.terms()), strict=True)
        return zip(
            *times, *(_told_apart(events.batch.columns[position(k)]) for k in range(events.arity or 0)), strict=True
        )


def _told_apart(c: Column) -> Iterable[Any]:
    return map(plain_key, c.tolist()) if c.kind == "any" else c.tolist()
