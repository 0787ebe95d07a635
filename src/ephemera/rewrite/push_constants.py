"""This module tests what all readers of a derived event ask of it before the event is made (thesis 18.4.4).

Law: let every use of what a rule derives ask for something, each for a formula over the values of the event: constants
in its pattern, and comparisons with constants that hold in all its answers. Then nothing is lost if the rule derives
only those events of which one of the formulas is true. A rule for which none can be true derives nothing of use, and is
not run.

Side conditions: nobody asks for the event itself. The head only shows variables and constants, and these have their
values from positive events; the rule has no timer that could end too late. So it has no dead letters, whether or not
the event is made. It is not recursive, and there are not too many different formulas. Rules that it reads are run as
before, with their own dead letters, even if it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ephemera.algebra.nodes import Expression, Input, Plan, Point, Union
from ephemera.algebra.scalar import Every, Formula, every, some
from ephemera.algebra.schema import Schema, schemas
from ephemera.algebra.truth import Tester
from ephemera.base.tree import find
from ephemera.rewrite.derived_readers import Readers, asked_of, of_head, shown, with_positive
from ephemera.rewrite.optimize import Rewritten
from ephemera.terms.nodes import Var

MANY = 8
"""So many different formulas are tested at most; a rule that more ask for makes its events as before."""
BECAUSE = "all that read it ask for that"


def push_constants(given: Rewritten) -> Rewritten:
    """The plan with rules that derive only what their readers ask for; those that read come before what they read."""
    if not given.emit:
        return given
    pushed: dict[str, Formula] = {}
    useless: list[Point] = []
    points = dict(given.plan.points)
    plan = replace(given.plan, points=points)
    known = schemas(plan)
    readers = Readers(plan)
    recursive = {name for cycle in plan.cycles for name in cycle}
    for name, point in reversed(list(given.plan.points.items())):
        if point.kind != "rule" or name in recursive or point.label is None or point.label in given.emit:
            continue
        test = _asked(point, plan, known, readers)
        if test is None:
            continue
        if test == NEVER:
            remove(points, name, readers.streams(name))
            useless.append(point)
        else:
            points[name], pushed[name] = with_positive(point, test, BECAUSE), test
    if not pushed and not useless:
        return given
    return replace(given, plan=plan, pushed=pushed, useless=tuple(useless))


NEVER = some(())
"""The formula that is never true."""


def _asked(point: Point, plan: Plan, known: Mapping[str, Schema], readers: Readers) -> Formula | None:
    """What readers ask of what a rule derives, by its own variables; None if that is nothing."""
    arguments = shown(point, plan, known) if readers.streams(point.name) else None
    uses = readers.uses(plan, point.name) if arguments is not None else None
    if arguments is None or not uses:
        return None
    wanted: list[Formula] = []
    for use in uses:
        asked = asked_of(use, plan)
        if asked is None:
            return None
        test = _decided(of_head(asked, arguments), plan)
        if test == every(()):
            return None
        wanted += [] if test == NEVER else [test]
    test = some(wanted)
    return test if len(set(wanted)) <= MANY else None


def _decided(asked: Formula, plan: Plan) -> Formula:
    """A conjunction without what is decided before anything happens."""
    left: list[Formula] = []
    for part in asked.parts if isinstance(asked, Every) else (asked,):
        if any(True for _ in find(part, Var)):
            left.append(part)
        elif Tester(plan.catalogue, {}).truth(part, {}) is not True:
            return NEVER
    return every(left)


def remove(points: dict[str, Point], rule: str, streams: Iterable[str]) -> None:
    """Takes a rule out of the points of a plan; the streams that it fed have all else."""
    del points[rule]
    for name in streams:
        inputs = tuple(one for one in inputs_of(points[name]) if one != Input(rule))
        points[name] = replace(points[name], expression=Union(inputs))


def inputs_of(stream: Point) -> tuple[Expression, ...]:
    """What a stream is made of."""
    return stream.expression.inputs if isinstance(stream.expression, Union) else (stream.expression,)
