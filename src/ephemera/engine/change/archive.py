"""This module gives added rules their past from an archive: what they would have, had they always been there.

An engine of its own runs these rules, and all that derive something for them, over the part of the archive that
relevance names. What it keeps then is theirs beside the histories of the lane, which they only read behind the change
(`kernels/since.py`). So whatever the archive has, kept rules do not see it, and nothing counts twice. When what is
older matters no longer, a rule reads what all others read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from ephemera.algebra.attributes import records_of
from ephemera.algebra.nodes import Base
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.engine.change.compared import ChangeRefused
from ephemera.engine.change.move import Move
from ephemera.engine.change.moved_lanes import Immovable, Origin, Start, owners_of
from ephemera.engine.change.needs import needs_of
from ephemera.engine.change.standing import EngineStanding
from ephemera.engine.engine import Engine, Part
from ephemera.engine.lane import Lane
from ephemera.formats.json_events import write_time
from ephemera.kernels.columns import Ints
from ephemera.kernels.event_columns import END, Events
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled
from ephemera.rewrite.drop_unasked import all_read
from ephemera.rules.outcome import World


@dataclass(frozen=True, slots=True)
class Found:
    """What an archive has."""

    parts: Sequence[Events]
    """The events that were asked for, in no order."""
    first: int | None
    """When the first of all events ends; None if there is none."""
    bad: Sequence[str] = ()
    """Why some of it is no event of the program."""


class Archive(Protocol):
    """Events that have come before."""

    @property
    def name(self) -> str:
        """What people call it."""

    def read(self, compiled: Compiled, after: Mapping[str | None, int]) -> Found:
        """The events of some types that end after some time; None is any other type."""


class ReadOnce:
    """An archive as several plans are tried: read once, unless they ask for other columns."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._found: tuple[object, Found] | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        return self._archive.name

    def read(self, compiled: Compiled, wanted: Wanted) -> Found:
        """What some rules need of it."""
        asked = wanted.after, compiled.physical.rewritten.columns
        if self._found is None or self._found[0] != asked:
            self._found = asked, self._archive.read(compiled, wanted.after)
        return self._found[1]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What added rules need of an archive."""

    rules: frozenset[str]
    """The added rules."""
    lengths: Mapping[str, int | None]
    """How far back each looks, through all that it reads; None is any time."""
    after: Mapping[str | None, int]
    """For each type the time after which its events matter; None stands for any type."""


def wanted_by(standing: EngineStanding, rules: Sequence[str]) -> Wanted:
    """What some rules need that are added, were nothing kept at all."""
    both = standing.both
    lengths = needs_of(both, (), rules, standing).lengths
    after: dict[str | None, int] = {}
    for rule in rules:
        length = lengths[rule]
        begins = -FAR if length is None else standing.bound(rule) - length - 1
        for label in _read_by(both.new, rule):
            after[label] = min(begins, after.get(label, FAR))
    return Wanted(frozenset(rules), lengths, after)


def _read_by(compiled: Compiled, rule: str) -> Iterator[str | None]:
    """The types of all events that a rule reads, itself or through others."""
    points = compiled.plan.points
    yield from (base.label for name in all_read(compiled.plan, [rule]) for base in find(points[name].expression, Base))


def exact_from(standing: EngineStanding, wanted: Wanted, found: Found) -> Iterator[tuple[str, int]]:
    """The rules that are not exact at once, since the archive begins too late, and from when on they are."""
    began = standing.engine.sources.first
    for rule in sorted(wanted.rules):
        length, bound = wanted.lengths[rule], standing.bound(rule)
        first = found.first if found.first is not None else -FAR
        lacks = [late for late in (late_derivers(standing, rule),) if late > bound]
        if first > (-FAR if length is None else bound - length) and began is not None and first > began:
            lacks.append(first)
        if lacks:
            yield rule, FAR if length is None else max(max(lacks) + length, bound)


def late_derivers(standing: EngineStanding, rule: str) -> int:
    """From when on all kept rules are exact that derive something for an added one."""
    both, lanes = standing.both, standing.engine.lanes
    found = [-FAR]
    for name in all_read(both.new.plan, [rule]):
        at = standing.old_lane(name)
        if at is not None and at in lanes:
            runs = [one for own, one in lanes[at].rules.items() if both.kept[name] in owners_of(both.old.physical, own)]
            found += [one.exact_from for one in runs if one.exact_from is not None]
    return max(found)


def check_kept(standing: EngineStanding, wanted: Wanted, found: Found, archive: str, *, as_numbers: bool) -> None:
    """Refuses an archive without events that have come, and that are still kept."""
    if found.first is None and standing.engine.sources.first is not None:
        raise ChangeRefused(f"there are no events of this program in {archive}, and some have come")
    physical = standing.both.new.physical
    derived = {*physical.catalogue.derived, *physical.calendars}
    ends: dict[str, list[Ints]] = {}
    for part in found.parts:
        ends.setdefault(part.label, []).append(part.batch[END])
    for one in standing.kept:
        after = wanted.after.get(one.label)
        if one.label is None or after is None or one.label in derived:
            continue
        there = np.concatenate(ends.get(one.label, [np.empty(0, dtype=np.int64)]))
        for batch in standing.engine.lanes[one.lane].histories[one.history].batches():
            own = batch[END]
            lacking = own[(own > after) & ~np.isin(own, there)]
            if len(lacking):
                time = write_time(int(lacking.max()), physical.catalogue.unit, as_numbers=as_numbers)
                raise ChangeRefused(
                    f"{archive} is not all that has come: it has no `{one.label}` that ends at {time}, which "
                    "is kept; name an archive that reaches up to now"
                )


# ---- the past of rules -----------------------------------------------------------------------------------------


class PastMove(Move):
    """An attempt to move an engine into a plan in which some rules get their past from an archive."""

    def __init__(self, standing: EngineStanding, world: World, start: Start, wanted: Wanted, found: Found) -> None:
        super().__init__(standing, world, start)
        self.wanted = wanted
        self.found = found
        self._ran: Engine | None = None
        """What has run over the archive."""

    def _settle(self, names: frozenset[str], lane: Lane) -> None:
        for name in lane.rules:
            owners = owners_of(self.now, name)
            mine = self.wanted.rules.intersection(owners)
            if mine and len(mine) < len(set(owners)):
                raise Immovable("rules that get their past from an archive would run together with others")
        self._give_past(names, lane)
        super()._settle(names, lane)

    def _give_past(self, names: frozenset[str], lane: Lane) -> None:
        """The rules of a lane that are to have a past take it from the engine that ran over the archive."""
        donor = self._donor().lanes.get(names)
        mine = [name for name in lane.rules if not self.wanted.rules.isdisjoint(owners_of(self.now, name))]
        if donor is None:
            return
        if mine and donor.bound != lane.bound:
            raise Immovable("sources have not come equally far for rules that get their past from an archive")
        origin = Origin(names, lane.references, lane.derived_references + 1)
        for name in mine:
            rule, theirs = lane.rules[name], donor.rules[name]
            rule.pending.expire(FAR)
            for run in theirs.pending.checkpoint():
                rule.pending.restore(origin.moved(run.batch))
            for source in {leaf.source for leaf in rule.plan.inputs()}:
                past = rule.pasts[source] = lane.empty_history(source)
                for run in donor.histories[source].checkpoint():
                    past.restore(origin.moved(run.batch), 1)
            self._give_detected(name, lane, donor, origin)
        lane.references += donor.references
        lane.derived_references += donor.derived_references + 1
        self.new.hold(names, list(self._waiting_there(names, lane)))

    def _give_detected(self, name: str, lane: Lane, donor: Lane, origin: Origin) -> None:
        """What was detected for a rule in the archive, and what is kept to detect more; only that rule reads it."""
        for one in lane.rules[name].plan.detections:
            leaf = one.detection.name
            own, records = f"{name}/{leaf}", records_of(name, leaf)
            lane.histories[own].expire(FAR - 1)
            for run in donor.histories[own].checkpoint():
                lane.histories[own].restore(origin.moved(run.batch), 1)
            for run in donor.records[records].checkpoint() if records in lane.records else ():
                lane.records[records].restore(origin.moved(run.batch))
        if lane.detectors is not None and donor.detectors is not None:
            lane.detectors.count_on(max(lane.detectors.count, origin.outside + donor.detectors.count))

    def _waiting_there(self, names: frozenset[str], lane: Lane) -> Iterator[Events]:
        """Events behind the bound that wait nowhere else: those that others have derived, or a lane has not had."""
        points = self.compared.new.plan.points
        anew = {points[rule].label for rule in self.wanted.rules}
        for part in self._donor().waiting_parts[names]:
            if part.label in self.now.catalogue.derived:
                is_lost = names not in self.old.lanes or part.label in anew or self._is_changed(part.label)
            else:
                is_lost = self._origin(names, part.label) is None
            if is_lost or lane.since > lane.bound:
                yield part

    def _donor(self) -> Engine:
        """An engine that has run over the archive up to where the other one stands."""
        if self._ran is None:
            runners = {name for name in self.now.rules if not self.wanted.rules.isdisjoint(owners_of(self.now, name))}
            rules = all_read(self.now.rewritten.plan, runners).intersection(self.now.rules)
            engine = Engine(self.now, self.world, Part(frozenset(rules), {}, judges=True))
            sources, stands = engine.sources, self.new.sources
            known = [time for time in self.wanted.after.values() if time > -FAR]
            first = stands.first
            if first is not None and len(known) == len(self.wanted.after):
                first = max(first, min(known, default=first))
            sources.restore(first, stands.last)
            engine.load(self.found.parts)
            engine.advance({name: bound for name, bound in stands.bounds.items() if bound > -FAR})
            self._ran = engine
        return self._ran


def notes_of(found: Found, archive: str) -> Iterable[str]:
    """What people should know of an archive."""
    if found.bad:
        more = f"; the first: {found.bad[0]}"
        yield f"{len(found.bad):,} of the rows in {archive} are no events of the program{more}"
