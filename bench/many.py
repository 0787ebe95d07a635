"""This module runs the benchmark of many rules: compiling them, one event at a time, and events in batches.

Families of rules ask for pairs of A and B on the same key within a second, where v of A equals a constant, lies in a
range, or begins with a limit: each event has a tenth of an answer, whatever the number of rules. Other families have
windows of different lengths besides, ask how a text begins, or share a join of A and B and differ in what they ask of C
behind it: in a constant and one of twenty windows, or all in their windows; or they have timers of different lengths.
CPU alone counts, and the ratio to one rule in the same run.

scripts/bench many [--compile 1000 10000] [--rules 10000] [--sends 2000] [--batch-rules 1000] [--events 200000]
                   [--families NAME…]
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable

import numpy as np

import ephemera
from bench.feeding import engine
from ephemera.algebra.attributes import position
from ephemera.engine.engine import Found
from ephemera.kernels.columns import Batch, ints
from ephemera.kernels.event_columns import BEGIN, END, Events

HEADER = (
    "TIME UNIT 1 ms;\nEVENT A(id: int, x: int, v: int);\nEVENT B(id: int, x: int, v: int);\n"
    "EVENT C(id: int, x: int, v: int);\nEVENT D(id: int, s: string);\n"
)
STEP = 10
"""Of so many values one is asked for."""
KEYS = 10


def equal(k: int) -> str:
    """A rule whose constant must equal a value."""
    return f"Q{k}(i, j) <- a: A(i, x, v), b: B(j, x, _), {{a,b}} within 1 sec, v = {STEP * k};\n"


def ranged(k: int) -> str:
    """A rule whose constants limit a value from both sides."""
    return f"Q{k}(i, j) <- a: A(i, x, v), b: B(j, x, _), {{a,b}} within 1 sec, v >= {STEP * k}, v < {STEP * k + 1};\n"


def different(k: int) -> str:
    """A rule like no other: with a window of its own."""
    return f"Q{k}(i, j) <- a: A(i, x, {STEP * k}), b: B(j, x, _), a before[0 ms, {500_000 + k} us] b;\n"


def begun(k: int) -> str:
    """A rule that asks by an expression how a text begins."""
    return f"DETECT Q{k} {{ var I }} ON event d: D {{{{ id {{ var I }}, s {{ /k{STEP * k}-.*/ }} }}}} END\n"


def between(k: int) -> str:
    """A rule that asks by limits how a text begins."""
    return f'Q{k}(i) <- d: D(i, s), s >= "k{STEP * k}-", s < "k{STEP * k}.";\n'


def sharing(k: int) -> str:
    """A rule that joins as all others do, and asks for more in its own way."""
    join = "a: A(i, x, _), b: B(j, x, _), {a,b} within 1 sec"
    return f"Q{k}(i, j, l) <- {join}, c: C(l, x, {STEP * k}), b before[0 ms, {100_000 + k} us] c;\n"


def sharing_shapes(k: int) -> str:
    """A rule that joins as all others do, asks for a constant behind it, and has one of twenty windows."""
    join = "a: A(i, x, _), b: B(j, x, _), {a,b} within 1 sec"
    return f"Q{k}(i, j, l) <- {join}, c: C(l, x, {STEP * k}), b before[0 ms, {100 + k % 20} ms] c;\n"


def timed(k: int) -> str:
    """A rule that asks for a constant, and has a timer of its own within which nothing may come."""
    return f"Q{k}(i) <- a: A(i, x, {STEP * k}), w: extend(a, {500_000 + k} us), while w: not B(_, x, _);\n"


def collecting(k: int) -> str:
    """A rule that asks for a range, and counts what comes within a timer of its own."""
    window = f"w: extend(a, {500_000 + k} us), while w: collect B(j, x, _)"
    return f"Q{k}(i, count(j)) <- a: A(i, x, v), v >= {STEP * k}, v < {STEP * k + 1}, {window};\n"


def chained(k: int) -> str:
    """A rule that reads what the one before it derives, three in a row."""
    match k % 3:
        case 0:
            return f"P{k}(i, x) <- a: A(i, x, {STEP * k});\n"
        case 1:
            return f"P{k}(i, j) <- a: P{k - 1}(i, x), b: B(j, x, _), {{a,b}} within 1 sec;\n"
        case _:
            return f"P{k}(i) <- a: P{k - 1}(i, x), w: extend(a, {k % 7 + 1}), while w: not C(_, x, _);\n"


def shaped(k: int) -> str:
    """A rule of one of twenty shapes."""
    shape = k % 20
    a, b, length = "ABC"[shape % 3], "ABC"[shape // 3 % 3], shape + 1
    match shape % 4:
        case 0:
            return f"S{k}(i, j) <- a: {a}(i, x, v), b: {b}(j, x, _), {{a,b}} within {length} sec, v = {k};\n"
        case 1:
            return f"S{k}(i) <- a: {a}(i, x, {k}), w: extend(a, {length}), while w: not {b}(_, x, _);\n"
        case 2:
            window = f"w: extend(a, {length}), while w: collect {b}(j, x, _)"
            return f"S{k}(i, count(j)) <- a: {a}(i, x, v), v > {k}, {window};\n"
        case _:
            return f"S{k}(i, j) <- a: {a}(i, x, v), b: {b}(j, x, w), a before[0, {length}] b, v < w, v != {k};\n"


COMPILED: dict[str, Callable[[int], str]] = {
    "one shape, equalities": equal,
    "one shape, ranges": ranged,
    "twenty shapes": shaped,
    "chains of three": chained,
    "no two alike": different,
}
ONE_BY_ONE: dict[str, Callable[[int], str]] = {
    "equalities": equal,
    "ranges": ranged,
    "no two alike": different,
    "expressions": begun,
    "texts": between,
    "a shared join": sharing,
    "timers, absence": timed,
}
IN_BATCHES: dict[str, Callable[[int], str]] = {
    "equalities": equal,
    "ranges": ranged,
    "one join, twenty windows": sharing_shapes,
    "one join, all windows": sharing,
    "timers, absence": timed,
    "timers, collection": collecting,
}
LABELS: dict[Callable[[int], str], str] = {begun: "D", between: "D", sharing: "ABC", sharing_shapes: "ABC"}
"""The events that a family is about, where these are not A and B."""


def program(make: Callable[[int], str], rules: int) -> str:
    """A program of so many rules of a family."""
    return HEADER + "".join(map(make, range(rules)))


def compiling(make: Callable[[int], str], rules: int) -> tuple[float, float]:
    """CPU seconds from the text to the physical plan, and from there to an engine."""
    text = program(make, rules)
    start = time.process_time()
    compiled = ephemera.compile(text)
    _ = compiled._compiled.physical
    ready = time.process_time()
    compiled.engine()
    return ready - start, time.process_time() - ready


def one_by_one(make: Callable[[int], str], rules: int, sends: int) -> tuple[float, int]:
    """CPU microseconds of the middle one of some sends, and the number of answers."""
    at_work = ephemera.compile(program(make, rules)).engine()
    numbers = random.Random(7)
    taken: list[int] = []
    answers = 0
    gc.collect()
    labels = LABELS.get(make, "AB")
    for k in range(sends):
        key, value = numbers.randrange(KEYS), numbers.randrange(STEP * rules)
        label = labels[k % len(labels)]
        event = {"event": label, "time": 10 * k, "data": [k, f"k{value}-x"] if label == "D" else [k, key, value]}
        before = time.thread_time_ns()
        found = at_work.send(event)
        taken.append(time.thread_time_ns() - before)
        answers += len(found)
    counted = sorted(taken[sends // 10 :])
    return counted[len(counted) // 2] / 1_000, answers


def in_batches(make: Callable[[int], str], rules: int, events: int, size: int = 200_000) -> tuple[float, int]:
    """CPU seconds for events in batches, a millisecond apart, and the number of answers."""
    at_work = engine(program(make, rules))
    numbers = np.random.default_rng(7)
    seconds, answers = 0.0, 0
    gc.collect()
    labels = LABELS.get(make, "AB")
    for first in range(0, events, size):
        ids = np.arange(first, min(first + size, events))
        last = int(ids[-1]) * 1_000
        parts = [_part(label, ids[k :: len(labels)], numbers, STEP * rules) for k, label in enumerate(labels)]
        start = time.process_time()
        at_work.load(parts)
        found = at_work.advance(last)
        seconds += time.process_time() - start
        answers += _count(found)
    return seconds, answers


def _part(
    label: str, ids: np.ndarray[tuple[int], np.dtype[np.int64]], numbers: np.random.Generator, most: int
) -> Events:
    values = [ids, numbers.integers(0, 1_000, len(ids)), numbers.integers(0, most, len(ids))]
    columns = {position(k): ints(value) for k, value in enumerate(values)}
    stamps = ints(ids * 1_000)
    return Events(label, Batch({BEGIN: stamps, END: stamps, **columns}, len(ids)), 3, ("id", "x", "v"))


def _count(found: Found) -> int:
    return len(found.few) + sum(map(len, found.events))


def main() -> None:
    """Prints three tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--compile", type=int, nargs="*", default=[1_000, 10_000], help="how many rules are compiled")
    options.add_argument("--rules", type=int, default=10_000, help="for one event at a time; 0 leaves it out")
    options.add_argument("--sends", type=int, default=2_000)
    options.add_argument("--batch-rules", type=int, default=1_000, help="for batches; 0 leaves them out")
    options.add_argument("--events", type=int, default=200_000)
    options.add_argument("--families", nargs="*", default=[], help="only these")
    chosen = options.parse_args()
    compiling(equal, 20)

    def some(families: dict[str, Callable[[int], str]]) -> list[tuple[str, Callable[[int], str]]]:
        return [(name, make) for name, make in families.items() if not chosen.families or name in chosen.families]

    for name, make in some(COMPILED) if chosen.compile else ():
        for rules in chosen.compile:
            compiled, started = compiling(make, rules)
            print(f"compile  {name:<24}{rules:>8,} rules{compiled:>9.2f} s{started:>9.2f} s to start", flush=True)
    for name, make in some(ONE_BY_ONE) if chosen.rules else ():
        _compare("one event", name, [(n, *one_by_one(make, n, chosen.sends)) for n in (1, chosen.rules)], "µs")
    for name, make in some(IN_BATCHES) if chosen.batch_rules else ():
        _compare("batches", name, [(n, *in_batches(make, n, chosen.events)) for n in (1, chosen.batch_rules)], "s")


def _compare(what: str, name: str, measured: list[tuple[int, float, int]], unit: str) -> None:
    one = measured[0][1]
    for rules, cost, answers in measured:
        told = f"{what:<10}{name:<26}{rules:>8,} rules{cost:>10.3f} {unit}{answers:>10,} answers"
        print(f"{told}{cost / one:>8.2f} times one rule", flush=True)


if __name__ == "__main__":
    main()
