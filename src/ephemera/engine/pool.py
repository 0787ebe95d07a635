"""This module holds the events of one step: each once, whoever gave it, with a reference that tells it from others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ephemera.engine.events import REFERENCE, Events, distinct
from ephemera.kernels.columns import Ints, ints


class Pool:
    """What is released or derived in a step, by label; readers take up what they have not seen yet.

    Events from outside have references from 0 upwards, derived ones from -1 downwards.
    """

    def __init__(self, next_reference: int, next_derived: int) -> None:
        self.next_reference = next_reference
        self.next_derived = next_derived
        self._events: dict[str, list[Events]] = {}
        self._read: dict[tuple[str, str], int] = {}

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
        seen = {event.key for part in known for event in part.events()}
        mask = np.fromiter((event.key not in seen for event in new.events()), dtype=np.bool_, count=len(new))
        return new if mask.all() else new.take(mask)

    def unread(self, reader: str, label: str | None) -> list[Events]:
        """The events of a label, or of any, that a reader has not taken yet."""
        found: list[Events] = []
        for name in list(self._events) if label is None else [label]:
            parts = self._events.get(name, [])
            found += parts[self._read.get((reader, name), 0) :]
            self._read[reader, name] = len(parts)
        return found
