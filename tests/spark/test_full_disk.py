"""This module runs programs on Spark whose answers find no place: each run ends in a line, and leaves nothing half."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from ephemera.cli.main import app

SEEN = "EVENT order(id: string);\nseen(i, i, i, i) <- o: order(i);\n"
FULL = Path("/dev/full")


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Path:
    """A program and events with answers of some size, while a session is there that all commands share."""
    assert spark is not None
    (tmp_path / "p.eq").write_text(SEEN, encoding="utf-8")
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"event": "order", "time": n, "data": [f"{n:0200}"]}) + "\n" for n in range(300)]
    (tmp_path / "in" / "e.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with hardly any room, where one can be had."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only those who may mount a disk can have a small one")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def run(shop: Path, *options: object) -> Result:
    result = CliRunner().invoke(app, ["run", str(shop / "p.eq"), "--input", str(shop / "in"), *map(str, options)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is full")
def test_a_device_that_is_full_is_written_to_and_told(shop: Path) -> None:
    result = run(shop, "--output", FULL)
    assert (result.exit_code, result.stderr) == (3, "cannot write /dev/full: No space left on device\n")
    assert FULL.is_char_device()
    with (shop / "in" / "bad.jsonl").open("a", encoding="utf-8") as file:
        file.write("no json\n")
    target = shop / "answers.jsonl"
    assert (run(shop, "--output", target, "--dead-letter", FULL).exit_code, target.exists()) == (3, False)


def test_a_disk_that_gets_full_is_told_in_a_line(shop: Path, disk: Path) -> None:
    target = disk / "answers.jsonl"
    result = run(shop, "--output", target)
    assert (result.exit_code, result.stderr) == (3, f"cannot write {target}: No space left on device\n")
    for options in (["--output", disk / "lines"], ["--output", disk / "live", "--mode", "stream", "--trigger", "once"]):
        result = run(shop, *options)
        assert result.exit_code == 3, result.stderr
        assert "No space left on device" in result.stderr.splitlines()[-1]
        assert len(result.stderr.splitlines()) <= 2
    assert sorted(p.name for p in disk.iterdir()) == ["live"]
    left = {p.name for p in (disk / "live").iterdir()}  # whether there is room for its own file is a matter of chance
    assert left <= {"_ephemera.json"}
