"""This module makes random expressions of the event detection algebra, and says what figure 2 finds for them.

The reference is written from the figure alone, over plain tuples: it shares no code with the oracle and the engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import ephemera
from ephemera.program import Program

LABELS = ("a", "b", "c")
LATEST = 24


@dataclass(frozen=True)
class Atom:
    label: str
    number: int
    keyed: bool


@dataclass(frozen=True)
class Node:
    sign: str
    left: Any
    right: Any


@dataclass(frozen=True)
class Within:
    inner: Any
    length: int


Tree = Atom | Node | Within


@dataclass(frozen=True)
class Case:
    """A rule with one expression, and events for it."""

    tree: Tree
    events: tuple[dict[str, Any], ...]
    points: bool

    @property
    def text(self) -> str:
        lasts = "".join(f"EVENT {label}(k: any, id: int);\n" for label in LABELS) if self.points else ""
        head = ", ".join(self.head)
        return f"TIME UNIT 1 sec;\n{lasts}p({head}) <- e: algebra ({text(self.tree)});"

    @property
    def head(self) -> list[str]:
        return sorted(sure(self.tree))

    def program(self) -> Program:
        return ephemera.compile(self.text)


def text(tree: Tree) -> str:
    match tree:
        case Atom(label, number, keyed):
            return f"{label}({'x' if keyed else '_'}, v{number})"
        case Within(inner, length):
            return f"({text(inner)})[{length} sec]"
        case Node(sign, left, right):
            return f"({text(left)}{'' if sign == ';' else ' '}{sign} {text(right)})"


def sure(tree: Tree) -> set[str]:
    match tree:
        case Atom(_, number, keyed):
            return {f"v{number}", "x"} if keyed else {f"v{number}"}
        case Within(inner, _):
            return sure(inner)
        case Node("|", left, right):
            return sure(left) & sure(right)
        case Node("-", left, _):
            return sure(left)
        case Node(_, left, right):
            return sure(left) | sure(right)


def atoms(tree: Tree) -> list[Atom]:
    match tree:
        case Atom():
            return [tree]
        case Within(inner, _):
            return atoms(inner)
        case Node(_, left, right):
            return atoms(left) + atoms(right)


def make(dice: Random) -> Case:
    """A random case: of points or intervals, simultaneous or not; all, some or no primitives share a variable."""
    sharing = dice.choice([0.0, 1.0, 1.0, 0.7])
    numbers = iter(range(1, 99))

    def tree(depth: int) -> Tree:
        if depth == 0 or dice.random() < 0.15:
            return Atom(dice.choice(LABELS), next(numbers), dice.random() < sharing)
        if dice.random() < 0.25:
            return Within(tree(depth - 1), dice.choice([0, 1, 2, 3, 5, 8]))
        return Node(dice.choice("|+-;;"), tree(depth - 1), tree(depth - 1))

    points = dice.random() < 0.5
    latest = dice.choice([6, LATEST])
    keys: list[Any] = dice.choice([[1], [1, 2], [1, 2, None], [1, 1.0, 2, "s"]])
    events = []
    for _ in range(dice.randrange(1, 26)):
        begin = dice.randrange(latest)
        time = begin if points else [begin, begin + dice.choice([0, 0, 1, 2, 5])]
        data = [dice.choice(keys), dice.randrange(4)]
        events.append({"event": dice.choice(LABELS), "time": time, "data": data})
    unique = list({repr(_normal(e)): e for e in events}.values())
    unique.sort(key=_end)
    return Case(tree(dice.choice([1, 2, 3])), tuple(unique), points)


def _normal(event: dict[str, Any]) -> Any:
    k = event["data"][0]
    return event["event"], event["time"], float(k) if isinstance(k, (int, float)) else k, event["data"][1]


def _end(event: dict[str, Any]) -> int:
    time = event["time"]
    return int(time[1] if isinstance(time, list) else time)


def _begin(event: dict[str, Any]) -> int:
    time = event["time"]
    return int(time[0] if isinstance(time, list) else time)


# ---- figure 2 ----------------------------------------------------------------------------------------------

Instance = tuple[int, int, tuple[tuple[str, Any], ...]]


def reference(case: Case, *, parts: bool = True) -> list[Any] | None:
    """The answers by figure 2; None if it depends on which values come later which instance is picked."""
    shared = sum(atom.keyed for atom in atoms(case.tree)) > 1
    if shared and not _has_key(case.tree):
        return None
    keys = [e["data"][0] for e in case.events if e["data"][0] is not None]
    answers = []
    for key in dict.fromkeys(map(_one, keys)) if shared else [None]:
        for begin, end, bound in _run(case, key, shared=shared):
            values = dict(bound)
            data = [values[name] for name in case.head] if parts else []
            answers.append((begin, end, repr([_one(v) for v in data])))
    return sorted(set(answers))


def _has_key(tree: Tree) -> bool:
    match tree:
        case Atom(_, _, keyed):
            return keyed
        case Within(inner, _):
            return _has_key(inner)
        case Node("|", left, right):
            return _has_key(left) and _has_key(right)
        case Node("-", left, _):
            return _has_key(left)
        case Node(_, left, right):
            return _has_key(left) or _has_key(right)


def _one(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def _rank(value: Any) -> Any:
    return (0,) if value is None else (1, value) if not isinstance(value, str) else (2, value)


def _order(event: dict[str, Any], *, declared: bool) -> Any:
    """The total order; attributes of declared events are ordered by their names, and one that is null is not there."""
    k, number = event["data"]
    return (k is None, number, _rank(k)) if declared else (_rank(k), number)


def _run(case: Case, key: Any, *, shared: bool) -> list[Instance]:
    state: dict[int, dict[str, Any]] = {}
    found = []
    for now in sorted({_end(e) for e in case.events}):
        here = [e for e in case.events if _end(e) == now]
        one = _at(case.tree, here, key, shared, case.points, state, now)
        if one is not None:
            found.append(one)
    return found


def _at(  # noqa: PLR0913, PLR0917 - a figure in one function
    tree: Tree, here: list[Any], key: Any, shared: bool, declared: bool, state: dict[int, Any], now: int
) -> Instance | None:
    far = float("-inf")
    match tree:
        case Atom(label, number, keyed):
            mine = [e for e in here if e["event"] == label]
            if keyed and shared:
                mine = [e for e in mine if e["data"][0] is not None and _one(e["data"][0]) == key]
            if not mine:
                return None
            e = max(mine, key=lambda e: (_begin(e), _order(e, declared=declared)))
            bound = ((f"v{number}", e["data"][1]), *((("x", e["data"][0]),) if keyed else ()))
            return _begin(e), now, bound
        case Within(inner, length):
            one = _at(inner, here, key, shared, declared, state, now)
            return one if one is not None and one[1] - one[0] <= length else None
        case Node(sign, left, right):
            aj = _at(left, here, key, shared, declared, state, now)
            ak = _at(right, here, key, shared, declared, state, now)
            own = state.setdefault(id(tree), {"t": far, "l": None, "r": None, "q": []})
            sj, sk = (far if aj is None else aj[0]), (far if ak is None else ak[0])
            if sign == "|":
                return ak if sj <= sk else aj
            if sign == "-":
                own["t"] = max(own["t"], sk)
                return aj if own["t"] < sj else None
            if sign == "+":
                if (far if own["l"] is None else own["l"][0]) < sj:
                    own["l"] = aj
                if (far if own["r"] is None else own["r"][0]) < sk:
                    own["r"] = ak
                if own["l"] is None or own["r"] is None or (aj is None and ak is None):
                    return None
                return _union(aj, own["r"]) if aj is not None and sk <= sj else _union(own["l"], ak)
            result = None
            if ak is not None:
                before = [e for e in own["q"] if e[1] < ak[0]]
                if before:
                    result = _union(max(before, key=lambda e: e[0]), ak)
            if aj is not None and own["t"] < sj:
                own["q"].append(aj)
                own["t"] = sj
            return result


def _union(a: Any, b: Any) -> Instance:
    return min(a[0], b[0]), max(a[1], b[1]), a[2] + b[2]


# ---- runs --------------------------------------------------------------------------------------------------


def plain(answers: Any) -> list[Any]:
    """Answers as the reference has them."""
    found = []
    for answer in answers:
        time = answer["time"]
        begin, end = time if isinstance(time, list) else (time, time)
        found.append((int(begin), int(end), repr([_one(v) for v in answer["data"]])))
    return sorted(set(found))


def live(case: Case, dice: Random, *, restarts: float = 0.0) -> list[Any]:
    """The answers of a live engine that is given the events in some portions, and restarted in between."""
    program = case.program()
    engine = program.engine(allow_unbounded=True)
    found: list[Any] = []
    events = list(case.events)
    while events:
        size = dice.choice([1, 1, 2, 5, 30])
        found += engine.send_many(events[:size])
        events = events[size:]
        if dice.random() < restarts:
            engine = program.engine(allow_unbounded=True).restore(engine.snapshot())
    found += engine.finish()
    return plain(found)
