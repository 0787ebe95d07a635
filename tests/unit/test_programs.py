"""This module shows that every construct of the sources parses and resolves: our own programs use them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ephemera.base.diagnostic import render_text
from ephemera.base.span import Source
from ephemera.base.tree import find, walk
from ephemera.pipeline import check
from ephemera.rules.calendar import FIELDS
from ephemera.rules.functions import FUNCTIONS
from ephemera.syntax.conditions import RELATIONS
from ephemera.syntax.expressions import AGGREGATES
from ephemera.syntax.format import format
from ephemera.syntax.nodes import Accumulation, At, DeclaredFunction, Import, Relation, Timer, While
from ephemera.syntax.parser import Parsed, parse
from ephemera.syntax.queries import TIMER_KINDS
from ephemera.terms.nodes import Aggregate, Call, Element, Label
from tests.strategies.trees import NODE_CLASSES

FOLDER = Path(__file__).parents[1] / "programs"
PATHS = sorted(FOLDER.glob("*.eq"))
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.eq"))


def parsed(path: Path) -> Parsed:
    return parse(Source(path.name, path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", [*PATHS, *EXAMPLES], ids=lambda path: path.stem)
def test_the_program_passes_without_a_word(path: Path) -> None:
    report = check(Source(path.name, path.read_text(encoding="utf-8"))).report
    assert not report.diagnostics, render_text(report)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_program_says_what_it_follows(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("-- Follows ")


@pytest.mark.parametrize("path", [*PATHS, *EXAMPLES], ids=lambda path: path.stem)
def test_formatting_keeps_tree_and_comments(path: Path) -> None:
    before = parsed(path)
    text = format(before.program, before.comments, before.source.text)
    after = parse(Source(path.name, text))
    assert after.program == before.program
    assert [c.text for c in after.comments] == [c.text for c in before.comments]
    assert format(after.program, after.comments, text) == text


def test_the_programs_use_every_construct() -> None:
    nodes = [node for path in PATHS for node in walk(parsed(path).program)]
    # `at` is refused until tables have versions; what is imported has tests of its own, with files.
    assert {type(node) for node in nodes} == set(NODE_CLASSES) - {At, Import}
    assert {n.relation for n in nodes if isinstance(n, Relation)} == set(RELATIONS)
    assert {n.kind for n in nodes if isinstance(n, Timer)} == set(TIMER_KINDS)
    assert {n.function for n in nodes if isinstance(n, Aggregate)} == set(AGGREGATES)
    written = {n.name for n in nodes if isinstance(n, DeclaredFunction)}
    assert {n.function for n in nodes if isinstance(n, Call)} == {*FUNCTIONS, *written}
    assert {n.mode for n in nodes if isinstance(n, Accumulation)} == {"not", "collect", "collect optional"}
    assert {(n.begin, n.end) for n in nodes if isinstance(n, While)} == {
        (a, b) for a in (True, False) for b in (True, False)
    }
    assert {(n.ordered, n.partial) for n in nodes if isinstance(n, Element)} == {
        (a, b) for a in (True, False) for b in (True, False)
    }


def test_the_programs_use_every_field_of_the_clock() -> None:
    timers = [
        element
        for path in PATHS
        for element in find(parsed(path).program, Element)
        if isinstance(element.label, Label) and str(element.label) == "timer:datetime"
    ]
    used = {c.label.name for t in timers for c in find(t, Element) if isinstance(c.label, Label)}
    assert set(FIELDS) <= used
