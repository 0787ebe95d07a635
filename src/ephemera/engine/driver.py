"""This module drives engines: events in, bounds in, answers out.

Wherever events are there already, it is the same loop: a history or a table in this process, a partition on Spark, a
batch of a live program in a shard. They come by their earliest ends, with how far the sources have come once all are
in, and are taken in slices of time, so that what is irrelevant is forgotten on the way. Where events come one by one
they are sent to an engine, and that is all; only that its input may turn out to have begun earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ephemera.engine.engine import Engine, Found
from ephemera.engine.time.event_time import Watermarks
from ephemera.kernels.event_columns import Events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import PhysicalPlan
from ephemera.rules.outcome import World

SLICE = 100_000
"""About how many events are taken at a time."""


def drive(
    engine: Engine,
    slices: Iterable[tuple[int, Sequence[Events]]],
    bounds: Mapping[str, int],
    size: int | None = None,
    after: int = -FAR,
) -> Iterator[Found]:
    """What is certain step by step: whenever so many events are in, and when the sources have come to their bounds.

    With events comes a time before which no event ends that is not in yet. What ends by `after` is for others to give;
    here it happens only for the sake of what comes of it later.
    """
    enough = SLICE if size is None else size
    loaded = 0
    is_own = after == -FAR
    passed = {name: min(bound, after) for name, bound in bounds.items()}
    for first, parts in slices:
        if not is_own and first > after:
            engine.pass_over(passed)
            is_own = True
        if loaded >= enough:
            so_far = {name: min(bound, first - 1) for name, bound in bounds.items()}
            if engine.sources.are_behind(so_far):
                found = engine.advance(so_far)
                loaded = 0
                if is_own:
                    yield found
        engine.load(parts)
        loaded += sum(map(len, parts))
    if not is_own:
        engine.pass_over(passed)
    yield engine.advance(bounds)


def missed(plan: PhysicalPlan, world: World, before: Watermarks, first: int | None) -> tuple[Found, Engine] | None:
    """What was not asked for before, and is now that the input begins earlier, with the engine that gives it.

    An event may come that ends before all that came before it, from a source that was silent or is slow. Then answers
    by the clock are asked for that end before those others did. Rules that do not wait for its source may have passed
    that time. No event takes part in what they have missed, as none ended by then, so it is found without any.
    """
    if first is None or before.first is None or first >= before.first or not plan.clocked:
        return None
    passed = {name: min(bound, before.first - 1) for name, bound in before.bounds.items()}
    if max(passed.values(), default=-FAR) < first:
        return None
    engine = Engine(plan, world)
    engine.sources.limit(first, None)
    return engine.advance(passed), engine
