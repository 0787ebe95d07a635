"""This module names what engines store of a plan, by what its rules mean.

The names follow from fingerprints: that of a rule is its fingerprint, that of rules which run as one is made
of theirs, that of a query of its pattern and of the rules that feed it. Columns have names by where a variable or event
first stands in the normal form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from ephemera.algebra.attributes import constant, is_constant, is_joined, place_of, records_of, reserve_of
from ephemera.algebra.fingerprint import Print, declared_as, digest, hashed
from ephemera.algebra.nodes import Calendar, Detection, Input, Match, Plan, Point, Rename
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.terms.nodes import Var


@dataclass(frozen=True, slots=True)
class StateNames:
    """What rules, histories and columns of a plan are called in what is stored."""

    rules: Mapping[str, str] = field(default_factory=dict)
    """By the name of the point, also of those that stand for several."""
    histories: Mapping[str, str] = field(default_factory=dict)
    """Queries, and the calendars and algebra expressions of rules."""
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each rule, and each history with names of its own, the stored names of columns."""

    def together(self, rules: Sequence[str]) -> str:
        """A name for rules that run in one engine."""
        return digest(sorted(self.rules[rule] for rule in rules))


def state_names(plan: Plan, prints: Mapping[str, Print], alike: Mapping[str, Sequence[str]]) -> StateNames:
    """The names of what a plan stores; `alike` has the rules that others stand for, which have no state."""
    made_of = {name: [prints[member].fingerprint for member in members] for name, members in alike.items()}
    wanted = {name: one.fingerprint for name, one in prints.items()}
    wanted |= {name: digest(["alike", *sorted(members)]) for name, members in made_of.items()}
    joins = stored_joins(plan)
    wanted |= {rule: digest(["what is left of", wanted[rule]]) for owners in joins.values() for rule in owners}
    wanted |= {name: digest(["join", *_parts(plan, name, prints, owners)]) for name, owners in joins.items()}
    rules = _distinct(wanted)
    histories: dict[str, str] = {}
    columns: dict[str, Mapping[str, str]] = {}
    replaced = {member for members in alike.values() for member in members}
    for name, point in plan.points.items():
        if point.kind not in ("rule", "join") or name in replaced:
            continue
        owner = joins[name][0] if name in joins else name
        own = prints[owner] if owner in prints else _of_several(prints[alike[name][0]], point)
        columns[name] = own.columns()
        detected = [one.name for one in find(point.expression, Detection)]
        leaves = [*(one.name for one in find(point.expression, Calendar)), *detected]
        stored = {f"{name}/{leaf}": own.events[leaf] for leaf in leaves}
        stored |= {records_of(name, leaf): f"{own.events[leaf]}.records" for leaf in detected}
        histories |= {leaf: f"{rules[name]}.{told}" for leaf, told in stored.items()}
        columns |= dict.fromkeys(stored, columns[name])
    feeding = _Feeding(plan, prints)
    readers = {i.point: made_of[name] for name in alike for i in find(plan.points[name].expression, Input)}
    queries: dict[str, str] = {}
    for name, point in plan.points.items():
        if point.kind != "query":
            continue
        join = next((i.point for i in find(point.expression, Input) if i.point in joins), None)
        if join is not None:
            queries[name] = digest(["joined", rules[join]])
            columns[name] = columns[join]
        else:
            queries[name] = digest([_query(point, plan, feeding), sorted(readers[name]) if _is_made(point) else []])
    catalogue = plan.catalogue
    kept = {label: declared_as(catalogue, label) if label in catalogue.events else None for label in catalogue.reserves}
    reserved = {reserve_of(label): digest(["reserve", label, declared]) for label, declared in kept.items()}
    return StateNames(rules, histories | _distinct(queries) | reserved, columns)


def stored_joins(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The stored joins, and the rules that each is a part of, by the names of the first of which it speaks.

    Those are the rules that read it, maybe through others of them.
    """
    found: dict[str, dict[str, None]] = {}
    owners: dict[str, dict[str, None]] = {}
    if all(point.kind != "join" for point in plan.points.values()):
        return {}
    for name, point in reversed(list(plan.points.items())):
        own = owners.get(name, {name: None})
        if point.kind == "join":
            found[name] = own
        if point.kind in ("rule", "join", "query"):
            for read in find(point.expression, Input):
                if plan.points[read.point].kind == "join" or _reads_a_join(plan, read.point):
                    owners.setdefault(read.point, {}).update(own)
    return {
        name: tuple(sorted(own, key=lambda rule: plan.points[rule].normal != plan.points[name].normal))
        for name, own in found.items()
    }


def _reads_a_join(plan: Plan, query: str) -> bool:
    return any(plan.points[read.point].kind == "join" for read in find(plan.points[query].expression, Input))


def _parts(plan: Plan, join: str, prints: Mapping[str, Print], owners: Sequence[str]) -> list[str]:
    """What a stored join is a part of, and which events it joins, in the order in which it has them."""
    rule, *others = (prints[owner] for owner in owners)
    uses = [new for use in find(plan.points[join].expression, Rename) for _, new in use.events]
    named = [",".join(rule.events.get(name, name) for name in _events(use)) for use in uses]
    return [rule.fingerprint, *named, *sorted(other.fingerprint for other in others)]


def _events(name: str) -> list[str]:
    """The events that a name in a rule stands for: itself, or those of a stored join."""
    return name[1:-2].split(",") if is_joined(name) else [name]


def rule_names(prints: Mapping[str, Print]) -> dict[str, str]:
    """A name for each rule, by what it means: those that mean the same are numbered."""
    return _distinct({name: one.fingerprint for name, one in prints.items()})


def _of_several(first: Print, point: Point) -> Print:
    """The names of a rule that stands for several: those of the first, and of what stands for constants."""
    made = {
        new: constant(stands_in[1], first.events[stands_in[0]])
        for new in {v.name for v in find(point.expression, Var)} | set(_bound(point))
        if (stands_in := place_of(new)) is not None
    }
    return Print(first.fingerprint, {**first.variables, **made}, first.events)


def _bound(point: Point) -> Iterator[str]:
    yield from (new for use in find(point.expression, Rename) for _, new in use.variables)


def _is_made(query: Point) -> bool:
    """Whether a query was made for rules that are alike: it has variables for constants."""
    return any(is_constant(v.name) for m in find(query.expression, Match) for v in find(m.pattern, Var))


class _Feeding:
    """The rules that feed queries, as they are hashed: put in order once for all queries that read the same."""

    def __init__(self, plan: Plan, prints: Mapping[str, Print]) -> None:
        self._points = plan.points
        self._prints = prints
        self._known: dict[frozenset[str], bytes] = {}

    def of(self, sources: frozenset[str]) -> bytes:
        """The fingerprints of the rules behind some streams."""
        if sources not in self._known:
            rules = {i.point for source in sources for i in find(self._points[source].expression, Input)}
            told = sorted(self._prints[rule].fingerprint for rule in rules)
            self._known[sources] = hashed(told)
        return self._known[sources]


def _query(point: Point, plan: Plan, feeding: _Feeding) -> list[object]:
    """What the matches of a query depend on: its patterns, how its type is declared, and the rules that feed it."""
    matches = list(find(point.expression, Match))
    sources = frozenset(i.point for m in matches for i in find(m.input, Input))
    label, catalogue = point.label, plan.catalogue
    declared = declared_as(catalogue, label) if label is not None and label in catalogue.events else None
    return [[m.pattern for m in matches], declared, feeding.of(sources)]


def _distinct(wanted: Mapping[str, str]) -> dict[str, str]:
    """Each name once: those that mean the same are counted, in whatever order; they are one as good as the other."""
    seen: dict[str, int] = {}
    found: dict[str, str] = {}
    for own, name in wanted.items():
        seen[name] = seen.get(name, 0) + 1
        found[own] = name if seen[name] == 1 else f"{name}~{seen[name]}"
    return found
