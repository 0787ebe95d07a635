"""This module counts what the strategies draw; run it: ``python -m tests.strategies.survey [cases [count]]``."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from time import perf_counter

from hypothesis import Phase, given, settings

from ephemera.base.tree import depth, walk
from ephemera.syntax.nodes import Program

from .cases import answers, sample
from .trees import NODE_CLASSES, programs

MOST_JUDGED = 25
"""Of so many cases with a feature it is seen whether they depend on it; some features are in most of the cases."""


@dataclass(frozen=True, slots=True)
class Part:
    """How many of the cases have a feature, and how many of those depend on it."""

    share: float
    dependent: float


def mix(count: int) -> dict[str, Part]:
    """What the sample of cases is made of; a case depends on a feature if taking it out changes the answers."""
    total = 0
    has: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    depends: Counter[str] = Counter()
    for case in sample(count):
        if case is None:
            continue
        total += 1
        base = answers(case.outcome())
        for feature in sorted(case.features):
            has[feature] += 1
            if has[feature] <= MOST_JUDGED:
                judged[feature] += 1
                depends[feature] += bool(base) and any(answers(o) != base for o in case.without(feature))
    return {feature: Part(has[feature] / total, depends[feature] / judged[feature]) for feature in has}


def survey_cases(count: int = 300) -> None:
    """Print each feature with its share of the cases and the part of those that depends on it, the rarest first."""
    started = perf_counter()
    parts = mix(count)
    elapsed = perf_counter() - started
    for feature, part in sorted(parts.items(), key=lambda item: item[1].share):
        print(f"{feature:28} {part.share:6.1%} {part.dependent:6.1%}")
    print(f"{len(parts)} features in {count} cases, {1000 * elapsed / count:.0f} ms each")


def survey_programs(examples: int = 500) -> None:
    """Draw programs and print in how many each node class appeared, which never did, and the time of a draw."""
    seen: Counter[type] = Counter()
    depths: list[int] = []
    sizes: list[int] = []

    @settings(max_examples=examples, phases=[Phase.generate], database=None)
    @given(programs())
    def draw(program: Program) -> None:
        found = list(walk(program))
        depths.append(depth(program))
        sizes.append(len(found))
        seen.update({type(node) for node in found})

    started = perf_counter()
    draw()
    elapsed = perf_counter() - started
    for cls in sorted(NODE_CLASSES, key=lambda cls: seen[cls]):
        print(f"{seen[cls]:6} {cls.__name__}")
    print("never:", [cls.__name__ for cls in NODE_CLASSES if not seen[cls]])
    print(f"{len(depths)} programs of {sum(sizes) / len(sizes):.0f} nodes (most {max(sizes)}, deepest {max(depths)})")
    print(f"{1000 * elapsed / len(depths):.1f} ms each")


if __name__ == "__main__":
    if sys.argv[1:2] == ["cases"]:
        survey_cases(*map(int, sys.argv[2:]))
    else:
        survey_programs()
