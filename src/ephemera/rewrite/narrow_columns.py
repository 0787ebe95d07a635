"""This module says which attributes of which events a program needs, so that no others have to be read.

An attribute that no rule looks at may be left out where it makes no difference whether two events are one: where rules
only join, test and show. Where something is counted or collected, or events are told apart, events are needed whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ephemera.algebra.attributes import is_blank
from ephemera.algebra.nodes import Detection, Group, Input, Match, Plan, Point, Rename
from ephemera.algebra.scalar import Matches, SameEvent
from ephemera.base.tree import find
from ephemera.rewrite.optimize import Rewritten
from ephemera.terms.nodes import Anonymous, Atom, NamedAtom, Pattern, Var


def narrow_columns(given: Rewritten) -> Rewritten:
    """The same, with what has to be read of each type of event."""
    return replace(given, columns=wanted(given.plan))


def wanted(plan: Plan) -> dict[str, frozenset[str]] | None:
    """For each label the attributes that rules need; None if a rule reads events of any label."""
    found: dict[str, frozenset[str]] = {}
    for point in plan.points.values():
        if point.kind != "rule":
            continue
        unused = blanks(point)
        whole = any(True for _ in find(point.expression, (Group, Detection, SameEvent, Matches)))
        for use in find(point.expression, Rename):
            if isinstance(use.input, Input):
                query = plan.points[use.input.point]
                if query.label is None:
                    return None
                names = plan.catalogue.attributes(query.label) or ()
                asked = frozenset(names if whole else _asked(query, use, list(names), unused))
                found[query.label] = found.get(query.label, frozenset()) | asked
    return found


def blanks(point: Point) -> frozenset[str]:
    """The variables of a rule that stand for `_`, where they are not used after all."""
    named = Counter(new for use in find(point.expression, Rename) for _, new in use.variables)
    used = {variable.name for variable in find(point.expression, Var)}
    return frozenset(name for name, count in named.items() if is_blank(name) and count == 1 and name not in used)


def _asked(query: Point, use: Rename, names: list[str], unused: frozenset[str]) -> Iterable[str]:
    renamed = dict(use.variables)
    for match in find(query.expression, Match):
        yield from _of_pattern(match.pattern, names, {old for old, new in renamed.items() if new in unused})


def _of_pattern(pattern: Pattern, names: list[str], unused: set[str]) -> Iterable[str]:
    match pattern:
        case Atom(_, arguments) if len(arguments) == len(names):
            for name, argument in zip(names, arguments, strict=True):
                is_unused = isinstance(argument, Anonymous) or (isinstance(argument, Var) and argument.name in unused)
                if not is_unused:
                    yield name
        case NamedAtom(_, fields):
            yield from (x.name for x in fields)
        case _:
            yield from names
