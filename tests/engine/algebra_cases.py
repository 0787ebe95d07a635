"""This module makes random expressions of the event detection algebra, and says what figure 2 finds for them.

The reference is written from the figure alone, over plain tuples: it shares no code with the oracle and the engines.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import ephemera
from ephemera.algebra.attributes import begin, end, is_blank, is_variable
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.operators import detect
from ephemera.engine.operators.detectors import Detectors
from ephemera.formats.reading import read_event
from ephemera.kernels.history import FAR, History
from ephemera.program import Program
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from tests.engine.living import Beat, Host, cut
from tests.engine.spreading import outcome_of

LABELS = ("a", "b", "c")
LATEST = 24


@dataclass(frozen=True)
class Atom:
    label: str
    number: int
    keyed: bool
    second: bool = False
    """Whether it knows `y`, which others may share that do not know `x`."""

    @property
    def value(self) -> str:
        return "y" if self.second else f"v{self.number}"


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
    is_declared: bool
    """Events of declared types are ordered by the names of their attributes, so others may be picked."""

    @property
    def text(self) -> str:
        lasts = "" if self.points else " LASTS ANY"
        declared = "".join(f"EVENT {label}(k: any, id: int){lasts};\n" for label in LABELS if self.is_declared)
        head = ", ".join(self.head)
        return f"TIME UNIT 1 sec;\n{declared}p({head}) <- e: algebra ({text(self.tree)});"

    @property
    def head(self) -> list[str]:
        return sorted(sure(self.tree))

    def declaring(self) -> Case:
        """The same with declared types."""
        return replace(self, is_declared=True)

    def program(self) -> Program:
        return ephemera.compile(self.text)


def text(tree: Tree) -> str:
    match tree:
        case Atom(label, _, keyed):
            return f"{label}({'x' if keyed else '_'}, {tree.value})"
        case Within(inner, length):
            return f"({text(inner)})[{length} sec]"
        case Node(sign, left, right):
            return f"({text(left)}{'' if sign == ';' else ' '}{sign} {text(right)})"


def sure(tree: Tree) -> set[str]:
    match tree:
        case Atom(_, _, keyed):
            return {tree.value, "x"} if keyed else {tree.value}
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
    partly = dice.choice([0.0, 0.0, 0.0, 0.5])
    numbers = iter(range(1, 99))

    def tree(depth: int) -> Tree:
        if depth == 0 or dice.random() < 0.15:
            return Atom(dice.choice(LABELS), next(numbers), dice.random() < sharing, dice.random() < partly)
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
    return Case(tree(dice.choice([1, 2, 3])), tuple(unique), points, is_declared=points or dice.random() < 0.3)


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

Pair = tuple[Any, Any]
"""Of both variables that may be shared."""
Instance = tuple[int, int, tuple[tuple[str, Any], ...]]


def reference(case: Case) -> list[Any]:
    """The answers by figure 2, for each value of the shared variable, and for one that no event has."""
    answers = []
    for first, last, bound in _picked(case):
        values = dict(bound)
        answers.append((first, last, repr([_one(values[name]) for name in case.head])))
    return sorted(set(answers))


def reference_parts(case: Case) -> list[Any]:
    """The instances by figure 2 with all that is bound in them, also where a head may not say it."""
    return sorted({(first, last, _told(dict(bound))) for first, last, bound in _picked(case)})


def _told(bound: dict[str, Any]) -> str:
    return repr(sorted((name, _one(value)) for name, value in bound.items()))


def _picked(case: Case) -> Iterator[Instance]:
    shared = sum(atom.keyed for atom in atoms(case.tree)) > 1
    partly = sum(atom.second for atom in atoms(case.tree)) > 1
    keys = [e["data"][0] for e in case.events if e["data"][0] is not None]
    seconds = [e["data"][1] for e in case.events]
    for key in [*dict.fromkeys(map(_one, keys)), object()] if shared else [None]:
        for second in [*dict.fromkeys(seconds), object()] if partly else [None]:
            yield from _run(case, (key, second), shared=(shared, partly))


def _one(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def _rank(value: Any) -> Any:
    return (0,) if value is None else (1, value) if not isinstance(value, str) else (2, value)


def _order(event: dict[str, Any], *, declared: bool) -> Any:
    """The total order; attributes of declared events are ordered by their names, and one that is null is not there."""
    k, number = event["data"]
    return (k is None, number, _rank(k)) if declared else (_rank(k), number)


def _run(case: Case, key: Pair, *, shared: Pair) -> list[Instance]:
    state: dict[int, dict[str, Any]] = {}
    found = []
    for now in sorted({_end(e) for e in case.events}):
        here = [e for e in case.events if _end(e) == now]
        one = _at(case.tree, here, key, shared, case.is_declared, state, now)
        if one is not None:
            found.append(one)
    return found


def _at(  # noqa: PLR0913, PLR0917 - a figure in one function
    tree: Tree,
    here: list[Any],
    key: tuple[Any, Any],
    shared: tuple[bool, bool],
    declared: bool,
    state: dict[int, Any],
    now: int,
) -> Instance | None:
    far = float("-inf")
    match tree:
        case Atom(label, _, keyed, second):
            mine = [e for e in here if e["event"] == label]
            if keyed and shared[0]:
                mine = [e for e in mine if e["data"][0] is not None and _one(e["data"][0]) == key[0]]
            if second and shared[1]:
                mine = [e for e in mine if e["data"][1] == key[1]]
            if not mine:
                return None
            e = max(mine, key=lambda e: (_begin(e), _order(e, declared=declared)))
            bound = ((tree.value, e["data"][1]), *((("x", e["data"][0]),) if keyed else ()))
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
        first, last = time if isinstance(time, list) else (time, time)
        found.append((int(first), int(last), repr([_one(v) for v in answer["data"]])))
    return sorted(set(found))


@contextmanager
def by_columns() -> Iterator[None]:
    """Even one event is taken by columns."""
    before = detect.FEW, detect.SMALL
    detect.FEW = detect.SMALL = -1
    try:
        yield
    finally:
        detect.FEW, detect.SMALL = before


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


def disordered(case: Case, dice: Random) -> list[Any]:
    """The answers of a live engine to which events of declared types come out of order, none of them too late."""
    stream = "STREAM s CARRIES a, b, c WATERMARK 3 sec;\np("
    engine = ephemera.compile(case.declaring().text.replace("p(", stream, 1)).engine(allow_unbounded=True)
    arriving = sorted(case.events, key=lambda e: _end(e) + 2.9 * dice.random())
    found: list[Any] = []
    while arriving:
        size = dice.choice([1, 1, 1, 3])
        found += engine.send_many(arriving[:size])
        arriving = arriving[size:]
    found += engine.finish()
    assert not engine.late
    return plain(found)


def sharded(case: Case, dice: Random) -> list[tuple[int, int]]:
    """When answers of shards begin and end that forget and fail: all that they go on from was written down."""
    compiled = case.program()._compiled
    spread = DistributedProgram(compiled, World(), 0, dice.choice([1, 2, 3]), -FAR, FAR)
    events = [event for one in case.events if isinstance(event := read_event(one, compiled), Event)]
    with TemporaryDirectory() as folder:
        host = Host(spread, Path(folder), dice, cuts=dice.random() < 0.5)
        for portion in cut(events, dice):
            host.beat(Beat(portion))
        host.beat(Beat(ends=True))
    found = outcome_of(compiled.rules, compiled.plan, host.carried).events
    return sorted((e.time.begin // 1_000_000, e.time.end // 1_000_000) for e in found)


def parts(case: Case, dice: Random) -> list[Any]:
    """The instances that a live engine finds, with all that is bound in them, whatever the head says of it."""
    told: set[Any] = set()
    step, append = Detectors.step, History.append

    def listening(self: History, batch: Any, tick: int) -> None:
        append(self, batch, tick)
        if begin("e") in batch.columns:
            for row in batch.rows():
                bound: dict[str, Any] = {n: v for n, v in row.items() if is_variable(n) and not is_blank(n)}
                told.add((row[begin("e")] // 1_000_000, row[end("e")] // 1_000_000, _told(bound)))

    def stepping(self: Detectors, *arguments: Any) -> int:
        with patch.object(History, "append", listening):
            return step(self, *arguments)

    with patch.object(Detectors, "step", stepping):
        live(case, dice)
    return sorted(told)


def complaint_by_definition_12(case: Case, reported: list[Any]) -> str | None:
    """Why answers are no restriction of the meaning; None if they are, or if heads do not say of which value they are.

    They are part of the meaning; something is there for each end, and begins no earlier; of one end there is only one.
    """
    shared = sum(atom.keyed for atom in atoms(case.tree)) > 1
    if (shared and "x" not in case.head) or sum(atom.second for atom in atoms(case.tree)) > 1:
        return None
    unrestricted = ephemera.compile(case.text.replace("e: algebra (", "e: algebra unrestricted ("))
    meant = plain(unrestricted.run(list(case.events), engine="oracle"))
    place = case.head.index("x") if shared else None

    def value(data: str) -> Any:
        return literal_eval(data)[place] if place is not None else None

    if not set(reported) <= set(meant):
        return f"not meant: {sorted(set(reported) - set(meant))}"
    latest = {(last, value(data)): first for first, last, data in reported}
    if len(latest) != len(reported):
        return f"several for one end: {reported}"
    missing = [one for one in meant if one[0] > latest.get((one[1], value(one[2])), -1)]
    return f"something begins later: {missing}" if missing else None
