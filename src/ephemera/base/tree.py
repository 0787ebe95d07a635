"""This module walks trees of frozen dataclasses; all tree walking of the project that needs no context is here.

A node is a dataclass instance; its children are the dataclass instances in its fields, directly or in tuples.
Walks are iterative, so no depth of tree can exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter, is_not
from typing import Any, TypeAlias, TypeVar

from ephemera.base.span import Span

T = TypeVar("T")
Take: TypeAlias = Callable[[Any], tuple[Any, ...]]

_FIELDS: dict[type, tuple[str, ...] | None] = {}
"""For each class the fields that may hold children; None for what is no node."""

_TAKE: dict[type, Take] = {}
"""For each class of nodes what takes the values of these fields: walking is most of the work of compiling."""

_PLAIN = frozenset({"str", "int", "bool", "float", "None"})
"""What is declared so holds no node."""


def _child_fields(cls: type) -> tuple[str, ...] | None:
    if cls not in _FIELDS:
        is_node = is_dataclass(cls) and cls is not Span
        names = tuple(f.name for f in fields(cls) if f.name != "span" and not _is_plain(f.type)) if is_node else ()
        _FIELDS[cls] = names if is_node else None
        if is_node:
            _TAKE[cls] = _taking(names)
    return _FIELDS[cls]


def _is_plain(declared: object) -> bool:
    return isinstance(declared, str) and _PLAIN.issuperset(declared.split(" | "))


def _taking(names: tuple[str, ...]) -> Take:
    match names:
        case ():
            return lambda _: ()
        case (name,):
            only = attrgetter(name)
            return lambda node: (only(node),)
        case _:
            return attrgetter(*names)


def _is_node(value: Any) -> bool:
    return _child_fields(type(value)) is not None


def children(node: Any) -> list[Any]:
    """The nodes directly below, in the order of the fields."""
    if not _is_node(node):
        return []
    found: list[Any] = []
    for value in _TAKE[type(node)](node):
        kind = type(value)
        if kind is tuple:
            found += [item for item in value if type(item) in _TAKE or _is_node(item)]
        elif kind in _TAKE or _is_node(value):
            found.append(value)
    return found


def walk(node: Any) -> Iterator[Any]:
    """The node and all below it, in the order of the text."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        below = children(current)
        below.reverse()
        stack += below


def find(node: Any, kind: type[T] | tuple[type[T], ...]) -> Iterator[T]:
    """Every node of a kind, in the order of the text."""
    return (n for n in walk(node) if isinstance(n, kind))


def depth(node: Any) -> int:
    """How deep the tree below is; a leaf has depth 1."""
    deepest, level = 0, [node]
    while level:
        deepest += 1
        level = [child for n in level for child in children(n)]
    return deepest


def rebuild(node: T, change: Callable[[Any], Any]) -> T:
    """The tree with `change` applied to every node, leaves first; unchanged parts are shared."""
    order = list(walk(node))
    done: dict[int, Any] = {}
    for current in reversed(order):
        updates: dict[str, Any] = {}
        for name in _child_fields(type(current)) or ():
            value = getattr(current, name)
            if type(value) is tuple:
                new: Any = tuple([done[id(v)] if _is_node(v) else v for v in value])
                if any(map(is_not, new, value)):
                    updates[name] = new
            elif _is_node(value):
                new = done[id(value)]
                if new is not value:
                    updates[name] = new
        done[id(current)] = change(replace(current, **updates) if updates else current)
    result: T = done[id(node)]
    return result
