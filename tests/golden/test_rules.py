"""This module shows what becomes of every example program: strata, dependencies and normal forms, as golden files.

`python -m tests.golden.test_rules` writes the files anew; read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ephemera.base.diagnostic import render_text
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.program import Program

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.eq"))
GOLDEN = Path(__file__).parent / "rules"


def explained(path: Path) -> str:
    checked = check(Source(path.name, path.read_text(encoding="utf-8")))
    assert not checked.report.diagnostics, render_text(checked.report)
    return Program(checked).explain("rules") + "\n"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_rules_are_as_written(path: Path) -> None:
    assert explained(path) == (GOLDEN / f"{path.stem}.txt").read_text(encoding="utf-8")


def test_every_golden_file_has_its_program() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {path.stem for path in PROGRAMS}


if __name__ == "__main__":
    for program in PROGRAMS:
        (GOLDEN / f"{program.stem}.txt").write_text(explained(program), encoding="utf-8")
