"""This module shows the mix of the generated cases: which features they have, and how often the answers depend on them.

A case depends on a feature if it has answers, and taking the feature out at one of its places changes them. The sample
is the same every time; ``python -m tests.strategies.survey cases`` prints the whole table.
"""

from __future__ import annotations

from tests.strategies.mix import PATTERNS, WEIGHTS
from tests.strategies.survey import mix

CASES = 300
LEAST_SHARE = 0.05
LEAST_DEPENDENT = 0.60
FEATURES = 98


def test_every_feature_occurs_and_matters() -> None:
    parts = mix(CASES)
    too_rare = {name: part.share for name, part in parts.items() if part.share < LEAST_SHARE}
    too_idle = {name: part.dependent for name, part in parts.items() if part.dependent < LEAST_DEPENDENT}
    assert not too_rare
    assert not too_idle
    assert len(parts) == FEATURES
    assert {*WEIGHTS, *PATTERNS} <= parts.keys()
