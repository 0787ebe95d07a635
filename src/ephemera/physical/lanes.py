"""This module groups the rules of a plan into lanes, by the sources that they wait for, and plans what each lane holds.

Rules that derive one label wait for the sources of all of them, since what two of them derive is one event, which is
given once. A rule that reads nothing but the clock and calendars waits for no source. What it answers goes with all of
them. Rules that wait for fewer sources and read what it derives need that by their own bounds: then it runs a second
time in a lane without sources, which goes with the fastest of them, only to tell those rules.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from ephemera.algebra.attributes import EVENT, Stamp, begin, end, event_of, is_reserve, moved
from ephemera.algebra.nodes import Calendar, Detection, Expression, Input, Match, Plan, Rename
from ephemera.algebra.parts import stored_stamps
from ephemera.algebra.scalar import Matches
from ephemera.algebra.state_names import stored_joins
from ephemera.analysis.detectors import is_part
from ephemera.analysis.nodes import ANY_LENGTH, Relevance
from ephemera.analysis.relevance import waiting_time
from ephemera.analysis.sources import NO_SOURCE, awaited_sources, every_source
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.physical.nodes import HistoryPlan, HistoryUse, LanePlan, Needed, QueryPlan, Reader, RulePlan
from ephemera.rewrite.drop_unasked import all_read
from ephemera.rewrite.optimize import Rewritten
from ephemera.rules.nodes import Ruleset
from ephemera.rules.patterns import pattern_label
from ephemera.syntax.nodes import Event

CLOCK = NO_SOURCE
"""The lane of what waits for no source, and tells others."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The rules of a plan by the sources that they wait for, those that wait for the fewest first."""

    plans: Mapping[frozenset[str], LanePlan]
    every: frozenset[str]
    """All sources."""
    told_ahead: frozenset[str]
    """The rules that run in the lane of the clock, too, which tells the others what they derive."""

    def of(self, rules: Container[str], reserved: Container[str] = ()) -> dict[frozenset[str], LanePlan]:
        """The lanes of some of the rules, and of what is reserved, by the names of histories."""
        restricted = {
            sources: _keeping(lane, _restricted(lane, rules), reserved) for sources, lane in self.plans.items()
        }
        return {sources: lane for sources, lane in restricted.items() if lane.histories}


def lanes_of(given: Rewritten, rules: Mapping[str, RulePlan], calendars: Set[str], written: Plan) -> Lanes:
    """The lanes of the rules of a plan, and what they tell each other.

    What a rule waits for is what it waits for in the plan as it was `written`, so that no rewrite changes how far time
    has come, and so which events come too late.
    """
    plan = given.plan
    every = every_source(written, calendars)
    depends = awaited_sources(written, calendars, every)
    for name, fused in given.fused.items():
        depends[name] = depends[fused.reader]
    for name, owners in stored_joins(plan).items():
        depends[name] = depends[owners[0]]
    for name, one in given.alike.items():  # rules that run as one wait for the sources of all of them
        depends[name] = CLOCK.union(*(depends[m.name] for m in one.members))
    free = [name for name in rules if not depends[name]]
    ahead = any(depends[name] not in (CLOCK, every) and not all_read(plan, [name]).isdisjoint(free) for name in rules)
    names: dict[frozenset[str], list[str]] = {}
    for name in rules:
        names.setdefault(depends[name] or every, []).append(name)
        if ahead and name in free:
            names.setdefault(CLOCK, []).append(name)
    whole = _whole(given, rules, calendars)
    return Lanes(
        {sources: _restricted(whole, names[sources]) for sources in sorted(names, key=len)},
        every,
        frozenset(m for name in free for m in (name, *(m.name for m in given.members(name)))) if ahead else CLOCK,
    )


# ---- what a lane holds ---------------------------------------------------------------------------------------


def _whole(given: Rewritten, rules: Mapping[str, RulePlan], calendars: Set[str]) -> LanePlan:
    """All rules as one lane."""
    relevance: dict[str, list[Relevance]] = {}
    for one in given.facts.relevance:
        relevance.setdefault(one.point, []).append(one)
    uses = {name: tuple(_uses(rule, given, relevance.get(name, ()))) for name, rule in rules.items()}
    asked = {use.history for used in uses.values() for use in used}
    points = given.plan.points
    queries = {
        name: QueryPlan(point.label, tuple(match.pattern for match in find(point.expression, Match)))
        for name, point in points.items()
        if name in asked
    }
    schedule = tuple(_schedule([name for name in points if name in uses or name in queries], given.plan))
    timers = {f"{name}/{timer.name}": timer for name in uses for timer in find(points[name].expression, Calendar)}
    return _laid_out(LanePlan(schedule, uses, queries, {}, timers, tuple(sorted(calendars))))


def _uses(rule: RulePlan, given: Rewritten, relevance: Sequence[Relevance]) -> Iterator[HistoryUse]:
    """The histories of the queries that a rule reads, and of its own timers and algebra expressions."""
    expression = given.plan.points[rule.point].expression
    detected = {one.detection.name for one in rule.detections if one.detector is not None}
    told_apart = _told_apart(expression, detected)
    for query in dict.fromkeys(i.point for i in find(expression, Input)):
        stored = stored_stamps(given.plan.points[query])
        called = _called(expression, query) if stored else None
        mine = [one for one in relevance if one.input == query]
        own = [one for one in mine if not is_part(one.name, detected)]
        needed = _needed(own, EVENT if called is None else called)
        if needed is not None and len(own) < len(mine):
            # A detector reads what has just ended, and keeps for itself what it needs of it then.
            needed = (*needed, Reader(((end(EVENT), 0),)))
        stamps = (*stored, begin(EVENT), end(EVENT))
        yield HistoryUse(query, stamps, needed, _reach(own), is_whole=query in told_apart)
    for name in dict.fromkeys(timer.name for timer in find(expression, Calendar)):
        own = [one for one in relevance if one.name == name]
        yield HistoryUse(f"{rule.point}/{name}", (begin(name), end(name)), _needed(own, name), _reach(own))
    for name in (one.detection.name for one in rule.detections):
        waits = waiting_time(given.facts.cases.get(rule.point, ()), end(name))
        reach = None if waits is None else waits.bound - waits.is_strict
        needed = None if reach is None else (Reader(((end(name), reach),)),)
        yield HistoryUse(f"{rule.point}/{name}", (begin(name), end(name)), needed, reach)


def _called(expression: Expression, query: str) -> dict[str, str]:
    """What a query calls the events of a stored join, by what a rule that reads it calls them."""
    uses = (use for use in find(expression, Rename) if use.input == Input(query))
    return {new: old for use in uses for old, new in use.events}


def _needed(relevance: Iterable[Relevance], event: str | Mapping[str, str]) -> Needed:
    """For each reader of a history how long before now some stamps count: of its one event, or of several by names."""
    readers: list[Reader] = []
    for one in relevance:
        length = one.length if event == EVENT else ANY_LENGTH
        if not one.minimal and length == ANY_LENGTH:
            return None
        # What waits for nobody is read in the step in which it comes, and not kept.
        for partner in (one.partners or (one.minimal,)) if one.minimal else ((),):
            times = [(_own(b.stamp, event), b.time) for b in partner]
            counts = tuple((stamp, t.bound - t.is_strict) for stamp, t in times if t is not None)
            readers.append(Reader(counts, length))
    return tuple(readers)


def _reach(relevance: Iterable[Relevance]) -> int | None:
    """How far before the bound a tuple may end and still matter to a reader; None is any time."""
    times = [[b.time.bound - b.time.is_strict for b in one.minimal if b.time is not None] for one in relevance]
    return max((min(one) for one in times), default=0) if all(times) else None


def _own(stamp: Stamp, event: str | Mapping[str, str]) -> Stamp:
    """A stamp as the tuples of a history have it."""
    name = event_of(stamp)
    return moved(stamp, event if isinstance(event, str) else event.get(name, name))


def _told_apart(expression: Expression, detected: Container[str]) -> set[str]:
    """The queries whose events a rule tests again, or an algebra expression without a detector tells apart."""
    tested = {m.event for m in find(expression, Matches)}
    inner = {i for d in find(expression, Detection) if d.name not in detected for i in d.inputs}
    return {
        use.input.point
        for use in find(expression, Rename)
        if isinstance(use.input, Input) and (use.events[0][1] in tested or use in inner)
    }


def _schedule(names: Sequence[str], plan: Plan) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The points of a lane in the order of the plan, those of a cycle together."""
    cycles = {name: frozenset(cycle) for cycle in plan.cycles for name in cycle}
    done: set[str] = set()
    for name in names:
        if name not in done:
            members = tuple(n for n in names if n in cycles[name]) if name in cycles else (name,)
            done.update(members)
            yield members, name in cycles


def _restricted(lane: LanePlan, rules: Container[str]) -> LanePlan:
    """A lane with some of its rules only."""
    uses = {name: used for name, used in lane.uses.items() if name in rules}
    if len(uses) == len(lane.uses):
        return lane
    asked = {use.history for used in uses.values() for use in used}
    parts = ((tuple(n for n in members if n in uses or n in asked), is_cycle) for members, is_cycle in lane.schedule)
    return _laid_out(
        replace(
            lane,
            schedule=tuple(part for part in parts if part[0]),
            uses=uses,
            queries={name: query for name, query in lane.queries.items() if name in asked},
            timers={name: timer for name, timer in lane.timers.items() if name in asked},
        )
    )


def _keeping(lane: LanePlan, part: LanePlan, reserved: Container[str]) -> LanePlan:
    """A part of a lane with those of its histories that are reserved, and no others of these."""
    known = [name for name in lane.queries if is_reserve(name)]
    if not known:
        return part
    own = [name for name in known if name in reserved]
    return replace(
        part,
        schedule=(*(((name,), False) for name in own), *(one for one in part.schedule if one[0][0] not in known)),
        queries={name: query for name, query in part.queries.items() if name not in known}
        | {name: lane.queries[name] for name in own},
        histories={name: history for name, history in part.histories.items() if name not in known}
        | {name: lane.histories[name] for name in own},
    )


def _laid_out(lane: LanePlan) -> LanePlan:
    """A lane with its histories, each as long as any of its rules needs it, and as whole."""
    readers: dict[str, list[HistoryUse]] = {name: [] for name in lane.queries}
    for used in lane.uses.values():
        for use in used:
            readers.setdefault(use.history, []).append(use)
    queries = {
        name: replace(query, keeps_events=any(use.is_whole for use in readers[name]))
        for name, query in lane.queries.items()
    }
    labels = {query.label for query in queries.values()}
    return replace(
        lane,
        queries=queries,
        histories={name: _history(uses) for name, uses in readers.items()},
        days=tuple(name for name in lane.days if name in labels),
    )


def _history(uses: Sequence[HistoryUse]) -> HistoryPlan:
    needs = [use.needed for use in uses]
    known = [needed for needed in needs if needed is not None]
    if len(known) < len(needs):
        return HistoryPlan(uses[0].stamps, None, None)
    readers = _longest(reader for needed in known for reader in needed)
    reaches = [use.reach for use in uses if use.reach is not None]
    return HistoryPlan(uses[0].stamps, readers, max(reaches, default=0) if len(reaches) == len(uses) else None)


def _longest(readers: Iterable[Reader]) -> tuple[Reader, ...]:
    """Those of some readers that keep whatever any of them keeps: of thousands of rules few are left."""
    found: list[Reader] = []
    for reader in sorted(set(readers), key=_order):
        times = dict(reader.times)
        if not any(
            other.length.covers(reader.length)
            and all(stamp in times and times[stamp] <= time for stamp, time in other.times)
            for other in found
        ):
            found.append(reader)
    return tuple(found)


def _order(reader: Reader) -> tuple[object, ...]:
    """Those come first that keep more."""
    most = reader.length.most
    times = len(reader.times), -sum(time for _, time in reader.times), reader.times
    return *times, reader.length.least, most is not None, -(most or 0)


# ---- sources and the clock -----------------------------------------------------------------------------------


def by_the_clock(rules: Ruleset, calendars: Set[str]) -> frozenset[int]:
    """The rules that absolute timers or calendars take part in, directly or through what they ask for."""
    asked = {
        number: {str(label) for e in find(rule.body, Event) if (label := pattern_label(e.pattern)) is not None}
        for number, rule in enumerate(rules.resolved.rules, 1)
    }
    timed = {n for n, labels in asked.items() if "timer:datetime" in labels or labels & calendars}
    while True:
        needs = {n for n in asked if n not in timed and any(timed & set(d.rules) for d in rules.dependencies[n - 1])}
        if not needs:
            return frozenset(timed)
        timed |= needs
