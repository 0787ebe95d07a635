"""Programs of live queries change on Spark: while they run, when stopped, by the command; so do shards."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import ephemera
from ephemera.cli.main import app
from ephemera.engine.change.compared import ChangeRefused
from ephemera.rules.outcome import World
from ephemera.spark.batch.job import Job
from ephemera.spark.live.checkpoint import WrongCheckpoint
from ephemera.spark.live.query import ONCE, LiveQuery, Streaming
from ephemera.spark.read.scan import Input
from tests.engine.following import end_of, label_of, oracle

DECLARED = "TIME UNIT 1 sec; EVENT a(k: int, v: int); EVENT b(k: int, v: int); EVENT c(k: int, v: int);\n"
LATE = "late(k) <- i: a(k, _), w: extend(i, 6), while w: not b(k, _);\n"
JOIN = "w(k) <- i: a(k, _), j: b(k, _), i before j, {i, j} within 9;\n"
PAIR = "pair(v, u) <- i: a(_, v), j: b(_, u), i before j, {i, j} within 3;\n"
SHORTER = "soon(k) <- i: a(k, _), j: b(k, _), i before j, {i, j} within 4;\n"
FROM_C = "q(k) <- i: c(k, _);\n"
Event = dict[str, Any]


def stream(count: int, seed: int = 5) -> list[Event]:
    """Events in the order of time, one in each second or two."""
    dice, time, found = Random(seed), 0, []
    for _ in range(count):
        time += dice.choice((1, 1, 2))
        found.append({"event": dice.choice("abc"), "time": time, "data": [dice.randrange(4), dice.randrange(5)]})
    return found


def put(folder: Path, number: int, events: Sequence[Event]) -> None:
    """Events as the n-th file that arrives, as a whole."""
    (folder / "in").mkdir(exist_ok=True)
    path = folder / f"{number}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in events))
    os.utime(path, (1_000_000 + number, 1_000_000 + number))
    path.rename(folder / "in" / path.name)


def answers(folder: Path) -> list[str]:
    """All that was given; what is there twice is seen."""
    lines = [line for path in (folder / "out").glob("part-*") for line in path.read_text().splitlines()]
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines)


def started(spark: SparkSession, folder: Path, rules: str, **more: Any) -> LiveQuery:
    """A query of some rules."""
    source, sink = ephemera.sources.Folder(f"{folder}/in"), ephemera.sinks.Folder(f"{folder}/out")
    checkpoint = f"{folder}/checkpoint"
    return ephemera.compile(DECLARED + rules).stream(spark, source, sink, checkpoint=checkpoint, **more).start()


def once(spark: SparkSession, folder: Path, rules: str, **more: Any) -> LiveQuery:
    """All that is there."""
    query = started(spark, folder, rules, trigger=ONCE, **more)
    query.wait()
    return query


def right(events: Sequence[Event], *stretches: tuple[str, float, float], now: float | None = None) -> list[str]:
    """For rules of each stretch the answers of the oracle that end behind one time and by another."""
    last = max(one["time"] for one in events) - 0.5 if now is None else now
    found: set[str] = set()
    for rules, after, until in stretches:
        given = oracle(DECLARED + rules, list(events))
        found |= {one for one in given if after < end_of(one) / 1e6 <= min(until, last)}
    return sorted(found)


def checkpoint_files(folder: Path) -> dict[str, bytes]:
    """All that is in a checkpoint, but for who holds it."""
    root = folder / "checkpoint"
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_query_goes_on_with_other_rules_behind_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(60)
    put(tmp_path, 0, events[:30])
    query = started(spark, tmp_path, LATE + JOIN)
    query.drain()
    waiting = threading.Thread(target=query.wait, daemon=True)
    waiting.start()
    done = query.change(ephemera.compile(DECLARED + SHORTER + LATE))
    assert (done.kept, done.removed) == (("`late` (rule 2)",), ("`w` (rule 2)",))
    assert done.added == ("`soon` (rule 1)",)
    assert waiting.is_alive()
    assert query.is_active
    put(tmp_path, 1, events[30:])
    query.drain()
    query.stop()
    waiting.join(20)
    assert not waiting.is_alive()
    bound = events[29]["time"] - 0.5
    assert answers(tmp_path) == right(events, (LATE, 0, 1e9), (JOIN, 0, bound), (SHORTER, bound, 1e9))
    assert query.totals.batches == 2


@pytest.mark.slow
def test_a_change_that_is_refused_lets_the_query_run(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(40)
    put(tmp_path, 0, events[:20])
    query = started(spark, tmp_path, LATE)
    query.drain()
    before = query.query.id
    with pytest.raises(ChangeRefused, match="were not sent to any place, since no rule asked for them"):
        query.change(ephemera.compile(DECLARED + LATE + FROM_C))
    put(tmp_path, 1, events[20:])
    query.drain()
    assert query.query.id == before
    query.stop()
    assert answers(tmp_path) == right(events, (LATE, 0, 1e9))


@pytest.mark.slow
def test_from_now_sees_what_ends_behind_all_that_came(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(60)
    put(tmp_path, 0, events[:30])
    query = once(spark, tmp_path, LATE)
    done = query.change(ephemera.compile(DECLARED + LATE + FROM_C), look_back="from-now")
    assert done.answers_from == {"`q` (rule 2)": events[29]["time"]}
    put(tmp_path, 1, events[30:])
    once(spark, tmp_path, LATE + FROM_C)
    assert answers(tmp_path) == right(events, (LATE, 0, 1e9), (FROM_C, events[29]["time"], 1e9))


@pytest.mark.slow
def test_what_is_reserved_is_there_for_rules_that_come_later(spark: SparkSession, tmp_path: Path) -> None:
    reserved = "RESERVE b 20 sec; RESERVE c 20 sec;\n"
    missed = "missed(k, v) <- i: c(k, v), w: extend(i, 8), while w: not b(k, _);\n"
    events = stream(60)
    put(tmp_path, 0, events[:30])
    query = once(spark, tmp_path, reserved + LATE, shards=3)
    done = query.change(ephemera.compile(DECLARED + reserved + LATE + FROM_C + missed))
    assert done.notes == ()
    put(tmp_path, 1, events[30:])
    once(spark, tmp_path, reserved + LATE + FROM_C + missed)
    bound = events[29]["time"] - 0.5
    assert answers(tmp_path) == right(events, (LATE, 0, 1e9), (FROM_C + missed, bound, 1e9))


@pytest.mark.slow
def test_a_dry_run_touches_nothing(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, 0, stream(20))
    query = once(spark, tmp_path, LATE + JOIN)
    before = checkpoint_files(tmp_path)
    done = query.change(ephemera.compile(DECLARED + LATE), dry_run=True)
    assert done.removed == ("`w` (rule 2)",)
    after = checkpoint_files(tmp_path)
    assert {name for name in before if name != "lock" and before[name] != after.get(name)} == set()
    assert before.keys() == after.keys()


@pytest.mark.slow
def test_rules_of_other_keys_are_cut_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(90)
    bounds = [events[n]["time"] - 0.5 for n in (29, 59)]
    put(tmp_path, 0, events[:30])
    query = once(spark, tmp_path, PAIR + LATE, shards=3)
    query.change(ephemera.compile(DECLARED + LATE + JOIN), look_back="available")
    put(tmp_path, 1, events[30:60])
    query = once(spark, tmp_path, LATE + JOIN)
    query.change(ephemera.compile(DECLARED + JOIN + SHORTER))
    put(tmp_path, 2, events[60:])
    once(spark, tmp_path, JOIN + SHORTER)
    exact = bounds[0] + 9
    found = [one for one in answers(tmp_path) if label_of(one) != "w" or end_of(one) / 1e6 > exact]
    kept = right(events, (PAIR, 0, bounds[0]), (LATE, 0, bounds[1]), (JOIN, exact, 1e9), (SHORTER, bounds[1], 1e9))
    assert found == kept


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 4])
def test_state_is_cut_into_another_number_of_shards_once(spark: SparkSession, tmp_path: Path, shards: int) -> None:
    events = stream(80)
    put(tmp_path, 0, events[:30])
    once(spark, tmp_path, LATE + JOIN + PAIR, shards=2)
    put(tmp_path, 1, events[30:50])
    once(spark, tmp_path, LATE + JOIN + PAIR, shards=shards)
    put(tmp_path, 2, events[50:])
    once(spark, tmp_path, LATE + JOIN + PAIR)
    assert answers(tmp_path) == right(events, (LATE + JOIN + PAIR, 0, 1e9))
    root = tmp_path / "checkpoint"
    assert sum(1 for _ in (root / "state-1").iterdir()) >= shards
    assert not list((root / "state").rglob("*.segment"))


def test_the_command_changes_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(60)
    put(tmp_path, 0, events[:30])
    once(spark, tmp_path, LATE + JOIN)
    program = tmp_path / "new.eq"
    program.write_text(DECLARED + LATE + SHORTER)
    checkpoint = f"{tmp_path}/checkpoint"
    dry = _command(checkpoint, str(program), "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "kept     `late` (rule 1)\nremoved  `w` (rule 2)\nadded    `soon` (rule 2), exact from" in dry.stdout
    with pytest.raises(WrongCheckpoint, match="ephemera change"):
        once(spark, tmp_path, LATE + SHORTER)
    changed = _command(checkpoint, str(program))
    assert changed.exit_code == 0, changed.output
    assert changed.stdout == dry.stdout
    program.write_text(DECLARED + LATE + SHORTER + FROM_C)
    refused = _command(checkpoint, str(program))
    assert refused.exit_code == 1
    assert "the checkpoint stays as it is: added rules need what is not there" in refused.stderr
    put(tmp_path, 1, events[30:])
    once(spark, tmp_path, LATE + SHORTER)
    bound = events[29]["time"] - 0.5
    assert answers(tmp_path) == right(events, (LATE, 0, 1e9), (JOIN, 0, bound), (SHORTER, bound, 1e9))


WIDER = "wide(k) <- i: a(k, _), j: b(k, _), i before j, {i, j} within 25;\n"


@pytest.mark.slow
def test_added_rules_find_their_past_in_an_archive_by_the_command_and_in_a_query_that_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = stream(90)
    put(tmp_path, 0, events[:30])
    once(spark, tmp_path, LATE)
    program = tmp_path / "new.eq"
    program.write_text(DECLARED + LATE + WIDER)
    checkpoint = f"{tmp_path}/checkpoint"
    assert _command(checkpoint, str(program)).exit_code == 1
    changed = _command(checkpoint, str(program), "--look-back", str(tmp_path / "in"))
    assert changed.exit_code == 0, changed.output
    first, second = (events[k]["time"] - 0.5 for k in (29, 59))
    assert f"added    `wide` (rule 2), exact from {events[29]['time'] - 0.000001} on" in changed.stdout
    query = started(spark, tmp_path, LATE + WIDER, shards=3)  # what a rule has of its own is cut anew, too
    put(tmp_path, 1, events[30:60])
    query.drain()
    query.change(ephemera.compile(DECLARED + LATE + WIDER + FROM_C + JOIN), look_back=f"{tmp_path}/in")
    put(tmp_path, 2, events[60:])
    query.drain()
    query.stop()
    after = (FROM_C + JOIN, second, 1e9)
    assert answers(tmp_path) == right(events, (LATE, 0, 1e9), (WIDER, first, 1e9), after)


def test_the_command_says_what_is_no_checkpoint_and_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "new.eq").write_text(DECLARED + LATE)
    (tmp_path / "empty").mkdir()
    empty = _command(f"{tmp_path}/empty", f"{tmp_path}/new.eq")
    assert (empty.exit_code, "no checkpoint of a live run" in empty.stderr) == (2, True)
    archive = _command(f"{tmp_path}/empty", f"{tmp_path}/new.eq", "--look-back", "archive/")
    assert (archive.exit_code, "archive/" in archive.stderr) == (2, True)


@pytest.mark.slow
def test_a_batch_that_was_begun_has_to_be_finished_first(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, 0, stream(20))
    query = once(spark, tmp_path, LATE + JOIN)
    root = tmp_path / "checkpoint"
    offsets = root / "spark" / "offsets"
    (offsets / "1").write_bytes((offsets / "0").read_bytes())  # planned, and done by nobody
    query.change(ephemera.compile(DECLARED + LATE), dry_run=True)
    state = root / "state" / "0-0"
    (state / "1.segment").write_bytes((state / "0.segment").read_bytes())
    with pytest.raises(WrongCheckpoint, match=r"batch 1 of the checkpoint .* was begun by the program that it has"):
        query.change(ephemera.compile(DECLARED + LATE))


@pytest.mark.slow
def test_a_batch_that_spark_does_not_know_to_be_done_is_not_done_again(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(60)
    put(tmp_path, 0, events[:30])
    query = once(spark, tmp_path, LATE + JOIN)
    for path in (tmp_path / "checkpoint" / "spark" / "commits").glob("*0*"):
        path.unlink()  # as if it had been killed just then
    query.change(ephemera.compile(DECLARED + LATE))
    put(tmp_path, 1, events[30:])
    once(spark, tmp_path, LATE)
    bound = events[29]["time"] - 0.5
    assert answers(tmp_path) == right(events, (LATE, 0, 1e9), (JOIN, 0, bound))


@pytest.mark.slow
def test_a_batch_cannot_change_the_program_that_it_is_of(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, 0, stream(20))
    refused: list[str] = []
    known: list[LiveQuery] = []

    def take(answers: list[Any], batch: int) -> None:
        del answers, batch
        try:
            known[0].change(ephemera.compile(DECLARED + LATE))
        except ephemera.EphemeraError as error:
            refused.append(str(error))

    source, sink = ephemera.sources.Folder(f"{tmp_path}/in"), ephemera.sinks.Batches(take)
    program = ephemera.compile(DECLARED + JOIN)
    known.append(program.stream(spark, source, sink, checkpoint=f"{tmp_path}/checkpoint").start())
    known[0].drain()
    known[0].stop()
    assert "change between two batches" in refused[0]


def _command(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["change", *arguments])


@pytest.mark.slow
def test_several_programs_of_a_query_change_together(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(60)
    put(tmp_path, 0, events[:30])
    before, after = (
        [ephemera.compile(DECLARED + rules) for rules in both] for both in ((LATE, JOIN), (LATE + SHORTER, JOIN))
    )
    jobs = [Job(one._compiled, World(), one._source) for one in before]
    query = Streaming(
        spark, jobs, [Input(f"{tmp_path}/in", "json")], f"{tmp_path}/checkpoint", f"{tmp_path}/out", shards=2
    ).start()
    query.drain()
    first, second = query.change(after, look_back="from-now")
    put(tmp_path, 1, events[30:])
    query.drain()
    query.stop()
    assert (first.added, second.added) == (("`soon` (rule 2)",), ())
    kept = [one for one in answers(tmp_path) if label_of(one) != "soon"]
    assert sorted(kept) == right(events, (LATE + JOIN, 0, 1e9))
