"""This module puts answers into their order: by end, begin, event and data, without an object for each.

Answers that differ in when or what they are, and most do, are sorted by columns. Only those that share end, begin and
label are compared by their data: by columns where each holds values of one plain kind, else by the keys of their terms.
What is equal in all of that stays in the order of its program, events before messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ephemera.algebra.attributes import position
from ephemera.kernels.columns import Array, Column, Ints
from ephemera.kernels.event_columns import BEGIN, END, Events


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Answers of one label by columns, and whose they are."""

    events: Events
    message: tuple[str, str] | None = None
    """The recipient and the transport, if they are messages."""
    program: int = 0

    @property
    def more(self) -> dict[str, str] | None:
        """What a message says besides."""
        return None if self.message is None else {"recipient": self.message[0], "transport": self.message[1]}

    @property
    def rank(self) -> tuple[int, bool, tuple[str, str]]:
        """Where they stand among equal ones."""
        return self.program, self.message is not None, self.message or ("", "")


def in_order(parts: Sequence[AnswerPart]) -> Ints:
    """The numbers of all rows, counted through the parts one after the other, in the order of answers."""
    if not parts:
        return np.empty(0, np.int64)
    ends = np.concatenate([part.events.batch[END] for part in parts])
    begins = np.concatenate([part.events.batch[BEGIN] for part in parts])
    ranks = {label: k for k, label in enumerate(sorted({part.events.label for part in parts}))}
    labels = np.repeat([ranks[part.events.label] for part in parts], [len(part.events) for part in parts])
    order: Ints = np.argsort(ends, kind="stable")  # steps come in the order of time, which makes this quick
    sorted_ends = ends[order]
    together = sorted_ends[1:] == sorted_ends[:-1]
    if not together.any():
        return order
    lengths = sorted_ends - begins[order]
    groups = np.cumsum(np.r_[False, ~together])
    longest, kinds = int(lengths.max()) + 1, len(ranks)
    if longest * kinds * (int(groups[-1]) + 1) < 1 << 62:  # all of it in one number
        order = order[np.argsort((groups * longest + (longest - 1 - lengths)) * kinds + labels[order])]
    else:
        order = order[np.lexsort((labels[order], -lengths, groups))]
    b, n = begins[order], labels[order]
    tied = together & (b[1:] == b[:-1]) & (n[1:] == n[:-1])
    if tied.any():
        _untie(order, tied, parts)
    return order


def _untie(order: Ints, tied: np.ndarray, parts: Sequence[AnswerPart]) -> None:
    """Sorts the rows that share end, begin and label by their data, in place."""
    group = np.cumsum(np.r_[True, ~tied])
    places = np.flatnonzero(np.r_[tied, False] | np.r_[False, tied])
    starts = np.cumsum([0, *(len(part.events) for part in parts)])
    owner = np.searchsorted(starts, order[places], side="right") - 1
    left = np.zeros(len(places), dtype=np.bool_)
    labels = [part.events.label for part in parts]
    for k, part in enumerate(parts):
        mine = owner == k
        keys = _data_keys(part.events, order[places[mine]] - starts[k]) if labels.count(labels[k]) == 1 else None
        if keys is None:
            left |= mine
            continue
        own = places[mine]
        order[own] = order[own[np.lexsort((*reversed(keys), group[own]))]]
    if left.any():
        _by_terms(order, places[left], group, parts, starts)


def _data_keys(events: Events, rows: Ints) -> list[Array] | None:
    """By what data are sorted, column by column; None if values have to be looked at one by one."""
    if events.arity is None:
        return None
    columns = [events.batch.columns[position(k)] for k in range(events.arity)]
    if any(c.kind == "any" for c in columns):
        return None
    names = events.names
    if names is not None:  # the children of a declared event have no order of their own
        columns = [columns[k] for k in sorted(range(len(columns)), key=lambda k: names[k])]
    return [_ranked(c.take(rows)) for c in columns]


def _ranked(c: Column) -> Array:
    """Numbers in the order of the values."""
    if c.kind != "text":
        return c.values
    coded = pa.array(c.values, pa.string()).dictionary_encode()
    by_text = pc.sort_indices(coded.dictionary).to_numpy()
    ranks = np.empty(len(by_text), dtype=np.int64)
    ranks[by_text] = np.arange(len(by_text))
    ranked: Ints = ranks[coded.indices.to_numpy()]
    return ranked


def _by_terms(order: Ints, places: Ints, group: Ints, parts: Sequence[AnswerPart], starts: Ints) -> None:
    """The same by the keys of terms, for what columns cannot tell."""
    rows = order[places]
    owner = np.searchsorted(starts, rows, side="right") - 1
    keys: dict[int, tuple[object, ...]] = {}
    for k in np.unique(owner).tolist():
        own = rows[owner == k]
        terms = parts[k].events.take(own - starts[k]).terms()
        keys |= {row: (term.key, parts[k].rank) for row, term in zip(own.tolist(), terms, strict=True)}
    numbers = group[places].tolist()
    listed = sorted(zip(numbers, rows.tolist(), strict=True), key=lambda one: (one[0], keys[one[1]]))
    order[places] = [row for _, row in listed]
