"""This module shows the mix of the generated cases: which features they have, and how often the answers depend on them.

A case depends on a feature if it has answers, and taking the feature out at one of its places changes them. The aim is
5 % of the cases for every family of features and 60 % of those dependent; the floors below are what holds today.
"""

from __future__ import annotations

from collections import Counter

from tests.strategies.cases import answers, sample

CASES = 160
LEAST_SHARE = 0.03
LEAST_DEPENDENT = 0.45

FAMILIES = {
    "relation": ("before", "during", "equals", "finishes", "meets", "overlaps", "starts"),
    "aggregate": ("count", "count(*)", "sum", "avg", "min", "max"),
    "times of events": ("begin()", "end()", "duration()"),
    "joined conditions": ("and", "or", "not"),
    "grouping": ("all", "group by", "order by"),
    "table": ("table", "table at", "absent row"),
    "disjunction": ("disjunction", "nested disjunction", "branch where"),
    "collect": ("collect", "collect optional", "collect derived"),
    "negation": ("negation", "negated derived"),
    "no value": ("null", "is null", "undefined"),
    "without": ("without", "without a variable"),
    "optional": ("optional", "default"),
    "identity": ("identity", "repeated variable"),
    "absolute time": ("absolute timer", "fixed time"),
    "attribute and regex": ("attribute", "regex"),
}
"""Features that are judged together; those that begin alike (`metric …`, `timer …`) are, too."""


def family(feature: str) -> str:
    for name, members in FAMILIES.items():
        if feature in members:
            return name
    for lead in ("metric ", "algebra ", "while("):
        if feature.startswith(lead):
            return lead.strip(" (")
    return "timer" if feature.startswith("timer ") else feature


def test_every_family_of_features_occurs_and_matters() -> None:
    total = 0
    has: Counter[str] = Counter()
    depends: Counter[str] = Counter()
    for case in sample(CASES):
        if case is None:
            continue
        total += 1
        base = answers(case.outcome())
        families: dict[str, list[str]] = {}
        for feature in case.features:
            families.setdefault(family(feature), []).append(feature)
        has.update(families.keys())
        for name, features in families.items():
            if base and any(answers(o) != base for feature in features for o in case.without(feature)):
                depends[name] += 1
    mix = {name: (has[name] / total, depends[name] / has[name]) for name in sorted(has)}
    assert total >= 0.95 * CASES
    assert len(mix) >= 35
    too_rare = {name: share for name, (share, _) in mix.items() if share < LEAST_SHARE}
    too_idle = {name: part for name, (_, part) in mix.items() if part < LEAST_DEPENDENT}
    assert not too_rare
    assert not too_idle
