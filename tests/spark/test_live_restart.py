"""This module starts live queries again from their checkpoints: they go on, or say why they do not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.engine.state.durable_files import Broken
from ephemera.spark.batch.job import Job
from ephemera.spark.live.checkpoint import WrongCheckpoint
from ephemera.spark.live.query import ONCE, SeveralWays, Streaming
from ephemera.spark.read.scan import Input
from ephemera.spark.runtime.failures import Failed
from ephemera.spark.sinks.folder_sink import WrongFolder

OVERDUE = """
TIME UNIT 1 sec;
EVENT order(id: string);
EVENT shipped(id: string);
overdue(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);
"""
SLOWER = OVERDUE.replace("extend(o, 6)", "extend(o, 7)")
IN_OTHER_WORDS = """
EVENT shipped(id: string);  EVENT order(id: string);
-- the same
overdue(i) <- first: order(i), six: extend(first, 6 sec), while six: not shipped(i);
TIME UNIT 1 sec;
"""
CARRIED = f"{OVERDUE} STREAM shop CARRIES order, shipped WATERMARK 2;"


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Path:
    return _begun(spark, tmp_path)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """For those who are refused."""
    return _begun(spark, tmp_path_factory.mktemp("shop"))


def _begun(spark: SparkSession, folder: Path) -> Path:
    """A query that has read two orders in two batches."""
    (folder / "in").mkdir()
    _put(folder, 0, ("order", 1, "a"))
    _run(spark, folder)
    _put(folder, 1, ("order", 5, "b"))
    _run(spark, folder)
    assert _answers(folder) == []
    return folder


def test_a_query_goes_on_where_it_was(spark: SparkSession, shop: Path) -> None:
    _put(shop, 2, ("shipped", 9, "b"), ("order", 20, "c"))
    _run(spark, shop)
    assert _answers(shop) == [{"event": "overdue", "time": [1, 7], "data": ["a"]}]


def test_a_query_goes_on_in_other_words(spark: SparkSession, shop: Path) -> None:
    _put(shop, 2, ("shipped", 9, "b"), ("order", 20, "c"))
    _run(spark, shop, IN_OTHER_WORDS)
    assert _answers(shop) == [{"event": "overdue", "time": [1, 7], "data": ["a"]}]


def test_a_query_that_has_nothing_new_to_read_does_nothing(spark: SparkSession, untouched: Path) -> None:
    progress = untouched / "checkpoint" / "progress"
    _run(spark, untouched)
    assert sorted(path.name for path in progress.iterdir()) == ["0.json", "1.json"]


def test_a_checkpoint_of_another_program_is_refused_with_what_differs(spark: SparkSession, untouched: Path) -> None:
    with pytest.raises(WrongCheckpoint, match=r"(?s)`overdue` was\n.*6s.*\nand is\n.*7s.*another checkpoint"):
        _run(spark, untouched, SLOWER)
    with pytest.raises(WrongCheckpoint, match="it lacks `more`"):
        _run(spark, untouched, f"{OVERDUE} more(id) <- o: order(id);")
    with pytest.raises(WrongCheckpoint, match="it lacks `STREAM shop`"):
        _run(spark, untouched, CARRIED)


def test_a_query_goes_on_in_another_number_of_shards(spark: SparkSession, shop: Path) -> None:
    _put(shop, 2, ("shipped", 9, "b"), ("order", 20, "c"))
    _run(spark, shop, shards=3)
    assert _answers(shop) == [{"event": "overdue", "time": [1, 7], "data": ["a"]}]


def test_a_checkpoint_of_another_version_is_refused(spark: SparkSession, shop: Path) -> None:
    path = shop / "checkpoint" / "query.json"
    for form in (99, 2):  # 2 named state by where rules stood
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": form}))
        with pytest.raises(Broken, match=f"has format {form}.* reads format 3; go on with the version that wrote it"):
            _run(spark, shop)


def test_folders_of_another_query_are_refused(spark: SparkSession, untouched: Path) -> None:
    with pytest.raises((WrongFolder, Failed), match=r"holds what query .* wrote"):
        _run(spark, untouched, checkpoint="another")


def test_a_torn_segment_is_told(spark: SparkSession, shop: Path) -> None:
    paths = [path for path in (shop / "checkpoint" / "state").glob("*/1.segment") if path.stat().st_size > 100]
    for path in paths:
        path.write_bytes(path.read_bytes()[:-9])
    _put(shop, 2, ("order", 20, "c"))
    with pytest.raises(Failed, match=r"state/0-\d/1\.segment is no segment, or is torn"):
        _run(spark, shop)
    assert _answers(shop) == []


def test_a_segment_that_is_gone_is_told(spark: SparkSession, shop: Path) -> None:
    for path in (shop / "checkpoint" / "state").glob("*/1.segment"):
        path.unlink()
    _put(shop, 2, ("order", 20, "c"))
    with pytest.raises(Failed, match=r"the state after batch 1 is not in .*there are files of batches 0"):
        _run(spark, shop)


def test_lost_progress_is_told(spark: SparkSession, shop: Path) -> None:
    (shop / "checkpoint" / "progress" / "1.json").unlink()
    _put(shop, 2, ("order", 20, "c"))
    with pytest.raises(Broken, match=r"no readable progress/1\.json"):
        _run(spark, shop)


def test_answers_go_one_way(spark: SparkSession, tmp_path: Path) -> None:
    streaming = Streaming(spark, [], [], f"{tmp_path}/checkpoint", output=f"{tmp_path}/out", foreach=print)
    with pytest.raises(SeveralWays, match="both `output` and `foreach` are given"):
        streaming.start()
    assert not list(tmp_path.iterdir())


def _put(folder: Path, number: int, *events: tuple[str, int, str]) -> None:
    path = folder / "in" / f"{number}.jsonl"
    path.write_text("".join(json.dumps({"event": e, "time": t, "data": [x]}) + "\n" for e, t, x in events))
    os.utime(path, (1_000_000 + number, 1_000_000 + number))


def _run(
    spark: SparkSession, folder: Path, program: str = OVERDUE, shards: int = 2, checkpoint: str = "checkpoint"
) -> None:
    """Reads what is new."""
    streaming = Streaming(
        spark,
        [Job(ephemera.compile(program)._compiled)],
        [Input(f"{folder}/in", "json")],
        checkpoint=f"{folder}/{checkpoint}",
        output=f"{folder}/out",
        trigger=ONCE,
        shards=shards,
    )
    streaming.start().wait()


def _answers(folder: Path) -> list[object]:
    return [json.loads(line) for path in (folder / "out").glob("part-*") for line in path.read_text().splitlines()]
