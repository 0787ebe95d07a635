"""This module gives programs input without a column or a key that they declare: nobody is silent about it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.cli.main import app
from ephemera.formats.check_columns import WrongColumns

PROGRAM = "EVENT order(id: string, qty: int); EVENT pay(id: string, sum: float); got(i, q) <- o: order(i, q);"
TABLED = 'TABLE room(name: string, seats: int) FROM "rooms.csv"; EVENT a(r: string); p(r, s) <- a(r), room(r, s);'
WRONG = {"event": ["order"], "time": [1], "id": ["a"], "quantity": [3]}
TOLD = "no column `qty` in the table; did you mean `quantity`"


def run(folder: Path, *args: str, program: str = PROGRAM) -> Result:
    (folder / "p.eq").write_text(program, encoding="utf-8")
    return CliRunner().invoke(app, ["run", str(folder / "p.eq"), "--engine", "local", *args])


@pytest.mark.parametrize("kind", [pa.table, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_a_table_without_a_declared_column_is_refused_or_read_leniently(kind: type) -> None:
    program = ephemera.compile(PROGRAM)
    with pytest.raises(WrongColumns, match=TOLD):
        program.run(kind(WRONG))
    assert len(program.run(kind(WRONG), lenient=True)) == 1
    with pytest.raises(WrongColumns, match=TOLD):
        program.engine().send_many(kind(WRONG))
    engine = program.engine(lenient=True)
    assert [*engine.send_many(kind(WRONG)), *engine.finish()] == [{"event": "got", "time": 1, "data": ["a", None]}]


def test_columns_of_types_that_are_not_there_are_not_missed() -> None:
    assert ephemera.compile(PROGRAM).run(pa.table({**WRONG, "qty": [4]}))["q"].to_pylist() == [4]
    with pytest.raises(WrongColumns, match="no column `sum` in the table"):
        ephemera.compile(PROGRAM).run(pa.table({**WRONG, "event": ["pay"]}))


def test_it_is_enough_that_one_file_offers_a_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("event,time,id\norder,1,a\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("event,qty,id,time\norder,5,b,2\n", encoding="utf-8")
    (tmp_path / "c.csv").write_text("event,time,qty\npay,1,5\n", encoding="utf-8")
    files = [f"--input={tmp_path / name}" for name in ("a.csv", "b.csv")]
    done = run(tmp_path, *files)
    assert [json.loads(line)["data"] for line in done.stdout.splitlines()] == [["a", None], ["b", 5]]
    done = run(tmp_path, files[0], f"--input={tmp_path / 'c.csv'}")
    assert done.exit_code == 1
    assert "no column `qty` in a.csv" in done.stderr  # c.csv has one, but no order
    assert "no column `id` in c.csv" in done.stderr
    assert run(tmp_path, files[0], "--lenient").exit_code == 0


def test_parquet_without_a_column_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table(WRONG), tmp_path / "bank.parquet")
    done = run(tmp_path, f"--input={tmp_path / 'bank.parquet'}")
    assert done.exit_code == 1
    assert done.stderr.startswith("no column `qty` in bank.parquet; did you mean `quantity`?\n")
    assert run(tmp_path, f"--input={tmp_path / 'bank.parquet'}", "--lenient").stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name,Seats\nx,1\n", "did you mean `Seats`?"),
        ("name,seats\nx\n", "line 2: the row has 1 cells, and the header 2"),
        ('name,seats\n"x,1\n', "line 2: a quote is not closed in its line"),
        ("name,seats\nx,many\n", '`seats` is int, and "many" is not'),
        ("", "it is empty"),
    ],
)
def test_what_is_wrong_with_a_table_is_told_before_the_run(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "rooms.csv").write_text(text, encoding="utf-8")
    (tmp_path / "in.jsonl").write_text('{"event": "a", "time": 1, "data": ["x"]}\n', encoding="utf-8")
    done = run(tmp_path, f"--input={tmp_path / 'in.jsonl'}", program=TABLED)
    assert done.exit_code == 1
    assert told in done.stderr
    assert not done.stdout


def test_rows_and_frames_for_tables_have_the_declared_columns() -> None:
    program = ephemera.compile(TABLED)
    events = [{"event": "a", "time": 1, "data": ["x"]}]
    for rows in ([{"name": "x", "Seats": 5}], pa.table({"name": ["x"], "Seats": [5]})):
        with pytest.raises(WrongColumns, match="no column `seats` in the table `room`; did you mean `Seats`"):
            program.run(events, tables={"room": rows})
        assert program.run(events, tables={"room": rows}, lenient=True)[0]["data"] == ["x", None]
    assert program.run(events, tables={"room": pa.table({"name": ["x"], "seats": [5]})})[0]["data"] == ["x", 5]


# ---- keys --------------------------------------------------------------------------------------------------

LINES = "".join(f'{{"event": "order", "time": {t}, "data": {{"id": "a", "quantity": {t}}}}}\n' for t in (1, 2))
MISSING = "order: `qty` was missing in all 2 events; did you mean `quantity`, which they have?"


@pytest.mark.parametrize("mode", [[], ["--mode", "stream", "--allow-unbounded"]])
def test_a_key_that_was_never_there_is_told_behind_the_answers(mode: list[str], tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(LINES, encoding="utf-8")
    done = run(tmp_path, f"--input={tmp_path / 'in.jsonl'}", *mode)
    assert (done.exit_code, done.stderr) == (0, f"warning: {MISSING}\n")
    strict = run(tmp_path, f"--input={tmp_path / 'in.jsonl'}", "--strict", *mode)
    assert (strict.exit_code, strict.stdout) == (1, done.stdout)
    assert strict.stdout.count("\n") == 2


def test_a_key_that_was_there_once_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(LINES + LINES.replace("quantity", "qty"), encoding="utf-8")
    done = run(tmp_path, f"--input={tmp_path / 'in.jsonl'}", "--strict")
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_run_has_notes() -> None:
    assert ephemera.compile(PROGRAM).run_all(LINES.splitlines()).warnings == (MISSING,)
    assert ephemera.compile(PROGRAM).run_all([{"event": "order", "time": 1, "data": ["a", 1]}]).warnings == ()


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("", encoding="utf-8")
    assert "a.csv is empty" in run(tmp_path, f"--input={tmp_path / 'a.csv'}").stderr
