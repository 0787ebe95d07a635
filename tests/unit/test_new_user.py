"""This module makes mistakes that a new user made, and asks whether what is told helps."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.cli.main import app
from ephemera.formats.check_columns import WrongColumns

BANK = "EVENT txn(account: string, amount: float, country: string); seen(a) <- t: txn(a, x, c);"
RATIO = "EVENT txn(account: string, amount: float, n: int); ratio(a, x / n) <- t: txn(a, x, n);"
PATIENCE = 60


def run(folder: Path, program: str, name: str, content: bytes, *options: str) -> Result:
    (folder / "p.eq").write_text(program, encoding="utf-8")
    (folder / name).write_bytes(content)
    words = ["run", str(folder / "p.eq"), "--input", str(folder / name), "--engine", "local", *options]
    return CliRunner().invoke(app, words)


def line(time: object, data: object) -> bytes:
    return json.dumps({"event": "txn", "time": time, "data": data}).encode() + b"\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_that_is_closed_early_is_told_whatever_buffers_output(unbuffered: str, tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text(BANK, encoding="utf-8")
    (tmp_path / "e.jsonl").write_bytes(b"".join(line(n, [str(n), 1, "D"]) for n in range(5000)))
    command = [sys.executable, "-m", "ephemera", "run", "p.eq", "--input", "e.jsonl", "--engine", "local"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(os.read(process.stdout.fileno(), 10)) == 10  # then all that fits in the pipe is written, and no more
        process.stdout.close()
        told = process.stderr.read()
    assert (process.returncode, told) == (3, b"cannot write standard output: Broken pipe\n")


def test_a_live_run_tells_of_heads_without_a_value(tmp_path: Path) -> None:
    events = line(1, ["a", 3, 0]) + line(2, ["b", 3, 2])
    done = run(tmp_path, RATIO, "e.jsonl", events, "--mode", "stream")
    assert done.stderr == "2 events, 0 bad, 0 late, 1 without a value; `--dead-letter PATH` keeps them\n"


def test_a_head_without_a_value_is_told_with_its_rule(tmp_path: Path) -> None:
    done = run(tmp_path, RATIO, "e.jsonl", line(1, ["a", 3, 0]))
    told = "1 event could not be used, the first: rule 1: division by zero\n`--dead-letter PATH` keeps them\n"
    assert done.stderr == told


def test_a_live_run_that_is_stopped_tells_all_that_it_would_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text(BANK, encoding="utf-8")
    texts = [f"2026-03-01T09:0{minute}:00" for minute in range(2)]
    (tmp_path / "e.jsonl").write_bytes(b"".join(line(at, {"account": "a", "amount": 1}) for at in texts))
    command = [sys.executable, "-m", "ephemera", "run", "p.eq", "--input", "e.jsonl", "--mode", "stream", "--follow"]
    with subprocess.Popen(
        [*command, "--output", "answers.jsonl", "--strict"], cwd=tmp_path, stderr=subprocess.PIPE
    ) as process:
        last = time.monotonic() + PATIENCE
        answers = tmp_path / "answers.jsonl"
        while (not answers.exists() or not answers.stat().st_size) and time.monotonic() < last:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=PATIENCE)
    first, second, third = told.decode().splitlines()
    assert (process.returncode, first) == (0, "stopped: 2 events, 0 bad, 0 late, 0 without a value")
    assert second.startswith("note: times without a zone were read as UTC")
    assert third == "warning: txn: `country` was missing in all 2 events"


def test_no_column_is_meant_that_is_an_attribute_itself() -> None:
    rows = {"event": ["txn"], "time": [1], "account": ["a"], "amount": [1.0]}
    with pytest.raises(WrongColumns, match="no column `country` in the table\n"):
        ephemera.compile(BANK).run(pa.table(rows))
    with pytest.raises(WrongColumns, match="did you mean `land`"):
        ephemera.compile(BANK.replace("country", "lan")).run(pa.table({**rows, "land": ["D"]}))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("twice.csv", b"event,time,account,amount,country,country\n"),
        ("cut.csv.gz", gzip.compress(b"event,time,account,amount,country\n" * 9)[:20]),
        ("plain.csv.gz", b"event,time,account,amount,country\n"),
        ("none.parquet", b"PAR1 and nothing else"),
    ],
    ids=["twice", "cut", "plain", "parquet"],
)
def test_input_that_is_there_and_cannot_be_read_is_wrong_input(name: str, content: bytes, tmp_path: Path) -> None:
    done = run(tmp_path, BANK, name, content)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"cannot read {tmp_path / name}: ")


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        (None, 2, "No such file or directory"),
        (b"id\nx\n", 1, "Not a gzipped file (b'id')"),
        (gzip.compress(b"id\nx\n")[:-12] + bytes(12), 1, ""),
    ],
    ids=["absent", "plain", "damaged"],
)
def test_a_table_that_cannot_be_read_is_told_in_a_line(
    content: bytes | None, code: int, told: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "t.csv.gz").write_bytes(content)
    program = 'EVENT a(x: string); TABLE t(id: string) FROM "t.csv.gz"; p(x) <- i: a(x), t(x);'
    done = run(tmp_path, program, "e.jsonl", b"")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith(f"cannot read {tmp_path / 't.csv.gz'}: {told}")


def test_compressed_lines_are_not_taken_for_plain_ones_live(tmp_path: Path) -> None:
    packed = gzip.compress(line(1, ["a", 1, "D"]))
    assert run(tmp_path, BANK, "e.jsonl.gz", packed).stdout.count("\n") == 1
    done = run(tmp_path, BANK, "e.jsonl.gz", packed, "--mode", "stream")
    assert (done.exit_code, "is compressed; live, give its lines" in done.stderr) == (2, True)


def test_a_folder_without_files_is_told(tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text(BANK, encoding="utf-8")
    (tmp_path / "none").mkdir()
    words = ["run", str(tmp_path / "p.eq"), "--input", str(tmp_path / "none"), "--engine", "local"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stderr) == (0, f"note: there are no files in {tmp_path / 'none'}\n")


def test_attributes_beside_the_name_are_told_where_they_belong() -> None:
    flat = {"event": "txn", "time": 1, "account": "a", "amount": 1, "country": "D"}
    (bad,) = ephemera.compile(BANK).run_all([flat]).bad
    assert bad.reason == "`txn` has 3 attributes, not 0; they stand under `data`"
