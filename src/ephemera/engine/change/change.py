"""This module changes the rules of an engine: it says what becomes of each, and makes the engine that goes on.

Everything is found out and made before anything is given up. So a change that is refused leaves the engine as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ephemera.algebra.nodes import Point
from ephemera.base.time import describe
from ephemera.engine.change.compared import ChangeRefused, Compared, compared, told
from ephemera.engine.change.move import Move
from ephemera.engine.change.moved_lanes import Immovable, Start
from ephemera.engine.change.needs import Needs, lack_texts, needs_of
from ephemera.engine.change.standing import EngineStanding, lanes_of
from ephemera.engine.engine import Engine
from ephemera.formats.json_events import write_time
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled, PhysicalPlan, planned_with
from ephemera.rewrite import ALL_REWRITES, JOINS, NO_JOINS, SPREADING
from ephemera.rewrite.drop_unasked import drop_unasked
from ephemera.rewrite.optimize import Rewrite
from ephemera.rewrite.pushdown import narrow_columns
from ephemera.rewrite.share_alike_rules import share_alike_rules
from ephemera.rewrite.share_joins import share_joins
from ephemera.rewrite.store_joins import store_every_join
from ephemera.rules.outcome import World

LookBack = Literal["refuse", "from-now", "available"]
BEGINNING = "the beginning"
WAYS_OUT = (
    'declare `RESERVE` for what is lacking before it is needed, or begin without it: look_back="from-now" has added '
    'rules see only what ends after the change, look_back="available" what is kept'
)


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
    move: Callable[[EngineStanding, World, Start], Move] = Move


IN_PROCESS = Ways()


def changed(  # noqa: PLR0913, PLR0917 - two programs, and how the first stands
    old: Compiled, new: Compiled, engine: Engine, world: World, look_back: LookBack, ways: Ways = IN_PROCESS
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
            start, notes = _start(both, standing, look_back)
            made = ways.move(standing, world, start).made()
        except Immovable as immovable:
            first = first or immovable
            continue
        bounds = {rule: standing.bound(rule) for rule in both.added}
        exact = {rule: start.exact_from.get(rule, bound) for rule, bound in bounds.items()}
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


# ---- how added rules start -------------------------------------------------------------------------------------


def _start(both: Compared, standing: EngineStanding, look_back: LookBack) -> tuple[Start, tuple[str, ...]]:
    engine = standing.engine
    running = set(lanes_of(both.new.physical))
    added = [rule for rule in both.added if rule in running]
    needs = needs_of(both, standing.kept, added, standing)
    lacking = [rule for rule in added if needs.of(rule)]
    if lacking and look_back == "refuse":
        told_all = "\n  ".join(lack_texts(both, needs))
        raise ChangeRefused(
            f"added rules need what is not there:\n  {told_all}\n{_when(both, needs, lacking)}{WAYS_OUT}"
        )
    since: dict[str, int] = {}
    exact: dict[str, int] = {}
    for rule in lacking:
        bound = standing.bound(rule)
        is_lost = any(lack.is_lost for lack in needs.of(rule))
        if look_back == "from-now" or is_lost:
            since[rule] = max(engine.sources.last, bound, standing.gap_of(rule)) if is_lost else bound
            _check_early(both, rule)
        exact[rule] = _exact_from(rule, needs, standing, since.get(rule))
    warm = needs_of(both, standing.kept, [rule for rule in added if rule not in since], standing).warm
    return Start(frozenset(warm), since, exact), tuple(lack_texts(both, needs))


def _exact_from(rule: str, needs: Needs, standing: EngineStanding, since: int | None) -> int:
    """From when on a rule is exact that lacks something, or that only sees what ends after some time."""
    lacks = needs.of(rule)
    begins = [standing.bound(lack.where) for lack in lacks]
    if since is not None:
        length = needs.lengths[rule]
        return FAR if length is None else max([since, *begins]) + length
    afters = [lack.after for lack in lacks]
    known = [begin + after for begin, after in zip(begins, afters, strict=True) if after is not None]
    return max(known) if len(known) == len(lacks) else FAR


def _when(both: Compared, needs: Needs, lacking: Sequence[str]) -> str:
    found = []
    for rule in lacking:
        after = needs.exact_after(rule)
        if after is not None:
            found.append(f"{told(both.new.plan, rule)} would be exact from {describe(after)} after the change on\n")
    return "".join(dict.fromkeys(found))


def _check_early(both: Compared, rule: str) -> None:
    relevant = {one.input for one in both.new.facts.of(rule)}
    early = [
        str(point.label) for name in relevant if (point := both.new.plan.points.get(name)) is not None
        and point.label in both.new.plan.early
    ]  # fmt: skip
    if early:
        raise ChangeRefused(
            f"{told(both.new.plan, rule)} cannot begin later than others, since `{min(early)}` is known from its "
            "begin on"
        )


def replanned(compiled: Compiled, names: Sequence[str], ways: Ways = IN_PROCESS) -> Compiled:
    """A program as it is planned by some rewrites, by their names."""
    own = tuple(one.__name__ for one in compiled.physical.rewrites)
    if own == tuple(names):
        return compiled
    known = {one.__name__: one for one in (*ALL_REWRITES, store_every_join)}
    return ways.planned(planned_with(compiled, tuple(known[name] for name in names)))


def form_of(compiled: Compiled) -> list[str]:
    """How a program is planned, by the names of rewrites."""
    return [one.__name__ for one in compiled.physical.rewrites]


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
