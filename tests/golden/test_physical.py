"""This module shows how every example program runs: groups, levels, joins, exchanges and reading, as golden files.

`python -m tests.golden.test_physical` writes the files anew; read the difference before you commit it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ephemera
from ephemera.program import Program

ROOT = Path(__file__).parents[2]
OWN = Path(__file__).parent / "physical"
PROGRAMS = [
    *sorted((ROOT / "tests" / "programs").glob("*.eq")),
    *sorted(OWN.glob("*.eq")),
    ROOT / "examples" / "shop.eq",
]


def program(path: Path) -> Program:
    return ephemera.compile(path.read_text(encoding="utf-8"), path.name)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_run_as_written(path: Path) -> None:
    assert program(path).explain("physical") + "\n" == (OWN / f"{path.stem}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_rule_has_its_group(path: Path) -> None:
    one = program(path)
    plain = one.explain_json("physical")
    assert plain == json.loads(json.dumps(plain))
    placed = [member["rule"] for group in plain["groups"] for rule in group["rules"] for member in rule["rules"]]
    assert sorted(set(placed)) == list(range(1, len(one._rules.resolved.rules) + 1))
    assert plain["levels"] == max(group["level"] for group in plain["groups"])
    for group in plain["groups"]:
        for rule in group["rules"]:
            assert (rule["cut_by"] is None) == (rule["because"] is not None)


def test_every_golden_file_has_its_program() -> None:
    assert {path.stem for path in OWN.glob("*.txt")} == {path.stem for path in PROGRAMS}


if __name__ == "__main__":
    for path in PROGRAMS:
        (OWN / f"{path.stem}.txt").write_text(program(path).explain("physical") + "\n", encoding="utf-8")
