"""This module reads tables of values and columns that Python cannot hold: a bad row stops nothing, and is shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import ephemera
from ephemera.cli.main import app

PROGRAM = "EVENT o(id: string, qty: int, note: string); big(i, n) <- o: o(i, q, n), q > 1;"
FAR = pa.array([0, 2**63 - 1, 0], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
QTY = pa.array(["2", "many", "3"])


def no_text(data: bytes) -> pa.Array:
    """Three texts of a byte each, whether they are such or not."""
    ends = pa.array([0, 1, 2, 3], pa.int32())
    return pa.Array.from_buffers(pa.string(), 3, [None, ends.buffers()[1], pa.py_buffer(data)])


def table(**columns: Any) -> pa.Table:
    """Three orders, of which some columns are others."""
    return pa.table({"event": ["o"] * 3, "time": [1, 2, 3], "id": ["a", "b", "c"], "qty": [2, 2, 3], **columns})


ODD = {
    "a time beyond the calendar": (table(time=FAR, note=["x"] * 3), "too far from 1970"),
    "such a time in a column of nobody": (table(note=["x"] * 3, qty=QTY, seen=FAR), "`qty` is int"),
    "such a time within others": (
        table(note=["x"] * 3, qty=QTY, seen=pa.StructArray.from_arrays([FAR], ["at"])),
        "`qty` is int",
    ),
    "nanoseconds": (
        table(note=["x"] * 3, qty=QTY, seen=pa.array([1, 2, 3], pa.timestamp("ns"))),
        "`qty` is int",
    ),
    "views of texts": (table(note=pa.array(["x"] * 3, pa.string_view()), qty=QTY), "`qty` is int"),
    "runs of values": (table(note=pc.run_end_encode(pa.array(["x"] * 3)), qty=QTY), "`qty` is int"),
    "a zone that nobody knows": (
        table(note=["x"] * 3, qty=QTY, seen=pa.array([1, 2, 3], pa.timestamp("s", tz="Nowhere/Zone"))),
        "`qty` is int",
    ),
    "bytes that are no text": (table(note=no_text(b"a\xffb")), "`note` holds what cannot be read: `\\xff`"),
    "a name that is no text": (
        table(note=["x"] * 3, event=no_text(b"o\xffo")),
        "an event has a name",
    ),
}


@pytest.mark.parametrize("kind", ODD)
def test_one_row_that_python_cannot_hold_is_one_dead_letter(kind: str) -> None:
    given, reason = ODD[kind]
    if "qty" in given.column_names and given.column("qty").type == pa.string():
        program = PROGRAM.replace("q > 1", 'q != "many"').replace("qty: int", "qty: any")
        assert ephemera.compile(program).run_all(given.slice(0, 1)).bad == []
    run = ephemera.compile(PROGRAM).run_all(given)
    assert any(reason in bad.reason for bad in run.bad), [bad.reason for bad in run.bad]
    for bad in run.bad:
        assert json.loads(bad.original)["id"] in {"a", "b", "c"}
    if given.column("qty").type != pa.string():
        assert len(run.bad) == 1
        assert len(run.answers) == 2


@pytest.mark.parametrize(
    "kind", [k for k in ODD if k not in {"views of texts", "runs of values", "a zone that nobody knows"}]
)
def test_so_it_is_in_a_file(tmp_path: Path, kind: str) -> None:
    given, _ = ODD[kind]
    (tmp_path / "p.eq").write_text(PROGRAM, encoding="utf-8")
    pq.write_table(given, tmp_path / "o.parquet")
    options = ["--input", str(tmp_path / "o.parquet"), "--dead-letter", str(tmp_path / "dead.jsonl")]
    result = CliRunner().invoke(app, ["run", str(tmp_path / "p.eq"), "--engine", "local", *options])
    assert result.exit_code == 0, result.stderr
    letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text(encoding="utf-8").splitlines()]
    expected = ephemera.compile(PROGRAM).run_all(given).bad
    assert [letter["event"] for letter in letters] == [bad.original for bad in expected]


def test_an_infinite_time_of_duckdb_is_shown_in_the_words_of_arrow(tmp_path: Path) -> None:
    path = tmp_path / "inf.parquet"
    duckdb.sql(
        f"copy (select 'o' as event, timestamp 'infinity' as time, 'a' as id, 2 as qty, 'n' as note) to '{path}'"
    )
    (bad,) = ephemera.compile(PROGRAM).run_all(pq.read_table(path)).bad
    assert "too far from 1970" in bad.reason
    assert json.loads(bad.original)["time"] == f"<value out of range: {2**63 - 1}>"


def test_good_rows_in_runs_of_values_are_read() -> None:
    given = table(note=pc.run_end_encode(pa.array(["x", "x", "y"])), event=pc.run_end_encode(pa.array(["o"] * 3)))
    answers = ephemera.compile(PROGRAM).run(given)
    assert answers.select(["i", "n"]).to_pylist() == [{"i": i, "n": n} for i, n in ("ax", "bx", "cy")]


def test_dead_letters_of_nanoseconds_need_no_pandas(tmp_path: Path) -> None:
    """They are the same with it and without."""
    given = table(note=["x"] * 3, time=pa.array([1_000, 1, None], pa.timestamp("ns")), qty=QTY)
    pq.write_table(given, tmp_path / "o.parquet")
    code = (
        "import sys; from ephemera.base.without_pandas import do_without_pandas; do_without_pandas()\n"
        "import ephemera, pyarrow.parquet as pq\n"
        f"print([bad.original for bad in ephemera.compile({PROGRAM!r}).run_all(pq.read_table(sys.argv[1])).bad])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "o.parquet")], check=True, capture_output=True, text=True
    )
    with_pandas = [bad.original for bad in ephemera.compile(PROGRAM).run_all(given).bad]
    assert found.stdout.strip() == str(with_pandas)
    assert json.loads(with_pandas[1])["time"] == "1970-01-01 00:00:00.000000001"


def test_periods_of_pandas_are_no_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"time": [1, 2], "m": pd.period_range("2026-01", periods=2, freq="M")})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "m.parquet")
    program = ephemera.compile("EVENT a(m: int); p(m) <- i: a(m);")
    for given in (frame, pq.read_table(tmp_path / "m.parquet")):
        run = program.run_all(given)
        assert len(run.answers) == 0
        assert ["pandas.period" in bad.reason and ".dt.to_timestamp()" in bad.reason for bad in run.bad] == [True] * 2
    plain = pq.read_table(tmp_path / "m.parquet")
    as_file = plain.set_column(
        1,
        pa.field("m", pa.int64(), metadata={"ARROW:extension:name": "pandas.period"}),
        plain.column("m").combine_chunks().storage if plain.num_rows else [],
    )
    assert ["pandas.period" in bad.reason for bad in program.run_all(as_file).bad] == [True] * 2
    when = frame.rename(columns={"time": "m", "m": "time"})
    assert ["pandas.period" in bad.reason for bad in program.run_all(when).bad] == [True] * 2
    nothing = ephemera.compile("EVENT a(x: int); p(x) <- i: a(x);").run_all(frame.assign(x=1))
    assert nothing.bad == []
