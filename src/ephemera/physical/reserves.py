"""This module adds to lanes the whole events that a program reserves for rules that come later (R§6.2).

Each is what the paper calls an artificial query: nobody reads it, and it is kept as long as is declared. It stands in
every lane that waits for the source of its type, so that a rule finds it wherever it will run, and in one of its own.
"""

from __future__ import annotations

from dataclasses import replace

from ephemera.algebra.attributes import EVENT, begin, end, reserve_of
from ephemera.analysis.sources import UNNAMED
from ephemera.physical.lanes import Lanes
from ephemera.physical.nodes import HistoryPlan, LanePlan, QueryPlan, Reader
from ephemera.rules.nodes import Catalogue
from ephemera.terms.nodes import AnyEvent, Label

_EMPTY = LanePlan((), {}, {}, {}, {}, ())


def reserving(lanes: Lanes, catalogue: Catalogue) -> Lanes:
    """The lanes with all that is reserved."""
    if not catalogue.reserves:
        return lanes
    carried = {label: source.name for source in catalogue.sources for label in source.carries}
    sources = {label: carried.get(label, UNNAMED) for label in catalogue.reserves}
    plans = dict(lanes.plans)
    for source in sources.values():
        plans.setdefault(frozenset((source,)), _EMPTY)
    plans = {
        names: _with(lane, {label: catalogue.reserves[label] for label, source in sources.items() if source in names})
        for names, lane in sorted(plans.items(), key=lambda one: len(one[0]))
    }
    return replace(lanes, plans=plans)


def _with(lane: LanePlan, reserves: dict[str, int]) -> LanePlan:
    new = {reserve_of(label): label for label in reserves if reserve_of(label) not in lane.queries}
    if not new:
        return lane
    queries = {name: QueryPlan(label, (AnyEvent(_label(label)),), keeps_events=True) for name, label in new.items()}
    histories = {
        name: HistoryPlan((begin(EVENT), end(EVENT)), (Reader(((end(EVENT), reserves[label]),)),), reserves[label])
        for name, label in new.items()
    }
    return replace(
        lane,
        schedule=(*(((name,), False) for name in new), *lane.schedule),
        queries={**queries, **lane.queries},
        histories={**histories, **lane.histories},
    )


def _label(label: str) -> Label:
    prefix, _, name = label.rpartition(":")
    return Label(name, prefix)
