"""This module walks trees of frozen dataclasses; all tree walking of the project that needs no context is here.

A node is a dataclass instance; its children are the dataclass instances in its fields, directly or in tuples.
Walks are iterative, so no depth of tree can exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from ephemera.base.span import Span

T = TypeVar("T")


_FIELDS: dict[type, tuple[str, ...] | None] = {}
"""For each class the fields that may hold children; None for what is no node."""

_PLAIN = frozenset({str, int, bool, float, type(None)})
"""What is surely no node."""


def _child_fields(value: Any) -> tuple[str, ...] | None:
    cls = type(value)
    if cls not in _FIELDS:
        is_node = is_dataclass(cls) and cls is not Span
        _FIELDS[cls] = tuple(f.name for f in fields(cls) if f.name != "span") if is_node else None
    return _FIELDS[cls]


def _is_node(value: Any) -> bool:
    return _child_fields(value) is not None


def children(node: Any) -> list[Any]:
    """The nodes directly below, in the order of the fields."""
    found: list[Any] = []
    for name in _child_fields(node) or ():
        value = getattr(node, name)
        kind = type(value)
        if kind is tuple:
            found += [item for item in value if _is_node(item)]
        elif kind not in _PLAIN and _is_node(value):
            found.append(value)
    return found


def walk(node: Any) -> Iterator[Any]:
    """The node and all below it, in the order of the text."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += children(current)[::-1]


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
        for name in _child_fields(current) or ():
            value = getattr(current, name)
            if type(value) is tuple:
                new: Any = tuple(done[id(v)] if _is_node(v) else v for v in value)
                if any(a is not b for a, b in zip(new, value, strict=True)):
                    updates[name] = new
            elif _is_node(value):
                new = done[id(value)]
                if new is not value:
                    updates[name] = new
        done[id(current)] = change(replace(current, **updates) if updates else current)
    result: T = done[id(node)]
    return result
