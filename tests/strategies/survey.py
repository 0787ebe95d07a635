"""This module counts what the strategies draw; run it by hand: ``python -m tests.strategies.survey``."""

from __future__ import annotations

from collections import Counter
from time import perf_counter

from hypothesis import Phase, given, settings

from ephemera.base.tree import depth, walk
from ephemera.syntax.nodes import Program

from .trees import NODE_CLASSES, programs


def survey(examples: int = 500) -> None:
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
    survey()
