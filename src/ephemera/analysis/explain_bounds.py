"""This module prints stream bounds: what moves each source, and up to when each rule's answers are certain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ephemera.algebra.nodes import Plan
from ephemera.analysis.bounds import CLOCK, BoundFunction, Bounds, Limit, SourceBound, derive_bounds
from ephemera.analysis.sources import UNNAMED
from ephemera.base.time import describe


def as_text(plan: Plan) -> str:
    """A paragraph for the sources, one for each rule, and one for the labels that rules derive."""
    bounds = derive_bounds(plan)
    paragraphs = [["sources", *(f"  {line}" for source in bounds.sources for line in _source(source))]]
    paragraphs += [list(_rule(name, function, plan)) for name, function in bounds.rules.items()]
    streams = [f"  {label}: {_certain(function)}" for label, function in bounds.streams.items()]
    paragraphs += [["streams", *streams]] if streams else []
    return "\n\n".join("\n".join(lines) for lines in paragraphs)


def _source(source: SourceBound) -> Iterator[str]:
    labels = f"  ({', '.join(source.labels)})" if source.labels else ""
    if source.name == CLOCK:
        yield f"clock{labels}"
        yield "  absolute timers and calendars: no answer is given before its time"
        return
    yield f"{source.name or 'input'}{labels}"
    watermark = f" - {describe(source.watermark)}" if source.watermark else ""
    by_end = [label for label in source.labels if label not in source.at_begin]
    sides = [("end", by_end)] if by_end or not source.labels else []
    sides += [("begin", list(source.at_begin))] if source.at_begin else []
    for side, own in sides:
        what = "an event" if len(sides) == 1 else ", ".join(own)
        yield f"  {what} moves {_bound(source.name)} to just before its {side}{watermark}"
    if source.idle is not None:
        yield f"  after {describe(source.idle)} of silence it moves with the clock"


def _rule(name: str, function: BoundFunction, plan: Plan) -> Iterator[str]:
    yield f"{name}  (rule {plan.points[name].rule})"
    yield f"  {_certain(function)}"
    for limit in function.limits:
        because = f", by {', '.join(limit.because)}" if limit.because else ""
        yield f"    {_limit(limit)}: {_input(limit, plan)}{because}"
    if function.unless:
        yield f"  as long as no {' and no '.join(function.unless)} comes from outside"


def _certain(function: BoundFunction) -> str:
    limits = [_limit(limit) for limit in function.limits]
    if not limits:
        return "never answers"
    together = ", ".join(limits)
    return f"certain up to {together}" if len(limits) == 1 else f"certain up to min({together})"


def _limit(limit: Limit) -> str:
    return _bound(limit.source) + (f" + {describe(limit.more)}" if limit.more else "")


def _bound(source: str) -> str:
    return "clock" if source == CLOCK else f"bound({source or 'input'})"


def _input(limit: Limit, plan: Plan) -> str:
    name = _shown(limit.name)
    return f"{_label(limit, plan)}{'' if name is None else f' as {name}'}{' (absent)' if limit.negated else ''}"


def _label(limit: Limit, plan: Plan) -> str:
    point = plan.points.get(limit.input)
    return limit.input if point is None else point.label or "any event"


def _shown(name: str) -> str | None:
    """The name that the rule gives to an input, if it gives one."""
    return name if name[:1].isalpha() and "/" not in name else None


def as_json(plan: Plan) -> list[dict[str, Any]]:
    """One object for each source, each rule and each derived label; lengths of time in microseconds."""
    bounds = derive_bounds(plan)
    return [*map(_source_json, bounds.sources), *_rules_json(bounds, plan), *_streams_json(bounds)]


def _source_json(source: SourceBound) -> dict[str, Any]:
    return {
        "source": _name(source.name),
        "carries": list(source.labels),
        "at_begin": list(source.at_begin),
        "watermark": source.watermark,
        "idle": source.idle,
    }


def _rules_json(bounds: Bounds, plan: Plan) -> Iterator[dict[str, Any]]:
    for name, function in bounds.rules.items():
        limits = [
            {**_limit_json(limit), "input": _label(limit, plan), "as": _shown(limit.name), "absent": limit.negated}
            for limit in function.limits
        ]
        yield {
            "point": name,
            "rule": plan.points[name].rule,
            "certain_up_to": limits,
            "unless_from_outside": list(function.unless),
        }


def _streams_json(bounds: Bounds) -> Iterator[dict[str, Any]]:
    for label, function in bounds.streams.items():
        yield {
            "stream": label,
            "certain_up_to": [_limit_json(limit) for limit in function.limits],
            "unless_from_outside": list(function.unless),
        }


def _limit_json(limit: Limit) -> dict[str, Any]:
    return {"source": _name(limit.source), "shift": limit.shift, "strict": limit.strict}


def _name(source: str) -> str | None:
    """A source by its name; null is that of what no stream carries."""
    return "clock" if source == CLOCK else None if source == UNNAMED else source
