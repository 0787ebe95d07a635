"""This module says what rules are made for: each feature of the language, how often, and who adds it.

A rule draws some features and is built to have them; what else comes with them is a gift. The weights even out that
some features are often such a gift, and that others are easily thwarted. `tests/properties/test_generator.py` holds
the mix to its floors, and `python -m tests.strategies.survey cases` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import filters, joins, timers, windows
from .drafts import Body

Addition = Callable[[Body], object]

ADDITIONS: dict[Addition, dict[str, int]] = {
    # What needs most room in the stream comes first.
    windows.negated_derived: {"negated derived": 5},
    windows.collected_derived: {"collect derived": 2},
    joins.algebra: {
        "algebra ;": 60,
        "algebra +": 60,
        "algebra |": 60,
        "algebra -": 60,
        "algebra limit": 9,
        "algebra restricted": 32,
        "algebra unrestricted": 60,
    },
    windows.collection: {
        "collect": 1,
        "collect optional": 51,
        "count": 3,
        "count(*)": 1,
        "sum": 6,
        "avg": 4,
        "min": 17,
        "max": 12,
        "group by": 60,
        "order by": 60,
        "while(incl,incl)": 22,
        "while(incl,excl)": 36,
        "while(excl,incl)": 30,
        "while(excl,excl)": 34,
    },
    windows.result: {"having": 54},
    windows.negation: {"negation": 60},
    windows.from_until: {"from until": 60},
    joins.disjunction: {"disjunction": 1, "nested disjunction": 60, "branch where": 39},
    timers.timers: {
        "timer extend": 4,
        "timer shorten": 41,
        "timer extend-begin": 5,
        "timer shorten-begin": 31,
        "timer shift-forward": 23,
        "timer shift-backward": 25,
        "timer from-end": 5,
        "timer from-end-backward": 5,
        "timer from-start": 4,
        "timer from-start-backward": 17,
    },
    timers.clock: {"absolute timer": 27},
    filters.comparison: {"comparison": 32, "and": 60, "or": 39, "not": 39},
    filters.null: {"is null": 60},
    filters.undefined: {"undefined": 42},
    filters.table: {"table": 59, "table at": 46, "absent row": 60},
    filters.absent_value: {"without a variable": 60},
    joins.relations: {
        "before": 33,
        "meets": 35,
        "overlaps": 60,
        "starts": 53,
        "during": 55,
        "finishes": 39,
        "equals": 25,
        "metric before": 35,
        "metric meets": 46,
        "metric overlaps": 60,
        "metric starts": 50,
        "metric during": 34,
        "metric finishes": 37,
        "metric equals": 31,
    },
    joins.within: {"within": 45},
    joins.apart: {"apart-by": 60},
    joins.fixed_time: {"fixed time": 60},
    joins.identity: {"identity": 48},
    timers.head_times: {"begin()": 19, "end()": 15, "duration()": 18},
}
"""What a rule may have besides its first event, each with its weight."""

PATTERNS = {
    "attribute": 1,
    "constant": 1,
    "default": 1,
    "label variable": 1,
    "named atom": 1,
    "ordered": 3,
    "regex": 17,
    "repeated variable": 11,
    "total": 60,
    "unordered": 1,
    "without": 20,
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
        "timer on a timer",
        "total",
        "undefined",
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


def by_maker(wishes: Sequence[str]) -> list[tuple[Addition, list[str]]]:
    """Who is asked for what, in the order in which it is added."""
    asked: list[tuple[Addition, list[str]]] = []
    for addition, features in ADDITIONS.items():
        wanted = [wish for wish in dict.fromkeys(wishes) if wish in features]
        asked += [(addition, wanted)] if wanted and addition in JOINT else [(addition, [wish]) for wish in wanted]
    return asked
