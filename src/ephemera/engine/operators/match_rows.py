"""This module matches a few flat events with patterns row by row: what `match_events` does by columns.

What a pattern asks of a row is found out once. A query with patterns other than by position is left to `match_events`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ephemera.algebra.attributes import position
from ephemera.kernels.event_columns import BEGIN, END, REFERENCE
from ephemera.kernels.tail import Row, plain_key
from ephemera.terms.nodes import Atom, Bool, Null, Number, Pattern, Text, Var
from ephemera.terms.values import equal, merged

RowMatch = Callable[[Row], Row | None]
"""The tuple of an event that matches, or None."""


def row_matchers(patterns: Sequence[Pattern]) -> Mapping[tuple[str, int | None], Sequence[RowMatch]] | None:
    """For each label and arity how its events are matched, or None if some pattern cannot be matched by rows."""
    found: dict[tuple[str, int | None], list[RowMatch]] = {}
    for pattern in patterns:
        if not isinstance(pattern, Atom):
            return None
        found.setdefault((str(pattern.label), len(pattern.arguments)), []).append(_matcher(pattern))
    return found


def _matcher(pattern: Atom) -> RowMatch:
    bound: dict[str, str] = {}
    again: list[tuple[str, str]] = []
    constants: list[tuple[str, Any]] = []
    for k, argument in enumerate(pattern.arguments):
        match argument:
            case Var(name) if name in bound:
                again.append((name, position(k)))
            case Var(name):
                bound[name] = position(k)
            case Text(value) | Number(value) | Bool(value):
                constants.append((position(k), plain_key(value)))
            case Null():
                return lambda _row: None
            case _:
                continue
    named = [(BEGIN, BEGIN), (END, END), (REFERENCE, REFERENCE), *bound.items()]

    def found(row: Row) -> Row | None:
        for place, value in constants:
            if plain_key(row[place]) != value:
                return None
        matched: dict[str, Any] = {name: row[place] for name, place in named}
        for name, place in again:
            if equal(matched[name], row[place]) is not True:
                return None
            matched[name] = merged(matched[name], row[place])
        return matched

    return found
