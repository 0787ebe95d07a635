"""This module prints plans: each materialization point with its tree of operators, as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from ephemera.algebra.attributes import Time, is_moment, microseconds
from ephemera.algebra.detector import Detector
from ephemera.algebra.nodes import (
    AntiSemiJoin,
    Base,
    Calendar,
    Composition,
    Cross,
    Detected,
    Detection,
    Difference,
    Expression,
    Gap,
    Group,
    Imbed,
    Input,
    Join,
    Limit,
    Match,
    Merge,
    Never,
    Plan,
    Point,
    Primitive,
    Project,
    RelativeTimer,
    Rename,
    Select,
    SemiJoin,
    Table,
    Union,
)
from ephemera.algebra.scalar import (
    TRUE,
    Distance,
    Every,
    Formula,
    Holds,
    InsideCalendar,
    LimitedDistance,
    Matches,
    Negation,
    SameEvent,
    Some,
)
from ephemera.algebra.schema import schemas
from ephemera.base.time import describe
from ephemera.rules.explain import readable
from ephemera.syntax.format import format_condition, format_expression, format_head, format_pattern
from ephemera.syntax.nodes import Derive, Head
from ephemera.terms.nodes import Pattern


def as_text(plan: Plan, detectors: Mapping[str, Mapping[str, Detector]] | None = None) -> str:
    """A paragraph for each point, in the order in which they are computed; algebra expressions as they are detected."""
    found = detectors or {}
    return "\n\n".join(point_text(plan, point, found.get(point.name)) for point in plan.points.values())


def point_text(plan: Plan, point: Point, detectors: Mapping[str, Detector] | None = None) -> str:
    """The paragraph of one point."""
    told = [
        f"  {name} is detected as {detected(one.expression, one.labels)}" for name, one in (detectors or {}).items()
    ]
    return "\n".join([*_text(plan, point), *told])


def _text(plan: Plan, point: Point) -> Iterator[str]:
    what = f"rule {point.rule}" if point.kind == "rule" else point.kind
    origin = f" of rule {point.rule}" if point.kind == "join" else ""
    recursive = ", recursive" if any(point.name in cycle for cycle in plan.cycles) else ""
    yield f"{point.name}  ({what}{origin}{recursive})"
    yield from (f"  {line}" for line in _lines(point.expression))


def _lines(e: Expression) -> Iterator[str]:
    """The tree of an expression, an operator a line, its inputs indented below."""
    yield operator(e)
    if isinstance(e, Rename):
        return
    for inner in inputs(e):
        yield from (f"  {line}" for line in _lines(inner))


def inputs(e: Expression) -> list[Expression]:
    """The expressions directly below."""
    match e:
        case Union(parts) | Detection(_, parts):
            return list(parts)
        case Join(left, right) | Cross(left, right) | SemiJoin(left, right) | AntiSemiJoin(left, right):
            return [left, right]
        case Difference(left, right):
            return [left, right]
        case Base() | Input() | Calendar() | Table():
            return []
        case _:
            return [e.input]


def operator(e: Expression) -> str:
    """An operator with its parameters."""
    match e:
        case Base(label):
            return f"input {label or 'of any label'}"
        case Input(point):
            return point
        case Rename(inner, ((_, name),), variables):
            renamed = ", ".join(new for _, new in variables)
            return f"{operator(inner)} as {name}({renamed})"
        case Rename(inner, _, _):
            return operator(inner)
        case Match(_, name, pattern):
            return f"match {name}: {format_pattern(pattern)}"
        case Calendar(name, pattern):
            return f"calendar {name}: {format_pattern(pattern)}"
        case Table(pattern, at):
            return f"table {format_pattern(_arrow(pattern))}{f' at {at}' if at else ''}"
        case Select(_, condition, because):
            return f"select {because or formula(condition)}"
        case Project(_, attributes):
            return f"project {', '.join(attributes)}"
        case Imbed(_, head):
            return f"build {_head(head)}"
        case RelativeTimer(_, name, kind, anchor, length, told):
            lasts = f"{format_expression(readable(told, arrow=True))} AT MOST " if told is not None else ""
            return f"timer {name}: {kind}({anchor}, {lasts}{length if isinstance(length, str) else describe(length)})"
        case Gap(_, name, first, last):
            return f"timer {name}: between {first} and {last}"
        case Merge(_, name, events):
            return f"merge {name} from {', '.join(events)}"
        case Group(_, by, _, _, head, having):
            where = f" having {', '.join(format_condition(c) for c in having)}" if having else ""
            return f"group by {', '.join(by)} and build {_head(head)}{where}"
        case Join() | Cross() | SemiJoin() | AntiSemiJoin():
            return _join(e)
        case Union():
            return "union"
        case Difference():
            return "difference"
        case Detection(name, _, expression, restricted, _, labels):
            return f"detect {name}: {'restricted' if restricted else 'unrestricted'} {detected(expression, labels)}"
        case _:
            assert_never(e)


def _join(e: Join | Cross | SemiJoin | AntiSemiJoin) -> str:
    names = {Join: "join", Cross: "cross", SemiJoin: "semi-join", AntiSemiJoin: "anti-semi-join"}
    condition = "" if e.condition == TRUE else f" where {formula(e.condition)}"
    return f"{names[type(e)]}{condition}"


def _label(length: int | None) -> str:
    return "" if length is None else describe(length) if length else "0"


def detected(e: Detected, labels: Sequence[str]) -> str:
    """An expression of the algebra with the labels of its events; where sequences have labels, with these."""
    match e:
        case Primitive(number, _):
            return labels[number]
        case Never():
            return "never"
        case Composition(sign, left, right):
            return f"({detected(left, labels)} {sign}{_label(e.label)} {detected(right, labels)})"
        case Limit(operand, length):
            return f"{detected(operand, labels)}[{describe(length)}]"


def _head(head: Head) -> str:
    return " ".join(format_head(readable(head, arrow=isinstance(head, Derive))).split())


def _arrow(pattern: Pattern) -> Pattern:
    return readable(pattern, arrow=True)


def formula(f: Formula) -> str:
    """A formula as people write it."""
    match f:
        case Distance(later, earlier, 0, strict):
            return f"{_time(later)} {'<' if strict else '<='} {_time(earlier)}"
        case Distance(later, earlier, limit, strict):
            sign = "-" if limit < 0 else "+"
            return f"{_time(later)} {'<' if strict else '<='} {_time(earlier)} {sign} {describe(abs(limit))}"
        case LimitedDistance(later, earlier, limit, strict):
            return f"{_time(later)} {'<' if strict else '<='} {_time(earlier)} + {limit}"
        case SameEvent(left, right, same):
            return f"{left} {'=' if same else '!='} {right}"
        case Matches(event, pattern, _):
            return f"{event} matches {format_pattern(pattern)}"
        case InsideCalendar(events, calendar):
            return f"{{{', '.join(events)}}} in {calendar}"
        case Holds(condition):
            return format_condition(readable(condition, arrow=True))
        case Negation(inner):
            return f"not ({formula(inner)})"
        case Every(parts):
            return " and ".join(formula(p) if not isinstance(p, Some) else f"({formula(p)})" for p in parts) or "true"
        case Some(parts):
            return " or ".join(formula(p) for p in parts) or "false"
        case _:
            assert_never(f)


def _time(time: Time) -> str:
    return f"@{microseconds(time)}us" if is_moment(time) else time


def as_json(plan: Plan) -> list[dict[str, Any]]:
    """One object a point: name, kind, rule, label, attributes, what it uses, and its tree of operators."""
    known = schemas(plan)
    return [
        {
            "point": point.name,
            "kind": point.kind,
            "rule": point.rule,
            "label": point.label,
            "recursive": any(point.name in cycle for cycle in plan.cycles),
            "attributes": [
                {"name": name, "kind": a.kind, "type": a.type, "optional": a.optional}
                for name, a in known[point.name].items()
            ],
            "expression": _tree(point.expression),
        }
        for point in plan.points.values()
    ]


def _tree(e: Expression) -> dict[str, Any]:
    below = [] if isinstance(e, Rename) else inputs(e)
    return {
        "operator": type(e).__name__,
        "text": operator(e),
        **({"uses": e.point} if isinstance(e, Input) else {}),
        **({"uses": e.input.point} if isinstance(e, Rename) and isinstance(e.input, Input) else {}),
        "inputs": [_tree(inner) for inner in below],
    }
