"""This module checks that the benchmark of slices measures what it says: rules without a key, a hot key, two keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

import ephemera
from bench.slice_cases import CASES, stream
from bench.slice_runs import local
from ephemera.engine.cluster.cut_along_time import cut_along_time
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.time_slices import Slicing
from ephemera.formats.decode_arrow import Reader
from ephemera.kernels.history import FAR
from ephemera.rules.outcome import World


@pytest.mark.parametrize("name", CASES)
def test_what_is_in_one_place_is_cut_along_time_and_two_keys_are_spread(name: str) -> None:
    compiled = ephemera.compile(CASES[name].program)._planned(["p"])
    spread = DistributedProgram(compiled, World(), 0, 4, -FAR, FAR)
    has_keys = [spread.has_keys(group) for group in range(len(spread.stages.groups))]
    assert has_keys == {"chain": [True, True], "hot": [True]}.get(name, [False])
    events = stream(replace(CASES[name], rate=CASES[name].rate / 50), 20_000)  # as long as a million
    sampled = [(part, 1.0) for part in Reader(events, compiled).read().parts]
    cut = cut_along_time(spread, sampled, 2, Slicing(least=0))
    assert [len(slices) for slices in cut.slices.values()] == ([] if name == "chain" else [4])


def test_a_stream_is_ended_by_an_event_behind_all_answers() -> None:
    events = stream(CASES["during"], 3_000)
    assert len(events) == 3_001
    assert local("during", events).count > 0
