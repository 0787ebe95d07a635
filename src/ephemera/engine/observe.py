"""This module looks at what comes: how many events of each type, and how many values they have, for the planner."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.algebra.attributes import position
from ephemera.analysis.flows import Statistics
from ephemera.base.time import SECOND
from ephemera.kernels.event_columns import END, Events
from ephemera.kernels.sampling import distinct_values
from ephemera.physical.plan import Compiled


def observed(parts: Sequence[Events], weights: Sequence[float] | None = None) -> Statistics:
    """What is to be seen in some events, of all that come in their time; nothing if that has no length.

    Weights say for how many events each of a part stands, if not only for itself.
    """
    counts: dict[str, float] = {}
    for part, weight in zip(parts, weights or [1.0] * len(parts), strict=True):
        counts[part.label] = counts.get(part.label, 0) + len(part) * weight
    ends = [part.batch[END] for part in parts if len(part)]
    span = max((int(e.max()) for e in ends), default=0) - min((int(e.min()) for e in ends), default=0)
    if span <= 0:
        return Statistics()
    distinct: dict[tuple[str, int], float] = {}
    for part in parts:
        for k in range(part.arity or 0):
            values = distinct_values(part.batch.columns[position(k)], len(part))
            distinct[part.label, k] = max(distinct.get((part.label, k), 1.0), values)
    rates = {label: count * SECOND / span for label, count in counts.items() if count}
    return Statistics(rates, distinct, frozenset(rates))


def planned_for(compiled: Compiled, parts: Sequence[Events], *, always: bool = False) -> Compiled:
    """A program as it is to run over some events, or over those that begin with them.

    Where that leaves no choice it is as it was, unless somebody wants to know what is expected.
    """
    if not always and not compiled.physical.has_choice:
        return compiled
    statistics = observed(parts)
    return compiled.seen(statistics) if statistics else compiled
