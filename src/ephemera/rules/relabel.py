"""This module gives events of a program other labels: in heads, in declarations, and wherever a rule asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from ephemera.base.tree import rebuild
from ephemera.syntax.nodes import (
    Algebra,
    Composed,
    Derive,
    Detect,
    EventType,
    Limited,
    Reserve,
    Selection,
    Statement,
    Stream,
    Write,
)
from ephemera.terms.nodes import All, AnyEvent, As, Atom, Construct, Desc, Element, Label, NamedAtom, OptionalConstruct

Rename: TypeAlias = Callable[[Label], Label]
Found = TypeVar("Found")


def named(names: Mapping[str, str]) -> Rename:
    """Gives labels the names that stand beside theirs, and leaves others."""

    def rename(label: Label) -> Label:
        new = names.get(str(label))
        return label if new is None else Label(new, span=label.span)

    return rename


def renamed(statements: list[Statement], rename: Rename) -> list[Statement]:
    """Statements with other labels of events; those of elements inside of events stay."""

    def change(node: Any) -> Any:
        match node:
            case Atom(label=label) | NamedAtom(label=label) | AnyEvent(label=label):
                return with_parts(node, label=rename(label))
            case Algebra(expression=expression):
                return with_parts(node, expression=_root(expression, rename))
            case Composed(left=left, right=right):
                return with_parts(node, left=_root(left, rename), right=_root(right, rename))
            case Limited(operand=operand):
                return with_parts(node, operand=_root(operand, rename))
            case Derive(label=label) | EventType(label=label) | Reserve(label=label):
                return with_parts(node, label=rename(label))
            case Detect(term=term):
                return with_parts(node, term=_built(term, rename))
            case Write(labels=labels):
                return with_parts(node, labels=tuple(map(rename, labels)))
            case Stream(carries=carries):
                return with_parts(node, carries=tuple(map(rename, carries)))
            case Selection(without=without):
                return with_parts(node, without=tuple(_root(one, rename) for one in without))
            case _ if hasattr(node, "pattern"):  # of whatever kind a query is
                return with_parts(node, pattern=_root(node.pattern, rename))
            case _:
                return node

    return [rebuild(statement, change) for statement in statements]


def _root(pattern: Any, rename: Rename) -> Any:
    """A term that an event matches, with another label; what is none, as a part of the algebra, is as it was."""
    match pattern:
        case Element(label=Label() as label):
            return with_parts(pattern, label=rename(label))
        case As(term=term) | Desc(term=term):
            return with_parts(pattern, term=_root(term, rename))
        case _:
            return pattern


def _built(term: Any, rename: Rename) -> Any:
    match term:
        case Construct(label=Label() as label):
            return with_parts(term, label=rename(label))
        case All(term=inner) | OptionalConstruct(term=inner):
            return with_parts(term, term=_built(inner, rename))
        case _:
            return term


def with_parts(node: Found, **changed: Any) -> Found:
    """A node with other parts; the same one if they are as they were."""
    new = {name: value for name, value in changed.items() if getattr(node, name) != value}
    return replace(node, **new) if new else node  # type: ignore[type-var]
