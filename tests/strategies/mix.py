"""This module says what rules are made for: each feature of the language, how often, and who adds it.

A rule draws some features and is built to have them; what else comes with them is a gift. The weights even out that
some features are often such a gift, and that others are easily thwarted. `tests/properties/test_generator.py` holds
the mix to its floors, and `python -m tests.strategies.survey cases` shows it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from . import filters, joins, timers, windows
from .drafts import Body

Addition = Callable[[Body], object]

ADDITIONS: dict[Addition, dict[str, int]] = {
    # What needs most room in the stream comes first.
    windows.negated_derived: {"negated derived": 3},
    windows.collected_derived: {"collect derived": 1},
    joins.algebra: {
        "algebra ;": 98,
        "algebra +": 102,
        "algebra |": 182,
        "algebra -": 138,
        "algebra limit": 2,
        "algebra restricted": 16,
        "algebra unrestricted": 83,
    },
    windows.collection: {
        "collect": 1,
        "collect optional": 71,
        "count": 2,
        "count(*)": 1,
        "sum": 3,
        "avg": 3,
        "min": 26,
        "max": 23,
        "group by": 152,
        "order by": 174,
        "while(incl,incl)": 51,
        "while(incl,excl)": 106,
        "while(excl,incl)": 77,
        "while(excl,excl)": 70,
    },
    windows.result: {"having": 77},
    windows.negation: {"negation": 157},
    windows.from_until: {"from until": 166},
    joins.disjunction: {"disjunction": 1, "nested disjunction": 111, "branch where": 52},
    timers.timers: {
        "timer extend": 8,
        "timer shorten": 59,
        "timer extend-begin": 8,
        "timer shorten-begin": 61,
        "timer shift-forward": 43,
        "timer shift-backward": 48,
        "timer from-end": 11,
        "timer from-end-backward": 8,
        "timer from-start": 8,
        "timer from-start-backward": 33,
    },
    timers.clock: {"absolute timer": 48},
    filters.comparison: {"comparison": 55, "and": 138, "or": 67, "not": 66},
    filters.null: {"is null": 121},
    filters.undefined: {"undefined": 96},
    filters.table: {"table": 86, "table at": 89, "absent row": 81},
    filters.absent_value: {"without a variable": 152},
    joins.relations: {
        "before": 52,
        "meets": 64,
        "overlaps": 115,
        "starts": 46,
        "during": 72,
        "finishes": 74,
        "equals": 51,
        "metric before": 53,
        "metric meets": 51,
        "metric overlaps": 92,
        "metric starts": 64,
        "metric during": 65,
        "metric finishes": 52,
        "metric equals": 49,
    },
    joins.within: {"within": 71},
    joins.apart: {"apart-by": 81},
    joins.fixed_time: {"fixed time": 92},
    joins.identity: {"identity": 85},
    timers.head_times: {"begin()": 41, "end()": 34, "duration()": 31},
}
"""What a rule may have besides its first event, each with its weight."""

PATTERNS = {
    "attribute": 3,
    "constant": 30,
    "default": 3,
    "label variable": 150,
    "named atom": 2,
    "ordered": 7,
    "regex": 280,
    "repeated variable": 200,
    "total": 260,
    "unordered": 10,
    "without": 200,
}
"""What a demanding pattern is made for."""

TREES = frozenset({"attribute", "default", "label variable", "ordered", "regex", "total", "unordered", "without"})

WEIGHTS = {feature: weight for features in ADDITIONS.values() for feature, weight in features.items()}

DERIVED = frozenset({"negated derived", "collect derived"})
"""What asks for facts of other rules."""

FRAIL = frozenset(
    {
        "absent row",
        "algebra +",
        "algebra -",
        "algebra limit",
        "algebra unrestricted",
        "algebra |",
        "and",
        "attribute",
        "branch where",
        "collect optional",
        "comparison",
        "constant",
        "fixed time",
        "group by",
        "having",
        "max",
        "min",
        "negation",
        "nested disjunction",
        "ordered",
        "order by",
        "own where",
        "shared variable",
        "table at",
        "timer on a timer",
        "total",
        "undefined",
        "unordered",
        "without",
        "without a variable",
        *(f"while({words})" for words in windows.BOUNDARIES.values()),
    }
)
"""What is taken out again where the answers do not depend on it."""

BLOCK_ONLY = frozenset({"all", "group by", "order by"})
"""What the arrow form of a rule has no words for."""

GENTLE = frozenset(
    feature
    for addition in (windows.collection, timers.timers, filters.comparison, filters.table, timers.head_times)
    for feature in ADDITIONS[addition]
)
"""What stands well beside a demanding pattern: conditions on times would hide what its near misses show."""

ATOMIC = frozenset(
    {
        filters.absent_value,
        filters.null,
        joins.algebra,
        joins.apart,
        joins.disjunction,
        joins.identity,
        joins.relations,
        windows.collected_derived,
        windows.from_until,
        windows.negated_derived,
    }
)
"""Who adds atoms."""

JOINT = frozenset({joins.algebra, joins.disjunction, joins.relations, windows.collection, timers.head_times})
"""Who grants several wishes at once."""


def by_turn(turn: float) -> str:
    """The feature that a number from 0 to 1 stands for; each has a part of that range, as large as its weight."""
    weights = {**{f: w for f, w in WEIGHTS.items() if f not in DERIVED}, **PATTERNS}
    features, limits = list(weights), list(accumulate(weights.values()))
    return features[bisect_right(limits, turn * limits[-1])]


def by_maker(wishes: Sequence[str]) -> list[tuple[Addition, list[str]]]:
    """Who is asked for what, in the order in which it is added."""
    asked: list[tuple[Addition, list[str]]] = []
    for addition, features in ADDITIONS.items():
        wanted = [wish for wish in dict.fromkeys(wishes) if wish in features]
        asked += [(addition, wanted)] if wanted and addition in JOINT else [(addition, [wish]) for wish in wanted]
    return asked
