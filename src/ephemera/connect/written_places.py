"""This module says where answers go: where a run is told to write, or else where programs declare it.

What a run names gets everything. Otherwise what programs `WRITE … TO` a place goes there, and whatever none of them
names goes to standard output, messages and events of computed names too, as it does if nothing is said at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ephemera.connect.systems.address import beside
from ephemera.rules.nodes import Catalogue

if TYPE_CHECKING:
    from ephemera.connect.systems.live import Target
    from ephemera.formats.answers import AnswerBatch


@dataclass(frozen=True, slots=True)
class AllBut:
    """All names but some, of which nobody can say before a run what they are."""

    names: frozenset[tuple[int, str]]

    def __contains__(self, name: object) -> bool:
        return name not in self.names


Names: TypeAlias = frozenset[tuple[int, str]] | AllBut | None
"""Names of answers, each with the number of its program; None for all."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A place, None for standard output, and what goes there."""

    location: str | None
    names: Names = None


def destinations(
    outputs: Sequence[str], catalogues: Sequence[Catalogue], folders: Sequence[Path] | None = None
) -> list[Destination]:
    """Where answers go; paths that programs declare are relative to their folders."""
    if outputs:
        return [Destination(one) for one in dict.fromkeys(outputs)]
    found: dict[str, set[tuple[int, str]]] = {}
    for number, catalogue in enumerate(catalogues):
        for labels, location in catalogue.writes:
            name = beside(location, None if folders is None else folders[number])
            found.setdefault(name, set()).update((number, label) for label in labels)
    if not found:
        return [Destination(None)]
    named = frozenset(one for own in found.values() for one in own)
    places = [Destination(name, frozenset(own)) for name, own in found.items()]
    return [*places, Destination(None, AllBut(named))]


@dataclass(frozen=True, slots=True)
class Written:
    """A target, and which answers go there."""

    target: Target
    names: Names = None

    def chosen(self, answers: AnswerBatch) -> AnswerBatch:
        """Those of some answers that go there."""
        return chosen(answers, self.names)


def chosen(answers: AnswerBatch, names: Names) -> AnswerBatch:
    """Those of some answers that have some names."""
    if names is None:
        return answers
    own = [k for k, part in enumerate(answers.parts) if (part.program, part.events.label) in names]
    return replace(answers, parts=[answers.parts[k] for k in own], rules=[answers.rules[k] for k in own])
