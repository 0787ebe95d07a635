"""This module shows every diagnostic: code, place and words, and that its help leads to a program that passes."""

from __future__ import annotations

import pytest

from ephemera.base.diagnostic import Code, render_text
from ephemera.base.span import Source
from ephemera.pipeline import check
from tests.golden.cases import Case, cases

CASES = cases()
WITHOUT_TEXT = {Code.ENCODING, Code.TOO_LARGE, Code.TOO_MANY_PARTS}
"""Shown by unit tests: their programs are not text, or too long for a file here."""


def test_every_code_has_a_golden_file() -> None:
    assert {case.code for case in CASES} == {str(code) for code in Code if code not in WITHOUT_TEXT}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.stem)
def test_the_message_is_as_written(case: Case) -> None:
    assert render_text(case.report()).rstrip("\n") + "\n" == case.message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.stem)
def test_the_file_shows_the_code_it_is_named_after_and_offers_help(case: Case) -> None:
    diagnostics = case.report().diagnostics
    assert case.code in {str(d.code) for d in diagnostics}
    assert all(d.help for d in diagnostics)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.stem)
def test_the_help_applied_makes_the_program_pass(case: Case) -> None:
    if not case.by_hand:
        assert case.edited() == case.applied
    found = check(Source("program.eq", case.applied), unbounded=case.unbounded).report
    assert not found.failed
    assert case.code not in {str(d.code) for d in found.diagnostics}
