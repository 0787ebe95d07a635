from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import ephemera
from ephemera.algebra.attributes import variable
from ephemera.cli.main import app
from ephemera.physical.placement import WHOLE

EVENTS = "EVENT a(x: int, y: string, z: int); EVENT b(x: int);\n"


@pytest.mark.parametrize(
    ("rules", "columns"),
    [
        ("p(x) <- i: a(x, _, _);", {"x"}),
        ("p(_x) <- i: a(_x, _, _);", {"x"}),
        ("p(_1) <- i: a(_1, _, _);", {"x"}),
        ("p() <- i: a(_, _, _1), _1 > 3;", {"z"}),
        ("p() <- i: a(_1, _, _), j: b(_1), {i, j} within 3;", {"x"}),
        ("p(x) <- i: a(x, y, _);", {"x", "y"}),
        ("p(count(x)) <- i: b(_), w: extend(i, 3), while w: collect a(x, _, _);", {"x", "y", "z"}),
    ],
)
def test_only_what_stands_for_nothing_is_not_read(rules: str, columns: set[str]) -> None:
    found = ephemera.compile(EVENTS + rules)._compiled.physical.rewritten.columns
    assert found is not None
    assert found["a"] == columns


@pytest.mark.parametrize(
    ("rules", "key"),
    [
        ("p(x) <- i: a(x, _, _);", "x"),
        ("p(z) <- i: a(x, y, z);", "z"),
        ("p() <- i: a(_, _, _);", WHOLE),
        ("p(_1) <- i: a(_1, _, _);", variable("_1")),
    ],
)
def test_rules_are_cut_by_what_is_read_and_shown(rules: str, key: str) -> None:
    program = ephemera.compile(EVENTS + rules)
    assert program._compiled.physical.stages.placed["p"].key == key


def test_explain_shows_how_a_program_runs(tmp_path: Path) -> None:
    path = tmp_path / "p.eq"
    path.write_text(EVENTS + "p(x) <- i: a(x, _, 3), j: b(x), {i, j} within 2 sec;", encoding="utf-8")
    shown = CliRunner().invoke(app, ["explain", str(path), "--stage", "physical"])
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "group 1  (level 1, in all partitions)",
        "  receives a from the input, by x",
        "  receives b from the input, by x",
        "  p  (rule 1)",
        "    cut by x",
        "    i is new: search j by same x, j.e >= i.e - 2s and <= i.e + 2s",
        "    j is new: search i by same x, i.e >= j.e - 2s and <= j.e + 2s",
        "    expected in a second: 0.0004 pairs, 0.0004 answers",
        "",
        "lane of the input",
        "  runs p",
        "  keeps a(v1, v2, 3) for 2s: about 0.02 tuples, 0.8 bytes",
        "  keeps b(v1) for 2s: about 2 tuples, 64 bytes",
        "",
        "expected to come",
        "  a: 1 a second (assumed)",
        "  b: 1 a second (assumed)",
        "",
        "read",
        "  a: by columns (x, z), where z = 3",
        "  b: by columns (x)",
    ]
    plain = json.loads(
        CliRunner().invoke(app, ["explain", str(path), "--stage", "physical", "--format", "json"]).stdout
    )
    (group,) = plain["groups"]
    assert group["rules"][0]["orders"][0] == {
        "new": "i",
        "tests": [],
        "then": [
            {
                "search": "j",
                "by": ["x"],
                "stamp": "j.e",
                "ranges": [{"of": "i.e", "before": 2_000_000, "after": 2_000_000}],
                "tests": [],
                "equations": [],
            }
        ],
    }
    assert plain["reading"][0]["filters"] == [{"z": 3}]
