"""This module damages checkpoints of live queries, wants them twice, and sets the clock."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import ephemera
from ephemera.cli.main import app
from ephemera.engine.state.checkpoint_lock import CheckpointHeld, hold
from ephemera.spark.live.query import LiveQuery
from tests.spark.machine import PATIENCE

SHOP = """
TIME UNIT 1 sec;
EVENT order(id: string);
EVENT shipped(id: string);
overdue(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);
"""
IDLE = SHOP.replace("extend(o, 6)", "extend(o, 0.5)") + "STREAM shop CARRIES order, shipped IDLE 0.5 sec;"


class Shop:
    """A folder with a program, events that arrive, and a checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "in").mkdir()
        (folder / "p.eq").write_text(SHOP)

    def put(self, number: int, *events: tuple[str, int, str]) -> None:
        path = self.folder / "in" / f"{number}.jsonl"
        path.write_text("".join(json.dumps({"event": e, "time": t, "data": [x]}) + "\n" for e, t, x in events))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))

    def run(self, checkpoint: str = "check", output: str = "out") -> Result:
        options = ["--mode", "stream", "--trigger", "once", "--shards", "2"]
        places = [f"{self.folder}/{name}" for name in ("p.eq", "in/", checkpoint, output)]
        given = [places[0], "--input", places[1], "--checkpoint", places[2], "--output", f"{places[3]}/"]
        return CliRunner().invoke(app, ["run", *given, *options])

    def answers(self, output: str = "out") -> list[Any]:
        files = sorted((self.folder / output).glob("part-*"))
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]

    def contents(self, name: str) -> dict[str, bytes]:
        folder = self.folder / name
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Shop:
    del spark
    return Shop(tmp_path)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Shop:
    """Two batches are done, and a third waits."""
    del spark
    shop = Shop(tmp_path_factory.mktemp("shop"))
    for number in range(2):
        shop.put(number, *(("order", 3 * number, f"{number}{name}") for name in "abcdefgh"))
        assert shop.run().exit_code == 0
    shop.put(2, ("order", 50, "z"))
    return shop


def flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:90] + bytes([data[90] ^ 4]) + data[91:])


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "two folders swapped": (
        lambda check: [
            (check / "state/0-0").rename(check / "state/x"),
            (check / "state/0-1").rename(check / "state/0-0"),
            (check / "state/x").rename(check / "state/0-1"),
        ],
        "it should be of batch 1, shard",
    ),
    "progress flipped": (lambda check: flip(check / "progress/1.json"), "progress/1.json is damaged"),
    "query gone": (lambda check: (check / "query.json").unlink(), "query.json is missing"),
    "Spark's own gone": (lambda check: shutil.rmtree(check / "spark"), "Spark would begin batch 0"),
    "Spark's sources gone": (lambda check: shutil.rmtree(check / "spark/sources"), "check2/spark is damaged"),
}
"""How to damage a checkpoint, and what is told then; `tests/engine/test_checkpoint_faults.py` has many more."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_told_in_one_line(begun: Shop, damage: str) -> None:
    work, words = DAMAGES[damage]
    for name in ("check", "out"):
        shutil.rmtree(begun.folder / f"{name}2", ignore_errors=True)
        shutil.copytree(begun.folder / name, begun.folder / f"{name}2")
    work(begun.folder / "check2")
    answers, state = begun.contents("out2"), begun.contents("check2")
    result = begun.run("check2", "out2")
    assert result.exit_code == 3, result.stderr
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr
    assert answers.items() <= begun.contents("out2").items()
    after = begun.contents("check2")
    kept = [name for name in state if not name.startswith("spark") and name != "lock"]
    assert {name: after.get(name) for name in kept} == {name: state[name] for name in kept}


# ---- one run at a time -------------------------------------------------------------------------------------


def test_a_checkpoint_that_is_in_use_is_refused_before_anything_is_touched(begun: Shop) -> None:
    with hold(str(begun.folder / "check")):
        before = begun.contents("check"), begun.contents("out")
        result = begun.run()
        assert (begun.contents("check"), begun.contents("out")) == before
    assert (result.exit_code, len(result.stderr.splitlines())) == (3, 1)
    assert f"is in use by another run: process {os.getpid()} on " in result.stderr


def test_a_query_has_its_checkpoint_until_it_ends(shop: Shop, spark: SparkSession) -> None:
    def started(trigger: str | None = None) -> LiveQuery:
        made = ephemera.compile(SHOP).stream(
            spark,
            str(shop.folder / "in"),
            ephemera.sinks.Folder(str(shop.folder / "out")),
            checkpoint=str(shop.folder / "check"),
        )
        return replace(made, trigger=trigger).start()

    first = started()
    with pytest.raises(CheckpointHeld, match=f"process {os.getpid()} on .*, since 20.*; stop that run first"):
        started("once")
    first.stop()
    once = started("once")
    once.query.awaitTermination()  # nobody tells us that it has ended
    started("once").wait()
    started("once").wait()
    with pytest.raises(ephemera.EphemeraError, match="does not stream"):
        ephemera.compile(SHOP).stream(spark, spark.range(1), checkpoint=str(shop.folder / "check")).start()
    hold(str(shop.folder / "check")).release()


# ---- the clock ---------------------------------------------------------------------------------------------


def test_a_query_goes_on_though_the_clock_was_set_back(shop: Shop, spark: SparkSession) -> None:
    def until_there_are(count: int, step: int) -> None:
        streaming = ephemera.compile(IDLE).stream(
            spark,
            str(shop.folder / "in"),
            checkpoint=str(shop.folder / "check"),
            sink=ephemera.sinks.Folder(str(shop.folder / "out")),
            trigger="500 milliseconds",
        )
        shop.put(step, ("order", 1_000 * step, f"{step}"))
        query = streaming.start()
        last = time.monotonic() + PATIENCE
        while len(shop.answers()) < count:
            assert not query.wait(0.1)
            assert time.monotonic() < last
        query.stop()

    until_there_are(1, 1)
    made = shop.folder / "check" / "spark" / "sources" / "1" / "0"
    later = int(made.read_text().split()[1]) + 3_600_000
    made.write_text(f"v1\n{later}")  # as if it had been an hour later then
    (made.parent / ".0.crc").unlink(missing_ok=True)
    until_there_are(2, 2)
    assert [answer["time"] for answer in shop.answers()] == [[1_000, 1_000.5], [2_000, 2_000.5]]
    assert len(list((shop.folder / "check" / "clock").iterdir())) == 1
