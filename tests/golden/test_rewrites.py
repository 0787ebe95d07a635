"""This module shows what each law of rewriting does to a plan: a golden file with the points before and after.

A program may say in its first line what it is asked for. `python -m tests.golden.test_rewrites` writes the files anew;
read the difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace
from pathlib import Path

import pytest

from ephemera.algebra.explain import point_text
from ephemera.algebra.nodes import Plan, Select
from ephemera.base.span import Source
from ephemera.base.tree import rebuild
from ephemera.pipeline import check, sound
from ephemera.rewrite import ALL_REWRITES
from ephemera.rewrite.optimize import Rewrite, Rewritten, optimize
from ephemera.rewrite.share_alike_rules import share_alike_rules

OWN = Path(__file__).parent / "rewrites"
PROGRAMS = sorted(OWN.glob("*.eq"))
LAWS: dict[str, Rewrite] = {
    **{law.__name__: law for law in ALL_REWRITES},
    "alike_limits": share_alike_rules,  # a part of it with a law of its own
}


def explained(path: Path) -> str:
    """The points that a law changes as they were and as they are, and what else it says of the plan."""
    before = rewritten(path, [])
    after = LAWS[path.stem](before)
    same = {name for name, point in after.plan.points.items() if before.plan.points.get(name) == point}
    same -= after.replaced
    points = ["before", *_points(before.plan, same), "after", *_points(after.plan, {*same, *after.replaced})]
    parts = [*(points if after.plan is not before.plan else ["the plan stays as it is"]), *_told(after)]
    return "\n\n".join(parts) + "\n"


def rewritten(path: Path, laws: list[Rewrite]) -> Rewritten:
    text = path.read_text(encoding="utf-8")
    first = text.partition("\n")[0]
    emit = first.removeprefix("-- emit: ").split(", ") if first.startswith("-- emit: ") else []
    own = sound(check(Source(path.name, text)))
    return optimize(own.plan, own.facts, laws, emit=frozenset(emit))


def _points(plan: Plan, without: Set[str]) -> Iterator[str]:
    """The points of a plan without those that stay as they are; each condition as it is tested, not as written."""
    for name, point in plan.points.items():
        if name not in without:
            yield point_text(plan, replace(point, expression=rebuild(point.expression, _with_its_formula)))


def _with_its_formula(node: object) -> object:
    return replace(node, because="") if isinstance(node, Select) else node


def _told(own: Rewritten) -> Iterator[str]:
    """What a law says of the plan besides."""
    for name, alike in own.alike.items():
        rows = (", ".join(f"{n} = {v!r}" for n, v in zip(alike.names, row, strict=True)) for row in alike.rows)
        members = zip(alike.members, rows, strict=True)
        yield "\n".join([f"{name} stands for", *(f"  {member.name}: {row}" for member, row in members)])
    for query, (rule, names) in own.queries.items():
        yield f"{query} has {', '.join(f'{v} as {n}' for v, n in names.items())} for {rule}"
    if own.unasked:
        yield f"not run: {', '.join(point.name for point in own.unasked)}"
    if own.useless:
        yield f"of no use: {', '.join(point.name for point in own.useless)}"
    if own.columns is not None:
        columns = (f"  {label}: {', '.join(sorted(names)) or 'nothing'}" for label, names in own.columns.items())
        yield "\n".join(["reads of", *columns])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_law_changes_a_plan_like_this(path: Path) -> None:
    assert explained(path) == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_every_law_has_its_golden_file() -> None:
    assert {path.stem for path in PROGRAMS} == LAWS.keys()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_law_shows_what_it_does(path: Path) -> None:
    law = LAWS[path.stem]
    assert rewritten(path, [law]) != rewritten(path, [])


if __name__ == "__main__":
    for one in PROGRAMS:
        one.with_suffix(".txt").write_text(explained(one), encoding="utf-8")
