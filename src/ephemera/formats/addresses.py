"""This module says where messages by columns go: one place for all that a rule sends, or what the rule has computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ephemera.kernels.columns import Batch, Column, objects
from ephemera.kernels.event_columns import RECIPIENT, TRANSPORT, Events
from ephemera.syntax.nodes import Head, Raise
from ephemera.terms.addresses import Address


def fixed_address(head: Head | None) -> Address | None:
    """Where all messages of a rule go, if its text says it; None also if it sends none."""
    if isinstance(head, Raise) and isinstance(head.recipient, str) and isinstance(head.transport, str):
        return head.recipient, head.transport
    return None


def may_go(head: Raise, to: Address) -> bool:
    """Whether a rule may send messages there."""
    return all(isinstance(p, str) is False or p == t for p, t in zip((head.recipient, head.transport), to, strict=True))


def addresses(events: Events, fixed: Address | None = None) -> list[Address | None]:
    """Where each of some messages goes; None for answers that are no messages."""
    if RECIPIENT not in events.batch.columns:
        return [fixed] * len(events)
    both = (events.batch.columns[name].tolist() for name in (RECIPIENT, TRANSPORT))
    return list(zip(*both, strict=True))


def by_address(events: Events, fixed: Address | None) -> list[tuple[Address, Events]]:
    """Messages by where they go, in the order of the first of each; they do not say it themselves any more."""
    if RECIPIENT not in events.batch.columns:
        return [] if fixed is None else [(fixed, events)]
    rows: dict[Address, list[int]] = {}
    for row, to in enumerate(addresses(events)):
        if to is not None:
            rows.setdefault(to, []).append(row)
    plain = without_address(events)
    return [(to, plain.take(np.array(own, dtype=np.int64))) for to, own in rows.items()]


def with_address(events: Events, fixed: Address | None) -> Events:
    """Messages that say themselves where they go; they are terms."""
    if fixed is None or RECIPIENT in events.batch.columns:
        return events
    events = events.as_terms()
    columns = {name: Column(objects([text] * len(events)), "text") for name, text in zip(_COLUMNS, fixed, strict=True)}
    return replace(events, batch=Batch({**events.batch.columns, **columns}, len(events)))


def without_address(events: Events) -> Events:
    """Messages that do not say where they go; two of them may be equal now."""
    if RECIPIENT not in events.batch.columns:
        return events
    columns = {name: c for name, c in events.batch.columns.items() if name not in _COLUMNS}
    return replace(events, batch=Batch(columns, len(events)))


_COLUMNS = (RECIPIENT, TRANSPORT)
