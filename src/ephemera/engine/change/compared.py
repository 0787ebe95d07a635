"""This module compares two programs by what their rules mean: which rules are kept, removed and added.

A rule is kept if the other program has one with the same fingerprint, and if what it reads is derived by the same
rules, directly and through others. So a rule more for an event is a change to all rules that ask for this event, maybe
only for its absence: such a rule is removed, and added again. Names and places mean nothing, nor do attributes that a
type has got and a rule does not ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ephemera.algebra.fingerprint import digest
from ephemera.algebra.nodes import Base, Input, Plan, Point
from ephemera.base.errors import EphemeraError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import describe
from ephemera.base.tree import find
from ephemera.engine.change.redeclared import as_before
from ephemera.physical.plan import Compiled
from ephemera.rules.nodes import Catalogue, Schema


class ChangeRefused(EphemeraError):
    """A change of a program that its engine cannot make; the engine goes on as it was."""


class Meanings:
    """What the rules and queries of a program mean, with all that they read."""

    def __init__(self, compiled: Compiled, before: Catalogue | None = None) -> None:
        """What was declared `before` counts where a rule means the same by it."""
        plan = compiled.plan
        self._plan = plan
        rewritten = compiled.physical.rewritten
        self._prints = rewritten.prints if before is None else as_before(plan, rewritten.prints, before)
        self.names = (
            rewritten.names if self._prints is rewritten.prints else replace(rewritten, prints=self._prints).names
        )
        """What its state is called."""
        self._reads = {
            name: tuple(dict.fromkeys(i.point for i in find(point.expression, Input)))
            for name, point in plan.points.items()
        }
        self._bases = {
            name: tuple(_declared(plan.catalogue, base.label) for base in find(point.expression, Base))
            for name, point in plan.points.items()
        }
        rules = [name for name, point in plan.points.items() if point.kind == "rule"]
        behind = {name: self._behind(name) for name in rules}
        self.rules = {name: digest([self._prints[name].fingerprint, self._of(behind[name])]) for name in rules}

    def feeding(self, query: Point) -> str | None:
        """A name for all that the events of a query are derived by; None if it reads a stored join."""
        streams = [i.point for i in find(query.expression, Input)]
        if any(name not in self._reads for name in streams):
            return None
        points = frozenset(streams).union(*map(self._behind, streams))
        return self._of(points, [_declared(self._plan.catalogue, b.label) for b in find(query.expression, Base)])

    def outside(self, label: str) -> str:
        """The same for events that come from outside, and that no rule derives."""
        return self._of((), [_declared(self._plan.catalogue, label)])

    def _behind(self, name: str) -> frozenset[str]:
        """All points that a point reads, directly and through others."""
        found: set[str] = set()
        waiting = list(self._reads[name])
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self._reads[one]
        return frozenset(found)

    def _of(self, points: Iterable[str], bases: Iterable[str] = ()) -> str:
        """What some points mean together: the rules among them, and how what comes from outside is judged."""
        rules = sorted(self._prints[name].fingerprint for name in points if self._plan.points[name].kind == "rule")
        return digest([rules, sorted({*bases, *(base for name in points for base in self._bases[name])})])


@dataclass(frozen=True, slots=True)
class Compared:
    """Two programs, rule by rule; rules are named by their points."""

    old: Compiled
    new: Compiled
    kept: Mapping[str, str]
    """For each rule of the new program that is kept what the old one calls it."""
    removed: tuple[str, ...]
    """Rules of the old program."""
    added: tuple[str, ...]
    """Rules of the new program."""
    before: Meanings
    after: Meanings

    def known_as(self, rules: Iterable[str]) -> tuple[str, ...]:
        """Rules of the new program as people know them."""
        return _told(_numbers(self.new.plan, rules))

    def rules_kept(self) -> tuple[str, ...]:
        """As people know them; of a rule with alternatives all are kept."""
        added = {number for number, _ in _numbers(self.new.plan, self.added)}
        return _told(one for one in _numbers(self.new.plan, self.kept) if one[0] not in added)

    def rules_removed(self) -> tuple[str, ...]:
        """As people know them, with their places in the old program."""
        return _told(_numbers(self.old.plan, self.removed))

    def rules_added(self) -> tuple[str, ...]:
        """As people know them."""
        return _told(_numbers(self.new.plan, self.added))


def compared(old: Compiled, new: Compiled) -> Compared:
    """Which rules stay, go and come; declarations that cannot change while a program runs are refused."""
    check_declarations(old.rules.resolved.catalogue, new.rules.resolved.catalogue)
    before, after = Meanings(old), Meanings(new, old.rules.resolved.catalogue)
    free: dict[str, list[str]] = {}
    for name, meaning in before.rules.items():
        free.setdefault(meaning, []).append(name)
    kept = {name: free[meaning].pop(0) for name, meaning in after.rules.items() if free.get(meaning)}
    known = set(kept.values())
    return Compared(
        old,
        new,
        kept,
        tuple(name for name in before.rules if name not in known),
        tuple(name for name in after.rules if name not in kept),
        before,
        after,
    )


def _declared(catalogue: Catalogue, label: str | None) -> str:
    """What is declared of a type besides what fingerprints know."""
    schema = catalogue.events.get(label or "")
    return "" if schema is None or schema.apart is None else digest([label, schema.apart.distance, schema.apart.per])


def _numbers(plan: Plan, points: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Rules by their numbers, with what they derive."""
    found = {
        (p.rule, p.label or name.partition("#")[0]) for name in points if (p := plan.points[name]).rule is not None
    }
    yield from sorted(found)


def _told(rules: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"`{label}` (rule {number})" for number, label in rules))


def told(plan: Plan, point: str) -> str:
    """A rule as people know it."""
    return _told(_numbers(plan, [point]))[0]


# ---- declarations --------------------------------------------------------------------------------------------


def check_declarations(old: Catalogue, new: Catalogue) -> None:
    """Refuses what cannot be declared otherwise while a program runs.

    A type may get attributes behind those that it has, its rate may be another, and so may watermarks and idle times.
    """
    if old.unit != new.unit:
        raise ChangeRefused(
            f"`TIME UNIT` was {describe(old.unit)} and is {describe(new.unit)}: the times of events that have come "
            "would mean something else; begin anew with this program"
        )
    if old.zone != new.zone:
        raise ChangeRefused(
            f"`TIME ZONE` was {old.zone} and is {new.zone}: dates and times would mean something else; "
            "begin anew with this program"
        )
    theirs, ours = old.namespaces.prefixes, new.namespaces.prefixes
    if any(ours.get(uri, prefix) != prefix for uri, prefix in theirs.items()):
        raise ChangeRefused("a `NAMESPACE` has another prefix: labels are told apart by it; begin anew")
    if any(prefix in theirs.values() and theirs.get(uri) != prefix for uri, prefix in ours.items()):
        raise ChangeRefused("a prefix stands for another `NAMESPACE`: begin anew with this program")
    for label, schema in old.events.items():
        if label in new.events:
            _check_type(schema, new.events[label])
    for label, schema in old.tables.items():
        if label in new.tables and schema.attributes != new.tables[label].attributes:
            raise ChangeRefused(f"`TABLE {label}` has other columns: its rows were read with those that it had")
    for label in {*old.events, *new.events, *_carried(old), *_carried(new)}:
        if _source(old, label) != _source(new, label) and (label in old.events or label in _carried(old)):
            raise ChangeRefused(
                f"`{label}` was read from {_stream(old, label)}, and is read from {_stream(new, label)}: how far it "
                "has come would be unknown; begin anew with this program"
            )


def _check_type(old: Schema, new: Schema) -> None:
    was, now = old.attributes, new.attributes
    if was != now and (was is None or now is None or now[: len(was)] != was):
        raise ChangeRefused(
            f"`EVENT {old.label}` has lost an attribute, or has them in another order: events that have come would "
            "mean something else; new attributes go behind those that it has"
        )
    if old.longest != new.longest:
        raise ChangeRefused(
            f"`EVENT {old.label}` may last another time than before: what is kept was chosen by that; declare "
            "another type"
        )
    if old.arrives_at_begin != new.arrives_at_begin:
        raise ChangeRefused(f"`EVENT {old.label}` is known from another time on than before: declare another type")
    if old.apart != new.apart:
        raise ChangeRefused(
            f"`EVENT {old.label}` may come closer to others than before, or less close: those that have come were "
            "judged already; declare another type"
        )


def _carried(catalogue: Catalogue) -> set[str]:
    return {label for source in catalogue.sources for label in source.carries}


def _source(catalogue: Catalogue, label: str) -> str | None:
    return next((source.name for source in catalogue.sources if label in source.carries), None)


def _stream(catalogue: Catalogue, label: str) -> str:
    name = _source(catalogue, label)
    return "no stream" if name is None else f"`STREAM {name}`"
