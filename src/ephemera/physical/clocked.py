"""This module says which rules answer by the clock."""

from __future__ import annotations

from collections.abc import Set

from ephemera.base.tree import find
from ephemera.rules.nodes import Ruleset
from ephemera.rules.patterns import pattern_label
from ephemera.syntax.nodes import Event


def by_the_clock(rules: Ruleset, calendars: Set[str]) -> frozenset[int]:
    """The rules that absolute timers or calendars take part in, directly or through what they ask for."""
    asked = {
        number: {str(label) for e in find(rule.body, Event) if (label := pattern_label(e.pattern)) is not None}
        for number, rule in enumerate(rules.resolved.rules, 1)
    }
    found = {n for n, labels in asked.items() if "timer:datetime" in labels or labels & calendars}
    while True:
        needs = {n for n in asked if n not in found and any(found & set(d.rules) for d in rules.dependencies[n - 1])}
        if not needs:
            return frozenset(found)
        found |= needs
