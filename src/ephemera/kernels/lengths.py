"""This module computes how long timers are of which events say that: whole numbers at once, all else row by row."""

from __future__ import annotations

import numpy as np

from ephemera.kernels.arithmetic import Arithmetic
from ephemera.kernels.columns import Batch, Ints, Mask
from ephemera.kernels.computed import ScopeOf
from ephemera.terms.compute import lasting
from ephemera.terms.nodes import Expression


def lengths(e: Expression, batch: Batch, scope_of: ScopeOf, longest: int) -> tuple[Ints, Mask]:
    """The length of the timer of each row, in microseconds, and which rows have one; see `terms/compute`."""
    scope = scope_of({})
    found: Ints = np.zeros(len(batch), dtype=np.int64)
    has_length: Mask = np.zeros(len(batch), dtype=np.bool_)
    for share in Arithmetic(batch, scope).shares(e):
        rows = np.arange(len(batch)) if share.rows is None else share.rows
        if share.kind == "int":
            values = np.broadcast_to(share.values, (len(rows),))
            fits = (values >= 0) & (values <= longest // scope.unit)
            found[rows[fits]] = values[fits] * scope.unit
            has_length[rows[fits]] = True
        elif share.kind in ("float", "doubt"):
            for place, row in zip(rows.tolist(), batch.take(rows).rows(), strict=True):
                length = lasting(e, row, scope_of(row), longest)
                if length is not None:
                    found[place], has_length[place] = length, True
    return found, has_length
