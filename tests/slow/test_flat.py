"""This module shows that the queries on lifetimes cost as much at the end of a stream as in its middle."""

from __future__ import annotations

import pytest

from bench.memory import flatness, units

pytestmark = pytest.mark.slow

UNITS = 30


def test_what_is_stored_for_q5m_and_its_memory_stay_flat() -> None:
    found = units("Q5m", UNITS)
    assert len({unit.answers for unit in found[10:]}) == 1
    assert flatness(found, lambda unit: unit.stored) <= 1.0
    assert flatness(found, lambda unit: unit.bytes) <= 1.1
    assert flatness(found, lambda unit: unit.peak) <= 1.1


def test_what_is_examined_for_an_answer_of_q5r_and_stored_for_it_stay_flat() -> None:
    found = units("Q5r", UNITS)
    assert len({unit.answers for unit in found[10:]}) == 1
    assert flatness(found, lambda unit: unit.examined) <= 1.0
    assert flatness(found, lambda unit: unit.stored) <= 1.0
    assert flatness(found, lambda unit: unit.bytes) <= 1.1
