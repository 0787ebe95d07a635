"""This module finds the instances of algebra expressions that end in a step by evaluating all that is kept.

That is for expressions that have no detector (`algebra/detector`): unrestricted ones, those of recursive rules, and
those in which a primitive knows only some of the shared variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ephemera.algebra import instances
from ephemera.algebra.attributes import end, is_variable, reference
from ephemera.algebra.truth import Tester
from ephemera.engine.operators.match import with_events
from ephemera.kernels.columns import Batch, stack
from ephemera.kernels.history import History
from ephemera.kernels.tail import of_rows
from ephemera.physical.nodes import DetectionPlan, Leaf
from ephemera.terms.values import key


class WholeDetector:
    """The operator of algebra expressions of a lane without a detector: it owns the histories of their instances."""

    def __init__(self, tester: Tester, histories: Mapping[str, History]) -> None:
        self._tester = tester
        self._histories = histories
        self._given: dict[str, set[Any]] = {}
        """For each expression the instances that were given in this step."""

    def start(self) -> None:
        """A step begins."""
        self._given = {}

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what was given in this step; what it returns goes back to that, but for the numbers."""
        given = {name: set(instances) for name, instances in self._given.items()}

        def go_back() -> None:
            self._given = {name: set(instances) for name, instances in given.items()}

        return go_back

    def step(self, point: str, plan: DetectionPlan, after: int, until: int) -> Batch | None:
        """The instances of an expression of a rule that end after one time and until another."""
        detection = plan.detection
        source = f"{point}/{detection.name}"
        inputs = [self._tuples(leaf) for leaf in plan.inputs]
        given = self._given.setdefault(source, set())
        stop, which = end(detection.name), reference(detection.name)
        new = [
            t
            for t in instances.found(detection, inputs, self._tester)
            if after < t[stop] <= until and (t[which].key, _values(t)) not in given
        ]
        if not new:
            return None
        given |= {(t[which].key, _values(t)) for t in new}
        return of_rows([{n: v for n, v in t.items() if n != which} for t in new])

    def _tuples(self, leaf: Leaf) -> list[dict[str, Any]]:
        runs = [run.batch.renamed(leaf.names) for run in self._histories[leaf.source].flush()]
        return with_events(stack(runs)).rows() if runs else []


def _values(t: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((n, key(v)) for n, v in t.items() if is_variable(n)))
