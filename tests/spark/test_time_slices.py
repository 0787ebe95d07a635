"""This module shows that rules without a key answer on Spark in slices of time what they answer in one place."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.engine.cluster.time_slices import FORCED, Slicing
from ephemera.engine.hosts.batch import span
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import read_event
from ephemera.language import compile
from ephemera.program import Program
from ephemera.semantics.oracle import evaluate
from ephemera.spark.batch.job import Job, Started, start, start_lines
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.read.scan import Input
from ephemera.stories.judge import Ready, applies, judged_together, prepared
from ephemera.stories.on_spark import run_on_spark
from ephemera.stories.read import read_story
from ephemera.terms.events import Event
from tests.spark.running import collected, local, outcomes, plain
from tests.strategies.cases import answers
from tests.strategies.short_answers import short_sample

COUNT = 50
PATHS = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))


def test_every_story_holds_in_slices_with_all_of_them_in_one_job(spark: SparkSession) -> None:
    assert spark is not None
    stories = [(path.name, read_story(path.read_text(encoding="utf-8"))) for path in PATHS]
    ready = [one for name, story in stories if isinstance(one := prepared(name, story), Ready)]
    told = [one for one in ready if applies(one.story, "spark")]
    assert len(told) > 300
    assert [wrong for wrong in judged_together(told, partial(run_on_spark, in_slices=True)) if wrong] == []


def test_random_programs_answer_in_slices_what_the_oracle_answers(spark: SparkSession) -> None:
    jobs, lines, spans, limits, expected = [], [], [], [], []
    for case, cuts in short_sample(COUNT):
        program = compile(case.program)
        told = [json.dumps(write_event(e, program.catalogue, as_numbers=True)) for e in case.events]
        read = [e for line in told if isinstance(e := read_event(line, program._compiled), Event)]
        assert len(read) == len(told)
        jobs.append(Job(program._compiled, case.world))
        lines.append(told)
        spans.append(span([e.time.end for e in read], case.world))
        limits.append(cuts)
        expected.append(answers(evaluate(case.ruleset, read, case.world)))
    started = start_lines(spark, jobs, lines, spans, 7, limits)
    assert sum(bool(spread.slices) for spread in started.spreads) > COUNT * 2 // 3
    found = outcomes(started)
    wrong = [number for number, (outcome, _) in enumerate(found) if answers(outcome) != expected[number]]
    assert wrong == []
    assert all(len(outcome.events) == len(set(outcome.events)) for outcome, _ in found)
    assert sum(busy > 1 for _, busy in found) > COUNT // 2


PROGRAM = """
EVENT a(x: int); EVENT b(y: int) LASTS AT MOST 3;
pair(x, y) <- i: a(x), j: b(y), i before j, {i, j} within 4;
ratio(x / y) <- i: a(x), j: b(y), i during j;
quiet(x) <- i: a(x), w: extend(i, 2), while w: not b(_);
both(x, count(m)) <- p: pair(x, y), q: quiet(z), w: extend-begin(q, 20), p during w, while w: collect b(m);
hot(sum(n), x) <- i: a(x), w: extend-begin(i, 10), while w: collect b(n);
"""


def _rows(count: int = 400) -> list[dict[str, Any]]:
    dice = Random(5)
    found: list[dict[str, Any]] = []
    for _ in range(count):
        time = dice.randrange(2 * count)
        if dice.random() < 0.5:
            found.append({"event": "a", "begin": time, "end": time, "x": dice.randrange(20), "y": None})
        else:
            found.append(
                {"event": "b", "begin": time - dice.randrange(4), "end": time, "x": None, "y": dice.randrange(4)}
            )
    return found


@pytest.fixture(scope="module")
def program() -> Program:
    return ephemera.compile(PROGRAM)


@pytest.fixture(scope="module")
def expected(program: Program) -> list[str]:
    return local(program, [_object(row) for row in _rows()])


def _object(row: dict[str, Any]) -> dict[str, Any]:
    own = {"a": "x", "b": "y"}[row["event"]]
    return {"event": row["event"], "time": [row["begin"], row["end"]], "data": {own: row[own]}}


def _written(folder: Path, form: str) -> str:
    path = folder / f"events.{form}"
    rows = _rows()
    match form:
        case "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=64)
        case "jsonl":
            path.write_text("".join(json.dumps(_object(row)) + "\n" for row in rows), encoding="utf-8")
        case _:
            lines = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
            path.write_text("\n".join([",".join(rows[0]), *lines, ""]), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv", "frame"])
def test_an_input_of_any_form_is_cut_where_its_events_are(
    spark: SparkSession, program: Program, expected: list[str], tmp_path: Path, form: str
) -> None:
    given = (
        Input(spark.createDataFrame(_rows(), "event string, begin long, end long, x int, y int"))
        if form == "frame"
        else Input(_written(tmp_path, form))
    )
    started = start(spark, [Job(program._compiled)], [given], 5, slicing=FORCED)
    (spread,) = started.spreads
    ends = np.array([row["end"] for row in _rows()]) * 1_000_000
    for slices in spread.slices.values():
        assert len(slices) == 5
        assert np.bincount(np.searchsorted(slices.limits, ends)).min() > len(ends) // 10
    assert len(spread.slices) == len(spread.look_backs) > 0
    (came,) = collected(started)
    assert came.busy > 1
    assert plain(came.answers) == expected
    assert len(came.dead) == len({json.dumps(letter) for letter in came.dead}) > 0


def test_letters_and_counts_are_those_of_one_place(spark: SparkSession, program: Program, tmp_path: Path) -> None:
    given = Input(_written(tmp_path, "jsonl"))
    whole, cut = (_summary(start(spark, [Job(program._compiled)], [given], 4, **more)) for more in ({}, _FORCED))
    assert cut == whole


_FORCED: dict[str, Any] = {"slicing": FORCED}


def _summary(started: Started) -> tuple[object, ...]:
    computed = Computed(started)
    told, letters = computed.summary, sorted(json.dumps(letter) for _, letter in computed.letters())
    never = computed.never()
    computed.close()
    return told.read, told.answers, told.matched, told.dead, letters, never


def test_a_small_input_is_not_cut(spark: SparkSession, program: Program, tmp_path: Path) -> None:
    given = Input(_written(tmp_path, "parquet"))
    assert not start(spark, [Job(program._compiled)], [given]).spreads[0].slices


HOT = """
EVENT a(x: int); EVENT b(x: int, y: int);
pair(x, y) <- i: a(x), j: b(x, y), i before j, {i, j} within 4;
quiet(x) <- i: a(x), w: extend(i, 9), while w: not b(x, _);
"""


@pytest.mark.parametrize(("form", "share"), [("parquet", 0.5), ("jsonl", 0.5), ("parquet", 0.0)])
def test_a_key_with_half_of_the_events_is_cut_along_time(
    spark: SparkSession, tmp_path: Path, form: str, share: float
) -> None:
    dice = Random(6)
    rows: list[dict[str, Any]] = []
    for time in range(2_000):
        key = 0 if dice.random() < share else dice.randrange(1, 200)
        kind = dice.choice("ab")
        rows.append({"event": kind, "time": time // 2, "x": key, "y": time % 3 if kind == "b" else None})
    objects = [
        {"event": r["event"], "time": r["time"], "data": {k: r[k] for k in ("x", "y") if r[k] is not None}}
        for r in rows
    ]
    path = tmp_path / f"events.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=512)
    else:
        path.write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
    hot = ephemera.compile(HOT)
    started = start(spark, [Job(hot._compiled)], [Input(str(path))], 4, slicing=Slicing(least=0))
    (spread,) = started.spreads
    assert [len(one) for one in spread.slices.values()] == ([4] if share else [])
    (came,) = collected(started)
    assert plain(came.answers) == local(hot, objects)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_rules_are_joined_as_is_best_for_what_is_in_files(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """What comes seldom is joined first, whatever is written first; with few events nobody looks."""
    program = ephemera.compile(
        "EVENT f(x: int, y: int); EVENT g(y: int, z: int); EVENT r(z: int); "
        "q(x, z) <- a: f(x, y), b: g(y, z), c: r(z), {a, b, c} within 20;"
    )
    dice, rows = Random(5), list[dict[str, Any]]()
    for k in range(2_000):
        label = "r" if k % 40 == 0 else dice.choice("fg")
        own = {"f": "xy", "g": "yz", "r": "z"}[label]
        rows.append({"event": label, "time": k // 4, **{n: dice.randrange(8) if n in own else None for n in "xyz"}})
    objects = [
        {"event": r["event"], "time": r["time"], "data": {n: r[n] for n in "xyz" if r[n] is not None}} for r in rows
    ]
    path = tmp_path / f"events.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=300)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in objects), encoding="utf-8")
    stored = {}
    for least in (1, 10_000):
        started = start(spark, [Job(program._compiled)], [Input(str(path))], 3, slicing=Slicing(least=least))
        stored[least] = [name for name in started.spreads[0].plan.rules if "[" in name]
        (came,) = collected(started)
        assert plain(came.answers) == local(program, objects) != []
    assert stored == {1: ["q[b,c]"], 10_000: ["q[a,b]"]}
