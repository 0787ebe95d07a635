"""This module finds strongly connected components and shortest paths in graphs given by a successor function."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


def components(vertices: Iterable[V], successors: Callable[[V], Sequence[V]]) -> list[list[V]]:
    """The strongly connected components, those that are reached first; Tarjan's algorithm without recursion."""
    index: dict[V, int] = {}
    low: dict[V, int] = {}
    on_stack: set[V] = set()
    stack: list[V] = []
    found: list[list[V]] = []
    for root in vertices:
        if root in index:
            continue
        work: list[tuple[V, int]] = [(root, 0)]
        while work:
            vertex, position = work.pop()
            if position == 0:
                index[vertex] = low[vertex] = len(index)
                stack.append(vertex)
                on_stack.add(vertex)
            following = successors(vertex)
            descended = False
            while position < len(following):
                other = following[position]
                position += 1
                if other not in index:
                    work.append((vertex, position))
                    work.append((other, 0))
                    descended = True
                    break
                if other in on_stack:
                    low[vertex] = min(low[vertex], index[other])
            if descended:
                continue
            if low[vertex] == index[vertex]:
                component: list[V] = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    component.append(member)
                    if member == vertex:
                        break
                found.append(component)
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[vertex])
    return found


def shortest_path(start: V, goal: V, successors: Callable[[V], Iterable[V]]) -> list[V]:
    """The vertices from start to goal, both included; empty if there is no way."""
    came_from: dict[V, V | None] = {start: None}
    waiting = deque([start])
    while waiting:
        vertex = waiting.popleft()
        if vertex == goal:
            path = [vertex]
            while (before := came_from[path[-1]]) is not None:
                path.append(before)
            return path[::-1]
        for other in successors(vertex):
            if other not in came_from:
                came_from[other] = vertex
                waiting.append(other)
    return []
