"""This module changes the rules of a program that runs in several places, or in how many places it runs.

It is a step of its own, between two batches, in one process: the state of all places is gathered in one engine, that is
changed as any other, and what comes of it is scattered. What one engine knows and several together do not is either not
needed, or said: events that wait for slower sources were only sent to rules that ask for them, and whether two tuples
are of one event is known only within one history, and to rules that go on where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ephemera.algebra.nodes import Input, Match, Point
from ephemera.base.tree import find
from ephemera.engine.change.archive import PastMove, ReadOnce
from ephemera.engine.change.change import Changed, Ways, changed
from ephemera.engine.change.compared import Compared, told
from ephemera.engine.change.kept_tuples import Convert, KeptTuples, serves
from ephemera.engine.change.move import Move
from ephemera.engine.change.moved_lanes import Immovable, Origin
from ephemera.engine.change.standing import EngineStanding
from ephemera.engine.change.starts import LookBack, Moves
from ephemera.engine.cluster.gathered_state import anchors, compared_inputs, gathered, united
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.scattered_state import scattered
from ephemera.engine.cluster.source_progress import Progress
from ephemera.engine.engine import Engine
from ephemera.engine.lane import Lane
from ephemera.engine.time.event_time import sources_of
from ephemera.kernels.columns import Batch
from ephemera.kernels.event_columns import Events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled, planned_with
from ephemera.rules.nodes import Catalogue
from ephemera.rules.outcome import World
from ephemera.terms.nodes import Pattern

T = TypeVar("T")
Engines = Callable[[int], Iterable[Engine]]
"""For each group its engines, of all places in which it has one."""


def live_form(compiled: Compiled) -> Compiled:
    """A program as it runs live in several places: with what it reserves."""
    own = compiled.physical.reserving
    return compiled if own is compiled.physical else replace(compiled, physical=own)


def spread_form(compiled: Compiled) -> Compiled:
    """The same with the plan that runs there."""
    own = compiled.physical.reserving.distributed
    return compiled if own is compiled.physical else replace(compiled, physical=own)


class SpreadStanding(EngineStanding):
    """How a program stands that runs in several places, once its state is gathered."""

    def __init__(self, both: Compared, engine: Engine, spread: DistributedProgram) -> None:
        super().__init__(both, engine)
        self.anchored = anchors(spread)

    def lost(self, rule: str, query: Point) -> str | None:
        found = super().lost(rule, query)
        if found is not None:
            return found
        new = self.both.new
        if query.label in new.physical.calendars or not any(b > -FAR for b in self.engine.sources.bounds.values()):
            return None
        if len(compared_inputs(new.plan.points[rule])) > 1:
            return "which of them are one event is not known where they were kept in several places"
        if not self._was_sent(rule, query):
            return "those that wait for the next events were not sent to any place, since no rule asked for them"
        return None

    def is_elsewhere(self, rule: str, label: str) -> bool:
        """The same of what waits and was not sent to any place: an archive has it."""
        if super().is_elsewhere(rule, label):
            return True
        points = self.both.new.plan.points
        read = dict.fromkeys(one.point for one in find(points[rule].expression, Input))
        queries = [points[name] for name in read if points[name].label == label]
        is_ours = all(EngineStanding.lost(self, rule, query) is None for query in queries)
        return is_ours and len(compared_inputs(points[rule])) < 2

    def _was_sent(self, rule: str, query: Point) -> bool:
        """Whether the events of a query that wait were sent to where some rule asked for them."""
        patterns = tuple(match.pattern for match in find(query.expression, Match))
        return self.sent(self._origin(rule, query.label), query.label, patterns)

    def sent(self, lanes: Sequence[frozenset[str]], label: str | None, patterns: tuple[Pattern, ...]) -> bool:
        """Whether all events that wait in some lanes were sent there, as some rule asked for them when they came."""
        known = [k for k in self.kept if k.label in (label, None) and k.lane in lanes and self._is_complete(k)]
        return any(serves(k, patterns) for k in known)

    def _is_complete(self, kept: KeptTuples) -> bool:
        """Whether nothing that waits is missing in a history, since it was asked for earlier than that came."""
        lane = self.engine.lanes[kept.lane]
        return lane.histories[kept.history].since <= lane.bound


class SpreadMove(Move):
    """An attempt to move gathered state."""

    def _united(self, parts: Sequence[Batch]) -> Batch:
        return united(parts)

    def _put(self, lane: Lane, name: str, origin: Origin, ways: Sequence[tuple[KeptTuples, Convert]]) -> None:
        for rule, _ in self._readers(lane, name):
            for member in self._kept_members(rule):
                if len(compared_inputs(self.now.plan.points[rule])) > 1:
                    self._check_comparable(member, name, ways[0][0])
        super()._put(lane, name, origin, ways)

    def _settle(self, names: frozenset[str], lane: Lane) -> None:
        """The same; what waited and was sent nowhere is missing in histories that nobody asked for before."""
        super()._settle(names, lane)
        last = self.new.sources.last
        for name, query in lane.plan.queries.items():
            origin = self._origin(names, query.label)
            lanes = [] if origin is None else [origin.lane]
            standing = self.standing
            if query.label in self.now.calendars:
                continue
            if isinstance(standing, SpreadStanding) and not standing.sent(lanes, query.label, query.patterns):
                lane.histories[name].since = max(lane.histories[name].since, last)

    def _check_comparable(self, member: str, query: str, kept: KeptTuples) -> None:
        """A kept rule that asks whether two events are one needs what it had itself."""
        is_same = kept.stored == self.now.rewritten.names.histories[query]
        anchored = self.standing.anchored if isinstance(self.standing, SpreadStanding) else {}
        if not is_same or anchored.get(kept.history) is None:
            raise Immovable(
                f"{told(self.compared.new.plan, member)} asks whether events are one, and what it reads is kept in "
                "several places otherwise"
            )


class SpreadPastMove(SpreadMove, PastMove):
    """An attempt to move gathered state, in which some rules get their past from an archive."""

    def _waiting_there(self, names: frozenset[str], lane: Lane) -> Iterator[Events]:
        """Those that wait and that nobody was sent come from the archive, too; what is there twice is one event."""
        lacking = list(super()._waiting_there(names, lane))
        yield from lacking
        known = {id(part) for part in lacking}
        points, standing = self.now.rewritten.plan.points, self.standing
        read = {leaf.source for name in lane.rules for leaf in lane.rules[name].plan.inputs()}
        for part in self._donor().waiting_parts[names]:
            queries = [points[name] for name in read if name in points and points[name].label in (part.label, None)]
            if id(part) not in known and isinstance(standing, SpreadStanding):
                patterns = [tuple(match.pattern for match in find(query.expression, Match)) for query in queries]
                if not all(standing.sent([names], part.label, one) for one in patterns):
                    yield part


# ---- between two batches ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spread:
    """A program that goes on in some places, and the state that it goes on from."""

    program: DistributedProgram
    standing: Progress
    _whole: Callable[[int], Engine]
    done: Changed | None = None
    """What became of its rules, if they changed."""

    def engines(self, group: int) -> dict[int, Engine]:
        """The engines of a group by place."""
        return scattered(self.program, group, self._whole(group))


def changed_spread(  # noqa: PLR0913, PLR0917 - two programs, and how the first stands
    old: DistributedProgram,
    new: Compiled,
    world: World,
    standing: Progress,
    engines: Engines,
    look_back: LookBack | ReadOnce,
    places: int | None = None,
) -> Spread:
    """A program that goes on from the state of another; the engines of that are only looked at."""
    whole = gathered(old, standing, _every(old, engines))
    ways = Ways(spread_form, partial(SpreadStanding, spread=old), Moves(SpreadMove, SpreadPastMove))
    as_numbers = not standing.texts
    done = changed(
        spread_form(old.compiled), spread_form(new), whole, world, look_back, ways=ways, as_numbers=as_numbers
    )
    rewrites = done.compiled.physical.rewrites
    planned = new if rewrites == new.physical.rewrites else planned_with(new, rewrites)
    program = DistributedProgram(live_form(planned), world, old.number, places or old.places, old.first, old.last)
    return Spread(program, carried_over(standing, new.rules.resolved.catalogue), lambda _: done.engine, done)


def respread(old: DistributedProgram, standing: Progress, engines: Engines, places: int) -> Spread:
    """The same program in another number of places; group by group, so that nothing has to be compared."""
    program = DistributedProgram(old.compiled, old.world, old.number, places, old.first, old.last)

    def whole(group: int) -> Engine:
        return gathered(old, standing, ((group, engine) for engine in engines(group)), group)

    return Spread(program, standing, whole)


def _every(spread: DistributedProgram, engines: Engines) -> Iterator[tuple[int, Engine]]:
    for group in range(len(spread.stages.groups)):
        for engine in engines(group):
            yield group, engine


def carried_over(standing: Progress, catalogue: Catalogue) -> Progress:
    """How far the sources have come that a changed program still has."""
    names = sources_of(catalogue).names

    def of(told: Mapping[str, T]) -> dict[str, T]:
        return {name: one for name, one in told.items() if name in names}

    return replace(
        standing,
        bounds=of(standing.bounds),
        silent=of(standing.silent),
        parts=of(standing.parts),
        heard=of(standing.heard),
        past=of(standing.past),
    )
