"""This module shows which modules have state of their own, for all who run in a process: few, each with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ephemera

SOURCES = Path(ephemera.__file__).parent
PACKAGES = ("rewrite", "physical", "kernels", "formats", "engine", "connect", "spark")
KEPT = {
    "connect/systems/kafka_stretches._CONSUMERS": "consumers by topic and partition, the last 64",
    "engine/state/checkpoint_lock._HERE": "locks belong to processes; by path, until they are released",
    "spark/runtime/map_in_arrow._PACKING": "a lock",
    "spark/read/json_columns._secret()": "one number",
    "spark/runtime/exchange._unpacked()": "programs by their bytes, the last thousand",
    "spark/runtime/connect_session._CORES": "how many cores a server has, as long as there is a session",
    "spark/runtime/connect_session._SENT": "what was sent to its workers, as long as there is a session",
    "spark/runtime/session._LENDING": "a lock",
    "spark/live/task._SHARDS": "shards by query, level and place; its module has the bounds",
    "spark/runtime/ship_package._complaint()": "what is wrong with a Python, by its path, the last hundred",
    "spark/runtime/map_in_arrow._TASKS": "a counter",
    "spark/runtime/map_in_arrow._lines()": "the sockets of this process",
}
CHANGING = {"append", "add", "clear", "discard", "extend", "insert", "pop", "popleft", "remove", "setdefault", "update"}
STATEFUL = {"Lock", "RLock", "count", "deque", "defaultdict", "Counter", "ShardCache", "WeakValueDictionary", "local"}
CACHES = {"cache", "lru_cache"}


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _targets(node: ast.stmt) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return [target]
        case ast.Delete(targets=targets):
            return targets
        case _:
            return []


def _changed(function: ast.AST) -> Iterator[str | None]:
    """The names whose values something changes, as far as its text shows."""
    for node in ast.walk(function):
        if isinstance(node, ast.stmt):
            yield from (_root(one) for one in _targets(node) if isinstance(one, ast.Subscript | ast.Attribute))
        if isinstance(node, ast.Global):
            yield from node.names
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            yield _root(node.func)


def _state(tree: ast.Module) -> Iterator[str]:
    named = {one.id: node for node in tree.body for one in _targets(node) if isinstance(one, ast.Name)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    changed = {name for function in functions for name in _changed(function)}
    for name, node in named.items():
        value = getattr(node, "value", None)
        made = value.func if isinstance(value, ast.Call) else None
        if name in changed or (isinstance(made, ast.Name) and made.id in STATEFUL):
            yield name
    for function in functions:
        decorators = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
        if any(isinstance(d, ast.Name) and d.id in CACHES for d in decorators):
            yield f"{function.name}()"


def test_modules_have_no_state_but_what_is_named_here() -> None:
    found = {
        f"{path.relative_to(SOURCES).with_suffix('').as_posix()}.{name}"
        for package in PACKAGES
        for path in (SOURCES / package).rglob("*.py")
        for name in _state(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set(KEPT)
