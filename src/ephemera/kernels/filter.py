"""This module tests formulas on whole batches; the rows that columns cannot vouch for are tested one by one.

Differences of stamps, references, comparisons of expressions and tests for null are vectorised, also where they are
joined and negated. A formula that is true, false or unknown keeps a row only where it is true, so a conjunction may be
tested part by part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ephemera.algebra.attributes import Time, is_moment, microseconds, reference
from ephemera.algebra.scalar import Distance, Every, Formula, Holds, LimitedDistance, Negation, SameEvent, Some
from ephemera.algebra.truth import Tester
from ephemera.kernels.arithmetic import Arithmetic
from ephemera.kernels.columns import Batch, Mask
from ephemera.kernels.truth_columns import Truth, compared, conjunction, disjunction, in_doubt, is_null, negation
from ephemera.syntax.nodes import Comparison, IsNull

Resolve = Callable[[Batch], Batch]
"""Puts events in place of references, for what is tested row by row."""


class Filter:
    """Tests formulas on batches."""

    def __init__(self, tester: Tester, resolve: Resolve) -> None:
        self.tester = tester
        self._resolve = resolve
        self._scope = tester.scope({})

    def keep(self, f: Formula, batch: Batch) -> Batch:
        """The rows for which the formula is true."""
        arithmetic = Arithmetic(batch, self._scope)
        together: Mask | None = None
        open_parts: list[tuple[Formula, Mask]] = []
        for part in f.parts if isinstance(f, Every) else (f,):
            truth = self._truth(part, batch, arithmetic)
            may_hold = truth.true
            if truth.doubt is not None:
                may_hold = truth.true | truth.doubt
                open_parts.append((part, truth.doubt))
            together = may_hold if together is None else together & may_hold
        if together is None:
            return batch
        for part, doubt in open_parts:
            rows = np.flatnonzero(together & doubt)
            if len(rows):
                together = together.copy()
                together[rows] = self._by_rows(part, batch.take(rows))
        return batch.take(together)

    def _by_rows(self, f: Formula, batch: Batch) -> Mask:
        rows = self._resolve(batch).rows()
        return np.fromiter((self.tester.truth(f, t) is True for t in rows), dtype=np.bool_, count=len(batch))

    def _truth(self, f: Formula, batch: Batch, arithmetic: Arithmetic) -> Truth:
        match f:
            case Distance(later, earlier, limit, strict):
                distance = times(batch, later) - times(batch, earlier)
                holds = np.asarray(distance < limit if strict else distance <= limit, dtype=np.bool_)
                return Truth(np.broadcast_to(holds, (len(batch),)))
            case LimitedDistance(later, earlier, variable, strict):
                distance, limits = times(batch, later) - times(batch, earlier), batch[variable]
                return Truth(np.asarray(distance < limits if strict else distance <= limits, dtype=np.bool_))
            case SameEvent(left, right, same):
                a, b = batch.columns.get(reference(left)), batch.columns.get(reference(right))
                if a is None or b is None:
                    return in_doubt(len(batch))
                return Truth(np.asarray((a.values == b.values) == same, dtype=np.bool_))
            case Every(parts) if parts:
                return conjunction([self._truth(p, batch, arithmetic) for p in parts])
            case Some(parts) if parts:
                return disjunction([self._truth(p, batch, arithmetic) for p in parts])
            case Negation(inner):
                return negation(self._truth(inner, batch, arithmetic))
            case Holds(Comparison(operator, left, right)):
                return compared(operator, arithmetic.shares(left), arithmetic.shares(right), len(batch))
            case Holds(IsNull(operand, negated)):
                truth = is_null(arithmetic.shares(operand), len(batch))
                return negation(truth) if negated else truth
            case _:
                return in_doubt(len(batch))


def times(batch: Batch, time: Time) -> Any:
    """A stamp of each row, or a moment for all of them."""
    return microseconds(time) if is_moment(time) else batch[time]
