"""This module abstracts patterns and heads to shapes, and says which heads a pattern may match.

A shape forgets variables and values and keeps labels, brackets and numbers of children: dependencies are by
label and shape. The question errs on the side of yes. An event with positions is the ordered term of its values;
if its type is declared, it is the term of its attributes too.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

from ephemera.base.lazy_dataclass import dataclass
from ephemera.syntax.nodes import Derive, Detect, Head, Raise
from ephemera.terms.nodes import (
    All,
    AnyEvent,
    As,
    Atom,
    Bool,
    Construct,
    ConstructTerm,
    Desc,
    Element,
    Label,
    NamedAtom,
    Number,
    Optional,
    OptionalConstruct,
    Pattern,
    Periodic,
    QueryTerm,
    Text,
    Var,
    Without,
)


@dataclass(frozen=True, slots=True)
class Anything:
    """A variable, a computed value, or a descendant: no label can be told."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text or number, which is no element."""


@dataclass(frozen=True, slots=True)
class Positions:
    """An event by position."""

    label: str
    arity: int


@dataclass(frozen=True, slots=True)
class Labelled:
    """Any event that carries the label."""

    label: str


@dataclass(frozen=True, slots=True)
class Tree:
    """An element: the children it must have, and how many more (None: any number) it may have."""

    label: str | None
    ordered: bool
    children: tuple[Shape, ...]
    spare: int | None


Shape: TypeAlias = Anything | Leaf | Positions | Labelled | Tree

ANYTHING = Anything()
LEAF = Leaf()


def pattern_shape(pattern: Pattern) -> Shape:
    """The shape that a pattern asks for."""
    match pattern:
        case Atom(label, arguments):
            return Positions(str(label), len(arguments))
        case NamedAtom(label, _) | AnyEvent(label):
            return Labelled(str(label))
        case Periodic():
            return Labelled(str(pattern.label))
        case Element(Var(), _, _, _) | As(_, Element(Var(), _, _, _)):
            return ANYTHING  # a label variable depends on every rule
        case _:
            return _term_shape(pattern)


def _term_shape(term: QueryTerm) -> Shape:
    match term:
        case As(_, inner):
            return _term_shape(inner)
        case Element(label, ordered, partial, children):
            inside = [c for c in children if not is_attribute(c)]
            needed = tuple(_term_shape(c) for c in inside if not isinstance(c, Without | Optional))
            optional = sum(isinstance(c, Optional) for c in inside)
            name = str(label) if isinstance(label, Label) else None
            return Tree(name, ordered, needed, None if partial else optional)
        case Desc() | Without() | Optional():
            return ANYTHING
        case Var():
            return ANYTHING
        case _:
            return LEAF


def is_attribute(term: QueryTerm | ConstructTerm) -> bool:
    """Whether a child is an attribute (``@x``), which completeness leaves out."""
    match term:
        case Element(Label() as label, _, _, _) | Construct(Label() as label, _, _):
            return str(label).startswith("@")
        case Without(inner) | Optional(inner) | As(_, inner) | All(inner, _, _) | OptionalConstruct(inner, _):
            return is_attribute(inner)
        case _:
            return False


def head_shape(head: Head) -> Shape | None:
    """The shape of the events a rule derives; messages are not queryable."""
    match head:
        case Derive(label, arguments):
            return Positions(str(label), len(arguments))
        case Detect(term):
            return _construct_shape(term)
        case Raise():
            return None
        case _:
            assert_never(head)


def _construct_shape(term: ConstructTerm) -> Shape:
    match term:
        case All(inner, _, _) | OptionalConstruct(inner, None):
            return _construct_shape(inner)
        case OptionalConstruct():
            return ANYTHING
        case Construct(label, ordered, children):
            inside = [c for c in children if not is_attribute(c)]
            fixed = tuple(_construct_shape(c) for c in inside)
            many = any(isinstance(c, All | OptionalConstruct) for c in inside)
            name = str(label) if isinstance(label, Label) else None
            return Tree(name, ordered, fixed, None if many else 0)
        case _:
            return LEAF if isinstance(term, Text | Number | Bool) else ANYTHING


def shape_label(shape: Shape) -> str | None:
    """The label of a shape, if it has one."""
    return shape.label if isinstance(shape, Positions | Labelled | Tree) else None


def may_match(query: Shape, head: Shape, *, declared: bool) -> bool:
    """Whether an event of the head's shape may match a pattern of the query's; both carry the same label."""
    match query, head:
        case (Anything() | Labelled(), _) | (_, Anything() | Labelled()):
            return True
        case Leaf(), _:
            return isinstance(head, Leaf)
        case _, Leaf():
            return False
        case Positions(a, n), Positions(b, m):
            return a == b and n == m
        case Positions(a, n), Tree(b, _, children, spare):
            return b in (None, a) and (declared or _fits(n, 0, len(children), spare))
        case Tree(a, _, children, spare), Positions(b, m):
            return a in (None, b) and (declared or _fits(len(children), spare, m, 0))
        case Tree(), Tree():
            return _tree_may_match(query, head)
        case _:
            return True


def _tree_may_match(query: Tree, head: Tree) -> bool:
    if query.label is not None and head.label is not None and query.label != head.label:
        return False
    if not _fits(len(query.children), query.spare, len(head.children), head.spare):
        return False
    if query.ordered and not head.ordered and head.spare == 0 and len(head.children) > 1:
        return False
    return all(any(may_match(q, h, declared=False) for h in head.children) for q in query.children)


def _fits(needed: int, spare: int | None, least: int, more: int | None) -> bool:
    """Whether `needed` children and up to `spare` further ones can be what `least` (or with `more`, others) give.

    A head with `all` or `optional` in it may build more or fewer children than it has members.
    """
    if more is None:
        return True
    return needed <= least and (spare is None or least <= needed + spare)
