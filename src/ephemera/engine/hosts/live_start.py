"""This module says from when on a live program answers by the clock: from the earliest end of its input.

An event may come that ends before all that came before it, from a source that was silent or is slow. Then answers by
the clock are asked for that end before those others did. Rules that do not wait for its source may have passed that
time. No event takes part in what they have missed, as none ended by then, so it is found without any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ephemera.engine.engine import Engine, Found
from ephemera.engine.time.watermarks import Watermarks
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled
from ephemera.rules.outcome import World


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a live program began, and how far its sources have come, at some time."""

    first: int | None
    bounds: Mapping[str, int]


def reached(sources: Watermarks) -> Reached:
    """Where it stands now."""
    return Reached(sources.first, dict(sources.bounds))


def missed(compiled: Compiled, world: World, before: Reached, first: int | None) -> tuple[Found, Engine] | None:
    """What was not asked for before, and is now that the input begins earlier, with the engine that gives it."""
    if first is None or before.first is None or first >= before.first:
        return None
    passed = {name: min(bound, before.first - 1) for name, bound in before.bounds.items()}
    if max(passed.values(), default=-FAR) < first or not compiled.physical.clocked:
        return None
    engine = Engine(compiled.physical, world)
    engine.sources.first = first
    return engine.reach(passed), engine
