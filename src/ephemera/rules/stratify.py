"""This module orders rules into strata, or shows the cycle that keeps them from it.

A rule stands above what it negates, groups or anchors a timer to, and not below what it asks for positively
(thesis 10.1.2). Positive recursion stays within one stratum.
"""

from __future__ import annotations

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.graph import components, shortest_path
from ephemera.base.span import Span
from ephemera.base.suggest import fresh
from ephemera.rules.declare import head_label, head_label_span
from ephemera.rules.dependencies import Asked, Edge, Graph, Vertex
from ephemera.rules.findings import Findings
from ephemera.rules.nodes import Dependency, DependencyKind, Resolved
from ephemera.rules.shapes import shape_label
from ephemera.syntax.nodes import Rule

_KINDS: tuple[DependencyKind, ...] = ("negative", "grouping", "temporal", "positive")
_ADVERBS = {
    "negative": "needs the absence of",
    "grouping": "aggregates",
    "temporal": "anchors a timer to",
    "positive": "asks for",
}
_REASONS = {
    "negative": "an absence can be decided only when everything it speaks of has been derived",
    "grouping": "an aggregate is known only when all it ranges over has been derived",
    "temporal": "a timer can begin only after the event it is anchored to, so the event cannot come from the timer",
}


def stratify(resolved: Resolved, findings: Findings) -> tuple[tuple[int, ...], tuple[tuple[Dependency, ...], ...]]:
    """For each rule its stratum, counted from 1, and what it depends on."""
    graph = Graph(resolved)
    numbers = range(1, len(resolved.rules) + 1)
    vertices: list[Vertex] = list(numbers)
    level: dict[Vertex, int] = {}
    for component in components(vertices, graph.successors):
        members = set(component)
        inner = [e for n in component if isinstance(n, int) for e in graph.edges[n] if e.asked in members]
        strict = [e for e in inner if e.kind != "positive"]
        if strict:
            _tell_cycle(resolved, graph, members, strict, findings)
        height = max((_height(v, graph, level, members) for v in component), default=0)
        for vertex in component:
            level[vertex] = height
    _check_blocks(resolved, graph, findings)
    strata = tuple(level[n] for n in numbers)
    return strata, tuple(_dependencies(graph, n) for n in numbers)


def _height(vertex: Vertex, graph: Graph, level: dict[Vertex, int], members: set[Vertex]) -> int:
    if not isinstance(vertex, int):
        return max((level[v] for v in graph.successors(vertex) if v not in members), default=0)
    below = [level[e.asked] + (e.kind != "positive") for e in graph.edges[vertex] if e.asked not in members]
    return max([1, *below])


def _dependencies(graph: Graph, number: int) -> tuple[Dependency, ...]:
    kinds: dict[Asked, set[DependencyKind]] = {}
    for edge in graph.edges[number]:
        kinds.setdefault(edge.asked, set()).add(edge.kind)
    return tuple(
        Dependency(shape_label(asked.shape), tuple(k for k in _KINDS if k in found), graph.rules_answering(asked))
        for asked, found in kinds.items()
    )


# ---- cycles ------------------------------------------------------------------------------------------------


def _tell_cycle(resolved: Resolved, graph: Graph, members: set[Vertex], strict: list[Edge], findings: Findings) -> None:
    """One message for a component: the shortest cycle through the first strict edge in the text."""
    first = min(strict, key=lambda e: e.span.start)
    start = next(n for n in members if isinstance(n, int) and first in graph.edges[n])

    def inside(vertex: Vertex) -> list[Vertex]:
        return [v for v in graph.successors(vertex) if v in members]

    begin: Vertex = first.asked
    path: list[Vertex] = [start, *shortest_path(begin, start, inside)]
    notes: list[str] = []
    related: list[Related] = []
    for position, vertex in enumerate(path[:-1]):
        if not isinstance(vertex, int):
            continue
        asked = path[position + 1]
        edge = first if position == 0 else _strongest(graph.edges[vertex], asked)
        rule = resolved.rules[vertex - 1]
        following = next(v for v in path[position + 1 :] if isinstance(v, int))
        target = _title(resolved.rules[following - 1])
        notes.append(f"rule {vertex}, {_title(rule)}, {_ADVERBS[edge.kind]} {target} ({edge.kind})")
        if edge is not first:
            related.append(Related(edge.span, f"{edge.kind}: {_ADVERBS[edge.kind]} {target}"))
    rule = resolved.rules[start - 1]
    findings.add(
        Code.NOT_STRATIFIABLE,
        f"{_title(rule)} depends on itself: {_REASONS[first.kind]}",
        first.span,
        notes=notes,
        related=related,
        help=[_other_name(rule, [resolved.rules[n - 1] for n in members if isinstance(n, int)], resolved)],
    )


def _strongest(edges: list[Edge], asked: Vertex) -> Edge:
    return min((e for e in edges if e.asked == asked), key=lambda e: _KINDS.index(e.kind))


def _title(rule: Rule) -> str:
    label = head_label(rule.head)
    return "a message" if label is None else f"`{label}`"


def _other_name(rule: Rule, others: list[Rule], resolved: Resolved) -> Help:
    """Deriving under a name that nothing of the cycle asks for breaks it, if the old one is still known then."""
    label = head_label(rule.head)
    derived = 0 if label is None else len(resolved.catalogue.derived[label])
    known = not resolved.catalogue.is_closed or label in resolved.catalogue.events or derived > 1
    if label is None or not known or sum(head_label(other.head) == label for other in others) > 1:
        return Help("let one of these rules ask for something that none of them derives")
    taken = {*resolved.catalogue.events, *resolved.catalogue.derived, *resolved.catalogue.tables}
    free = fresh(label, taken)
    return Help(
        f"derive it under another name, such as `{free}`, so that it does not feed itself",
        (Edit(head_label_span(rule.head), free),),
    )


# ---- strata written by hand --------------------------------------------------------------------------------


def _check_blocks(resolved: Resolved, graph: Graph, findings: Findings) -> None:
    """STRATUM blocks must be a stratification: what a rule asks for is derived in its own block or above it."""
    highest: dict[Asked, int] = {}
    for number, edges in graph.edges.items():
        block = resolved.blocks[number - 1]
        if block is None:
            continue
        for edge in edges:
            if edge.asked not in highest:
                blocks = [resolved.blocks[n - 1] or 0 for n in graph.rules_answering(edge.asked)]
                highest[edge.asked] = max(blocks, default=0)
            other = highest[edge.asked]
            if other > block or (other == block and edge.kind != "positive"):
                label = shape_label(edge.asked.shape) or "an event"
                where = "a later STRATUM" if other > block else "the same STRATUM"
                findings.add(
                    Code.STRATUM_ORDER,
                    f"`{label}` is derived in {where}, and this rule {_ADVERBS[edge.kind]} it",
                    edge.span,
                    related=[Related(_later(edge, other, graph, resolved), "derived here")],
                    help=[
                        Help(
                            f"put the rules that derive `{label}` into a STRATUM before this one, or leave STRATUM out"
                        )
                    ],
                )


def _later(edge: Edge, block: int, graph: Graph, resolved: Resolved) -> Span:
    """The head of the first rule in that block that derives what is asked for."""
    answering = graph.rules_answering(edge.asked)
    return next(resolved.rules[n - 1].head.span for n in answering if resolved.blocks[n - 1] == block)
