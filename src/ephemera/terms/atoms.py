"""This module matches events: by their terms, by positions, by names of attributes.

An event of a declared type is the unordered term of its attributes; a missing attribute is null by position, and no
match in a term. Any other event with positions is the ordered term of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from ephemera.terms.events import Event
from ephemera.terms.match import Found, Substitution, bind, distinct, match, match_root, search_root
from ephemera.terms.nodes import (
    Anonymous,
    AnyEvent,
    Argument,
    As,
    Atom,
    Desc,
    Element,
    Label,
    Name,
    NamedAtom,
    Pattern,
    Periodic,
    QueryTerm,
)
from ephemera.terms.values import Term, Value

Names: TypeAlias = Sequence[str] | None
"""The attributes of a declared type in their order; None for an event by position or a free term."""

Attributes: TypeAlias = Callable[[str], Names]
"""The attributes that belong to a label."""


def match_event(pattern: Pattern, event: Event, known: Substitution, attributes: Attributes) -> list[Substitution]:
    """Every substitution under which the event matches."""
    return match_term(pattern, event.term, known, attributes(event.term.label))


def search_event(pattern: Pattern, event: Event, known: Substitution, attributes: Attributes) -> list[Found]:
    """The same, with what must be absent left to be tested when other events have bound their variables."""
    if isinstance(pattern, Element | As | Desc):
        return list(search_root(pattern, event.term, known))
    return [(found, ()) for found in match_event(pattern, event, known, attributes)]


def match_term(pattern: Pattern, term: Term, known: Substitution, names: Names) -> list[Substitution]:
    """The same for a term; the names are those of its attributes, None if it has none of its own."""
    match pattern:
        case AnyEvent() | Periodic():
            return [known] if str(pattern.label) == term.label else []
        case Atom(label, arguments):
            if str(label) != term.label:
                return []
            if names is not None:
                return distinct(_attributes(list(zip(names, arguments, strict=True)), term, known))
            if not term.is_ordered or term.attributes or len(term.children) != len(arguments):
                return []
            return distinct(_positions(arguments, term.children, known))
        case NamedAtom(label, fields):
            if str(label) != term.label:
                return []
            if names is not None:
                return distinct(_attributes([(f.name, f.argument) for f in fields], term, known))
            children = tuple(_child(f.name, f.argument) for f in fields)
            return match(Element(label, ordered=False, partial=True, children=children), term, known)
        case _:
            return match_root(pattern, term, known)


def _positions(arguments: Sequence[Argument], values: Sequence[Value], known: Substitution) -> Iterator[Substitution]:
    if not arguments:
        yield known
        return
    for found in _argument(arguments[0], values[0], known):
        yield from _positions(arguments[1:], values[1:], found)


def _attributes(wanted: list[tuple[str, Argument]], term: Term, known: Substitution) -> Iterator[Substitution]:
    if not wanted:
        yield known
        return
    (name, argument), rest = wanted[0], wanted[1:]
    children = [c for c in term.children if isinstance(c, Term) and c.label == name]
    values: list[Value] = [c.children[0] for c in children if len(c.children) == 1] if children else [None]
    for value in values:
        for found in _argument(argument, value, known):
            yield from _attributes(rest, term, found)


def _argument(argument: Argument, value: Value, known: Substitution) -> Iterator[Substitution]:
    match argument:
        case Anonymous():
            yield known
        case Name(name):
            yield from bind(name, value, known)
        case _:
            yield from match(argument, value, known)


def _child(name: str, argument: Argument) -> QueryTerm:
    if isinstance(argument, Anonymous):
        return Element(Label(name), ordered=False, partial=True, children=())
    if isinstance(argument, Name):
        raise TypeError(f"the name {argument.name} was not resolved")
    return Element(Label(name), ordered=False, partial=False, children=(argument,))


def attributes_term(label: str, values: Sequence[tuple[str, Value]]) -> Term:
    """A declared event: one child for each attribute that has a value."""
    children = tuple(Term(name, (value,)) for name, value in values if value is not None)
    return Term(label, children, ordered=False)
