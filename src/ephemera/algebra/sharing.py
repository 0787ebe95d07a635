"""This module groups the tuples of an algebra expression by the values of the shared variables that they know.

Instances are found for each choice of values of the shared variables apart. Choices for which every input has the same
tuples are one: so only those count that are made of values that occur together, and of values that no event has, for
which occurs what can do without the events that know the variables. What is tested with a variable of others is told
apart by each of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ephemera.algebra.nodes import Detection, Primitive
from ephemera.algebra.scalar import TRUE, Matches
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.terms.values import Key, Term, Value, key, merged, widened

Tuple: TypeAlias = Mapping[str, Any]
Names: TypeAlias = tuple[str, ...]
Keys: TypeAlias = tuple[Key, ...]

NOWHERE = Term("$nowhere")
"""A value that no event has; what can do without the shared variables occurs for it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Some values of the shared variables, and the tuples of each input that have them or do not know them."""

    values: Mapping[str, Value]
    """As doubles, so that an occurrence keeps the form that it has."""
    tuples: Sequence[Sequence[Tuple]]


class Shared:
    """The tuples of all inputs of an expression by the shared variables that they know, and by their values."""

    def __init__(self, e: Detection) -> None:
        self._shared = e.shared
        self._inputs = len(e.inputs)
        tests = [p.test for p in find(e.expression, Primitive) if p.test != TRUE]
        asked = {name for test in tests for m in find(test, Matches) for name in m.known}
        self._tested = [name for name in e.shared if name in asked]
        self._values: dict[str, dict[Key, Value]] = {name: {} for name in self._tested}
        self._tables: dict[Names, _Table] = {(name,): _Table((name,)) for name in self._tested}

    def add(self, number: int, t: Tuple) -> tuple[Names, Keys] | None:
        """One more tuple of an input, and where it belongs; None if it has a null, which is shared with nothing."""
        known = tuple(name for name in self._shared if name in t)
        keys = tuple(key(t[name]) for name in known)
        for name, one in zip(known, keys, strict=True):
            if name in self._values:
                values = self._values[name]
                values[one] = merged(values.get(one, t[name]), t[name])
                self._tables[name,].at((one,))
        if any(t[name] is None for name in known):
            return None
        table = self._tables.get(known)
        if table is None:
            table = self._tables[known] = _Table(known)
        table.at(keys).setdefault(number, []).append(t)
        return known, keys

    def choices(self, of: Iterable[tuple[Names, Keys]] | None = None) -> Iterator[Choice]:
        """All choices with different tuples, or only those that have tuples of one of some places."""
        tables = sorted(self._tables.values(), key=lambda table: -len(table.names))
        told: set[tuple[Keys | None, ...]] = set()
        starts = [{}] if of is None else [dict(zip(*place, strict=True)) for place in dict.fromkeys(of)]
        for start in starts:
            for chosen in _extended(start, tables):
                picked = tuple(table.keys_in(chosen) for table in tables)
                if picked not in told:
                    told.add(picked)
                    yield self._choice(chosen, tables, picked)

    def _choice(self, chosen: Mapping[str, Key], tables: Sequence[_Table], picked: Sequence[Keys | None]) -> Choice:
        values: dict[str, Value] = {
            name: widened(self._values[name].get(chosen[name], NOWHERE)) if name in chosen else NOWHERE
            for name in self._tested
        }
        found: list[list[Tuple]] = [[] for _ in range(self._inputs)]
        for table, keys in zip(tables, picked, strict=True):
            if keys is not None:
                for number, tuples in table.rows[keys].items():
                    found[number] = [*found[number], *tuples] if found[number] else tuples
        return Choice(values, found)


class _Table:
    """The tuples that know the same variables, by their values and by their inputs."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.rows: dict[Keys, dict[int, list[Tuple]]] = {}
        self._by_some: dict[Names, dict[Keys, list[Keys]]] = {}
        """The values by those of some of the variables."""

    def at(self, keys: Keys) -> dict[int, list[Tuple]]:
        rows = self.rows.get(keys)
        if rows is None:
            rows = self.rows[keys] = {}
            for names, index in self._by_some.items():
                index.setdefault(self._part(keys, names), []).append(keys)
        return rows

    def keys_in(self, chosen: Mapping[str, Key]) -> Keys | None:
        """The values that are chosen, if all are and if some tuple has them."""
        keys = tuple(chosen[name] for name in self.names if name in chosen)
        return keys if len(keys) == len(self.names) and keys in self.rows else None

    def with_some(self, chosen: Mapping[str, Key]) -> Iterable[Keys]:
        """The values of tuples that have those that are chosen."""
        names = tuple(name for name in self.names if name in chosen)
        if not names:
            return self.rows
        index = self._by_some.get(names)
        if index is None:
            index = self._by_some[names] = {}
            for keys in self.rows:
                index.setdefault(self._part(keys, names), []).append(keys)
        return index.get(tuple(chosen[name] for name in names), ())

    def _part(self, keys: Keys, names: Names) -> Keys:
        return tuple(one for name, one in zip(self.names, keys, strict=True) if name in names)


def _extended(chosen: Mapping[str, Key], tables: Sequence[_Table]) -> Iterator[Mapping[str, Key]]:
    """The choices that go on from some values: from each table values that go with them, or none."""
    if not tables:
        yield chosen
        return
    table, others = tables[0], tables[1:]
    if any(name not in chosen for name in table.names):
        for keys in table.with_some(chosen):
            yield from _extended({**chosen, **dict(zip(table.names, keys, strict=True))}, others)
    yield from _extended(chosen, others)
