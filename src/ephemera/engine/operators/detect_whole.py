"""This module finds the instances of algebra expressions that end in a step from all that is kept of their events.

That is for expressions that have no detector (`algebra/detector`): unrestricted ones, those of recursive rules, and
those in which a primitive knows only some of the shared variables.

Only what may be new is evaluated: choices of values of which something ends in the step, and of these what ends there.
For that the tuples are kept by the values that they know, beside their histories. What these have dropped changes no
answer, so it stays there until it is as much as what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ephemera.algebra import instances
from ephemera.algebra.attributes import end, event_of, is_occurrence, is_variable, primitive, reference
from ephemera.algebra.nodes import Detection
from ephemera.algebra.sharing import Keys, Names, Shared
from ephemera.algebra.truth import Tester
from ephemera.engine.operators.match import with_events
from ephemera.kernels.columns import UNBOUND, Batch, stack
from ephemera.kernels.history import FAR, History
from ephemera.kernels.tail import of_rows
from ephemera.physical.nodes import DetectionPlan, Leaf
from ephemera.terms.values import key

SPARE = 16
"""So many tuples that are dropped may be known besides."""

Place: TypeAlias = tuple[Names, Keys]


class WholeDetector:
    """The operator of algebra expressions of a lane without a detector: it owns the histories of their instances."""

    def __init__(self, tester: Tester, histories: Mapping[str, History]) -> None:
        self._tester = tester
        self._histories = histories
        self._known: dict[str, _Known] = {}
        """For each expression the tuples that it reads."""
        self._given: dict[str, set[Any]] = {}
        """For each expression the instances that were given in this step."""

    def start(self) -> None:
        """A step begins."""
        self._given = {}

    def forget(self) -> None:
        """The histories are others from now on."""
        self._known = {}

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what was given in this step; what it returns goes back to that, but for the numbers."""
        given = {name: set(instances) for name, instances in self._given.items()}

        def go_back() -> None:
            self._given = {name: set(instances) for name, instances in given.items()}
            self.forget()

        return go_back

    def step(self, point: str, plan: DetectionPlan, after: int, until: int, tick: int) -> Batch | None:
        """The instances of an expression of a rule that end after one time and until another, at a tick."""
        detection = plan.detection
        source = f"{point}/{detection.name}"
        histories = [self._histories[leaf.source] for leaf in plan.inputs]
        known = self._known.get(source)
        if known is None or known.is_stale(histories):
            known = self._known[source] = _Known(detection, plan.inputs)
        places = known.step(histories, after, until, tick)
        if not places:
            return None
        given = self._given.setdefault(source, set())
        which = reference(detection.name)
        new = [
            t
            for t in instances.among(detection, known.shared.choices(places), self._tester, (after, until))
            if (t[which].key, _values(t)) not in given
        ]
        if not new:
            return None
        given |= {(t[which].key, _values(t)) for t in new}
        return of_rows([{n: v for n, v in t.items() if n != which} for t in new])


class _Known:
    """The tuples that an expression reads, by the values of the shared variables that they know."""

    def __init__(self, detection: Detection, leaves: Sequence[Leaf]) -> None:
        self.shared = Shared(detection)
        self._ends = [end(primitive(detection.name, number)) for number in range(1, len(leaves) + 1)]
        self._leaves = leaves
        self._count = 0
        self._seen = -FAR
        """The tick until which all tuples are known."""
        self._recent: list[tuple[int, Place]] = []
        """When those end that may end in a step, and where they are."""

    def is_stale(self, histories: Sequence[History]) -> bool:
        """Whether most of what is known was dropped."""
        return self._count > 2 * sum(map(len, histories)) + SPARE

    def step(self, histories: Sequence[History], after: int, until: int, tick: int) -> list[Place]:
        """Takes what is new, and says where something is that ends after one time and until another."""
        self._recent = [(time, place) for time, place in self._recent if time > after]
        for number, (leaf, history) in enumerate(zip(self._leaves, histories, strict=True)):
            for t in _since(history, self._seen, leaf):
                place = self.shared.add(number, t)
                self._count += 1
                if place is not None and t[self._ends[number]] > after:
                    self._recent.append((t[self._ends[number]], place))
        self._seen = tick
        return [place for time, place in self._recent if time <= until]


def _since(history: History, tick: int, leaf: Leaf) -> list[dict[str, Any]]:
    """The tuples that came after a tick, with the events themselves in place of references."""
    few = history.few_since(tick)
    if few is None:
        runs = [run.batch.renamed(leaf.names) for run in history.flush() if run.step > tick]
        return with_events(stack(runs)).rows()
    names = leaf.names
    found: list[dict[str, Any]] = []
    for row in few:
        t = {names.get(n, n): v for n, v in row.items() if v is not UNBOUND}
        for name in [n for n in t if is_occurrence(n)]:
            t[reference(event_of(name))] = t.pop(name)
        found.append(t)
    return found


def _values(t: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((n, key(v)) for n, v in t.items() if is_variable(n)))
