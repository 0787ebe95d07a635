"""This module rewrites a plan before it is run, step by step, and checks it after each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ephemera.algebra.check import check_plan
from ephemera.algebra.fingerprint import fingerprints, state_names
from ephemera.algebra.nodes import Plan
from ephemera.analysis.nodes import Facts
from ephemera.rewrite.narrow_columns import narrow_columns
from ephemera.rewrite.nodes import Rewrite, Rewritten
from ephemera.rewrite.push_constants import push_constants
from ephemera.rewrite.share_alike_rules import share_alike_rules

REWRITES: tuple[Rewrite, ...] = (narrow_columns, push_constants, share_alike_rules)
"""All rewrites, in the order in which they are done: what is read is judged by the rules as they were written."""


def optimize(plan: Plan, facts: Facts, rewrites: Sequence[Rewrite] = REWRITES) -> Rewritten:
    """The plan after all rewrites."""
    found = Rewritten(plan, facts, fingerprints(plan))
    for rewrite in rewrites:
        before, found = found, rewrite(found)
        if found.plan is not before.plan:
            check_plan(found.plan, {name: one.names for name, one in found.alike.items()})
    places = {name: place for place, name in enumerate(plan.points)}
    together = {
        name: sorted((member.name for member in one.members), key=places.__getitem__)
        for name, one in found.alike.items()
    }
    return replace(found, names=state_names(found.plan, found.prints, together))
