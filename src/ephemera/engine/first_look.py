"""This module looks at the first events of a live engine, to plan it by what comes where nobody says how much comes.

A run over a history looks at its input before it is planned. A live one begins with guesses; what it is given in its
first steps is kept until about a thousand events have come. If another plan is better by these, its lanes are made and
take the same steps: they hold then, and answer from then on, what they would if they had run from the beginning. What
they answered until then is known already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ephemera.analysis.flows import Statistics, declared
from ephemera.engine.observe import observed
from ephemera.kernels.columns import stack
from ephemera.kernels.event_columns import Events
from ephemera.physical.plan import Compiled, PhysicalPlan

ENOUGH = 1_024
"""After so many events it is decided."""

Step = tuple[Sequence[Events], int]
"""What was released to a lane, and the bound up to which it went."""


class FirstLook:
    """What has come so far, and the steps that were taken."""

    def __init__(self, plan: Callable[[Statistics], PhysicalPlan | None]) -> None:
        """`plan` says how a program is to run of whose events so much is known; None if that is as it runs already."""
        self._plan = plan
        self._parts: list[Events] = []
        self._count = 0
        self.steps: dict[frozenset[str], list[Step]] = {}

    @property
    def is_over(self) -> bool:
        """Whether enough has come."""
        return self._count >= ENOUGH

    def came(self, part: Events) -> None:
        """Some events have come."""
        self._parts.append(part)
        self._count += len(part)

    def stepped(self, names: frozenset[str], released: Sequence[Events], bound: int) -> None:
        """A lane takes a step."""
        self.steps.setdefault(names, []).append((released, bound))

    def better_plan(self) -> PhysicalPlan | None:
        """How the program is to run from now on; None if it goes on as it is, or all came at one time."""
        by_shape: dict[tuple[str, int | None], list[Events]] = {}
        for part in self._parts:
            by_shape.setdefault((part.label, part.arity), []).append(part)
        together = (replace(own[0], batch=stack([part.batch for part in own])) for own in by_shape.values())
        statistics = observed(list(together))
        return self._plan(statistics) if statistics else None


def is_worthwhile(compiled: Compiled) -> bool:
    """Whether it makes a difference how much comes, and is not declared; what asks the clock is not given twice."""
    physical = compiled.physical
    read = {point.label for point in physical.plan.points.values() if point.kind == "query"}
    unknown = (physical.awaited & read) - declared(physical.catalogue).rates.keys()
    lanes = physical.lanes.plans.values()
    is_timed = physical.clocked or any(lane.timers or lane.days for lane in lanes)
    return bool(unknown) and physical.has_choice and not is_timed


def planned_by(compiled: Compiled, statistics: Statistics) -> Compiled | None:
    """A live program as it is to run if so much comes; None if the same is stored then, in the same lanes."""
    planned = compiled.seen(statistics).live()
    was, now = compiled.physical, planned.physical
    is_same = was.rules.keys() == now.rules.keys() and was.rewritten.names == now.rewritten.names
    return None if is_same or was.lanes.plans.keys() != now.lanes.plans.keys() else planned


def as_json(statistics: Statistics) -> dict[str, Any]:
    """What is known of events, to be stored."""
    distinct = [[label, place, values] for (label, place), values in statistics.distinct.items()]
    return {"rates": dict(statistics.rates), "distinct": distinct, "seen": sorted(statistics.seen)}


def from_json(stored: Mapping[str, Any]) -> Statistics:
    """The same, as it was stored."""
    distinct = {(label, place): values for label, place, values in stored["distinct"]}
    return Statistics(stored["rates"], distinct, frozenset(stored["seen"]))
