"""This module says which recursive rules may go on without end.

The times of answers are no cause: a head's interval covers events and timers, no timer is anchored to what comes of it
(`stratify`), so there are no more begins and ends than the rest of the program has. Nor are values that are handed on.
What grows is a variable that, by way of a cycle, gets a value computed from itself, or a term built around itself.
`series` counts the answers of such rules. All other recursion ends, since there are finitely many events to derive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from ephemera.base.graph import components
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.rules.declare import head_label
from ephemera.rules.dependencies import Asked, Graph, Vertex
from ephemera.rules.nodes import Catalogue, Growth, NormalRule, Resolved
from ephemera.rules.scope import pattern_bindings, primitives
from ephemera.rules.shapes import pattern_shape
from ephemera.syntax.nodes import Derive, Head
from ephemera.terms.nodes import (
    As,
    Atom,
    Construct,
    ConstructTerm,
    Desc,
    Element,
    Label,
    NamedAtom,
    Optional,
    OptionalConstruct,
    Pattern,
    QueryTerm,
    Var,
)

Step: TypeAlias = str | int | None
"""One level down in a term: to a child of a label, to the argument at a position, or to any child."""
Path: TypeAlias = tuple[Step, ...]
Variable: TypeAlias = tuple[int, str]
"""A variable of a normal rule."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A place of a head, and the variables that its value is made of."""

    path: Path
    variables: tuple[str, ...]
    is_computed: bool


@dataclass(frozen=True, slots=True)
class _Bound:
    """A place of a pattern that binds a variable."""

    path: Path
    variable: str
    sure: int
    """How many steps of the path are sure; below `desc` the others only say how deep it lies at least."""


def growth(resolved: Resolved, normal: tuple[NormalRule, ...]) -> dict[int, Growth]:
    """The rules that may grow, by their numbers."""
    graph = Graph(resolved)
    vertices: list[Vertex] = list(range(1, len(resolved.rules) + 1))
    found: dict[int, Growth] = {}
    for component in components(vertices, graph.successors):
        rules = frozenset(v for v in component if isinstance(v, int))
        if len(component) > 1 and rules:
            found |= _Cycle(rules, graph, resolved, normal).growth()
    return found


class _Cycle:
    """Rules that need each other, and how values travel between them."""

    def __init__(self, rules: frozenset[int], graph: Graph, resolved: Resolved, normal: tuple[NormalRule, ...]) -> None:
        self._rules = rules
        self._resolved = resolved
        self._graph = graph
        self._normal = {k: n for k, n in enumerate(normal) if n.rule in rules}
        self._shown = {k: list(_shown(n.head, resolved.catalogue)) for k, n in self._normal.items()}
        self._edges: dict[Variable, set[tuple[Variable, bool]]] = {}
        for k, n in self._normal.items():
            self._connect(k, n)

    def _connect(self, number: int, normal: NormalRule) -> None:
        """A variable that something outside of the cycle binds, too, has no more values than there are outside."""
        sure = [e.pattern for e in normal.events] + [c.event.pattern for c in normal.collects if not c.optional]
        outside = [*(p for p in sure if not self._feeding(p)), *(t.pattern for t in normal.tables)]
        known = frozenset[str]().union(*(pattern_bindings(p).sure for p in outside))
        perhaps = [c.event.pattern for c in normal.collects if c.optional]
        perhaps += [p for literal in normal.algebra for p in primitives(literal.expression)]
        for pattern in (*sure, *perhaps):
            for bound in _bound(pattern, self._resolved.catalogue):
                if bound.variable not in known:
                    self._feed((number, bound.variable), bound, self._feeding(pattern))

    def _feeding(self, pattern: Pattern) -> frozenset[int]:
        return self._rules.intersection(self._graph.rules_answering(Asked(pattern_shape(pattern))))

    def _feed(self, variable: Variable, bound: _Bound, rules: frozenset[int]) -> None:
        for k, n in self._normal.items():
            for shown in self._shown[k] if n.rule in rules else ():
                if _may_meet(bound, shown.path):
                    grows = shown.is_computed or len(shown.path) > len(bound.path)
                    for name in shown.variables:
                        self._edges.setdefault((k, name), set()).add((variable, grows))

    def growth(self) -> dict[int, Growth]:
        variables = set(self._edges) | {v for edges in self._edges.values() for v, _ in edges}

        def successors(variable: Variable) -> list[Variable]:
            return [v for v, _ in sorted(self._edges.get(variable, ()))]

        part = {v: k for k, members in enumerate(components(sorted(variables), successors)) for v in members}
        sources = {u for u, edges in self._edges.items() for v, grows in edges if grows and part[u] == part[v]}
        growing = _reached(sources, successors)
        rules = {self._normal[k].rule for k, _ in sources}
        return {rule: self._told(rule, growing) for rule in rules}

    def _told(self, rule: int, growing: set[Variable]) -> Growth:
        own = [k for k, n in self._normal.items() if n.rule == rule]
        names = {name for k in own for shown in self._shown[k] for name in shown.variables}
        grows = {name for name in names if any((k, name) in growing for k in own)}
        cycle = tuple((r, head_label(self._resolved.rules[r - 1].head) or "any") for r in sorted(self._rules))
        return Growth(rule, cycle, tuple(sorted(grows)), tuple(sorted(names - grows)))


def _reached(sources: Iterable[Variable], successors: Callable[[Variable], list[Variable]]) -> set[Variable]:
    found: set[Variable] = set()
    waiting = list(sources)
    while waiting:
        variable = waiting.pop()
        if variable not in found:
            found.add(variable)
            waiting += successors(variable)
    return found


def _may_meet(bound: _Bound, path: Path) -> bool:
    """Whether what a pattern binds may be, hold, or lie in what a head shows at a path."""
    return all(
        a is None or b is None or type(a) is not type(b) or a == b
        for a, b in zip(bound.path[: bound.sure], path, strict=False)
    )


# ---- places ------------------------------------------------------------------------------------------------


def _shown(head: Head, catalogue: Catalogue) -> Iterator[_Shown]:
    if not isinstance(head, Derive):
        yield from _children(head.term, ())
        return
    names = catalogue.attributes(str(head.label))
    for k, argument in enumerate(head.arguments):
        yield _leaf(argument, (k,) if names is None else (names[k], None))


def _children(term: ConstructTerm, path: Path) -> Iterator[_Shown]:
    match term:
        case Construct(label, _, children):
            if isinstance(label, Var):
                yield _Shown(path, (label.name,), is_computed=False)
            for child in children:
                yield from _children(child, (*path, _step(child)))
        case OptionalConstruct(inner, default):
            yield from _children(inner, path)
            if default is not None:
                yield from _children(default, path)
        case _:
            yield _leaf(term, path)


def _leaf(value: ConstructTerm, path: Path) -> _Shown:
    names = tuple(dict.fromkeys(v.name for v in find(value, Var)))
    return _Shown(path, names, is_computed=not isinstance(value, Var))


def _step(child: ConstructTerm | QueryTerm) -> Step:
    match child:
        case Construct(label) | Element(label) if isinstance(label, Label):
            return str(label)
        case OptionalConstruct(inner, None) | As(_, inner) | Optional(inner):
            return _step(inner)
        case _:
            return None


def _bound(pattern: Pattern, catalogue: Catalogue) -> Iterator[_Bound]:
    match pattern:
        case Atom(label, arguments):
            names = catalogue.attributes(str(label))
            for k, argument in enumerate(arguments):
                if isinstance(argument, Var):
                    path: Path = (k,) if names is None else (names[k], None)
                    yield _Bound(path, argument.name, len(path))
        case NamedAtom(_, fields):
            for field_ in fields:
                if isinstance(field_.argument, Var):
                    yield _Bound((field_.name, None), field_.argument.name, 2)
        case Element() | As() | Desc() | Var():
            yield from _within(pattern, (), None)
        case _:
            return


def _within(term: QueryTerm, path: Path, known: int | None) -> Iterator[_Bound]:
    """The places that a query term binds; `known` is how many steps are sure if not all are."""
    sure = len(path) if known is None else known
    match term:
        case Var(name):
            yield _Bound(path, name, sure)
        case As(name, inner):
            yield _Bound(path, name, sure)
            yield from _within(inner, path, known)
        case Desc(inner):
            # The child or any descendant of it: the last step is not sure any more.
            yield from _within(inner, path, max(len(path) - 1, 0) if known is None else known)
        case Optional(inner):
            yield from _within(inner, path, known)
        case Element(label, _, _, children):
            if isinstance(label, Var):
                yield _Bound(path, label.name, sure)
            for child in children:
                yield from _within(child, (*path, _step(child)), known)
        case _:
            return
