"""This module runs programs whose streams read their own files from the command line, in one process."""

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
from ephemera.connect.declared_streams import declared_places, overlap

PROGRAM = """
TIME UNIT 1 min;
EVENT txn(card: string FROM "card_no", amount: float);
EVENT login(user: string FROM "who", card: string);
EVENT out(user: string);
STREAM cards FROM "cards.csv.gz" CARRIES txn TIME ts;
STREAM logins FROM "logins.parquet" CARRIES login;
STREAM outs FROM "outs.jsonl" CARRIES out TIME at;
own(u, c, a) <- l: login(u, c), t: txn(c, a), l before t, {l, t} within 10;
left(u) <- o: out(u);
"""
ANSWERS = [
    {"event": "own", "time": [1, 5], "data": ["x", "a", 3.5]},
    {"event": "own", "time": [2, 6], "data": ["y", "b", 4.5]},
    {"event": "left", "time": 9, "data": ["x"]},
    {"event": "left", "time": 10, "data": ["y"]},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = b"ts,more,card_no,amount\n5,,a,3.5\n6,,b,4.5\n7,,a,much\n"
    (tmp_path / "cards.csv.gz").write_bytes(gzip.compress(text))
    pq.write_table(pa.table({"time": [1, 2], "who": ["x", "y"], "card": ["a", "b"]}), tmp_path / "logins.parquet")
    lines: list[Any] = [{"at": 9, "user": "x"}, {"event": "out", "at": 10, "data": ["y"]}, {"user": "z"}]
    (tmp_path / "outs.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return tmp_path


def run(folder: Path, *args: str, program: str = PROGRAM, engine: str = "local") -> Result:
    (folder / "p.eq").write_text(program, encoding="utf-8")
    return CliRunner().invoke(app, ["run", str(folder / "p.eq"), "--engine", engine, *args])


def answers(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_each_stream_reads_its_own_files(folder: Path, engine: str) -> None:
    dead = folder / "dead.jsonl"
    result = run(folder, "--dead-letter", str(dead), engine=engine)
    assert result.exit_code == 0, result.stderr
    assert answers(result) == ANSWERS
    letters = [json.loads(line)["reason"] for line in dead.read_text(encoding="utf-8").splitlines()]
    assert 'cards.csv.gz, line 4: `amount` is float, and "much" is not' in letters
    (lacking,) = (letter for letter in letters if "a time is a number" in letter)
    assert ".jsonl, line " in lacking
    assert lacking.endswith("; there is no `at`")
    assert len(letters) == 2


def test_programs_in_one_run_read_what_they_declare(folder: Path) -> None:
    (folder / "other.eq").write_text(
        'EVENT quit(user: string); STREAM q FROM "quits.csv" CARRIES quit; gone(u) <- q: quit(u);', encoding="utf-8"
    )
    (folder / "quits.csv").write_text("time,user\n4,z\n", encoding="utf-8")
    result = run(folder, str(folder / "other.eq"))
    assert result.exit_code == 0, result.stderr
    assert answers(result)[0] == {"event": "gone", "time": 4, "data": ["z"]}
    assert len(answers(result)) == len(ANSWERS) + 1


@pytest.mark.parametrize(
    ("old", "new", "told", "code"),
    [
        ('"card_no"', '"card_nr"', "no column `card_nr` (for `card`) in cards.csv.gz; did you mean `card_no`?", 1),
        ('string FROM "who"', "string", "no column `user` in logins.parquet\n", 1),
        ("TIME ts", "TIME when", "cards.csv.gz: the stream declares `TIME when`, and there is no such column", 1),
        ("cards.csv.gz", "card.csv.gz", "card.csv.gz: No such file or directory", 2),
        ("logins.parquet", "cards.csv.gz", "cards.csv.gz: the table has no column `event`", 1),
    ],
)
def test_what_is_wrong_is_told_before_the_run(folder: Path, old: str, new: str, told: str, code: int) -> None:
    result = run(folder, program=PROGRAM.replace(old, new))
    assert result.exit_code == code
    assert told in result.stderr
    assert not result.stdout


def test_a_table_that_is_named_has_to_tell_its_types(folder: Path) -> None:
    (folder / "new.csv").write_text("ts,card_no,amount\n5,a,3.5\n", encoding="utf-8")
    result = run(folder, "--input", str(folder / "new.csv"))
    assert result.exit_code == 1
    assert "let one stream alone read it that carries one type: `STREAM … FROM … CARRIES …;`" in result.stderr


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_a_column_that_an_attribute_is_read_from_names_no_type(tmp_path: Path, form: str, engine: str) -> None:
    rows = [{"time": 1, "event": "buy", "page": "a"}, {"time": 2, "event": "click", "page": "b"}]
    match form:
        case "csv":
            (tmp_path / "in.csv").write_text("time,event,page\n1,buy,a\n2,click,b\n", encoding="utf-8")
        case "parquet":
            pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
        case _:
            (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    program = f"""EVENT click(kind: string FROM "event", page: string); EVENT buy(page: string);
        STREAM clicks FROM "in.{form}" CARRIES click; seen(k, p) <- c: click(k, p); bought(p) <- b: buy(p);"""
    result = run(tmp_path, program=program, engine=engine)
    assert result.exit_code == 0, result.stderr
    assert [(a["event"], a["data"]) for a in answers(result)] == [("seen", ["buy", "a"]), ("seen", ["click", "b"])]


def test_a_path_that_a_stream_declares_is_read_as_it_says(folder: Path) -> None:
    named = [f"--input={folder / name}" for name in ("cards.csv.gz", "logins.parquet")]
    result = run(folder, *named)
    assert result.exit_code == 0, result.stderr
    assert answers(result) == ANSWERS[:2]


def test_a_program_that_declares_no_place_reads_what_the_others_declare(folder: Path) -> None:
    text = "EVENT login(who: string, card: string); came(w) <- l: login(w, c);"
    (folder / "other.eq").write_text(text, encoding="utf-8")
    program = PROGRAM.replace('STREAM cards FROM "cards.csv.gz"', "STREAM cards")
    program = program.replace('STREAM outs FROM "outs.jsonl"', "STREAM outs")
    result = run(folder, str(folder / "other.eq"), program=program)
    assert result.exit_code == 0, result.stderr
    assert [answer["data"] for answer in answers(result)] == [["x"], ["y"]]


def test_live_each_stream_reads_its_own_lines(folder: Path) -> None:
    lines: dict[str, list[dict[str, object]]] = {
        "cards": [{"ts": 5, "card_no": "a", "amount": 3.5}, {"ts": 6, "card_no": "b", "amount": 4.5}, {"ts": 7}],
        "logins": [{"time": 1, "who": "x", "card": "a"}, {"time": 2, "data": {"who": "y", "card": "b"}}],
    }
    for name, objects in lines.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects), encoding="utf-8")
    program = PROGRAM.replace("cards.csv.gz", "cards.jsonl").replace("logins.parquet", "logins.jsonl")
    result = run(folder, "--mode", "stream", program=program)
    assert result.exit_code == 0, result.stderr
    assert sorted(answers(result), key=str) == sorted(ANSWERS, key=str)
    assert "1 bad" in result.stderr


# ---- places that share files ---------------------------------------------------------------------------------------

SHARED = """
EVENT o(id: string, qty: int);
EVENT r(id: string, qty: int);
STREAM os FROM "data/*.csv" CARRIES o;
STREAM rs FROM "{}" CARRIES r;
seen(i) <- o: o(i, q);
back(i) <- o: r(i, q);
"""


@pytest.fixture
def overlapping(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "o.csv").write_text("time,id,qty\n1,order,5\n", encoding="utf-8")
    (tmp_path / "data" / "r.csv").write_text("time,id,qty\n2,refund,5\n", encoding="utf-8")
    (tmp_path / "link.csv").symlink_to("data/r.csv")
    return tmp_path


@pytest.mark.parametrize("engine", ["local", "oracle"])
@pytest.mark.parametrize("place", ["data/r.csv", "link.csv", "data/../data/r.csv", "data/r*"])
def test_what_two_streams_read_has_to_say_what_it_is(overlapping: Path, engine: str, place: str) -> None:
    program = SHARED.format(place)
    result = run(overlapping, program=program, engine=engine)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "r.csv" in result.stderr
    assert "`event`" in result.stderr
    (overlapping / "data" / "r.csv").write_text("event,time,id,qty\nr,2,refund,5\n", encoding="utf-8")
    result = run(overlapping, program=program, engine=engine)
    expected = [{"event": "seen", "time": 1, "data": ["order"]}, {"event": "back", "time": 2, "data": ["refund"]}]
    assert answers(result) == expected, result.stderr
    named = run(overlapping, "--input", str(overlapping / "data"), program=program, engine=engine)
    assert answers(named) == expected, named.stderr


def test_live_places_share_no_files(overlapping: Path) -> None:
    result = run(overlapping, "--mode", "stream", program=SHARED.format("data/r.csv"), engine="spark")
    assert result.exit_code == 2
    assert "hold the same files, which would be read as different types" in result.stderr
    catalogue = ephemera.compile(SHARED.format("x/new.csv").replace("data/*", "x/*")).catalogue
    assert overlap(declared_places([catalogue], [overlapping])) is not None, "the file is not there yet"
    apart = ephemera.compile(SHARED.format("y/r.csv")).catalogue
    assert overlap(declared_places([apart], [overlapping])) is None


@pytest.mark.parametrize("engine", ["local", "oracle"])
@pytest.mark.parametrize("declared", ["plain*.jsonl", ".", "plain.jsonl", "?lain*.jsonl"])
def test_a_file_of_a_declared_place_is_read_as_its_stream_says(tmp_path: Path, engine: str, declared: str) -> None:
    (tmp_path / "plain.jsonl").write_text('{"time": 1, "id": "a"}\n', encoding="utf-8")
    (tmp_path / "plain2.jsonl").write_text('{"time": 2, "id": "b"}\n', encoding="utf-8")
    program = f'EVENT o(id: string); STREAM s FROM "{declared}" CARRIES o; seen(i) <- o: o(i);'
    result = run(tmp_path, "--input", str(tmp_path / "plain.jsonl"), program=program, engine=engine)
    assert answers(result) == [{"event": "seen", "time": 1, "data": ["a"]}], result.stderr
    if engine == "local":
        live = run(tmp_path, "--mode", "stream", "--input", str(tmp_path / "plain.jsonl"), program=program)
        assert answers(live) == [{"event": "seen", "time": 1, "data": ["a"]}], live.stderr
