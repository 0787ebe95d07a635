"""This module gives algebra expressions their meaning: all instances, or the one at each instant that figure 2 picks.

An instance is a set of primitive occurrences; it begins with its first and ends with its last. Meaning and
restriction are taken separately for each value of the variables that several atoms share, also for values that no event
has: what can do without these atoms occurs for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import product
from typing import TypeAlias, assert_never

from ephemera.base.lazy_dataclass import dataclass
from ephemera.rules.nodes import Catalogue
from ephemera.rules.scope import pattern_bindings, primitives
from ephemera.semantics.conditions import microseconds
from ephemera.syntax.nodes import AlgebraExpression, Composed, Limited
from ephemera.terms.atoms import match_event
from ephemera.terms.events import Event, Interval, covering
from ephemera.terms.match import Substitution, all_merged
from ephemera.terms.nodes import Pattern
from ephemera.terms.values import Key, Term, Value, key, merged, widened


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A primitive occurrence: an event, and what the atom bound in it."""

    event: Event
    bound: tuple[tuple[str, Key], ...]


Instance: TypeAlias = frozenset[Occurrence]
Facts: TypeAlias = Callable[[Pattern], Sequence[Event]]
"""The events that a primitive is matched against."""
Found: TypeAlias = tuple[Interval, Substitution, Key]
"""An instance of the whole: when, with which variables, and what identifies it."""


def instances(
    expression: AlgebraExpression,
    *,
    restricted: bool,
    facts: Facts,
    catalogue: Catalogue,
    per: Collection[str] = (),
) -> list[Found]:
    """Every instance of an expression among the facts that its primitives ask for.

    Values are kept apart of variables that several atoms share, and of those that are named in `per`.
    """
    atoms = list(primitives(expression))
    names = [pattern_bindings(atom).sure for atom in atoms]
    shared = frozenset(v for k, own in enumerate(names) for v in own if any(v in o for o in names[:k] + names[k + 1 :]))
    shared |= frozenset(per)
    found: dict[Key, Found] = {}
    for values in _shared_values(atoms, shared, facts, catalogue):
        streams = _Streams(values, facts, catalogue)
        chosen = _restricted(expression, streams.of) if restricted else _meaning(expression, streams.of)
        for instance in chosen:
            identity = tuple(sorted((o.event.key, o.bound) for o in instance))
            whole = covering(o.event.time for o in instance)
            found[identity] = (whole, streams.variables(instance), identity)
    return list(found.values())


NOWHERE = Term("$nowhere")
"""A value that no event has: its label cannot be written."""


class _Streams:
    """The primitive streams for one value of the shared variables, and what each occurrence binds."""

    def __init__(self, values: Substitution, facts: Facts, catalogue: Catalogue) -> None:
        self._values = values
        self._wide = {name: widened(value) for name, value in values.items()}
        """The same as doubles, so that an occurrence keeps the form that it has."""
        self._facts = facts
        self._catalogue = catalogue
        self._bound: dict[Occurrence, Substitution] = {}

    def of(self, atom: Pattern) -> list[Occurrence]:
        found: list[Occurrence] = []
        own = pattern_bindings(atom).all
        for event in self._facts(atom):
            for matched in match_event(atom, event, self._wide, self._catalogue.attributes):
                substitution = {name: value for name, value in matched.items() if name in own}
                occurrence = Occurrence(event, _marks(substitution))
                self._bound[occurrence] = substitution
                found.append(occurrence)
        return found

    def variables(self, instance: Instance) -> Substitution:
        """What an instance binds: of several occurrences that bind a variable the first counts, if they differ."""
        both: Substitution = {}
        for occurrence in sorted(instance, key=lambda o: (o.event.key, o.bound)):
            bound = self._bound[occurrence]
            equals = {n: v for n, v in bound.items() if n in both and key(v) == key(both[n])}
            both = {**bound, **all_merged(both, equals)}
        return both


def _marks(substitution: Substitution) -> tuple[tuple[str, Key], ...]:
    return tuple(sorted((name, key(value)) for name, value in substitution.items()))


def _shared_values(
    atoms: Sequence[Pattern], shared: frozenset[str], facts: Facts, catalogue: Catalogue
) -> list[Substitution]:
    """Every combination of values that the shared variables take somewhere, or of one that they take nowhere."""
    values: dict[str, dict[Key, Value]] = {name: {key(NOWHERE): NOWHERE} for name in shared}
    for atom, event in ((a, e) for a in atoms for e in facts(a)):
        for substitution in match_event(atom, event, {}, catalogue.attributes):
            for name in shared & substitution.keys():
                value = substitution[name]
                values[name][key(value)] = merged(values[name].get(key(value), value), value)
    names = sorted(shared)
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*(values[n].values() for n in names))]


def start(instance: Instance) -> int:
    """The least begin of its occurrences."""
    return min(o.event.time.begin for o in instance)


def end(instance: Instance) -> int:
    """The greatest end of its occurrences."""
    return max(o.event.time.end for o in instance)


# ---- the unrestricted meaning ------------------------------------------------------------------------------

Stream: TypeAlias = Callable[[Pattern], list[Occurrence]]


def _meaning(e: AlgebraExpression, stream: Stream) -> set[Instance]:
    match e:
        case Composed(operator, left, right):
            s, t = _meaning(left, stream), _meaning(right, stream)
            match operator:
                case "|":
                    return s | t
                case "+":
                    return {a | b for a in s for b in t}
                case ";":
                    return {a | b for a in s for b in t if end(a) < start(b)}
                case "-":
                    return {a for a in s if not any(start(a) <= start(b) and end(b) <= end(a) for b in t)}
                case _:
                    assert_never(operator)
        case Limited(operand, duration):
            return {a for a in _meaning(operand, stream) if end(a) - start(a) <= microseconds(duration)}
        case _:
            return {frozenset([o]) for o in stream(e)}


# ---- the restricted meaning: figure 2 ----------------------------------------------------------------------


def _restricted(expression: AlgebraExpression, stream: Stream) -> list[Instance]:
    """At each instant at which something ends, bottom-up, at most one instance of every subexpression."""
    occurrences: dict[int, list[Occurrence]] = {}
    machine = _Machine(expression, stream, occurrences)
    found = [machine.step(now) for now in sorted(occurrences)]
    return [instance for instance in found if instance is not None]


class _Machine:
    """One operator of figure 2 with its state: t, l, r and q."""

    def __init__(self, e: AlgebraExpression, stream: Stream, ends: dict[int, list[Occurrence]]) -> None:
        self._expression = e
        self._parts: list[_Machine] = []
        self._occurrences: dict[int, list[Occurrence]] = {}
        self._t: float = float("-inf")
        self._l: Instance | None = None
        self._r: Instance | None = None
        self._q: list[Instance] = []
        match e:
            case Composed(_, left, right):
                self._parts = [_Machine(left, stream, ends), _Machine(right, stream, ends)]
            case Limited(operand, _):
                self._parts = [_Machine(operand, stream, ends)]
            case _:
                for o in stream(e):
                    self._occurrences.setdefault(o.event.time.end, []).append(o)
                    ends.setdefault(o.event.time.end, []).append(o)

    def step(self, now: int) -> Instance | None:
        match self._expression:
            case Composed(operator, _, _):
                aj, ak = (part.step(now) for part in self._parts)
                match operator:
                    case "|":
                        return ak if _start(aj) <= _start(ak) else aj
                    case "+":
                        return self._both(aj, ak)
                    case "-":
                        self._t = max(self._t, _start(ak))
                        return aj if aj is not None and self._t < _start(aj) else None
                    case ";":
                        return self._then(aj, ak)
                    case _:
                        assert_never(operator)
            case Limited(_, duration):
                a = self._parts[0].step(now)
                return a if a is not None and end(a) - start(a) <= microseconds(duration) else None
            case _:
                here = self._occurrences.get(now, [])
                if not here:
                    return None
                latest = max(here, key=lambda o: (o.event.time.begin, o.event.term.key, o.bound))
                return frozenset([latest])

    def _both(self, aj: Instance | None, ak: Instance | None) -> Instance | None:
        if _start(self._l) < _start(aj):
            self._l = aj
        if _start(self._r) < _start(ak):
            self._r = ak
        if self._l is None or self._r is None or (aj is None and ak is None):
            return None
        if aj is not None and _start(ak) <= _start(aj):
            return aj | self._r
        return self._l | ak if ak is not None else None

    def _then(self, aj: Instance | None, ak: Instance | None) -> Instance | None:
        result: Instance | None = None
        if ak is not None:
            before = [e for e in self._q if end(e) < start(ak)]
            if before:
                result = max(before, key=start) | ak
        if aj is not None and self._t < start(aj):
            self._q.append(aj)
            self._t = start(aj)
        return result


def _start(instance: Instance | None) -> float:
    return float("-inf") if instance is None else start(instance)
