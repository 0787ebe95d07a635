"""This module prints how a program runs, as `explain` tells it, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ephemera.algebra.attributes import is_moment
from ephemera.base.time import describe
from ephemera.physical.explain import Plain, as_json
from ephemera.physical.explain_analysis import number
from ephemera.physical.nodes import Range
from ephemera.physical.placement import WHOLE
from ephemera.physical.plan import PhysicalPlan


def as_text(plan: PhysicalPlan) -> str:
    """The same for people."""
    plain = as_json(plan)
    paragraphs = [list(_goal(plain["asked"]))] if plain["asked"] is not None else []
    paragraphs += [_paragraph(group, plain["exchanges"]) for group in sorted(plain["groups"], key=lambda g: g["level"])]
    if plain["gathered"]:
        paragraphs.append(["gathered at the end", *(f"  {g['label']}: {g['because']}" for g in plain["gathered"])])
    paragraphs.append([line for lane in plain["lanes"] for line in _lane(lane)])
    if plain["expected"]:
        rates = [
            f"  {one['label']}: {number(one['per_second'])} a second ({one['known']})" for one in plain["expected"]
        ]
        paragraphs.append(["expected to come", *rates])
    paragraphs.append(["read", *(f"  {line}" for line in map(_read, plain["reading"]))])
    return "\n\n".join("\n".join(lines) for lines in paragraphs)


def _goal(asked: Plain) -> Iterator[str]:
    yield f"asked for {', '.join(asked['emit'])}"
    if asked["not_run"]:
        yield f"  not run, since nobody asks for them: {', '.join(map(_rule_name, asked['not_run']))}"
    for one in asked["pushed"]:
        yield f"  {_rule_name(one)} only if {one['test']}, which all ask for that read it"
    for one in asked["useless"]:
        yield f"  {_rule_name(one)} is not run: what it derives has not what is asked for by those that read it"
    for one in asked["fused"]:
        instead = _rule_name(one["instead_of"])
        yield f"  {_rule_name(one)} reads {one['reads']} in place of {instead}, which is not run"


def _rule_name(one: Plain) -> str:
    return f"{one['point']} (rule {one['rule']})"


def _paragraph(group: Plain, exchanges: Sequence[Plain]) -> list[str]:
    where = {"one": "one partition", "all": "all partitions", "slices": "slices of time"}[group["partitions"]]
    lines = [f"group {group['group']}  (level {group['level']}, in {where})"]
    lines += [
        f"  receives {one['label'] or 'any event'} from {_from(one['from'])}, {_cut_by(one['cut_by'], group)}"
        for one in exchanges
        if one["to"] == group["group"]
    ]
    for one in group.get("judges", ()):
        names = ", ".join(one["per"])
        where = f"by {names}" if names else "all to one place"
        lines.append(f"  receives {one['label']} from the input, {where}")
        per = f" per {names}" if names else ""
        lines.append(f"  judges whether they are at least {describe(one['apart'])} apart{per}")
    for rule in group["rules"]:
        lines += [f"  {line}" for line in _rule(rule)]
    return lines


def _from(sources: Sequence[str]) -> str:
    return " and ".join("the input" if source == "input" else source for source in sources)


def _cut_by(cuts: Sequence[str | None], group: Plain) -> str:
    told = {None: "by time" if group["partitions"] == "slices" else "all to one place", WHOLE: "anywhere"}
    return ", and ".join(told.get(cut) or f"by {cut}" for cut in cuts)


def _rule(rule: Plain) -> Iterator[str]:
    members = rule["rules"]
    numbers = ", ".join(str(m["rule"]) for m in members)
    names = ", ".join(m["point"] for m in members)
    alike = "; alike but for constants, they run as one" if len(members) > 1 else ""
    what = "stored join of rule" if rule["stored_join"] else "rules" if len(members) > 1 else "rule"
    yield f"{names}  ({what} {numbers}{alike})"
    if rule["look_back"] is not None:
        yield f"  cut along time, look-back {describe(rule['look_back'])}: {rule['because']}"
    elif rule["cut_by"] is None:
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
    yield from (f"  {line}" for line in (*rule["detections"], *rule["then"]))
    if "range" in rule:
        yield f"  for the rules in whose range {rule['range']} lies"
    if rule["tests"]:
        yield f"  if {' and '.join(rule['tests'])}"
    for attempt, branches in enumerate(rule["attempts"]):
        for branch in branches:
            steps = "; then ".join(map(_accumulated, branch)) or "with nothing"
            yield f"  {'if nothing came of that,' if attempt else 'then'} {steps}"
    if rule["having"]:
        yield f"  then if {' and '.join(rule['having'])}"
    yield from _delayed(rule["delay"])
    yield from _expected(rule)


def _delayed(delay: Plain | None) -> Iterator[str]:
    """How far behind its last event an answer is given, where that is not when it comes."""
    if delay is None or not delay["behind"]:
        return
    because: list[str] = []
    if delay["ends_behind"]:
        conditions = [*delay["because"], *([delay["through"]] if delay["through"] is not None else [])]
        because.append(f"{describe(delay['ends_behind'])} by {' and '.join(conditions)}")
    if delay["watermark"]:
        because.append(f"{describe(delay['watermark'])} for what is late in {delay['slowest']}")
    yield f"  answers come at least {describe(delay['behind'])} behind their last event: {', '.join(because)}"


def _expected(rule: Plain) -> Iterator[str]:
    """What is expected, where there is something to be looked at, and why it is done so, where there is a choice."""
    expected, ways = rule["expected"], rule["ways"]
    if expected is not None and expected["pairs"]:
        what = "tuples" if rule["stored_join"] else "answers"
        yield f"  expected in a second: {number(expected['pairs'])} pairs, {number(expected['answers'])} {what}"
    taken = next((way for way in ways if way["taken"]), None)
    others = [way for way in ways if not way["taken"]]
    if taken is not None and others:
        next_best = f"the next, {_stores(others[0])}, {number(others[0]['cost'])}"
        yield f"  of {len(ways)} ways {_stores(taken)} costs {number(taken['cost'])} a second; {next_best}"


def _stores(way: Plain) -> str:
    joins = ["[" + ",".join(events) + "]" for events in way["stores"]]
    return f"storing {' and '.join(joins) or 'nothing'}"


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
    if len(lane["waits_for"]) > 1 or any(one["watermark"] or one["idle"] is not None for one in lane["waits_for"]):
        yield from map(_waits_for, lane["waits_for"])
    for history in lane["histories"]:
        whole = ", with whole events" if history["whole"] else ""
        tested = f", if {history['if']}," if history["if"] is not None else ""
        yield f"  keeps {history['history']}{tested} {_kept(history['kept'])}{whole}{_about(history['expected'])}"


def _waits_for(one: Plain) -> str:
    """What has to be known of a source before an answer is given."""
    late = f"{describe(one['watermark'])} " if one["watermark"] else ""
    idle = "" if one["idle"] is None else f"; after {describe(one['idle'])} of silence it moves with the clock"
    return f"  waits for {one['source'] or 'the input'} to be {late}beyond the end of an answer{idle}"


def _about(expected: Plain | None) -> str:
    if expected is None or not expected["tuples"]:
        return ""
    return f": about {number(expected['tuples'])} tuples, {_size(expected['bytes'])}"


def _size(count: float) -> str:
    """Bytes in the largest unit of which there is one."""
    units = ["bytes", "KB", "MB", "GB", "TB"]
    while count >= 1_000 and len(units) > 1:
        count /= 1_000
        units.pop(0)
    return f"{number(count)} {units[0]}"


def _kept(reach: int | None) -> str:
    if reach is None or reach <= 0:
        return "forever" if reach is None else "while it is new"
    is_strict = reach % 1_000 != 0 and (reach + 1) % 1_000 == 0
    return f"for less than {describe(reach + 1)}" if is_strict else f"for {describe(reach)}"


def _searched(step: Plain) -> str:
    by = [f"same {name}" for name in step["by"]]
    by += [f"{one['key']}{' (whole numbers)' if one['whole'] else ''}" for one in step.get("equations", ())]
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
