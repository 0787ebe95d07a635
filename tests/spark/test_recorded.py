"""Checkpoints of live queries of earlier versions are gone on from, with nothing lost and nothing twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.recorded.recording import HERE, RECORDED_AT, day, program_of, query, since_noon, until_noon, write

VERSIONS = sorted(path.name for path in HERE.iterdir() if (path / "spark").is_dir())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_checkpoint_of_an_earlier_version_is_gone_on_from(version: str, spark: SparkSession, tmp_path: Path) -> None:
    for name in ("checkpoint", "out"):
        shutil.copytree(HERE / version / "spark" / name, tmp_path / name)
    write(until_noon(), tmp_path / "in" / "morning.jsonl")
    for log in (tmp_path / "checkpoint" / "spark" / "sources" / "0").iterdir():
        if log.name.startswith("."):
            log.unlink()  # the checksum of what is changed
        else:
            log.write_text(log.read_text().replace(f"//{RECORDED_AT}/", f"//{tmp_path}/"))
    write(since_noon(), tmp_path / "in" / "afternoon.jsonl")
    query(spark, tmp_path, version).start().wait()
    found = [line for file in (tmp_path / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
    whole = program_of(version).engine().send_many(day())
    assert len(whole) > 300
    assert sorted(found) == sorted(json.dumps(answer) for answer in whole)
    assert not list((tmp_path / "dead").glob("dead-*"))
