"""This module asks histories for keys: the values of variables that both sides share, and what each side computes.

A solved equation holds of whole numbers only. Rows that have none to ask for ask without a key, and so do all rows
where a run has other numbers; what they find is tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.operators.window import between
from ephemera.kernels.columns import Batch, Column, Ints, column
from ephemera.kernels.computed import Key, ScopeOf, computed, key_column, value_or_null, whole_numbers
from ephemera.kernels.history import FAR, Run
from ephemera.kernels.search import Question, search
from ephemera.physical.nodes import KeyEquation, Leaf, Probe
from ephemera.rules.scope import event_names
from ephemera.terms.nodes import Var
from ephemera.terms.values import Value


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What rows ask the runs of a history for."""

    by_key: tuple[Question, ...]
    """Each for some of the rows."""
    without: Question | None = None
    """The same without a key, for runs that cannot be searched by it."""

    @property
    def names(self) -> Iterator[str]:
        """The columns of the history on which what is found agrees."""
        return (k for k in self.by_key[0].keys if isinstance(k, str))

    def search(self, run: Run) -> Iterator[tuple[Ints, Ints]]:
        """The pairs of a row that asks and a row of the run, some at a time."""
        if self.without is not None and any(run.column(k) is None for k in self.by_key[0].keys):
            yield from search(run, self.without)
            return
        for one in self.by_key:
            yield from search(run, one)


class ProbeKeys:
    """The keys of a probe, by which it searches a history in the names of that."""

    def __init__(self, probe: Probe, leaf: Leaf, scope_of: ScopeOf) -> None:
        self.probe = probe
        self.leaf = leaf
        own = {new: old for old, new in leaf.names.items()}
        self.stamp = own.get(probe.stamp, probe.stamp)
        self.keys: tuple[Key, ...] = tuple(own.get(k, k) for k in probe.keys)
        self.is_solved = any(one.is_solved for one in probe.equations)
        self._scope_of = scope_of
        if probe.equations:
            self._scope = scope_of({})
            self.keys += tuple(self._key(one, own) for one in probe.equations)
            self._has_events = [any(True for _ in event_names(one.known, frozenset())) for one in probe.equations]

    def _key(self, equation: KeyEquation, own: Mapping[str, str]) -> Key:
        if isinstance(equation.own, Var) and not equation.is_solved:
            return own.get(equation.own.name, equation.own.name)
        return computed(equation.own, own, self._scope, whole=equation.is_solved)

    # ---- by columns ----------------------------------------------------------------------------------------

    def asked(self, batch: Batch) -> Asked:
        """What all rows ask for."""
        least, most = between(batch, self.probe.ranges)
        if self.is_solved:
            return self._solved(batch, least, most)
        columns = [batch.columns[k] for k in self.probe.keys]
        columns += [key_column(one.known, batch, self._scope_of) for one in self.probe.equations]
        return Asked((self._question(columns, least, most),))

    def _question(self, columns: list[Column], least: Ints, most: Ints) -> Question:
        keys = self.keys if columns else ()
        return Question(keys, self.stamp, least, most, tuple(columns))

    def _solved(self, batch: Batch, least: Ints, most: Ints) -> Asked:
        values, where = whole_numbers(self.probe.equations[0].known, batch, self._scope)
        without = self._question([], least, most)
        if where is None:
            return Asked((self._question([values], least, most),), without)
        keyed = self._question([values], np.where(where, least, FAR), np.where(where, most, -FAR))
        others = self._question([], np.where(where, FAR, least), np.where(where, -FAR, most))
        return Asked((keyed, others), without)

    # ---- row by row ----------------------------------------------------------------------------------------

    def values(self, row: Mapping[str, Any]) -> list[Value]:
        """What one row asks for."""
        found: list[Value] = [row[k] for k in self.probe.keys]
        for one, has_events in zip(self.probe.equations, self._has_events, strict=True):
            found.append(value_or_null(one.known, row, self._scope_of(row) if has_events else self._scope))
        return found

    def asked_by(self, values: list[Value], least: int, most: int) -> Asked:
        """What a row asks for, by the values of its keys."""
        limits = np.array([least], dtype=np.int64), np.array([most], dtype=np.int64)
        without = self._question([], *limits) if self.is_solved else None
        if without is not None and type(values[0]) is not int:
            return Asked((without,))
        return Asked((self._question([column([v]) for v in values], *limits),), without)
