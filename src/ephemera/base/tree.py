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

_PLAIN = frozenset({"str", "int", "bool", "float", "None"})
"""What is declared so holds no node."""


def _nothing(_: Any) -> tuple[Any, ...]:
    """Takes what a leaf has below it."""
    return ()


class _Takes(dict[type, "Take | None"]):
    """For each class of nodes what takes the values of its fields that may hold children; None for what is no node.

    Walking is most of the work of compiling, so a class is looked up once for each node.
    """

    def __missing__(self, cls: type) -> Take | None:
        names = _child_fields(cls)
        if names is not None:
            _FIELDS[cls] = names
        self[cls] = found = None if names is None else _taking(names)
        return found


_FIELDS: dict[type, tuple[str, ...]] = {}
"""The fields of the classes of nodes that were looked up."""
_TAKES = _Takes()


def _child_fields(cls: type) -> tuple[str, ...] | None:
    if not is_dataclass(cls) or cls is Span:
        return None
    return tuple(f.name for f in fields(cls) if f.name != "span" and not _is_plain(f.type))


def _is_plain(declared: object) -> bool:
    return isinstance(declared, str) and _PLAIN.issuperset(declared.split(" | "))


def _taking(names: tuple[str, ...]) -> Take:
    match names:
        case ():
            return _nothing
        case (name,):
            only = attrgetter(name)
            return lambda node: (only(node),)
        case _:
            return attrgetter(*names)


def flattened(node: Any) -> tuple[Any, ...]:
    """All of a tree in one tuple, the same for equal trees: to be hashed and compared at any depth."""
    found: list[Any] = []
    left = [node]
    while left:
        one = left.pop()
        kind = type(one)
        if kind is tuple:
            found.append((len(one),))
            left += reversed(one)
        elif _TAKES[kind] is not None:
            found.append(kind)
            left += reversed([getattr(one, field.name) for field in fields(one) if field.compare])
        else:
            found.append(one)
    return tuple(found)


def children(node: Any) -> list[Any]:
    """The nodes directly below, in the order of the fields."""
    take = _TAKES[type(node)]
    found: list[Any] = []
    for value in take(node) if take is not None else ():
        kind = type(value)
        if kind is tuple:
            found += [item for item in value if _TAKES[type(item)] is not None]
        elif _TAKES[kind] is not None:
            found.append(value)
    return found


def walk(node: Any) -> Iterator[Any]:
    """The node and all below it, in the order of the text."""
    return iter(_listed(node))


def _listed(node: Any) -> list[Any]:
    found: list[Any] = []
    stack = [node]
    takes = _TAKES
    while stack:
        current = stack.pop()
        found.append(current)
        take = takes[type(current)]
        if take is None or take is _nothing:
            continue
        for value in reversed(take(current)):
            kind = type(value)
            if kind is tuple:
                stack += [item for item in reversed(value) if takes[type(item)] is not None]
            elif takes[kind] is not None:
                stack.append(value)
    return found


def find(node: Any, kind: type[T] | tuple[type[T], ...]) -> Iterator[T]:
    """Every node of a kind, in the order of the text."""
    return iter([n for n in _listed(node) if isinstance(n, kind)])


def depth(node: Any) -> int:
    """How deep the tree below is; a leaf has depth 1."""
    deepest, level = 0, [node]
    while level:
        deepest += 1
        level = [child for n in level for child in children(n)]
    return deepest


def rebuild(node: T, change: Callable[[Any], Any]) -> T:
    """The tree with `change` applied to every node, leaves first; unchanged parts are shared."""
    done: dict[int, Any] = {}
    for current in reversed(_listed(node)):
        take = _TAKES[type(current)]
        if take is None or take is _nothing:
            done[id(current)] = change(current)
            continue
        updates: dict[str, Any] = {}
        for name, value in zip(_FIELDS[type(current)], take(current), strict=True):
            # All nodes below have been changed, and are alive: what else there is has another identity.
            if type(value) is tuple:
                new: Any = tuple([done.get(id(v), v) for v in value])
                if any(map(is_not, new, value)):
                    updates[name] = new
            else:
                new = done.get(id(value), value)
                if new is not value:
                    updates[name] = new
        done[id(current)] = change(replace(current, **updates) if updates else current)
    result: T = done[id(node)]
    return result
