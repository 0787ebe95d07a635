"""This module tells how a program runs: where each rule, by which searches, what travels, is kept, and is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ephemera.algebra.attributes import Variable, as_written, end, is_constant
from ephemera.algebra.explain import formula, operator
from ephemera.algebra.nodes import Calendar, Gap, Input, Point, RelativeTimer, Table
from ephemera.algebra.parts import member_head, position_of
from ephemera.algebra.scalar import Holds
from ephemera.analysis.bounds import Limit, lasting
from ephemera.base.time import describe
from ephemera.base.tree import find
from ephemera.physical.expectation import expect, kept_of, stored_in
from ephemera.physical.nodes import AbsentRows, HistoryPlan, LanePlan, Order, Probe, RulePlan, Step, WindowPlan
from ephemera.physical.placement import WHOLE, Group, shown_at
from ephemera.physical.plan import PhysicalPlan
from ephemera.rewrite.pushdown import constants
from ephemera.syntax.format import format_expression
from ephemera.syntax.nodes import Comparison, Raise
from ephemera.terms.nodes import Expression, Var

Plain: TypeAlias = dict[str, Any]


def as_json(plan: PhysicalPlan) -> Plain:
    """Groups with their rules, exchanges, what is gathered, lanes, and what is read; lengths in microseconds."""
    return _Explained(plan).all()


class _Explained:
    def __init__(self, plan: PhysicalPlan) -> None:
        self._physical = plan.distributed
        self._plan = plan.plan
        self._rewritten = self._physical.rewritten
        self._stages = plan.stages
        self._expected = expect(self._physical)
        self._lasting = lasting(self._physical.logical)

    def all(self) -> Plain:
        return {
            "asked": self._asked(),
            "levels": self._stages.levels,
            "groups": [self._group(number, group) for number, group in enumerate(self._stages.groups, 1)],
            "exchanges": list(self._exchanges()),
            "gathered": list(self._gathered()),
            "lanes": [self._lane(sources, lane) for sources, lane in self._physical.lanes.plans.items()],
            "expected": [
                {"label": label, "per_second": rate, "known": known}
                for label, (rate, known) in self._expected.rates.items()
            ],
            "reading": list(self._reading()),
        }

    # ---- what is asked for ---------------------------------------------------------------------------------

    def _asked(self) -> Plain | None:
        """What is asked for, if that is not everything, and what was done since no more is."""
        rewritten = self._rewritten
        if not rewritten.emit:
            return None
        points = self._physical.logical.points
        return {
            "emit": sorted(rewritten.emit),
            "not_run": [_named(point) for point in rewritten.unasked],
            "pushed": [{**_named(points[name]), "test": formula(test)} for name, test in rewritten.pushed.items()],
            "useless": [_named(point) for point in rewritten.useless],
            "fused": [
                {**_named(one.point), "reads": self._event_of(one.deriving), "instead_of": _named(one.deriving)}
                for one in rewritten.fused.values()
            ],
        }

    def _event_of(self, rule: Point) -> str:
        """What the one event of a rule is asked for by."""
        return next(find(rule.expression, Input)).point

    # ---- groups --------------------------------------------------------------------------------------------

    def _group(self, number: int, group: Group) -> Plain:
        judges = [self._judged(label) for label in sorted(group.judges)]
        return {
            "group": number,
            "level": group.level + 1,
            "partitions": "all"
            if any(group.cuts.values()) or any(one["per"] for one in judges)
            else "slices"
            if self._is_sliced(number - 1)
            else "one",
            "reads": [
                {"query": self._shown_query(query), "label": self._label(query), "cut_by": self._cut(query, cut)}
                for query, cut in group.cuts.items()
            ],
            "rules": [self._rule(name) for name in group.rules],
            **({"judges": judges} if judges else {}),
        }

    def _judged(self, label: str) -> Plain:
        """By what it is judged which events of a type come too close."""
        apart = self._physical.judged[label]
        return {"label": label, "apart": apart.distance, "per": list(apart.per)}

    def _shown_query(self, query: str) -> str:
        """A query by its name; one that was made for several rules by the pattern of the first."""
        return query.partition(" of ")[0] if query in self._rewritten.queries else query

    def _label(self, query: str) -> str | None:
        return self._rewritten.plan.points[query].label

    def _cut(self, query: str, cut: str | None) -> str | None:
        """What the matches of a query are cut by: an attribute, or a variable of the query."""
        if cut is None or cut == WHOLE:
            return cut
        place = position_of(self._rewritten.plan, query, cut)
        if place is None or self._is_stored(place[0]):
            return cut
        names = self._plan.catalogue.attributes(place[0])
        return names[place[1]] if names is not None else f"value{place[1] + 1}"

    def _rule(self, name: str) -> Plain:
        placed = self._stages.placed[name]
        physical = self._physical.rules[name]
        key = placed.key
        if key is not None and is_constant(key):
            key = self._constant(physical, key)
        return {
            "rules": [{"rule": m.rule, "point": m.name} for m in self._members(name)],
            "stored_join": self._is_stored(name),
            "cut_by": None if key is None else as_written(key),
            "because": placed.because,
            "look_back": self._physical.rewritten.facts.look_back(name) if self._is_sliced(placed.group) else None,
            "orders": [self._order(k, order, physical) for k, order in enumerate(physical.orders)],
            "detections": [operator(one.detection) for one in physical.detections],
            "then": [operator(self._with_lengths(name, one)) for one in physical.then],
            "timers": [operator(self._with_lengths(name, timer)) for timer in physical.timers],
            "tables": [operator(table) for table in physical.tables],
            "tests": [formula(test) for test in physical.tests],
            "attempts": [[[self._step(s) for s in branch] for branch in branches] for branches in physical.attempts],
            "having": [formula(test) for test in physical.having],
            "gives_rows": physical.gives_rows,
            "delay": None if self._is_stored(name) else self._delay(name),
            "expected": self._of_rule(name),
            "ways": self._ways(name),
            **({"range": as_written(physical.ranged.variable)} if physical.ranged is not None else {}),
        }

    def _with_lengths(self, name: str, timer: RelativeTimer | Gap | Table) -> RelativeTimer | Gap | Table:
        """A timer with how long it is; where it stands for those of several rules, from the shortest to the longest."""
        if not isinstance(timer, RelativeTimer) or isinstance(timer.length, int):
            return timer
        alike = self._physical.rewritten.alike[name]
        place = alike.names.index(timer.length)
        lengths = [length for row in alike.rows if isinstance(length := row[place], int)]
        return replace(timer, length=Variable(f"{describe(min(lengths))} to {describe(max(lengths))}"))

    def _delay(self, name: str) -> Plain:
        """How far behind the last event that it is made of an answer is given at least, and why."""
        limit = min(self._lasting_of(name), key=lambda one: one.shift, default=None)
        *_, sources = (own for own, lane in self._physical.lanes.plans.items() if name in lane.uses)
        watermarks = {one or None: self._lateness(one)["watermark"] for one in sorted(sources)}
        slowest = max(watermarks, key=lambda one: watermarks[one], default=None)
        late = watermarks.get(slowest, 0)
        label = None if limit is None else self._physical.logical.points[limit.input].label
        return {
            "behind": late + (limit.shift if limit is not None else 0),
            "ends_behind": limit.shift if limit is not None else 0,
            "because": list(limit.because) if limit is not None else [],
            "through": label if label in self._plan.catalogue.derived else None,
            "slowest": slowest if late else None,
            "watermark": late,
        }

    def _lasting_of(self, name: str) -> Iterator[Limit]:
        """How far answers end behind their last event, of the rules that one stands for."""
        for member in self._members(name):
            written = member.name
            while written in self._rewritten.fused:
                written = self._rewritten.fused[written].reader
            if written in self._lasting:
                yield self._lasting[written]

    def _lateness(self, source: str) -> Plain:
        """How late the events of a source may be, and how long it may be silent before time passes all the same."""
        declared = next((one for one in self._plan.catalogue.sources if one.name == source), None)
        return {
            "watermark": declared.watermark if declared is not None else 0,
            "idle": declared.idle if declared is not None else None,
        }

    def _of_rule(self, name: str) -> Plain | None:
        """What a rule is expected to do in a second."""
        one = self._expected.rules.get(name)
        return None if one is None else {"answers": one.answers, "pairs": one.pairs}

    def _ways(self, name: str) -> list[Plain]:
        """What could be stored of a rule with what that is expected to cost, the cheapest first, and what is."""
        stored = {frozenset(events) for events in stored_in(self._physical.rules[name])}
        return [
            {
                "stores": [sorted(events) for events in way.stored],
                "cost": way.cost,
                "taken": stored == {e for e in way.stored if not any(e < other for other in way.stored)},
            }
            for way in self._expected.ways.get(name, ())
        ]

    def _is_sliced(self, number: int) -> bool:
        """Whether a group has no key, and can be cut along time."""
        group = self._stages.groups[number]
        return group.look_back is not None and None in group.cuts.values()

    def _members(self, name: str) -> Sequence[Point]:
        return sorted(self._rewritten.members(name), key=lambda member: member.rule or 0)

    def _constant(self, physical: RulePlan, key: str) -> str:
        """The attribute for which each of several rules has a constant."""
        for one in physical.leaves:
            own = {new: old for old, new in one.names.items()}
            if key in own and key in one.variables:
                return self._cut(one.source, own[key]) or key
        return key

    def _order(self, first: int, order: Order, physical: RulePlan) -> Plain:
        names = [leaf.name.removesuffix("+").strip("`") if leaf.stored else leaf.name for leaf in physical.leaves]
        return {
            "new": names[first],
            "tests": [formula(test) for test in order.tests],
            "then": [
                {"search": names[probe.leaf], **_search(probe, probe.stamp), "equations": _equations(probe)}
                for probe in order.probes
            ],
        }

    def _step(self, step: Step) -> Plain:
        """What is done with a tuple that happens."""
        match step:
            case WindowPlan(leaf):
                return {
                    "window": self._source(leaf.source),
                    "as": leaf.name,
                    "kind": step.kind,
                    **_search(step, end(leaf.name)),
                    "exact": step.is_exact,
                    "wanted": [[one.function, _shown(one.value)] for one in step.wanted],
                }
            case AbsentRows(table):
                return {"absent": operator(table)}
            case _:
                return {"test": formula(step)}

    def _source(self, history: str) -> str:
        """What is in a history: events of a label, or of a rule's own timer or algebra expression."""
        return self._label(history) or "any event" if history in self._rewritten.plan.points else history

    def _lane(self, sources: frozenset[str], lane: LanePlan) -> Plain:
        return {
            "sources": sorted(sources),
            "waits_for": [{"source": name or None, **self._lateness(name)} for name in sorted(sources)],
            "rules": [{"rule": m.rule, "point": m.name} for name in lane.uses for m in self._members(name)],
            "cycles": [list(map(self._shown_query, points)) for points, is_cycle in lane.schedule if is_cycle],
            "histories": [
                {
                    "history": self._shown_query(name),
                    "if": formula(self._rewritten.tested[name]) if name in self._rewritten.tested else None,
                    "kept": one.reach,
                    "expected": self._of_history(name, one),
                    "whole": name in lane.queries and lane.queries[name].keeps_events,
                }
                for name, one in lane.histories.items()
            ],
            "days": list(lane.days),
        }

    def _of_history(self, name: str, history: HistoryPlan) -> Plain | None:
        one = kept_of(self._physical, name, history)
        return None if one.tuples is None else {"tuples": one.tuples, "bytes": one.bytes}

    # ---- what travels --------------------------------------------------------------------------------------

    def _exchanges(self) -> Iterator[Plain]:
        """What is sent to a group: from the input, and from rules of earlier levels."""
        producers: dict[str, list[tuple[str, str]]] = {}
        for rule in self._stages.placed:
            for member in self._members(rule):
                if member.label is not None:
                    producers.setdefault(member.label, []).append((rule, member.name))
        for number, group in enumerate(self._stages.groups):
            for label in dict.fromkeys(self._label(query) for query in group.cuts):
                cuts = {self._cut(q, cut): None for q, cut in group.cuts.items() if self._label(q) == label}
                known = (
                    [one for found in producers.values() for one in found]
                    if label is None
                    else producers.get(label, [])
                )
                earlier = [name for rule, name in known if self._level_of(rule) < group.level]
                sources = [*([self._outside(label)] if self._comes_from_outside(label) else []), *earlier]
                if sources:
                    yield {
                        "level": group.level + 1,
                        "label": label,
                        "from": sources,
                        "to": number + 1,
                        "cut_by": list(cuts),
                    }

    def _outside(self, label: str | None) -> str:
        """Where events of a type come from: those that are judged from where they are found to be good."""
        return f"group {(self._stages.judging or 0) + 1}" if label in self._physical.judged else "input"

    def _level_of(self, rule: str) -> int:
        return self._stages.groups[self._stages.placed[rule].group].level

    def _comes_from_outside(self, label: str | None) -> bool:
        catalogue = self._plan.catalogue
        is_inner = label in catalogue.derived or self._is_stored(label)
        return label is None or label in catalogue.events or not is_inner

    def _is_stored(self, label: str | None) -> bool:
        """Whether a label is that of a stored join."""
        point = self._rewritten.plan.points.get(label or "")
        return point is not None and point.kind == "join"

    def _gathered(self) -> Iterator[Plain]:
        for label in sorted(self._stages.scattered):
            makers = [(r, m) for r in self._stages.placed for m in self._members(r) if m.label == label]
            groups = sorted({self._stages.placed[rule].group + 1 for rule, _ in makers})
            several = f"groups {', '.join(map(str, groups))} derive it"
            because = several if len(groups) > 1 else self._hidden(makers)
            yield {"label": label, "because": because}
        for point in self._plan.points.values():
            if point.kind == "rule" and isinstance(member_head(point).head, Raise):
                yield {"label": point.name, "because": "a message is sent once"}

    def _hidden(self, makers: Sequence[tuple[str, Point]]) -> str:
        for rule, member in makers:
            key = self._stages.placed[rule].key
            if key == WHOLE:
                return f"equal answers of {member.name} may come of different events"
            if key is not None and not list(shown_at(member, key)):
                shown = self._rule(rule)["cut_by"]
                return f"the head of {member.name} does not show {shown}, by which it is cut"
        return "its rules show what they are cut by at different places"

    # ---- reading -------------------------------------------------------------------------------------------

    def _reading(self) -> Iterator[Plain]:
        catalogue = self._plan.catalogue
        asked = self._rewritten.columns
        pushed = constants([self._rewritten.reading or self._plan])
        everything = {label: frozenset(catalogue.attributes(label) or ()) for label in catalogue.events}
        if asked is None:
            asked, pushed = everything, {}
            because = "a rule reads events of any type, and nothing declares the others"
            yield {"label": None, "how": "python", "because": because, "derived": False}
        elif any(True for point in self._plan.points.values() for _ in find(point.expression, Calendar)):
            asked, pushed = {**dict.fromkeys(everything, frozenset[str]()), **asked}, {}
        for label, names in asked.items():
            schema = catalogue.events.get(label)
            if schema is not None and schema.is_flat:
                filters = [dict(use) for use in pushed.get(label, ())]
                columns = [own for name, own in zip(schema.names, schema.columns, strict=True) if name in names]
                yield {"label": label, "how": "columns", "because": None, "columns": columns, "filters": filters}
            else:
                is_derived = label in catalogue.derived
                yield {"label": label, "how": "python", "because": self._why_python(label), "derived": is_derived}

    def _why_python(self, label: str) -> str:
        schema = self._plan.catalogue.events.get(label)
        if schema is None:
            return "nothing declares it"
        return "its shape is left open" if schema.attributes is None else "an attribute has several values"


def _named(point: Point) -> Plain:
    return {"rule": point.rule, "point": point.name}


def _search(by: Probe | WindowPlan, stamp: str) -> Plain:
    return {
        "by": list(by.keys),
        "stamp": stamp if by.ranges else None,
        "ranges": [{"of": r.known, "before": r.earliest, "after": r.latest} for r in by.ranges],
        "tests": [formula(test) for test in by.tests],
    }


def _shown(e: Expression) -> str:
    return e.name if isinstance(e, Var) else format_expression(e)


def _equations(probe: Probe) -> list[Plain]:
    """Its computed keys, and which of them hold of whole numbers only."""
    return [
        {"key": formula(Holds(Comparison("=", one.own, one.known))), "whole": one.is_solved} for one in probe.equations
    ]
