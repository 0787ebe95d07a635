"""This module adds timers to rule bodies, relative and absolute, and the times of events to heads."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.base.time import HOUR, MINUTE
from ephemera.semantics.answers import timed
from ephemera.terms.events import Interval

from .drafts import Body
from .marks import feature_of, mark
from .streams import LATEST

TIMERS = (
    "extend",
    "shorten",
    "extend-begin",
    "shorten-begin",
    "shift-forward",
    "shift-backward",
    "from-end",
    "from-end-backward",
    "from-start",
    "from-start-backward",
)
FIELDS = {MINUTE: "minute", HOUR: "hour-of-day"}
"""The field that counts a program's time unit, if that is not the second."""


def timer(body: Body, anchor: str | None = None, kinds: Sequence[str] = TIMERS) -> str | None:
    """A relative timer on an event or a timer; without the feature it is as long as its anchor."""
    base = anchor if anchor is not None else body.dice.pick(list(body.times))
    kind = body.chosen({f"timer {kind}": 1 for kind in kinds}).removeprefix("timer ")
    length = body.dice.number(1, 4)
    time = timed(kind, Interval(*body.times[base]), length)
    if time.begin > time.end:
        if base not in body.facts or not body.miss_longer(base, length):
            return None
        time = timed(kind, Interval(*body.times[base]), length)
    name = body.fresh("w")
    body.anchors[name] = body.anchors.get(base, base)
    body.times[name] = (time.begin, time.end)
    feature = body.draft.name(f"timer {kind}")
    anchored = base if base in body.facts else body.draft.mark("timer on a timer", base, body.anchors[base])
    shown = mark(feature, str(length), "0")
    spelled = "extend-backward" if kind == "extend-begin" and body.dice.chance(30) else kind
    if body.arrow:
        body.items.append(f"{name}: {spelled}({anchored}, {shown})")
    else:
        body.items.append(f"event {name}: timer:{spelled}[event {anchored}, {shown}]")
    if feature_of(feature) in body.wishes or body.dice.chance(60):
        still = timed(kind, Interval(*body.times[base]), 0)
        body.head.append(f"{'end' if still.end != time.end else 'begin'}({name})")
    return name


def timers(body: Body) -> None:
    """A timer, and perhaps one on that."""
    first = timer(body)
    body.wishes = ()
    if body.dice.chance(50):
        timer(body, first if body.dice.chance(60) else None)


def clock(body: Body) -> None:
    """An absolute timer close to an event of the body."""
    near = body.dice.pick(list(body.facts))
    begin, end = body.times[near]
    point = body.dice.number(0, LATEST)
    field = FIELDS.get(body.draft.unit, "second")
    name = body.fresh("w")
    value = body.draft.mark("absolute timer", str(point), str((point + 1) % (LATEST + 1)))
    prefix = "" if body.arrow else "event "
    if body.dice.chance(50):
        body.items.append(f"{prefix}{name}: timer:datetime({field}: {value})")
    else:
        body.items.append(f"{prefix}{name}: timer:datetime {{{{ {field} {{ {value} }} }}}}")
    body.condition(f"{{{near}, {name}}} within {max(end, point) - min(begin, point) + body.dice.number(0, 2)}")
    body.times[name] = (point, point)
    body.anchors[name] = near
    body.head.append(f"end({name})")
    body.draft.fact(times=(LATEST, LATEST))


def head_times(body: Body) -> None:
    """The times of an event or timer in the head."""
    lasting = [n for n, (begin, end) in body.times.items() if end > begin]
    wished = [f for f in ("begin", "end", "duration") if f"{f}()" in body.wishes]
    others = [f for f in ("begin", "end", "duration") if f not in wished]
    for function in [*wished, *body.dice.shuffled(others)][: max(body.dice.number(1, 2), len(wished))]:
        name = body.dice.pick(lasting if lasting and function == "duration" else list(body.times))
        body.head.append(body.draft.mark(f"{function}()", f"{function}({name})", "0"))
