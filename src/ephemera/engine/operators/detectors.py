"""This module holds the algebra expressions of a lane: it numbers their instances and puts them into histories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ephemera.algebra.attributes import records_of, reference
from ephemera.algebra.truth import Tester
from ephemera.engine.operators.detect import Detecting, Pool
from ephemera.engine.operators.detect_whole import WholeDetector
from ephemera.kernels.columns import Batch, ints
from ephemera.kernels.history import History
from ephemera.kernels.tail import RowBatch
from ephemera.physical.nodes import DetectionPlan, RulePlan


class Detectors:
    """The operators of a lane's algebra expressions; they own the histories of their instances."""

    def __init__(self, rules: Sequence[RulePlan], tester: Tester, histories: Mapping[str, History]) -> None:
        self._whole = WholeDetector(tester, histories)
        self.detecting: dict[str, Detecting] = {
            records_of(rule.point, one.detection.name): Detecting(one.detection.name, one, one.detector, histories)
            for rule in rules
            for one in rule.detections
            if one.detector is not None
        }
        self.count = 0
        """How many instances there were; they are told apart by their number."""
        self._of: dict[str, list[_Detected]] = {
            rule.point: [self._detected(rule.point, one, histories) for one in rule.detections] for rule in rules
        }

    def _detected(self, point: str, one: DetectionPlan, histories: Mapping[str, History]) -> _Detected:
        name = one.detection.name
        operator = self.detecting.get(records_of(point, name))
        return _Detected(one, operator, histories[f"{point}/{name}"], reference(name))

    def count_on(self, count: int) -> None:
        """Numbers instances from there on."""
        self.count = count
        self._whole.forget()

    def start(self) -> None:
        """A step begins."""
        self._whole.start()

    def mark(self) -> Callable[[], None]:
        """Keeps in mind what was given in this step; what it returns goes back to that, but for the numbers."""
        return self._whole.mark()

    def step(self, rule: RulePlan, seen: int, span: tuple[int, int], tick: int, events: Pool) -> int:
        """The instances of the expressions of a rule that end in a span, from what came after a tick; how many."""
        total = 0
        for one, operator, history, which in self._of[rule.point]:
            if operator is None:
                found: Batch | None = self._whole.step(rule.point, one, *span, tick)
            else:
                given = operator.step(seen, *span, events)
                found = RowBatch(given) if isinstance(given, list) else given
            if found is not None:
                numbers = range(self.count, self.count + len(found))
                self.count += len(found)
                if isinstance(found, RowBatch):
                    found = found.numbered(which, numbers)
                else:
                    found = found.with_columns({which: ints(numbers)})
                history.append(found, tick)
                total += len(found)
        return total


class _Detected(NamedTuple):
    """An expression, its operator, if it has a detector, and where its instances go and are told apart by."""

    plan: DetectionPlan
    operator: Detecting | None
    history: History
    number: str
