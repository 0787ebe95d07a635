"""This module tells what an engine has counted, and lets another engine count on from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ephemera.engine.state.stored_names import StoredLane


def counted(stored: StoredLane) -> dict[str, Any]:
    """Where a lane stands and what it has counted, as JSON has it, by stored names."""
    lane = stored.lane
    histories = {name: lane.histories[own] for name, own in stored.histories.items()}
    rules = {name: lane.rules[own] for name, own in stored.rules.items()}
    return {
        "bound": lane.bound,
        "tick": lane.tick,
        "references": lane.references,
        "derived_references": lane.derived_references,
        "instances": lane.detecting.count,
        "totals": [lane.released, lane.duplicates, lane.unused],
        "histories": {name: [h.collected, h.next_number] for name, h in histories.items()},
        "rules": {name: [rule.seen, rule.examined] for name, rule in rules.items()},
    }


def count_on(stored: StoredLane, told: Mapping[str, Any]) -> None:
    """Puts a lane where another stood."""
    lane = stored.lane
    lane.bound, lane.tick, lane.references = told["bound"], told["tick"], told["references"]
    lane.derived_references, lane.detecting.count = told["derived_references"], told["instances"]
    lane.released, lane.duplicates, lane.unused = told["totals"]
    for name, own in stored.histories.items():
        history = lane.histories[own]
        history.collected, history.next_number = told["histories"][name]
    for name, own in stored.rules.items():
        lane.rules[own].seen, lane.rules[own].examined = told["rules"][name]
