"""This module shows what live queries read and where their answers go, as values, and what is said of old keywords."""

from __future__ import annotations

import json
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera import sinks, sources
from ephemera.connect.atomic_files import CannotWrite
from ephemera.connect.live_source import LiveSource
from ephemera.spark.live.connections import check_targets, inputs_of, ways_of
from ephemera.spark.read.scan import Input

PROGRAM = ephemera.compile("EVENT order(id: string); seen(id) <- o: order(id);")
CATALOGUE = PROGRAM.catalogue


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("in", Input("in", "json")),
        (sources.Folder("in"), Input("in", "json")),
        (sources.Folder("in.parquet"), Input("in.parquet", "parquet")),
        (sources.Folder("in", format="csv", only="order"), Input("in", "csv", "order")),
        (sources.Socket("localhost", 99), Input("socket://localhost:99", "json")),
        (sources.Socket("::1", 99), Input("socket://[::1]:99", "json")),
        (sources.SparkTable("shop.orders"), Input("shop.orders", "table")),
    ],
)
def test_a_source_is_read_as_it_says(source: LiveSource | str, read: Input) -> None:
    assert inputs_of(source, CATALOGUE).inputs == (read,)
    assert inputs_of([source, source], CATALOGUE).inputs == (read, read)


@pytest.mark.parametrize(
    ("ways", "more", "told"),
    [
        ({"output": "in"}, {}, "the sink in is the input in"),
        ({"output": "in/answers"}, {}, "lies in the input in"),
        ({"output": "alias"}, {}, "is the input in"),
        ({"output": "."}, {}, "the input in lies in the sink"),
        ({"location": "in/t"}, {}, "the table's location in/t lies in the input"),
        ({}, {"dead_letters": "in"}, "dead_letters in is the input"),
        ({}, {"checkpoint": "in/c"}, "checkpoint in/c lies in the input"),
        ({"output": "out"}, {"dead_letters": "out"}, "dead_letters out is what the sink names"),
        ({"output": "file:{}/in"}, {}, "is the input"),
    ],
    ids=count(),
)
def test_a_query_writes_over_nothing_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ways: dict[str, Any], more: dict[str, Any], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("alias").symlink_to("in")
    given = {name: value.format(tmp_path) for name, value in ways.items()}
    with pytest.raises(CannotWrite, match=told):
        check_targets([Input("in", "json")], given, more)
    free = [Input("in", "table"), Input("socket://localhost:99", "json"), Input("s3a://in", "json")]
    if "dead_letters" not in more:
        check_targets(free, given, more)


def test_places_of_streams_that_share_files_are_refused() -> None:
    program = ephemera.compile(
        'EVENT a(x: int); EVENT b(x: int); STREAM s FROM "in/*.csv" CARRIES a; STREAM t FROM "in/b.csv" CARRIES b; '
        "p(x) <- i: a(x);"
    )
    with pytest.raises(ValueError, match="hold the same files"):
        inputs_of(None, program.catalogue)


def test_a_declared_format_counts_in_any_letters() -> None:
    program = ephemera.compile('EVENT a(x: int); STREAM s FROM "in" FORMAT CSV CARRIES a; p(x) <- i: a(x);')
    assert inputs_of(None, program.catalogue).inputs == (Input("in", "csv", "a"),)


def test_a_batch_takes_as_many_files_as_the_folders_say() -> None:
    assert inputs_of(sources.Folder("in"), CATALOGUE).most_files is None
    assert inputs_of([sources.Folder("in", most_files=3), sources.Folder("other")], CATALOGUE).most_files == 3
    with pytest.raises(ValueError, match=r"equally many files in a batch, and these ask for \[2, 3\]"):
        inputs_of([sources.Folder("in", most_files=3), sources.Folder("other", most_files=2)], CATALOGUE)


def test_a_sink_is_told_to_the_query() -> None:
    def batch(_answers: list[dict[str, Any]], _number: int) -> None:
        return None

    assert ways_of(None) == {}
    assert ways_of(sinks.Folder("out", format="csv")) == {"output": "out", "format": "csv"}
    assert ways_of(sinks.Table("t", location="there")) == {"table": "t", "location": "there"}
    assert ways_of(sinks.Callback(print)) == {"foreach": print}
    assert ways_of(sinks.Batches(batch)) == {"foreach_batch": batch}
    assert ways_of(sinks.Console()) == {"console": True}
    memory = sinks.Memory()
    ways_of(memory)["foreach"]({"event": "seen"})
    assert memory.answers == [{"event": "seen"}]


@pytest.mark.parametrize("source", [7, sinks.Folder("in"), [], {}, None])
def test_what_cannot_be_read_is_refused(source: Any) -> None:
    with pytest.raises(
        (TypeError, ValueError), match=r"reads sources\.Folder, .*and this is a|there is nothing to read"
    ):
        PROGRAM.stream(None, source)


def test_what_takes_no_answers_is_refused() -> None:
    with pytest.raises(TypeError, match=r"the answers of a live query go to sinks\.Folder, .*, and this is a str"):
        PROGRAM.stream(None, "in", "out")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`stream` has no keyword `ouput`"):
        PROGRAM.stream(None, "in", ouput="out")


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ({"output": "out"}, r"`output=` of `stream` .*; write sink=sinks\.Folder\('out'\)"),
        ({"table": "t", "location": "there"}, r"`table=`, `location=` .*; write sink=sinks\.Table\('t'\), .*'there'"),
        ({"foreach": print}, r"write sink=sinks\.Callback\(function\)"),
        ({"foreach_batch": print}, r"write sink=sinks\.Batches\(function\)"),
        ({"most_files": 3}, r"write sources\.Folder\(…, most_files=3\)"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_old_keyword_still_does_what_it_did_and_says_what_to_write(old: dict[str, Any], said: str) -> None:
    with pytest.warns(ephemera.EphemeraWarning, match=said) as told:
        streaming = PROGRAM.stream(None, "in", **old)
    assert [Path(one.filename).name for one in told] == [Path(__file__).name], "the line that has it is named"
    assert all(getattr(streaming, name) == value for name, value in old.items())


def test_a_query_runs_from_a_folder_to_a_folder_and_shows_itself(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"event": "order", "time": time, "data": [name]}) + "\n" for time, name in ((1, "a"), (2, "b"))]
    (tmp_path / "in" / "1.jsonl").write_text("".join(lines), encoding="utf-8")
    source, sink = sources.Folder(str(tmp_path / "in"), most_files=1), sinks.Folder(str(tmp_path / "out"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query = PROGRAM.stream(spark, source, sink, checkpoint=str(tmp_path / "check"), trigger="once").start()
    assert isinstance(query, ephemera.Query)
    query.wait()
    assert repr(query) == "<Query: has ended, 1 batches, 2 events>"
    files = (tmp_path / "out").glob("*.jsonl")
    assert [json.loads(line)["data"] for f in files for line in f.read_text(encoding="utf-8").splitlines()] == [["a"]]
