"""This module changes the rules of an engine: it says what becomes of each, and makes the engine that goes on.

Everything is found out and made before anything is given up. So a change that is refused leaves the engine as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ephemera.algebra.nodes import Point
from ephemera.engine.change.archive import ReadOnce
from ephemera.engine.change.compared import ChangeRefused, Compared, compared
from ephemera.engine.change.moved_lanes import Immovable
from ephemera.engine.change.standing import EngineStanding
from ephemera.engine.change.starts import LookBack, Moves, from_archive, start_of
from ephemera.engine.engine import Engine
from ephemera.formats.json_events import write_time
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled, PhysicalPlan, planned_with
from ephemera.rewrite import ALL_REWRITES, JOINS, NO_JOINS, SPREADING
from ephemera.rewrite.drop_unasked import drop_unasked
from ephemera.rewrite.optimize import Rewrite
from ephemera.rewrite.pushdown import narrow_columns
from ephemera.rewrite.share_alike_rules import share_alike_rules, share_rules_with_equal_timers
from ephemera.rewrite.share_joins import share_joins
from ephemera.rewrite.store_joins import store_every_join
from ephemera.rules.outcome import World

BEGINNING = "the beginning"


@dataclass(frozen=True)
class Change:
    """What a change did to the rules of an engine; rules are called by what they derive and their numbers."""

    kept: tuple[str, ...]
    """The rules that go on as if nothing had happened."""
    removed: tuple[str, ...]
    """The rules that give nothing any more, with their numbers in the program before."""
    added: tuple[str, ...]
    """The rules that answer from the change on; also those that now read what other rules derive."""
    answers_from: Mapping[str, Any]
    """For each added rule the time behind which it is exact, as events write times; None if that is unknown."""
    notes: tuple[str, ...] = ()
    """What lacks, and what else is to be known."""

    def __str__(self) -> str:
        lines = [
            *(f"kept     {rule}" for rule in self.kept),
            *(f"removed  {rule}" for rule in self.removed),
            *(f"added    {rule}, {self._from(rule)}" for rule in self.added),
            *(f"note     {note}" for note in self.notes),
        ]
        return "\n".join(lines) or "nothing changes"

    def _from(self, rule: str) -> str:
        time = self.answers_from.get(rule)
        return "not known to be exact at any time" if time is None else f"exact from {time} on"


@dataclass(frozen=True, slots=True)
class Changed:
    """An engine that runs a changed program, and for each added rule the time behind which it is exact."""

    engine: Engine
    compiled: Compiled
    compared: Compared
    exact_from: Mapping[str, int]
    notes: tuple[str, ...]

    def told(self, unit: int, *, as_numbers: bool) -> Change:
        """What the change did, as people read it; a rule with alternatives is exact when all of them are."""
        both = self.compared
        latest: dict[str, int] = {}
        for rule, exact in self.exact_from.items():
            (name,) = both.known_as([rule])
            latest[name] = max(exact, latest.get(name, exact))

        def written(time: int) -> Any:
            if time >= FAR:
                return None
            return write_time(time, unit, as_numbers=as_numbers) if time > -FAR else BEGINNING

        times = {name: written(time) for name, time in latest.items()}
        return Change(both.rules_kept(), both.rules_removed(), both.rules_added(), times, self.notes)


@dataclass(frozen=True, slots=True)
class Ways:
    """How programs run where an engine is changed, and what is known and moved there: here in one process."""

    planned: Callable[[Compiled], Compiled] = Compiled.live
    """A program that was planned otherwise, as engines there need it."""
    standing: Callable[[Compared, Engine], EngineStanding] = EngineStanding
    moves: Moves = field(default_factory=Moves)


IN_PROCESS = Ways()


def changed(  # noqa: PLR0913 - all of the change
    old: Compiled,
    new: Compiled,
    engine: Engine,
    world: World,
    look_back: LookBack | ReadOnce,
    *,
    ways: Ways = IN_PROCESS,
    as_numbers: bool = True,
) -> Changed:
    """The engine after a change; the one before is only looked at."""
    if engine.sources.ended is not None:
        raise ChangeRefused("the input has ended: there is nothing left to change")
    first: Immovable | None = None
    for rewrites in _rewrites(new.physical):
        planned = new if rewrites == new.physical.rewrites else ways.planned(planned_with(new, rewrites))
        both = compared(old, planned)
        try:
            standing = ways.standing(both, engine)
            if isinstance(look_back, ReadOnce):
                move, notes = from_archive(both, standing, world, look_back, moves=ways.moves, as_numbers=as_numbers)
            else:
                start, notes = start_of(both, standing, look_back)
                move = ways.moves.plain(standing, world, start)
            made = move.made()
        except Immovable as immovable:
            first = first or immovable
            continue
        bounds = {rule: standing.bound(rule) for rule in both.added}
        exact = {rule: move.start.exact_from.get(rule, bound) for rule, bound in bounds.items()}
        return Changed(made, planned, both, exact, notes)
    raise ChangeRefused(f"{first}; begin anew with this program, or from another state") from None


def _rewrites(plan: PhysicalPlan) -> Iterator[tuple[Rewrite, ...]]:
    """The ways to plan a changed program, the best first; in later ones fewer rules share what they keep."""
    every = plan.rewrites
    found = [
        every,
        tuple(one for one in every if one is not share_joins),
        tuple(one for one in every if one not in JOINS and one not in SPREADING),
        tuple(one for one in NO_JOINS if one is not share_alike_rules),
        (drop_unasked, narrow_columns, share_alike_rules),
        (drop_unasked, narrow_columns),
    ]
    yield from dict.fromkeys(found)


def replanned(compiled: Compiled, names: Sequence[str], ways: Ways = IN_PROCESS) -> Compiled:
    """A program as it is planned by some rewrites, by their names."""
    own = tuple(one.__name__ for one in compiled.physical.rewrites)
    if own == tuple(names):
        return compiled
    known = {one.__name__: one for one in (*ALL_REWRITES, store_every_join, share_rules_with_equal_timers)}
    return ways.planned(planned_with(compiled, tuple(known[name] for name in names)))


def form_of(compiled: Compiled) -> list[str]:
    """How a program is planned, by the names of rewrites."""
    return [one.__name__ for one in compiled.physical.rewrites]


def earlier_form(names: Sequence[str]) -> list[str]:
    """How versions planned a program that did not put rules together which differ in the lengths of timers."""
    now, before = share_alike_rules.__name__, share_rules_with_equal_timers.__name__
    return [before if name == now else name for name in names]


def check_messages(old: Compiled, new: Compiled) -> None:
    """Refuses other messages while they are delivered: who delivers them was set up for those that there are."""
    if old.rules.resolved.catalogue.transports != new.rules.resolved.catalogue.transports:
        raise ChangeRefused("messages are being delivered, and would be sent otherwise: make another engine for that")
    before, after = (
        {one.physical.rewritten.prints[p.name].fingerprint for p in one.plan.points.values() if _sends(p)}
        for one in (old, new)
    )
    if not after <= before:
        raise ChangeRefused("messages are being delivered, and there would be others: make another engine for them")


def _sends(point: Point) -> bool:
    return point.kind == "rule" and point.name.startswith("message ")
