"""A program says where its answers go, and a run may say otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.cli.main import app
from ephemera.connect.written_places import AllBut, Destination, destinations

RULES = "EVENT a(x: int);\n\n{}\n\nb(x) <-\n    i: a(x);\nc(x) <-\n    i: a(x), x > 1;\n"


def run(folder: Path, declared: str, *given: str) -> Result:
    (folder / "p.eq").write_text(RULES.format(declared))
    lines = [json.dumps({"event": "a", "time": x, "data": [x]}) + "\n" for x in (1, 2)]
    (folder / "events.jsonl").write_text("".join(lines))
    command = ["run", str(folder / "p.eq"), "--engine", "local", "--input", str(folder / "events.jsonl"), *given]
    return CliRunner().invoke(app, command)


def test_what_is_named_goes_where_it_is_declared_and_the_rest_to_standard_output(tmp_path: Path) -> None:
    done = run(tmp_path, 'WRITE c TO "c.jsonl";')
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["b", "b"]
    assert json.loads((tmp_path / "c.jsonl").read_text()) == {"event": "c", "time": 2, "data": [2]}


def test_a_run_that_names_places_writes_everything_to_each_of_them(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.csv"
    done = run(tmp_path, 'WRITE c TO "c.jsonl";', "--output", str(one), "--output", str(other))
    assert (done.exit_code, done.stdout) == (0, ""), done.output
    assert len(one.read_text().splitlines()) == 3
    assert len(other.read_text().splitlines()) == 4
    assert not (tmp_path / "c.jsonl").exists()


def test_spark_refuses_what_is_written_in_this_process_only(tmp_path: Path) -> None:
    done = run(tmp_path, 'WRITE c TO "c.jsonl";', "--engine", "spark")
    assert (done.exit_code, "add `--engine local`" in done.output) == (2, True)


def test_only_what_rules_derive_can_be_written() -> None:
    with pytest.raises(ephemera.ProgramError, match=r"`d` is to be written, and no rule derives it"):
        ephemera.compile(RULES.format('WRITE d TO "d.jsonl";'))
    with pytest.raises(ephemera.ProgramError, match="is written to nowhere"):
        ephemera.compile(RULES.format('WRITE b TO "";'))


def test_a_declaration_has_one_layout(tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text(RULES.format('WRITE   b ,c TO  "x.jsonl" ;'))
    CliRunner().invoke(app, ["fmt", str(tmp_path / "p.eq")])
    assert 'WRITE b, c TO "x.jsonl";\n' in (tmp_path / "p.eq").read_text()


def test_places_are_relative_to_their_program_and_addresses_are_not() -> None:
    program = ephemera.compile(RULES.format('WRITE b TO "b.jsonl";\nWRITE c TO "kafka://127.0.0.1/c";'))
    assert destinations([], [program.catalogue], [Path("/rules")]) == [
        Destination("/rules/b.jsonl", frozenset({(0, "b")})),
        Destination("kafka://127.0.0.1/c", frozenset({(0, "c")})),
        Destination(None, AllBut(frozenset({(0, "b"), (0, "c")}))),
    ]


def test_whatever_has_no_name_before_a_run_goes_to_standard_output(tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text(
        "EVENT a(x: int, kind: string);\n"
        'WRITE c TO "c.jsonl";\n'
        "c(x) <- i: a(x, k), x > 1;\n"
        "DETECT var K { x { var X } } ON event i: a(var X, var K) END\n"
        'RAISE to(recipient="desk", transport="console") { bell { x { var X } } } ON event i: a(var X, var K) END\n'
    )
    lines = [json.dumps({"event": "a", "time": x, "data": [x, f"d{x}"]}) + "\n" for x in (1, 2)]
    (tmp_path / "events.jsonl").write_text("".join(lines))
    command = ["run", str(tmp_path / "p.eq"), "--engine", "local", "--input", str(tmp_path / "events.jsonl")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["bell", "d1", "bell", "d2"]
    assert json.loads((tmp_path / "c.jsonl").read_text())["event"] == "c"
