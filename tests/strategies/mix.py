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
    windows.negated_derived: {"negated derived": 3},
    windows.collected_derived: {"collect derived": 3},
    joins.algebra: {
        "algebra ;": 4,
        "algebra +": 4,
        "algebra |": 4,
        "algebra -": 4,
        "algebra limit": 2,
        "algebra restricted": 2,
        "algebra unrestricted": 2,
    },
    windows.collection: {
        "collect": 1,
        "collect optional": 3,
        "count": 2,
        "count(*)": 1,
        "sum": 3,
        "avg": 3,
        "min": 3,
        "max": 3,
        "having": 1,
        "group by": 5,
        "order by": 4,
        "while(incl,incl)": 2,
        "while(incl,excl)": 3,
        "while(excl,incl)": 3,
        "while(excl,excl)": 2,
    },
    windows.negation: {"negation": 4},
    windows.from_until: {"from until": 5},
    joins.disjunction: {"disjunction": 1, "nested disjunction": 4, "branch where": 2},
    timers.timers: {
        "timer extend": 2,
        "timer shorten": 3,
        "timer extend-begin": 2,
        "timer shorten-begin": 3,
        "timer shift-forward": 3,
        "timer shift-backward": 3,
        "timer from-end": 2,
        "timer from-end-backward": 2,
        "timer from-start": 2,
        "timer from-start-backward": 3,
    },
    timers.clock: {"absolute timer": 4},
    filters.comparison: {"comparison": 2, "and": 4, "or": 3, "not": 3},
    filters.null: {"is null": 4},
    filters.undefined: {"undefined": 4},
    filters.table: {"table": 4, "table at": 4, "absent row": 3},
    filters.absent_value: {"without a variable": 4},
    joins.relations: {
        "before": 3,
        "meets": 3,
        "overlaps": 3,
        "starts": 3,
        "during": 3,
        "finishes": 3,
        "equals": 3,
        "metric before": 2,
        "metric meets": 2,
        "metric overlaps": 3,
        "metric starts": 3,
        "metric during": 3,
        "metric finishes": 3,
        "metric equals": 2,
    },
    joins.within: {"within": 4},
    joins.apart: {"apart-by": 4},
    joins.fixed_time: {"fixed time": 4},
    joins.identity: {"identity": 4},
    timers.head_times: {"begin()": 2, "end()": 2, "duration()": 2},
}
"""What a rule may have besides its first event, each with its weight."""

PATTERNS = {
    "attribute": 1,
    "constant": 1,
    "default": 1,
    "label variable": 2,
    "named atom": 1,
    "ordered": 1,
    "regex": 4,
    "repeated variable": 4,
    "total": 3,
    "unordered": 1,
    "without": 2,
}
"""What a demanding pattern is made for."""

TREES = frozenset({"attribute", "default", "label variable", "ordered", "regex", "total", "unordered", "without"})

WEIGHTS = {feature: weight for features in ADDITIONS.values() for feature, weight in features.items()}

DERIVED = frozenset({"negated derived", "collect derived"})
"""What asks for facts of other rules."""

BLOCK_ONLY = frozenset({"all", "group by", "order by"})
"""What the arrow form of a rule has no words for."""

GENTLE = frozenset(
    feature
    for addition in (windows.collection, timers.timers, filters.comparison, filters.table, timers.head_times)
    for feature in ADDITIONS[addition]
)
"""What stands well beside a demanding pattern: conditions on times would hide what its near misses show."""

JOINT = frozenset({joins.algebra, joins.disjunction, joins.relations, windows.collection, timers.head_times})
"""Who grants several wishes at once."""


def by_maker(wishes: Sequence[str]) -> list[tuple[Addition, list[str]]]:
    """Who is asked for what, in the order in which it is added."""
    asked: list[tuple[Addition, list[str]]] = []
    for addition, features in ADDITIONS.items():
        wanted = [wish for wish in dict.fromkeys(wishes) if wish in features]
        asked += [(addition, wanted)] if wanted and addition in JOINT else [(addition, [wish]) for wish in wanted]
    return asked
