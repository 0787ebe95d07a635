"""This module measures how good the planner is: chosen plans beside others, and expected state beside what was kept.

For each program the chosen plan is run beside the cheapest others by estimate and beside random ones: other stored
joins, and other orders of searches. Every plan is run as often, round by round, and its fastest run counts. All of them
must give the same number of answers. The programs are ten of three and four events, and Q1 to Q4 of the engine's
benchmark, of which only Q2 leaves a choice of orders. What is kept is measured after
each step of the chosen plan, and its mean is held against what was expected.

scripts/bench planner [--events 500000] [--others 10] [--repeat 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import TypeAlias

import numpy as np

import ephemera
from bench import feeding, queries
from ephemera.algebra.attributes import position
from ephemera.base.time import SECOND
from ephemera.engine.engine import Engine
from ephemera.engine.observe import planned_for
from ephemera.kernels.columns import Batch, ints
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.kernels.history import FAR
from ephemera.physical.expectation import expect
from ephemera.physical.lanes import lanes_of
from ephemera.physical.plan import PhysicalPlan, reordered, rule_plans
from ephemera.rewrite.rule_parts import changed, open_rules
from ephemera.rewrite.store_joins import Stored, choices, store
from ephemera.rules.outcome import World

STEPS = 16
"""In so many steps the events are taken."""
Run: TypeAlias = tuple[float, int, dict[str, float]]
"""Seconds of CPU, answers, and what each history keeps."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program, and for each type of event how many of a hundred events are of it, and how many values each has."""

    name: str
    program: str
    shares: dict[str, int]
    values: Mapping[str, tuple[int, ...]]


def _case(name: str, rule: str, shares: dict[str, int], values: Mapping[str, tuple[int, ...]]) -> Case:
    declared = "".join(
        f"EVENT {label}({', '.join(f'a{k}: int' for k in range(len(own)))});\n" for label, own in values.items()
    )
    return Case(name, f"TIME UNIT 1 sec;\n{declared}{rule}", shares, values)


PAIRS = {"c": (1_000_000, 1_000), "d": (1_000_000, 1_000), "e": (5,)}
KEYED = {"a": (2_000, 100), "b": (2_000, 100), "c": (2_000, 100), "d": (2_000, 100)}
CASES = [
    _case(
        "selective pair, then a frequent event",
        "q(i, j) <- x: c(i, v), y: d(j, w), z: e(_), {x, y, z} within 60, v + w = 999;",
        {"c": 20, "d": 20, "e": 60},
        PAIRS,
    ),
    _case(
        "selective pair, then a rare event",
        "q(i, j) <- x: c(i, v), y: d(j, w), z: e(_), {x, y, z} within 200, v + w = 999;",
        {"c": 49, "d": 50, "e": 1},
        PAIRS,
    ),
    _case(
        "two frequent, one rare, chain",
        "q(x, z) <- f: a(x, y), g: b(y, z), h: c(z, _), {f, g, h} within 100;",
        {"a": 49, "b": 50, "c": 1},
        {"a": (3_000, 300), "b": (300, 300), "c": (300, 9)},
    ),
    _case(
        "chain of three on one key",
        "q(k) <- f: a(k, _), g: b(k, _), h: c(k, _), f before g, g before h, {f, h} within 3000;",
        {"a": 33, "b": 33, "c": 34},
        KEYED,
    ),
    _case(
        "chain of four on one key",
        "q(k) <- f: a(k, _), g: b(k, _), h: c(k, _), i: d(k, _), "
        "f before g, g before h, h before i, {f, i} within 3000;",
        {"a": 25, "b": 25, "c": 25, "d": 25},
        KEYED,
    ),
    _case(
        "first event rare",
        "q(k) <- f: a(k, _), g: b(k, _), h: c(k, _), f before g, g before h, {f, h} within 3000;",
        {"a": 1, "b": 49, "c": 50},
        KEYED,
    ),
    _case(
        "last event rare",
        "q(k) <- f: a(k, _), g: b(k, _), h: c(k, _), f before g, g before h, {f, h} within 3000;",
        {"a": 50, "b": 49, "c": 1},
        KEYED,
    ),
    _case(
        "star with a selective condition",
        "q(k) <- f: a(k, v), g: b(k, w), h: c(k, u), {f, g, h} within 3000, v = w + 90;",
        {"a": 20, "b": 20, "c": 60},
        KEYED,
    ),
    _case(
        "no key, three events",
        "q(v, w, u) <- f: a(_, v), g: b(_, w), h: c(_, u), {f, g, h} within 12, v > 90, w > 90, u > 90;",
        {"a": 33, "b": 33, "c": 34},
        KEYED,
    ),
    _case(
        "two keys, four events",
        "q(x, z) <- f: a(x, y), g: b(x, _), h: c(z, y), i: d(z, _), {f, g, h, i} within 150;",
        {"a": 25, "b": 25, "c": 25, "d": 25},
        {"a": (200, 200), "b": (200, 9), "c": (200, 200), "d": (200, 9)},
    ),
]


COMMON = [queries.Case(query, 1_000) for query in ("Q1", "Q2", "Q3", "Q4")]


def subjects(count: int) -> Iterator[tuple[str, str, list[Events]]]:
    """The names of all cases, their programs, and so many events for each."""
    for case in CASES:
        yield case.name, case.program, events(case, count)
    for query in COMMON:
        yield query.name, query.program, feeding.parts(query.stream(count), query.columns)


def events(case: Case, count: int) -> list[Events]:
    """Events one a second, of the types that a case has, with random values."""
    random = np.random.default_rng(11)
    labels = list(case.shares)
    kinds = random.choice(len(labels), count, p=np.array(list(case.shares.values())) / sum(case.shares.values()))
    found: list[Events] = []
    for number, label in enumerate(labels):
        rows = np.flatnonzero(kinds == number)
        stamps = ints(rows * SECOND)
        values = case.values[label]
        columns = {position(k): ints(random.integers(0, most, len(rows))) for k, most in enumerate(values)}
        names = tuple(f"a{k}" for k in range(len(values)))
        found.append(Events(label, Batch({BEGIN: stamps, END: stamps, **columns}, len(rows)), len(values), names))
    return found


def run(plan: PhysicalPlan, parts: Sequence[Events]) -> Run:
    """Seconds of CPU in the engine, how many answers there are, and how much each history keeps on the average."""
    engine = Engine(plan, World())
    answers, kept, seconds = 0, dict[str, float](), 0.0
    last = max(int(part.batch[END].max()) for part in parts)
    cuts = [last * step // STEPS for step in range(1, STEPS)] + [FAR]
    first = -1
    for step, bound in enumerate(cuts):
        due = [p.take((p.batch[END] > first) & (p.batch[END] <= bound)) for p in parts]
        first = bound
        start = time.process_time()
        engine.load([p for p in due if len(p)])
        found = engine.advance(bound)
        seconds += time.process_time() - start
        answers += sum(len(p) for p in found.events) + len(found.few)
        if STEPS // 4 <= step < STEPS - 1:
            for lane in engine.lanes.values():
                for name, history in lane.histories.items():
                    kept[name] = kept.get(name, 0.0) + len(history) / (STEPS - 1 - STEPS // 4)
    return seconds, answers, kept


def plans(chosen: PhysicalPlan, others: int) -> list[PhysicalPlan]:
    """Other plans of a program: the cheapest by estimate, and random ones, each once."""
    names = list(open_rules(chosen.before_joins))
    each = [choices(rule) for rule in open_rules(chosen.before_joins).values()]
    ways = sorted(product(*each), key=lambda way: sum(choice.cost for choice in way))
    dice = Random(1)
    wanted = [(way, None) for way in ways[:others]] + [(dice.choice(ways), dice) for _ in range(others)]
    found: list[PhysicalPlan] = []
    for way, order in wanted:
        plan = _with(chosen, {name: one.stored for name, one in zip(names, way, strict=True)}, order)
        if all(plan.rules != other.rules for other in found):
            found.append(plan)
    return found


def _with(chosen: PhysicalPlan, stored: Mapping[str, Stored], dice: Random | None) -> PhysicalPlan:
    """The plan that stores some joins of each rule, and searches in the best order, or in any."""
    rules_of = open_rules(chosen.before_joins)
    for name, joins in stored.items():
        store(rules_of[name], joins)
    made = {name: rules_of[name].points() for name, joins in stored.items() if joins}
    given = changed(chosen.before_joins, made) if made else chosen.before_joins
    rules = rule_plans(given)
    plan = replace(chosen, rewritten=given, rules=rules, lanes=lanes_of(given, rules, frozenset(), chosen.logical))
    if dice is None:
        return plan
    shuffled = {}
    for name, one in rules.items():
        sequences = []
        for first in range(len(one.leaves)):
            rest = [k for k in range(len(one.leaves)) if k != first]
            dice.shuffle(rest)
            sequences.append(tuple(rest))
        shuffled[name] = reordered(plan, one, given.flows, sequences)
    return replace(plan, rules=shuffled)


def measured(name: str, several: Sequence[PhysicalPlan], parts: Sequence[Events], repeat: int) -> list[Run]:
    """The fastest run of each of several plans, of which each is run as often as the others."""
    fastest: list[Run] = [run(plan, parts) for plan in several]
    for _ in range(repeat - 1):
        again = [run(plan, parts) for plan in several]
        fastest = [min(one, other, key=lambda own: own[0]) for one, other in zip(fastest, again, strict=True)]
    if len({answers for _, answers, _ in fastest}) > 1:
        raise SystemExit(f"{name}: plans have {', '.join(str(answers) for _, answers, _ in fastest)} answers")
    return fastest


def main() -> None:
    """Prints a row for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--others", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    print("| | answers | chosen s | best of others s | worst s | ratio | kept expected | kept | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, program, parts in subjects(given.events):
        chosen = planned_for(ephemera.compile(program)._compiled, parts, always=True).physical
        (seconds, answers, kept), *others = measured(name, [chosen, *plans(chosen, given.others)], parts, given.repeat)
        best, worst = min(own[0] for own in others), max(own[0] for own in others)
        expected = sum(one.tuples or 0.0 for one in expect(chosen).histories.values())
        held = sum(kept.values())
        print(
            f"| {name} | {answers:,} | {seconds:.3f} | {best:.3f} | {worst:.3f} | {seconds / best:.2f} "
            f"| {expected:,.0f} | {held:,.0f} | {expected / max(held, 1):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
