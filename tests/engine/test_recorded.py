"""Snapshots of earlier versions are gone on from: what they had seen before noon and what comes then is one day."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.recorded.recording import HERE, day, program_of, since_noon, until_noon

VERSIONS = sorted(path.name for path in HERE.iterdir() if (path / "snapshot").is_dir())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_snapshot_of_an_earlier_version_is_gone_on_from(version: str) -> None:
    program = program_of(version)
    whole = program.engine()
    every = [*whole.send_many(day()), *whole.finish()]
    engine = program.engine().restore(HERE / version / "snapshot")
    given = json.loads((HERE / version / "given.json").read_text())
    since = [*engine.send_many(since_noon()), *engine.finish()]
    noon = program.engine()
    before = noon.send_many(until_noon())
    assert len(before) == given > 100
    assert sorted(map(json.dumps, [*before, *since])) == sorted(map(json.dumps, every))
    assert engine.stats().stored == whole.stats().stored


def test_the_last_version_that_others_have_is_recorded() -> None:
    assert VERSIONS
    assert all((HERE / version / "spark" / "checkpoint").is_dir() for version in VERSIONS)
    assert Path(HERE / VERSIONS[-1] / "snapshot" / "manifest.json").exists()
