"""This module checks the benchmark of commands: its files, what DuckDB answers from them, and how answers are read."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from bench import answer_files, duckdb_files, duckdb_queries
from bench.command import Work
from bench.command_table import Comparison, grown, header, line
from bench.files import FORMATS, File, Format, tables
from bench.frames import frames
from bench.queries import Case
from bench.selection import answers
from bench.usage import Failed, Usage, used

QUERIES = ("Q1", "Q1w", "Q2", "Q3", "Q4")
EVENTS = 400
KEYS = 5


def _events(path: Path, form: Format) -> list[dict[str, object]]:
    match form:
        case "csv":
            rows: list[dict[str, object]] = pyarrow.csv.read_csv(path).to_pylist()
        case "parquet":
            rows = pq.read_table(path).to_pylist()
        case "jsonl":
            lines = pyarrow.json.read_json(path).to_pylist()
            rows = [
                {"event": e, "time": t, **(d if isinstance(d, dict) else dict(zip(("id", "x", "v"), d, strict=True)))}
                for e, t, d in (one.values() for one in lines)
            ]
    return rows


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("is_shuffled", [False, True])
@pytest.mark.parametrize("has_objects", [False, True])
def test_files_hold_the_stream(form: Format, is_shuffled: bool, has_objects: bool, tmp_path: Path) -> None:
    case = Case("Q1", KEYS)
    stream = case.stream(EVENTS)
    path = File(case, EVENTS, form, is_shuffled, has_objects).write(stream, tmp_path)
    rows = _events(path, form)
    right = pa.concat_tables(tables(stream)).to_pylist()
    assert sorted(rows, key=lambda row: int(str(row["id"]))) == right
    assert (rows == right) != is_shuffled


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("form", FORMATS)
def test_duckdb_answers_from_file_to_file(query: str, form: Format, tmp_path: Path) -> None:
    case = Case(query, KEYS)
    stream = case.stream(EVENTS)
    checksums = set()
    for has_objects in (False, True):
        file = File(case, EVENTS, form, is_shuffled=True, has_objects=has_objects)
        path = file.write(stream, tmp_path)
        for output_form in FORMATS:
            output = tmp_path / f"answers.{output_form}"
            with duckdb.connect() as connection:
                for statement in duckdb_files.statements(file, path, output, output_form):
                    connection.execute(statement)
            written = answer_files.read(output, output_form, case)
            assert case.answers(stream).agree(written.answers)
            assert written.is_sorted
            checksums.add(written.checksum)
    assert len(checksums) == 1


@pytest.mark.parametrize("query", QUERIES)
def test_all_ways_to_write_a_query_give_the_same_answers(query: str) -> None:
    case = Case(query, KEYS)
    connection = duckdb_queries.connect(case.stream(EVENTS))
    selection = answers("begin")
    found = [sorted(connection.execute(sql).fetchall()) for sql in duckdb_queries.variants(case, selection).values()]
    assert found[0]
    assert all(rows == found[0] for rows in found)


@pytest.mark.parametrize("query", QUERIES)
def test_frames_are_right(query: str, tmp_path: Path) -> None:
    case = Case(query, KEYS)
    stream = case.stream(EVENTS)
    stream.save(tmp_path)
    found = frames(case, tmp_path, 1, case.answers(stream))
    assert min(found.run, found.engine, found.duckdb) >= 0


def test_answers_in_another_order_are_the_same_but_not_sorted(tmp_path: Path) -> None:
    lines = [f'{{"event": "Q1", "time": [{k}, {k + 1}], "data": [{k}, {k + 7}]}}\n' for k in range(3)]
    ordered, turned = tmp_path / "ordered.jsonl", tmp_path / "turned.jsonl"
    ordered.write_text("".join(lines))
    turned.write_text("".join(reversed(lines)))
    one, other = (answer_files.read(path, "jsonl", Case("Q1")) for path in (ordered, turned))
    assert (one.answers, one.checksum) == (other.answers, other.checksum)
    assert (one.is_sorted, other.is_sorted) == (True, False)


def test_a_wrong_argument_changes_the_checksum(tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("event,begin,end,i,j\nQ1,1,2,3,4\n")
    other.write_text("event,begin,end,i,j\nQ1,1,2,4,3\n")
    assert answer_files.read(one, "csv", Case("Q1")).answers == answer_files.read(other, "csv", Case("Q1")).answers
    assert answer_files.read(one, "csv", Case("Q1")).checksum != answer_files.read(other, "csv", Case("Q1")).checksum


def test_the_local_command_is_measured_and_right(tmp_path: Path) -> None:
    case = Case("Q4", KEYS)
    stream = case.stream(EVENTS)
    file = File(case, EVENTS, "jsonl")
    work = Work(file, file.write(stream, tmp_path), case.answers(stream), tmp_path, "jsonl")
    usage, checksum = work.run("local", 120)
    assert min(usage.cpu, usage.wall, usage.peak) > 0
    assert checksum is not None


def test_a_command_that_fails_is_told_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="no such thing"):
        used(["sh", "-c", "echo no such thing; exit 3"], tmp_path, limit=60)


@pytest.mark.skipif(sys.platform != "linux", reason="only there a process inherits those that its children leave")
def test_what_a_command_leaves_behind_is_waited_for_and_counts(tmp_path: Path) -> None:
    busy = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.5: pass'"
    usage = used(["sh", "-c", f"({busy}; touch {tmp_path / 'done'}) > {tmp_path / 'log'} 2>&1 &"], tmp_path, limit=60)
    assert (tmp_path / "done").exists()
    assert usage.cpu >= 0.5


def test_the_table_has_ratios_of_what_was_run() -> None:
    usages = {name: Usage(cpu, wall, 50) for name, cpu, wall in (("local", 6, 7), ("duckdb", 2, 2), ("bare", 1, 10))}
    usages |= {"spark": Usage(8, 16, 0), "pyspark": Usage(6, 14, 0)}
    row = Comparison("Q1", "csv", 1_000, 500, 255, usages)
    assert (row.to_duckdb, row.to_pyspark, row.to_pyspark_in_cpu) == (3.0, 1.5, 1.4)
    assert "beyond start" not in header(["local", "duckdb"])
    assert line(row, ["local", "duckdb"]).split()[-1] == "3.0"
    assert line(row, ["bare", "spark", "pyspark"]).split()[-8:] == [
        "10.0",
        "1.0",
        "16.0",
        "8.0",
        "14.0",
        "6.0",
        "1.5",
        "1.4",
    ]
    assert line(Comparison("Q1", "csv", 1_000, 500, None, {}), ["local", "duckdb"]).split()[-1] == "-"


def test_memory_of_the_most_events_is_compared_with_that_of_the_fewest() -> None:
    sizes = {1_000: 100.0, 5_000: 130.0, 50_000: 110.0}
    rows = [Comparison("Q1", "csv", events, 1, 1, {"local": Usage(1, 1, peak)}) for events, peak in sizes.items()]
    assert grown(rows) == ["Q1 csv: 1.10 times the memory for 50 times the events"]
