"""This module tells what an engine has counted, and lets another engine count on from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ephemera.engine.lanes import Lane


def counted(lane: Lane) -> dict[str, Any]:
    """Where a lane stands and what it has counted, as JSON has it."""
    return {
        "bound": lane.bound,
        "tick": lane.tick,
        "references": lane.references,
        "derived_references": lane.derived_references,
        "instances": lane.detecting.count,
        "totals": [lane.released, lane.duplicates, lane.unused],
        "collected": {name: h.collected for name, h in lane.histories.items()},
        "numbers": {name: h.next_number for name, h in lane.histories.items()},
        "rules": {name: [rule.seen, rule.examined] for name, rule in lane.rules.items()},
    }


def count_on(lane: Lane, told: Mapping[str, Any]) -> None:
    """Puts a lane where another stood."""
    lane.bound, lane.tick, lane.references = told["bound"], told["tick"], told["references"]
    lane.derived_references, lane.detecting.count = told["derived_references"], told["instances"]
    lane.released, lane.duplicates, lane.unused = told["totals"]
    for name, history in lane.histories.items():
        history.collected, history.next_number = told["collected"][name], told["numbers"][name]
    for name, (seen, examined) in told["rules"].items():
        lane.rules[name].seen, lane.rules[name].examined = seen, examined
