"""This module has a rule read what another would only wrap for it, so that no event is made in between (thesis 18.4.3).

Law: let a rule D derive an event from one event, by a head that only shows some of its values, and let one rule R read
that, as one of its positive events. The derived event happens when the other does. So R answers the same if it reads
the other event itself, under the names that R has for what D shows, and tests what D and the pattern of R test. D is
not run then. R also runs as before, for events of that type that come from outside.

Side conditions: nobody asks for the derived event, no other rule derives it, and R reads it nowhere else. D and R are
not recursive. What D derives is one event if two others differ only in what D leaves out, or in the form of a number
(`1` and `1.0`), and for R they are then two: so R may tell neither events nor forms apart. It joins, compares and shows
what it reads, and nothing else; it counts nothing, and has no dead letters. What R keeps of the past must not grow, and
where it runs must not change: if R waits for anything else, neither D nor the pattern of R may choose among events, and
nobody else may read what D reads.

Rules of several events are not fused, though their occurrence time is that of all their events, too: what they join
would have to be joined again for each new event of R.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ephemera.algebra.attributes import Variable, is_blank
from ephemera.algebra.fingerprint import Print, digest
from ephemera.algebra.nodes import Expression, Input, Match, Plan, Point, Rename, Select, Union
from ephemera.algebra.parts import member_head
from ephemera.algebra.renaming import Renaming
from ephemera.algebra.scalar import Formula, Holds, Matches, SameEvent
from ephemera.algebra.schema import Schema, schemas
from ephemera.analysis.relevance import derive
from ephemera.base.tree import find, rebuild, walk
from ephemera.rewrite.derived_readers import Constant, Readers, Use, by_position, conjuncts, shown
from ephemera.rewrite.optimize import Fused, Rewritten
from ephemera.rewrite.push_constants import inputs_of, remove
from ephemera.rewrite.pushdown import blanks
from ephemera.syntax.nodes import Comparison, IsNull
from ephemera.terms.nodes import Atom, NamedAtom, Var


def fuse_construction(given: Rewritten) -> Rewritten:
    """The plan in which rules read what would only be wrapped for them; those that read come before what they read."""
    if not given.emit:
        return given
    made: dict[str, Fused] = {}
    prints = dict(given.prints)
    points, every = dict(given.plan.points), dict(given.plan.points)
    plan = replace(given.plan, points=points)
    readers, schema = Readers(plan), schemas(plan)
    recursive = {name for cycle in plan.cycles for name in cycle}
    for name, point in reversed(list(given.plan.points.items())):
        if point.kind != "rule" or name in recursive or point.label is None or point.label in given.emit:
            continue
        use = _only_use(plan, name, readers)
        if use is None or use.rule.name in recursive or not _takes_apart(use, plan, schema):
            continue
        fusion = _fused(point, use, plan, schema, readers)
        if fusion is None:
            continue
        fused, names = fusion
        made[fused.name] = Fused(fused, use.rule.name, point)
        prints[fused.name] = _print(prints[use.rule.name], prints[name], names)
        for own in (points, every):
            own[fused.name] = fused
            for stream in readers.streams(use.rule.name):
                inputs = (*inputs_of(own[stream]), Input(fused.name))
                own[stream] = replace(own[stream], expression=Union(inputs))
        remove(points, name, readers.streams(name))
        readers.add(fused, beside=use.rule.name)
    if not made:
        return given
    known = derive(
        _ordered(given.plan, every, made)
    )  # with what is not run any more, which says how long events may be that come from outside
    facts = replace(
        given.facts,
        known={**given.facts.known, **{name: known.known[name] for name in made}},
        cases={**given.facts.cases, **{name: known.cases[name] for name in made if name in known.cases}},
        relevance=(*given.facts.relevance, *(r for r in known.relevance if r.point in made)),
    )
    return replace(given, plan=_ordered(given.plan, points, made), facts=facts, prints=prints, fused=made)


# ---- which rules -----------------------------------------------------------------------------------------------


def _only_use(plan: Plan, rule: str, readers: Readers) -> Use | None:
    """The one place in which what a rule derives is read, if no other derives what is read there."""
    streams = [plan.points[name] for name in readers.streams(rule)]
    if not streams or any(_fed_by(stream) != [rule] for stream in streams):
        return None
    uses = readers.uses(plan, rule)
    return uses[0] if uses is not None and len(uses) == 1 and uses[0].is_positive else None


def _fed_by(stream: Point) -> list[str]:
    return [one.point for one in find(stream.expression, Input)]


def _takes_apart(use: Use, plan: Plan, known: Mapping[str, Schema]) -> bool:
    """Whether a rule only joins, compares and shows what it reads."""
    arguments = shown(use.rule, plan, known)
    if arguments is None or any(True for _ in find(use.rule.expression, (SameEvent, Matches))):
        return False
    plain = [a for a in arguments if isinstance(a, Var)]
    read = {new for _, new in use.leaf.variables}
    for node in walk(use.rule.expression):
        match node:
            case Comparison(_, left, right):
                plain += [side for side in (left, right) if isinstance(side, Var)]
            case IsNull(Var() as operand):
                plain.append(operand)
            case _:
                continue
    everywhere = [v for v in find(use.rule.expression, Var) if v.name in read]
    return len(everywhere) == len([v for v in plain if v.name in read])


def _fused(
    point: Point, use: Use, plan: Plan, known: Mapping[str, Schema], readers: Readers
) -> tuple[Point, Mapping[str, str]] | None:
    """The reader as it reads what the rule reads, and the names that variables of the rule have in it; or None."""
    arguments = shown(point, plan, known)
    parts = _one_event(point, plan)
    matches = list(find(use.query.expression, Match))
    asked = by_position(matches[0].pattern, plan) if len(matches) == 1 else None
    if arguments is None or parts is None or asked is None:
        return None
    leaf, conditions = parts
    unused = blanks(use.rule)
    outer: dict[str, str] = dict(use.leaf.variables)
    names: dict[str, str] = {}
    tests: list[Formula] = []
    for k, pattern in asked.items():
        argument = arguments[k]
        match pattern, argument:
            case Var(number), _ if outer.get(number) is None or outer[number] in unused:
                continue
            case Var(number), Var(own) if own not in names and outer[number] not in names.values():
                names[own] = outer[number]
            case _, Var(own) if isinstance(pattern, Constant):
                tests.append(Holds(Comparison("=", Var(own), pattern)))
            case _:
                return None
    if not _is_stateless(use) and (conditions or tests or _is_shared(leaf, plan, readers)):
        return None
    fresh = _fresh(use.rule)
    tested = {v.name for test in [*conditions, *tests] for v in find(test, Var)} - _bound(use.rule)
    names |= {own: own if own in tested else next(fresh) for _, own in leaf.variables if own not in names}
    renaming = Renaming({leaf.events[0][1]: use.leaf.events[0][1]}, names)
    inner: Expression = renaming.of(leaf)
    tested_by = dict.fromkeys(part for test in [*conditions, *tests] for part in conjuncts(renaming.of(test)))
    for part in tested_by:
        if part not in use.conditions:
            inner = Select(inner, part, f"{point.name} asks for that")
    expression = rebuild(use.rule.expression, lambda node: inner if node == use.leaf else node)
    return replace(use.rule, name=f"{use.rule.name} through {point.name}", expression=expression), names


def _one_event(point: Point, plan: Plan) -> tuple[Rename, Sequence[Formula]] | None:
    """The event of a rule that has no other, and what it tests; None if it is another rule."""
    e = member_head(point).input
    conditions: list[Formula] = []
    while isinstance(e, Select):
        conditions.append(e.condition)
        e = e.input
    if not isinstance(e, Rename) or not isinstance(e.input, Input) or not _is_plain(plan.points[e.input.point]):
        return None
    if any(True for f in conditions for _ in find(f, Matches)):
        return None
    return e, tuple(reversed(conditions))


def _is_plain(query: Point) -> bool:
    """Whether all variables of a query have a value."""
    matches = list(find(query.expression, Match))
    return len(matches) == 1 and isinstance(matches[0].pattern, Atom | NamedAtom)


def _is_stateless(use: Use) -> bool:
    """Whether a rule keeps nothing of what it reads: it is about one event, and waits for nothing."""
    e = member_head(use.rule).input
    while isinstance(e, Select):
        e = e.input
    return e == use.leaf


def _is_shared(leaf: Rename, plan: Plan, readers: Readers) -> bool:
    """Whether others read what a rule reads, so that it may have its place by another key."""
    return isinstance(leaf.input, Input) and len(readers.rules(leaf.input.point, plan)) > 1


def _bound(rule: Point) -> set[str]:
    return {new for use in find(rule.expression, Rename) for _, new in use.variables}


def _fresh(rule: Point) -> Iterator[Variable]:
    """Names for variables that nobody can name, which the rule has not."""
    number = max((int(name.removeprefix("_")) for name in _bound(rule) if is_blank(name)), default=0)
    while True:
        number += 1
        yield Variable(f"_{number}")


# ---- the plan with the rule ------------------------------------------------------------------------------------


def _ordered(plan: Plan, points: Mapping[str, Point], made: Mapping[str, Fused]) -> Plan:
    """The plan with other points: what was made stands next to the rule for which it was."""
    behind: dict[str, list[str]] = {}
    for name, one in made.items():
        behind.setdefault(one.reader, []).append(name)
    ordered: dict[str, Point] = {}
    for first in plan.points:
        waiting = [first]
        while waiting:
            name = waiting.pop()
            waiting += behind.get(name, ())
            if name in points:
                ordered[name] = points[name]
    return replace(plan, points=ordered)


def _print(reader: Print, deriving: Print, names: Mapping[str, str]) -> Print:
    """What a fused rule means, and what its variables are called: as the reader says, and for others as the rule."""
    own = {new: f"d{deriving.variables[old]}" for old, new in names.items() if old in deriving.variables}
    named = {**own, **reader.variables}
    return Print(digest(["fused", reader.fingerprint, deriving.fingerprint]), named, reader.events)
