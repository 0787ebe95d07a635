"""This module shows the mix of the generated cases: which features they have, and how often the answers depend on them.

A case depends on a feature if it has answers, and taking the feature out at one of its places changes them. The sample
is the same every time; ``python -m tests.strategies.survey cases`` prints the whole table.
"""

from __future__ import annotations

from tests.strategies.mix import PATTERNS, WEIGHTS
from tests.strategies.survey import mix

CASES = 240
LEAST_SHARE = 0.05
LEAST_DEPENDENT = 0.60
FEATURES = 98

BELOW_AIM = {
    "absent row": 0.04,
    "algebra ;": 0.04,
    "metric during": 0.04,
    "negated derived": 0.04,
    "not": 0.025,
    "or": 0.04,
    "total": 0.035,
}
"""What does not reach the least share yet, with what it does reach."""


def test_every_feature_occurs_and_matters() -> None:
    parts = mix(CASES)
    too_rare = {name: p.share for name, p in parts.items() if p.share < BELOW_AIM.get(name, LEAST_SHARE)}
    too_idle = {name: p.dependent for name, p in parts.items() if p.dependent < LEAST_DEPENDENT}
    assert not too_rare
    assert not too_idle
    assert len(parts) == FEATURES
    assert {*WEIGHTS, *PATTERNS} <= parts.keys()
