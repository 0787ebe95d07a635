"""This module tells what an engine holds: each history against its relevance time, and what became of all events."""

from __future__ import annotations

from ephemera.algebra.attributes import is_end
from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.engine import Engine
from ephemera.kernels.history import FAR


@dataclass(frozen=True, slots=True)
class HistoryStats:
    """One history: how much it holds, how far back it reaches, and how far back it has to."""

    name: str
    tuples: int
    bytes: int
    runs: int
    oldest: int | None
    """The end of its oldest tuple before the bound, in microseconds."""
    relevant: int | None
    """How far before the bound a tuple may end and still matter, in microseconds; None is any time."""
    collected: int


@dataclass(frozen=True, slots=True)
class LaneStats:
    """What became of the events from outside that a group of rules with the same sources has taken in."""

    sources: tuple[str, ...]
    received: int
    waiting: int
    duplicate: int
    unused: int
    kept: int
    collected: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What an engine holds and has seen."""

    histories: tuple[HistoryStats, ...]
    lanes: tuple[LaneStats, ...]
    received: int
    waiting: int
    late: int
    bad: int
    pending: int
    """Tuples whose timers have not ended yet."""
    examined: int
    """Pairs of tuples that were looked at."""
    given: int
    """Answers."""
    bounds: dict[str, int]

    @property
    def stored(self) -> int:
        return sum(h.tuples for h in self.histories)


@dataclass(frozen=True, slots=True)
class Held:
    """How much an engine holds; nothing is looked through to know it, so it may be asked often."""

    histories: dict[str, tuple[int, int, int | None]]
    """By name: tuples, bytes, and how far before the bound one may end and still matter; None is any time."""
    waiting: int
    pending: int
    """Tuples whose timers have not ended yet."""


def held_by(engine: Engine) -> Held:
    """How much an engine holds now."""
    found: dict[str, tuple[int, int, int | None]] = {}
    pending = 0
    for lane in engine.lanes.values():
        for name, history in lane.every_history():
            _hold(found, name, len(history), history.stored_bytes, history.relevant)
        for name, records in lane.records.items():
            _hold(found, name, len(records), records.nbytes, None)
        pending += sum(len(rule.pending) for rule in lane.rules.values())
    return Held(found, engine.waiting, pending)


def _hold(
    found: dict[str, tuple[int, int, int | None]], name: str, tuples: int, size: int, relevant: int | None
) -> None:
    """A history that two lanes hold matters for as long as one of them needs it."""
    before = found.get(name, (0, 0, 0))
    reach = None if relevant is None or before[2] is None else max(relevant, before[2])
    found[name] = (before[0] + tuples, before[1] + size, reach)


def stats_of(engine: Engine, received: int, bad: int) -> Stats:
    """What an engine holds now."""
    histories: list[HistoryStats] = []
    for lane in engine.lanes.values():
        for name, history in lane.every_history():
            batches = history.batches()
            ends = [int(batch[s].min()) for batch in batches for s in history.stamps if is_end(s)]
            oldest = lane.bound - min(ends) if ends and -FAR < lane.bound < FAR else None
            histories.append(
                HistoryStats(
                    name,
                    len(history),
                    sum(batch.nbytes for batch in batches),
                    len(batches),
                    oldest,
                    history.relevant,
                    history.collected,
                )
            )
        for name, records in lane.records.items():
            histories.append(HistoryStats(name, len(records), records.nbytes, 1, None, None, 0))
    rules = [rule for lane in engine.lanes.values() for rule in lane.rules.values()]
    return Stats(
        histories=tuple(histories),
        lanes=tuple(_lane(engine, names) for names in engine.lanes),
        received=received,
        waiting=engine.waiting,
        late=engine.late_count,
        bad=bad,
        pending=sum(len(rule.pending) for rule in rules),
        examined=sum(rule.examined for rule in rules),
        given=engine.given,
        bounds={name: bound for name, bound in engine.sources.bounds.items() if bound > -FAR},
    )


def _lane(engine: Engine, names: frozenset[str]) -> LaneStats:
    lane = engine.lanes[names]
    waiting = engine.waiting_in(names)
    kept = lane.kept
    used = lane.released - lane.duplicates - lane.unused
    return LaneStats(
        sources=tuple(sorted(names)),
        received=lane.released + waiting,
        waiting=waiting,
        duplicate=lane.duplicates,
        unused=lane.unused,
        kept=kept,
        collected=used - kept,
    )
