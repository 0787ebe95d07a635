"""This module shows the mix of the generated cases: which features they have, and how often the answers depend on them.

A case depends on a feature if it has answers, and taking the feature out at one of its places changes them. The sample
is the same every time; ``python -m tests.strategies.survey cases`` prints the whole table.
"""

from __future__ import annotations

import pytest

from tests.strategies.mix import PATTERNS, WEIGHTS
from tests.strategies.survey import mix

CASES = 240
LEAST_SHARE = 0.045
"""The weights aim at 5 % and more for every feature; a sample of this size may show a little less."""
MOST_RARE = 6
"""How many of the features the sample may show in fewer than 5 % of the cases."""
LEAST_DEPENDENT = 0.60
FEATURES = 97


@pytest.mark.slow
def test_every_feature_occurs_and_matters() -> None:
    parts = mix(CASES)
    too_idle = {name: p.dependent for name, p in parts.items() if p.dependent < LEAST_DEPENDENT}
    too_rare = {name: p.share for name, p in parts.items() if p.share < LEAST_SHARE}
    assert not too_rare
    assert not too_idle
    assert sum(p.share < 0.05 for p in parts.values()) <= MOST_RARE
    assert len(parts) == FEATURES
    assert {*WEIGHTS, *PATTERNS} <= parts.keys()
