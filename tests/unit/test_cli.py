"""This module shows the commands as users script against them: exit codes, streams, JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from ephemera.cli.main import app

BOUNDED = """\
EVENT order(id: string);
EVENT shipped(id: string);
late(id) <- o: order(id), w: extend(o, 6h), while w: not shipped(id);
"""
GOOD = "late(id) <- o: order(id), w: extend(o, 6h), while w: not shipped(id);\n"
BAD = "late(idd) <- o: order(id), w: extend(o, 6h), while w: not shipped(id);\n"
UGLY = "late( id )<-o:order(id),w:extend(o,6 hours),while w:not shipped(id); -- why\n"


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_check_is_silent_about_a_good_program(runner: CliRunner, tmp_path: Path) -> None:
    result = runner.invoke(app, ["check", write(tmp_path, "good.eq", BOUNDED)])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_check_tells_the_place_on_standard_error(runner: CliRunner, tmp_path: Path) -> None:
    path = write(tmp_path, "bad.eq", BAD)
    result = runner.invoke(app, ["check", path])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"{path}:1:6" in result.stderr
    assert "unbound-variable" in result.stderr


def test_check_reads_several_programs_and_fails_if_one_does(runner: CliRunner, tmp_path: Path) -> None:
    good, bad = write(tmp_path, "good.eq", BOUNDED), write(tmp_path, "bad.eq", BAD)
    result = runner.invoke(app, ["check", good, bad])
    assert result.exit_code == 1
    assert "good.eq" not in result.stderr


def test_check_speaks_json_to_machines(runner: CliRunner, tmp_path: Path) -> None:
    path = write(tmp_path, "bad.eq", BAD)
    result = runner.invoke(app, ["check", "--format", "json", path])
    assert result.exit_code == 1
    (entry,) = json.loads(result.stdout)
    assert entry["code"] == "unbound-variable"
    assert (entry["path"], entry["line"], entry["column"], entry["end_column"]) == (path, 1, 6, 9)
    assert entry["help"][0]["edits"] == [{"start": 5, "end": 8, "text": "id"}]
    good = runner.invoke(app, ["check", "--format", "json", write(tmp_path, "good.eq", BOUNDED)])
    assert (good.exit_code, json.loads(good.stdout)) == (0, [])


def test_check_reads_standard_input(runner: CliRunner) -> None:
    result = runner.invoke(app, ["check", "-"], input=BAD)
    assert result.exit_code == 1
    assert "<stdin>:1:6" in result.stderr


def test_a_missing_file_is_a_mistake_of_the_command_line(runner: CliRunner, tmp_path: Path) -> None:
    result = runner.invoke(app, ["check", str(tmp_path / "none.eq")])
    assert result.exit_code == 2
    assert "none.eq" in result.stderr


def test_a_missing_file_does_not_hide_what_was_found_in_others(runner: CliRunner, tmp_path: Path) -> None:
    bad, missing = write(tmp_path, "bad.eq", BAD), str(tmp_path / "none.eq")
    for paths in ([bad, missing], [missing, bad]):
        result = runner.invoke(app, ["check", "--format", "json", *paths])
        assert result.exit_code == 2
        assert [entry["code"] for entry in json.loads(result.stdout)] == ["unbound-variable"]
        assert "none.eq" in result.stderr
        for command in (["check"], ["run", "--engine", "local", "--input", "-"]):
            result = runner.invoke(app, [*command, *paths])
            assert result.exit_code == 2
            assert "none.eq" in result.stderr
            assert "error[unbound-variable]" in result.stderr


def test_fmt_formats_what_it_can(runner: CliRunner, tmp_path: Path) -> None:
    wrong, missing = write(tmp_path, "wrong.eq", "late(id) <- o order(id);\n"), str(tmp_path / "none.eq")
    ugly = write(tmp_path, "ugly.eq", UGLY)
    result = runner.invoke(app, ["fmt", wrong, missing, ugly])
    assert result.exit_code == 2
    assert "error[syntax]" in result.stderr
    assert "none.eq" in result.stderr
    assert Path(ugly).read_text() == GOOD.rstrip() + "  -- why\n"


def test_fmt_has_no_format(runner: CliRunner) -> None:
    assert runner.invoke(app, ["fmt", "-", "--format", "json"], input=UGLY).exit_code == 2


@pytest.mark.parametrize("command", ["check", "explain", "run --engine local"])
def test_unbounded_programs_can_be_allowed(runner: CliRunner, tmp_path: Path, command: str) -> None:
    path = write(tmp_path, "good.eq", GOOD)
    result = runner.invoke(app, [*command.split(), path, "--allow-unbounded"], input="")
    assert (result.exit_code, result.stderr) == (0, "")


def test_check_refuses_what_would_be_kept_forever(runner: CliRunner, tmp_path: Path) -> None:
    result = runner.invoke(app, ["check", write(tmp_path, "good.eq", GOOD)])
    assert result.exit_code == 1
    assert "error[unbounded-relevance]: shipped would be kept forever" in result.stderr


def test_explain_warns_of_what_would_be_kept_forever_and_shows_it(runner: CliRunner, tmp_path: Path) -> None:
    result = runner.invoke(app, ["explain", write(tmp_path, "good.eq", GOOD), "--stage", "relevance"])
    assert result.exit_code == 0
    assert "warning[unbounded-relevance]" in result.stderr
    assert "shipped (absent): kept forever" in result.stdout


@pytest.mark.parametrize(("points", "inputs"), [("rules", ["C", "D", "E"]), ("joins", ["F[c,d]", "E"])])
def test_explain_prints_relevance_for_machines(
    runner: CliRunner, tmp_path: Path, points: str, inputs: list[str]
) -> None:
    path = write(
        tmp_path,
        "paper.eq",
        "TIME UNIT 1 hour;\n"
        "F(x) <- c: C(x), d: D(x), e: E(x), c before d, {c, d} within 4, d before e, {d, e} within 1;\n"
        "C(x) <- a: A(x), b: B(x), {a, b} within 2;\n",
    )
    result = runner.invoke(app, ["explain", path, "--stage", "relevance", "--format", "json", "--points", points])
    entries = json.loads(result.stdout)
    assert [e["input"] for e in entries if e["point"] == "F"] == inputs
    assert entries[0] == {
        "point": "C",
        "input": "A",
        "as": "a",
        "keep_while": [
            {"stamp": "a.s", "op": ">=", "within": 7_200_000_000},
            {"stamp": "a.e", "op": ">=", "within": 7_200_000_000},
        ],
        "minimal": [{"stamp": "a.s", "op": ">=", "within": 7_200_000_000}],
    }


def test_explain_prints_bounds(runner: CliRunner, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "bounds.eq",
        "EVENT a(x: int); EVENT b(x: int); STREAM s CARRIES a WATERMARK 2 sec IDLE 1 min;\n"
        "late(x) <- i: a(x), w: extend(i, 1h), while(incl,excl) w: not b(x);\n",
    )
    shown = runner.invoke(app, ["explain", path, "--stage", "bounds"]).stdout
    assert "moves bound(s) to just before its end - 2s" in shown
    assert "certain up to min(bound(s) + 1h, bound(input) + 1us)" in shown
    entries = json.loads(runner.invoke(app, ["explain", path, "--stage", "bounds", "--format", "json"]).stdout)
    assert [e["certain_up_to"] for e in entries if e.get("stream") == "late"] == [
        [
            {"source": "s", "shift": 3_600_000_000, "strict": False},
            {"source": None, "shift": 0, "strict": True},
        ]
    ]


def test_explain_prints_plans(runner: CliRunner, tmp_path: Path) -> None:
    path = write(tmp_path, "good.eq", BOUNDED)
    shown = runner.invoke(app, ["explain", path, "--stage", "plan"]).stdout
    assert "anti-semi-join where w.s <= $1.s and $1.e <= w.e" in shown
    plain = json.loads(runner.invoke(app, ["explain", path, "--stage", "plan", "--format", "json"]).stdout)
    assert [p["point"] for p in plain if p["kind"] == "rule"] == ["late"]


@pytest.mark.parametrize("arguments", [["check"], ["explain", "--stage", "nonsense", "x.eq"], ["nonsense"]])
def test_a_wrong_command_line_exits_with_2(runner: CliRunner, arguments: list[str]) -> None:
    assert runner.invoke(app, arguments).exit_code == 2


def test_text_that_is_not_utf_8_is_told_with_its_place(runner: CliRunner, tmp_path: Path) -> None:
    path = tmp_path / "latin.eq"
    path.write_bytes(GOOD.encode() + b"-- caf\xe9\n")
    for command in (["check"], ["fmt"], ["explain"]):
        result = runner.invoke(app, [*command, str(path)])
        assert result.exit_code == 1
        assert f"{path}:2:7" in result.stderr
        assert "not UTF-8: byte 0xe9" in result.stderr


def test_a_byte_order_mark_is_no_mistake(runner: CliRunner, tmp_path: Path) -> None:
    path = tmp_path / "bom.eq"
    path.write_bytes(b"\xef\xbb\xbf" + BOUNDED.encode())
    assert runner.invoke(app, ["check", str(path)]).exit_code == 0


def test_too_large_a_program_is_refused(runner: CliRunner, tmp_path: Path) -> None:
    result = runner.invoke(app, ["check", write(tmp_path, "large.eq", GOOD + " " * 5_000_000)])
    assert result.exit_code == 1
    assert "error[too-large]" in result.stderr


def test_fmt_writes_the_file_anew(runner: CliRunner, tmp_path: Path) -> None:
    path = write(tmp_path, "ugly.eq", UGLY)
    assert runner.invoke(app, ["fmt", "--check", path]).exit_code == 1
    assert runner.invoke(app, ["fmt", path]).exit_code == 0
    assert Path(path).read_text() == GOOD.rstrip() + "  -- why\n"
    assert runner.invoke(app, ["fmt", "--check", path]).exit_code == 0


def test_fmt_leaves_a_wrong_program_as_it_is(runner: CliRunner, tmp_path: Path) -> None:
    path = write(tmp_path, "wrong.eq", "late(id) <- o order(id);\n")
    result = runner.invoke(app, ["fmt", path])
    assert result.exit_code == 1
    assert "error[syntax]" in result.stderr
    assert Path(path).read_text() == "late(id) <- o order(id);\n"


def test_fmt_filters_standard_input(runner: CliRunner) -> None:
    result = runner.invoke(app, ["fmt", "-"], input=UGLY)
    assert result.stdout == GOOD.rstrip() + "  -- why\n"


def test_explain_shows_strata_and_dependencies(runner: CliRunner, tmp_path: Path) -> None:
    path = write(
        tmp_path, "two.eq", GOOD + "busy(count(i)) <- l: late(i), w: extend-begin(l, 1h), while w: collect order(i);\n"
    )
    result = runner.invoke(app, ["explain", path, "--stage", "rules", "--format", "json"])
    first, second = json.loads(result.stdout)
    assert (first["head"], first["stratum"], second["stratum"]) == ("late", 1, 2)
    assert first["depends"] == [
        {"event": "order", "how": ["temporal", "positive"], "rules": []},
        {"event": "shipped", "how": ["negative"], "rules": []},
    ]
    assert second["depends"][0] == {"event": "late", "how": ["grouping", "temporal", "positive"], "rules": [1]}


def test_explain_shows_the_tree(runner: CliRunner, tmp_path: Path) -> None:
    path = write(tmp_path, "good.eq", GOOD)
    text = runner.invoke(app, ["explain", path, "--stage", "syntax"]).stdout
    assert text.startswith("Program\n")
    tree = json.loads(runner.invoke(app, ["explain", path, "--stage", "syntax", "--format", "json"]).stdout)
    assert tree["node"] == "Program"
    assert tree["statements"][0]["head"]["label"]["name"] == "late"


def test_the_installed_command_runs_and_colours_only_terminals(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ephemera", "check", write(tmp_path, "bad.eq", BAD)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr
    assert done.stderr.startswith("error[unbound-variable]: the variable `idd` in the head has no value\n")


# ---- characters --------------------------------------------------------------------------------------------

FOREIGN = "über(ä) <- o: order(ä); -- ö\n"


def in_ascii(*arguments: str, given: str = "") -> subprocess.CompletedProcess[bytes]:
    """The command where standard streams speak ASCII only."""
    return subprocess.run(
        [sys.executable, "-m", "ephemera", *arguments],
        input=given.encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )


def test_results_are_utf_8_on_every_terminal(tmp_path: Path) -> None:
    path = write(tmp_path, "foreign.eq", FOREIGN)
    assert in_ascii("fmt", "-", given=FOREIGN).stdout.decode() == "über(ä) <- o: order(ä);  -- ö\n"
    assert "rule 1  über(ä)" in in_ascii("explain", path).stdout.decode()
    assert "über" in in_ascii("explain", "--format", "json", path).stdout.decode()
    answers = in_ascii(
        "run", path, "--engine", "local", given='{"event": "order", "time": 1, "data": ["ß"]}'
    ).stdout.decode()
    assert json.loads(answers)["event"] == "über"
    assert "ß" in answers


def test_diagnostics_come_out_on_every_terminal(tmp_path: Path) -> None:
    path = write(tmp_path, "foreign.eq", FOREIGN.replace("(ä) <-", "(ö) <-"))
    shown = in_ascii("check", path)
    assert (shown.returncode, shown.stdout) == (1, b"")
    assert b"the variable `\\xf6` in the head has no value" in shown.stderr
    entries = json.loads(in_ascii("check", "--format", "json", path).stdout)
    assert entries[0]["message"] == "the variable `ö` in the head has no value"
    assert in_ascii("check", "--help").returncode == 0


@pytest.mark.parametrize(
    ("label", "columns"),
    [
        ("order", 5),
        ("ö", 1),
        ("注文", 4),
        ("\N{FULLWIDTH LATIN CAPITAL LETTER A}", 2),
        ("\N{SHOPPING TROLLEY}", 2),
        ("n\N{COMBINING TILDE}o", 2),
        ("e\N{COMBINING ENCLOSING CIRCLE}", 1),
    ],
)
def test_carets_stand_below_what_they_mean(runner: CliRunner, label: str, columns: int) -> None:
    shown = runner.invoke(app, ["check", "-"], input=f"p(x) <- `{label}`(x), 名前 > 1;\n").stderr.splitlines()
    line = next(k for k, text in enumerate(shown) if text.startswith("1 | "))
    lead = " " * (len("p(x) <- ``(x), ") + columns)
    assert shown[line + 1] == f"  | {lead}^^^^"


def test_long_lines_are_cut_by_the_columns_they_take(runner: CliRunner) -> None:
    for character in ("a", "名"):
        name = character * 300
        shown = runner.invoke(app, ["check", "-"], input=f"p({name}) <- o: a({name}), b > 1, c({name});\n").stderr
        quoted, caret = next(
            (text.removeprefix("1 | "), mark.removeprefix("  | "))
            for text, mark in pairwise(shown.splitlines())
            if text.startswith("1 | ")
        )
        wide = 2 if character == "名" else 1
        columns = [wide if c == character else 1 for c in quoted]
        assert 150 < sum(columns) <= 162
        assert sum(columns[: quoted.index("b > 1")]) == caret.index("^")
