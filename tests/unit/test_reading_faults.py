"""This module shows that one meaning of an input holds however it is read: what is bad, what decides, what is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.cli.main import app

ONE = "EVENT a(x: int); p(x) <- i: a(x);"
TWO = "EVENT a(x: int, y: int); p(x) <- i: a(x, _);"
TWICE = '{"event":"a","time":2,"data":{"y":1,"y":2}}'


def run(folder: Path, program: str, given: str | bytes, name: str = "in.jsonl", *options: str) -> Result:
    """A run of the command over one file."""
    (folder / "p.eq").write_text(program, encoding="utf-8")
    (folder / name).write_bytes(given if isinstance(given, bytes) else given.encode())
    dead = ["--dead-letter", str(folder / "dead.jsonl")]
    command = ["run", str(folder / "p.eq"), "--engine", "local", "--input", str(folder / name), *dead, *options]
    return CliRunner().invoke(app, command)


def letters(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "dead.jsonl").read_text(encoding="utf-8").splitlines()]


# ---- types that no rule reads ------------------------------------------------------------------------------------

UNREAD = [
    '{"event":"zz","time":"2026-03-01T00:00:00Z","data":{"x":1,"x":2}}',
    '{"event":"a","time":5,"data":[1]}',
]


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_what_no_rule_reads_is_never_bad_and_says_how_times_are_written(tmp_path: Path, engine: str) -> None:
    found = ephemera.compile(ONE).run_all(UNREAD, engine=engine)
    assert found.answers == [{"event": "p", "time": "1970-01-01T00:00:05Z", "data": [1]}]
    assert found.bad == []
    result = run(tmp_path, ONE, "\n".join(UNREAD), "in.jsonl", "--engine", engine)
    assert [json.loads(line) for line in result.stdout.splitlines()] == found.answers
    assert letters(tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        '{"event":"zz","data":[1]}',
        '{"event":"zz","time":true,"data":[1]}',
        '{"event":"zz","time":[2,1]}',
        '{"event":"zz","time":"never","data":{"x":1,"x":2}}',
    ],
)
def test_without_a_time_it_is_nothing_at_all(tmp_path: Path, line: str) -> None:
    good = '{"event":"a","time":5,"data":[1]}'
    found = ephemera.compile(ONE).run_all([line, good])
    assert (found.answers, found.bad) == ([{"event": "p", "time": 5, "data": [1]}], [])
    result = run(tmp_path, ONE, f"{line}\n{good}\n")
    assert [json.loads(one) for one in result.stdout.splitlines()] == found.answers
    assert letters(tmp_path) == []


def test_so_it_is_in_csv_and_in_tables(tmp_path: Path) -> None:
    result = run(tmp_path, ONE, "event,time,x\nzz,never,1\nzz,,2\na,5,1\n", "in.csv")
    assert result.stdout == '{"event": "p", "time": 5, "data": [1]}\n'
    assert letters(tmp_path) == []
    table = pa.table({"event": ["zz", "zz", "a"], "time": [None, 2**62, 5], "x": [1, 1, 1]})
    found = ephemera.compile(ONE).run_all(table)
    assert (len(found.answers), found.bad) == (1, [])


def test_its_time_still_counts_for_the_clock() -> None:
    program = "EVENT a(x: int); p(x) <- i: a(x), t: timer:datetime {{ minute { 30 } }}, i before t, {i, t} within 1h;"
    lines = ['{"event":"a","time":0,"data":[1]}', '{"event":"zz","time":3600,"data":{"x":1,"x":2}}']
    for engine in ("local", "oracle"):
        assert len(ephemera.compile(program).run(lines, engine=engine)) == 1


def test_what_a_program_declares_or_reads_is_bad_as_before() -> None:
    lines = ['{"event":"a","time":1,"data":{"x":1,"x":2}}', '{"event":"b","time":1,"data":{"x":1,"x":2}}', "{", "[]"]
    assert len(ephemera.compile("p(x) <- i: a(x); q(x) <- i: b(x);").run_all(lines).bad) == 4


# ---- keys that are missing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\n" + "\n".join(['{"event":"b","time":3}'] * 100)])
def test_bad_lines_say_nothing_of_keys(tmp_path: Path, end: str) -> None:
    result = run(tmp_path, TWO, TWICE + end, "in.jsonl", "--strict", "--progress")
    assert result.exit_code == 0, result.stderr
    assert "missing" not in result.stderr
    assert "never came: `a`" in result.stderr
    lines = '{"event":"a","time":1,"data":{"x":1,"x":1,"y":2}}\n{"event":"a","time":2,"data":{"y":2}}\n'
    result = run(tmp_path, TWO, lines, "in.jsonl", "--strict")
    assert result.exit_code == 1
    assert "a: `x` was missing in the only event" in result.stderr


def test_plain_objects_have_hints_too(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"time":1,"id":"a","quantitty":5}\n' * 3, encoding="utf-8")
    program = 'EVENT o(id: string, quantity: int); STREAM s FROM "in.jsonl" CARRIES o; big(i) <- o: o(i, _);'
    (tmp_path / "p.eq").write_text(program, encoding="utf-8")
    result = CliRunner().invoke(app, ["run", str(tmp_path / "p.eq"), "--engine", "local"])
    assert "did you mean `quantitty`, which they have?" in result.stderr


# ---- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["\ufeff\n", "\ufeff  \r\n\n", "\ufeff"])
def test_the_mark_that_files_begin_with_is_no_header(tmp_path: Path, first: str) -> None:
    result = run(tmp_path, ONE, f"{first}event,time,x\na,5,1\nb,5\n", "in.csv")
    assert result.stdout == '{"event": "p", "time": 5, "data": [1]}\n', result.stderr
    assert letters(tmp_path)[0]["reason"].startswith(f"in.csv, line {first.count(chr(10)) + 3}: ")


def packed(form: str, data: bytes) -> bytes:
    if form == "gz":
        return gzip.compress(data)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("form", ["gz", "zst"])
@pytest.mark.parametrize("name", ["in.jsonl", "in.csv"])
def test_what_is_packed_and_broken_is_wrong_input(tmp_path: Path, form: str, name: str) -> None:
    whole = packed(form, b'{"event":"a","time":1,"data":[1]}\n' * 1_000)
    for given in (whole[:-9], b"plain text"):
        result = run(tmp_path, ONE, given, f"{name}.{form}")
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"{name}.{form}: " in result.stderr
    (tmp_path / f"{name}.{form}").unlink()
    options = ["--engine", "local", "--input", str(tmp_path / f"{name}.{form}")]
    assert CliRunner().invoke(app, ["run", str(tmp_path / "p.eq"), *options]).exit_code == 2


@pytest.mark.parametrize(("form", "unpack"), [("gz", "gzip -dc"), ("zst", "zstd -dc")])
def test_live_what_is_packed_is_refused(tmp_path: Path, form: str, unpack: str) -> None:
    given = packed(form, b'{"event":"a","time":1,"data":[1]}\n')
    (tmp_path / "p.eq").write_text(ONE, encoding="utf-8")
    (tmp_path / f"in.jsonl.{form}").write_bytes(given)
    command = ["run", str(tmp_path / "p.eq"), "--mode", "stream", "--input", str(tmp_path / f"in.jsonl.{form}")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert unpack in result.stderr


# ---- what is said of times ---------------------------------------------------------------------------------------

ZONED, LOCAL, BAD = "2026-03-01T09:00:00Z", "2026-03-01T09:00:00", '"many"'


@pytest.mark.parametrize("is_good", [True, False])
@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "list"])
def test_only_good_events_say_that_times_had_no_zone(tmp_path: Path, name: str, is_good: bool) -> None:
    rows = [(ZONED, "1"), (LOCAL, "2" if is_good else BAD), (ZONED, "3"), (ZONED, BAD)]
    lines = [f'{{"event":"a","time":"{time}","data":[{value}]}}' for time, value in rows]
    if name == "list":
        assert any("without a zone" in note for note in ephemera.compile(ONE).run_all(lines).said) == is_good
        return
    cells = "event,time,x\n" + "".join(f"a,{time},{value.strip(chr(34))}\n" for time, value in rows)
    result = run(tmp_path, ONE, cells if name == "in.csv" else "\n".join(lines), name)
    assert len(letters(tmp_path)) == (1 if is_good else 2)
    assert ("without a zone" in result.stderr) == is_good


# ---- places and ways out -----------------------------------------------------------------------------------------


def test_dead_letters_of_files_name_the_place(tmp_path: Path) -> None:
    lines = ["", '{"event":"a","time":1,"data":[1]}', "", "{", '{"event":"a","time":1,"data":["x"]}']
    run(tmp_path, ONE, "\ufeff" + "\n".join(lines))
    assert [letter["reason"].partition(":")[0] for letter in letters(tmp_path)] == [
        "in.jsonl, line 4",
        "in.jsonl, line 5",
    ]
    many = ['{"event":"a","time":1,"data":[1]}'] * 50_000
    run(tmp_path, ONE, "\n".join([*many, "no", *many]))
    assert letters(tmp_path)[0]["reason"].startswith("in.jsonl, line 50001: ")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"event": ["a"] * 5, "time": [1, 2, None, 3, None], "x": [1] * 5}), sink, row_group_size=2)
    run(tmp_path, ONE, bytes(sink.getvalue()), "in.parquet")
    assert [letter["reason"].partition(":")[0] for letter in letters(tmp_path)] == [
        "in.parquet, row 3",
        "in.parquet, row 5",
    ]


@pytest.mark.parametrize(
    ("program", "line", "told"),
    [
        (ONE, '[{"event":"a","time":1,"data":[1]}]', "write each of its objects on a line of its own"),
        (ONE, '{"time":1,"x":5}', "`STREAM … FROM … CARRIES …;`"),
        (ONE, '{"event":"a","data":[1]}', "there is no `time`"),
        (f"{ONE[:17]}STREAM s CARRIES a TIME ts;{ONE[17:]}", '{"event":"a","data":[1]}', "there is no `ts`"),
    ],
)
def test_what_is_lacking_is_named_with_a_way_out(tmp_path: Path, program: str, line: str, told: str) -> None:
    assert run(tmp_path, program, line + "\n").exit_code == 0
    (letter,) = letters(tmp_path)
    assert told in letter["reason"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("in.tsv", b"event\ttime\tx\na\t1\t1\n", "name it .csv"),
        ("in.jsonl.bz2", b"BZh91AY&SY", "bzip2"),
        ("in.xlsx", b"PK\x03\x04rest", "save it as CSV"),
        ("in.jsonl", b"\x1f\x8brest", "name it .gz"),
    ],
)
def test_a_file_of_another_format_is_refused_by_its_name(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    result = run(tmp_path, ONE, content, name)
    assert result.exit_code == 1
    assert name in result.stderr
    assert told in result.stderr
