"""This module shows how programs run that are asked for some of their events: a golden file a law.

What each law of rewriting makes of a plan is in `test_rewrites`.
A program says in its first line what it is asked for. `python -m tests.golden.test_goals` writes the files anew; read
the difference before you commit it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ephemera
from ephemera.base.span import Source
from ephemera.pipeline import check, sound
from ephemera.rewrite import ALL_REWRITES
from ephemera.rewrite.optimize import Rewrite, optimize

OWN = Path(__file__).parent / "goals"
PROGRAMS = sorted(OWN.glob("*.eq"))


def explained(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return ephemera.compile(text, path.name).explain("physical", emit=asked(text)) + "\n"


def asked(text: str) -> list[str]:
    return text.partition("\n")[0].removeprefix("-- emit: ").split(", ")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_run_for_what_they_are_asked(path: Path) -> None:
    assert explained(path) == path.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_what_is_explained_is_plain_data(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    program = ephemera.compile(text, path.name)
    plain = program.explain_json("physical", emit=asked(text))
    assert plain == json.loads(json.dumps(plain))
    assert plain["asked"]["emit"] == sorted(asked(text))
    gone = {one["rule"] for key in ("not_run", "useless") for one in plain["asked"][key]}
    gone |= {one["instead_of"]["rule"] for one in plain["asked"]["fused"]}
    placed = {member["rule"] for group in plain["groups"] for rule in group["rules"] for member in rule["rules"]}
    assert placed | gone == set(range(1, len(program._rules.resolved.rules) + 1))
    assert program.explain_json("physical")["asked"] is None


def test_every_law_that_follows_from_what_is_asked_for_has_its_file() -> None:
    directed = {law.__name__ for law in ALL_REWRITES if any(_is_directed(law, path) for path in PROGRAMS)}
    assert directed == {path.stem for path in PROGRAMS}


def _is_directed(law: Rewrite, path: Path) -> bool:
    """Whether what is asked for makes a difference to what a law does."""
    text = path.read_text(encoding="utf-8")
    own = sound(check(Source(path.name, text)))
    (some, every) = (optimize(own.plan, own.facts, [law], emit=emit) for emit in (frozenset(asked(text)), frozenset()))
    return some.plan.points != every.plan.points


if __name__ == "__main__":
    for one in PROGRAMS:
        one.with_suffix(".txt").write_text(explained(one), encoding="utf-8")
