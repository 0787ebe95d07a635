"""This module prints how a program runs: where each rule, by which searches, what travels, is kept, and is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ephemera.algebra.attributes import as_written, end, is_constant, is_moment
from ephemera.algebra.explain import formula, operator
from ephemera.algebra.nodes import Calendar, Point
from ephemera.base.time import describe
from ephemera.base.tree import find
from ephemera.physical.decompose import member_head
from ephemera.physical.nodes import AbsentRows, LanePlan, Order, Probe, Range, RulePlan, Step, WindowPlan
from ephemera.physical.placement import WHOLE, Group, position_of, shown_at
from ephemera.physical.plan import PhysicalPlan
from ephemera.rewrite.pushdown import constants
from ephemera.syntax.nodes import Raise

Plain: TypeAlias = dict[str, Any]


def as_json(plan: PhysicalPlan) -> Plain:
    """Groups with their rules, exchanges, what is gathered, lanes, and what is read; lengths in microseconds."""
    return _Explained(plan).all()


class _Explained:
    def __init__(self, plan: PhysicalPlan) -> None:
        self._physical = plan
        self._plan = plan.logical
        self._rewritten = plan.rewritten
        self._stages = plan.stages

    def all(self) -> Plain:
        return {
            "levels": self._stages.levels,
            "groups": [self._group(number, group) for number, group in enumerate(self._stages.groups, 1)],
            "exchanges": list(self._exchanges()),
            "gathered": list(self._gathered()),
            "lanes": [self._lane(sources, lane) for sources, lane in self._physical.lanes.plans.items()],
            "reading": list(self._reading()),
        }

    # ---- groups --------------------------------------------------------------------------------------------

    def _group(self, number: int, group: Group) -> Plain:
        return {
            "group": number,
            "level": group.level + 1,
            "partitions": "one" if all(cut is None for cut in group.cuts.values()) else "all",
            "reads": [
                {"query": self._shown_query(query), "label": self._label(query), "cut_by": self._cut(query, cut)}
                for query, cut in group.cuts.items()
            ],
            "rules": [self._rule(name) for name in group.rules],
        }

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
        if place is None:
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
            "cut_by": None if key is None else as_written(key),
            "because": placed.because,
            "orders": [self._order(k, order, physical) for k, order in enumerate(physical.orders)],
            "detections": [operator(one.detection) for one in physical.detections],
            "timers": [operator(timer) for timer in physical.timers],
            "tables": [operator(table) for table in physical.tables],
            "tests": [formula(test) for test in physical.tests],
            "attempts": [[[self._step(s) for s in branch] for branch in branches] for branches in physical.attempts],
            "having": [formula(test) for test in physical.having],
            "gives_rows": physical.gives_rows,
        }

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
        names = [leaf.name for leaf in physical.leaves]
        return {
            "new": names[first],
            "tests": [formula(test) for test in order.tests],
            "then": [{"search": names[probe.leaf], **_search(probe, probe.stamp)} for probe in order.probes],
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
                    "wanted": [list(wanted) for wanted in step.wanted],
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
            "rules": [{"rule": m.rule, "point": m.name} for name in lane.uses for m in self._members(name)],
            "cycles": [list(map(self._shown_query, points)) for points, is_cycle in lane.schedule if is_cycle],
            "histories": [
                {
                    "history": self._shown_query(name),
                    "kept": one.reach,
                    "whole": name in lane.queries and lane.queries[name].keeps_events,
                }
                for name, one in lane.histories.items()
            ],
            "days": list(lane.days),
        }

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
                sources = [*(["input"] if self._comes_from_outside(label) else []), *earlier]
                if sources:
                    yield {
                        "level": group.level + 1,
                        "label": label,
                        "from": sources,
                        "to": number + 1,
                        "cut_by": list(cuts),
                    }

    def _level_of(self, rule: str) -> int:
        return self._stages.groups[self._stages.placed[rule].group].level

    def _comes_from_outside(self, label: str | None) -> bool:
        catalogue = self._plan.catalogue
        return label is None or label in catalogue.events or label not in catalogue.derived

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
        pushed = constants([self._plan])
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


def _search(by: Probe | WindowPlan, stamp: str) -> Plain:
    return {
        "by": list(by.keys),
        "stamp": stamp if by.ranges else None,
        "ranges": [{"of": r.known, "before": r.earliest, "after": r.latest} for r in by.ranges],
        "tests": [formula(test) for test in by.tests],
    }


# ---- text ----------------------------------------------------------------------------------------------------


def as_text(plan: PhysicalPlan) -> str:
    """The same for people."""
    plain = as_json(plan)
    paragraphs = [_paragraph(group, plain["exchanges"]) for group in sorted(plain["groups"], key=lambda g: g["level"])]
    if plain["gathered"]:
        paragraphs.append(["gathered at the end", *(f"  {g['label']}: {g['because']}" for g in plain["gathered"])])
    paragraphs.append([line for lane in plain["lanes"] for line in _lane(lane)])
    paragraphs.append(["read", *(f"  {line}" for line in map(_read, plain["reading"]))])
    return "\n\n".join("\n".join(lines) for lines in paragraphs)


def _paragraph(group: Plain, exchanges: Sequence[Plain]) -> list[str]:
    where = "in one partition" if group["partitions"] == "one" else "in all partitions"
    lines = [f"group {group['group']}  (level {group['level']}, {where})"]
    lines += [
        f"  receives {one['label'] or 'any event'} from {_from(one['from'])}, {_cut_by(one['cut_by'])}"
        for one in exchanges
        if one["to"] == group["group"]
    ]
    for rule in group["rules"]:
        lines += [f"  {line}" for line in _rule(rule)]
    return lines


def _from(sources: Sequence[str]) -> str:
    return " and ".join("the input" if source == "input" else source for source in sources)


def _cut_by(cuts: Sequence[str | None]) -> str:
    told = {None: "all to one place", WHOLE: "anywhere"}
    return ", and ".join(told.get(cut) or f"by {cut}" for cut in cuts)


def _rule(rule: Plain) -> Iterator[str]:
    members = rule["rules"]
    numbers = ", ".join(str(m["rule"]) for m in members)
    names = ", ".join(m["point"] for m in members)
    alike = "; alike but for constants, they run as one" if len(members) > 1 else ""
    yield f"{names}  (rule{'s' if len(members) > 1 else ''} {numbers}{alike})"
    if rule["cut_by"] is None:
        yield f"  one partition: {rule['because']}"
    elif rule["cut_by"] == WHOLE:
        yield "  any partition: each answer is made of one event"
    else:
        yield f"  cut by {rule['cut_by']}"
    for order in rule["orders"]:
        tested = f", if {' and '.join(order['tests'])}" if order["tests"] else ""
        searches = "; then ".join(f"search {step['search']}{_searched(step)}" for step in order["then"])
        if searches or tested:
            yield f"  {order['new']} is new{tested}{': ' if searches else ''}{searches}"
    yield from (f"  {line}" for line in (*rule["detections"], *rule["timers"], *rule["tables"]))
    if rule["tests"]:
        yield f"  if {' and '.join(rule['tests'])}"
    for number, branches in enumerate(rule["attempts"]):
        for branch in branches:
            steps = "; then ".join(map(_accumulated, branch)) or "with nothing"
            yield f"  {'if nothing came of that,' if number else 'then'} {steps}"
    if rule["having"]:
        yield f"  then if {' and '.join(rule['having'])}"


def _accumulated(step: Plain) -> str:
    if "test" in step:
        return f"if {step['test']}"
    if "absent" in step:
        return f"without {step['absent']}"
    wanted = ", ".join(["how many", *(f"{function} of {name}" for function, name in step["wanted"])])
    kinds = {"absence": "without", "presence": "with", "collection": "collect", "summary": f"count ({wanted})"}
    unfolded = "" if step["exact"] or step["kind"] == "collection" else ", unfolded"
    return f"{kinds[step['kind']]} {step['window']} as {step['as']}{_searched(step)}{unfolded}"


def _lane(lane: Plain) -> Iterator[str]:
    """What the rules of a lane wait for, and what it keeps."""
    sources = [source or "the input" for source in lane["sources"]]
    yield f"lane of {' and '.join(sources) or 'the clock'}"
    yield f"  runs {', '.join(rule['point'] for rule in lane['rules'])}"
    yield from (f"  again and again until nothing is new: {', '.join(points)}" for points in lane["cycles"])
    yield from (f"  reads the days of {name}" for name in lane["days"])
    for history in lane["histories"]:
        whole = ", with whole events" if history["whole"] else ""
        yield f"  keeps {history['history']} {_kept(history['kept'])}{whole}"


def _kept(reach: int | None) -> str:
    if reach is None or reach <= 0:
        return "forever" if reach is None else "while it is new"
    is_strict = reach % 1_000 != 0 and (reach + 1) % 1_000 == 0
    return f"for less than {describe(reach + 1)}" if is_strict else f"for {describe(reach)}"


def _searched(step: Plain) -> str:
    by = [f"same {name}" for name in step["by"]]
    by += [_range(step["stamp"], Range(r["of"], r["before"], r["after"])) for r in step["ranges"]]
    tested = f", if {' and '.join(step['tests'])}" if step["tests"] else ""
    return f"{' by ' if by else ' whole'}{', '.join(by)}{tested}"


def _range(stamp: str, r: Range) -> str:
    """Where a stamp lies; times are whole microseconds, so a limit one short of a longer unit is told as that unit."""
    first = None if r.earliest is None else _limit(r.known, -r.earliest, ">")
    last = None if r.latest is None else _limit(r.known, r.latest, "<")
    return f"{stamp} {' and '.join(limit for limit in (first, last) if limit is not None)}"


def _limit(known: str, by: int, sign: str) -> str:
    further = by - 1 if sign == ">" else by + 1
    is_strict = by % 1_000 != 0 and further % 1_000 == 0
    shown = f"{known}us" if is_moment(known) else known
    return f"{sign}{'' if is_strict else '='} {shown}{_moved(further if is_strict else by)}"


def _moved(by: int) -> str:
    return "" if not by else f" {'-' if by < 0 else '+'} {describe(abs(by))}"


def _read(one: Plain) -> str:
    label = one["label"] or "any event"
    if one["how"] == "python" and one["derived"]:
        return f"{label}: derived; what comes from outside is read in Python, since {one['because']}"
    if one["how"] == "python":
        return f"{label}: in Python, since {one['because']}"
    columns = ", ".join(one["columns"]) or "none but its time"
    told = [
        " and ".join(f"{n} = {json.dumps(c, ensure_ascii=False)}" for n, c in use.items()) for use in one["filters"]
    ]
    where = f", where {' or '.join(told)}" if told else ""
    return f"{label}: by columns ({columns}){where}"
