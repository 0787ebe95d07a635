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
    windows.negated_derived: {"negated derived": 18},
    windows.collected_derived: {"collect derived": 1},
    joins.algebra: {
        "algebra ;": 198,
        "algebra +": 192,
        "algebra |": 182,
        "algebra -": 251,
        "algebra limit": 2,
        "algebra restricted": 5,
        "algebra unrestricted": 101,
    },
    windows.collection: {
        "collect": 1,
        "collect optional": 70,
        "count": 2,
        "count(*)": 1,
        "sum": 4,
        "avg": 2,
        "min": 34,
        "max": 88,
        "group by": 325,
        "order by": 410,
        "while(incl,incl)": 140,
        "while(incl,excl)": 123,
        "while(excl,incl)": 165,
        "while(excl,excl)": 151,
    },
    windows.result: {"having": 99},
    windows.negation: {"negation": 222},
    windows.from_until: {"from until": 308},
    joins.disjunction: {"disjunction": 1, "nested disjunction": 178, "branch where": 49},
    timers.timers: {
        "timer extend": 21,
        "timer shorten": 60,
        "timer extend-begin": 9,
        "timer shorten-begin": 75,
        "timer shift-forward": 49,
        "timer shift-backward": 52,
        "timer from-end": 7,
        "timer from-end-backward": 9,
        "timer from-start": 13,
        "timer from-start-backward": 82,
    },
    timers.clock: {"absolute timer": 112},
    filters.comparison: {"comparison": 132, "and": 146, "or": 107, "not": 109},
    filters.null: {"is null": 177},
    filters.undefined: {"undefined": 134},
    filters.table: {"table": 170, "absent row": 156},
    filters.absent_value: {"without a variable": 242},
    joins.relations: {
        "before": 89,
        "meets": 67,
        "overlaps": 142,
        "starts": 132,
        "during": 72,
        "finishes": 74,
        "equals": 130,
        "metric before": 59,
        "metric meets": 63,
        "metric overlaps": 164,
        "metric starts": 89,
        "metric during": 84,
        "metric finishes": 59,
        "metric equals": 84,
    },
    joins.within: {"within": 150},
    joins.apart: {"apart-by": 115},
    joins.fixed_time: {"fixed time": 135},
    joins.identity: {"identity": 124},
    timers.head_times: {"begin()": 47, "end()": 52, "duration()": 41},
}
"""What a rule may have besides its first event, each with its weight."""

PATTERNS = {
    "attribute": 2,
    "constant": 16,
    "default": 2,
    "label variable": 84,
    "named atom": 2,
    "ordered": 2,
    "regex": 536,
    "repeated variable": 161,
    "total": 391,
    "unordered": 5,
    "without": 319,
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
        "negated derived",
        "negation",
        "nested disjunction",
        "ordered",
        "order by",
        "own where",
        "shared variable",
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
