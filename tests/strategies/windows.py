"""This module adds to rule bodies what is accumulated in windows: absences, collections, and their aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.terms.events import Event
from ephemera.terms.values import Term, Value, equal

from .drafts import BASE, Body, Span, literal
from .shapes import atom, pattern
from .streams import LATEST, SPANS, VALUES, moved
from .timers import timer

BOUNDARIES = {
    (True, True): "incl,incl",
    (True, False): "incl,excl",
    (False, True): "excl,incl",
    (False, False): "excl,excl",
}
AGGREGATES = {"sum": "max", "avg": "sum", "min": "max", "max": "min", "count": "sum"}
"""Each with another that takes its place."""

_SHIFTS = sorted(range(-LATEST, LATEST + 1), key=abs)


def _window(body: Body) -> str:
    """An event that lasts, or a timer, to look into."""
    lasting = [n for n, (b, e) in body.times.items() if e > b + 1]
    if lasting and body.dice.chance(60):
        return body.dice.pick(lasting)
    anchor = body.dice.pick(list(body.facts))
    return timer(body, anchor, ("extend", "extend-begin", "from-end", "from-start", "from-end-backward")) or anchor


def _while(body: Body, window: str) -> tuple[str, tuple[bool, bool]]:
    """`while` with its boundaries; without the feature both count, or neither."""
    wished = [bounds for bounds, words in BOUNDARIES.items() if f"while({words})" in body.wishes]
    begin, end = body.dice.pick(wished or list(BOUNDARIES))
    written = BOUNDARIES[begin, end]
    full = "while" if begin and end and body.dice.chance(60) else f"while({written})"
    other = "while(excl,excl)" if begin and end else "while"
    return f"{body.draft.mark(f'while({written})', full, other)} {window}:", (begin, end)


def _inside(times: Span, window: Span, bounds: tuple[bool, bool] = (True, True)) -> bool:
    after = window[0] <= times[0] if bounds[0] else window[0] < times[0]
    return after and (times[1] <= window[1] if bounds[1] else times[1] < window[1])


def _edges(window: Span, bounds: tuple[bool, bool]) -> list[int]:
    """The boundary that does not count, or, if both do, either."""
    edges = [edge for edge, counts in zip(window, bounds, strict=True) if not counts] or list(window)
    return [edge for edge in edges if 0 <= edge <= LATEST]


def _joining(body: Body) -> list[Value]:
    values = [v for v in body.variables.values() if isinstance(v, int | str)]
    return [body.dice.pick(values)] if values and body.dice.chance(60) else []


def _shifted_anchor(body: Body, window: str, shifts: Sequence[int]) -> int | None:
    """A copy of the event that the window is laid around, for a second answer."""
    event = body.facts[body.anchors.get(window, window)]
    begin, end = body.draft.times(event)
    fits = [s for s in shifts if s and begin + s >= 0 and end + s <= LATEST]
    if not fits:
        return None
    shift = body.dice.pick(fits[:3])
    body.draft.add(moved(event, (begin + shift, end + shift), body.draft.unit))
    return shift


# ---- absences ----------------------------------------------------------------------------------------------


def negation(body: Body) -> None:
    """An absence: nothing of the kind lies in the witness's window, and something does in a copy's."""
    if not body.draft.has_room(2):
        return
    window = _window(body)
    times = body.times[window]
    text, bounds = _while(body, window)
    present = {e.term.label for e in body.known if _inside(body.draft.times(e), times)}
    derived = [e for e in body.derived if e.term.label not in present and _reachable(body, window, e)]
    killer = body.dice.pick(derived) if derived and body.dice.chance(70) else None
    if killer is None:
        killer = _killer(body, times, bounds, [label for label in BASE if label not in present])
    if killer is None:
        return
    at = body.draft.times(killer)
    wanted, own = _absent(body, killer, times)
    feature = "negated derived" if killer in body.derived else "negation"
    body.items.append(body.draft.mark(feature, f"{text} not {wanted}{own}"))
    touching = bounds == (True, True)
    shifts = [s for s in _SHIFTS if _inside(at, (times[0] + s, times[1] + s), (False, False))]
    edges = [s for s in _SHIFTS if at[1] == times[1] + s or at[0] == times[0] + s]
    _shifted_anchor(body, window, [s for s in edges if touching] or shifts or edges)


def _reachable(body: Body, window: str, event: Event) -> bool:
    """Whether the window could be moved so that the event lies in it."""
    begin, end = body.draft.times(body.facts[body.anchors.get(window, window)])
    first, last = body.times[window]
    at = body.draft.times(event)
    shifts = range(-begin, LATEST - end + 1)
    return any(_inside(at, (first + s, last + s), (False, False)) for s in shifts)


def _killer(body: Body, window: Span, bounds: tuple[bool, bool], labels: Sequence[str]) -> Event | None:
    """An event that would count but for the boundary, or none in the window at all."""
    if not labels:
        return None
    if bounds == (True, True):
        places = [t for t in range(LATEST + 1) if not window[0] <= t <= window[1]]
    else:
        places = _edges(window, bounds)
    if not places:
        return None
    return body.draft.fact(body.dice.pick(labels), (body.dice.pick(places),) * 2, _joining(body))


def _absent(body: Body, event: Event, window: Span) -> tuple[str, str]:
    """A query for events like one, and perhaps a condition of its own; what it binds stays inside."""
    outer = dict(body.variables)
    wanted = pattern(body, event)
    new = [n for n in body.variables if n not in outer and isinstance(body.variables[n], int | str)]
    own = ""
    if new and body.draft.has_room() and body.dice.chance(45):
        name = body.dice.pick(new)
        value = body.variables[name]
        other = body.dice.pick([v for v in VALUES if v != value])
        test = f"= {literal(value)}" if body.dice.chance(60) else f"!= {literal(other)}"
        own = body.draft.mark("own where", f" where {{ {body.var(name)} {test} }}")
        inside = [t for t in range(LATEST + 1) if window[0] < t < window[1]]
        if inside:
            place = body.dice.pick(inside)
            body.draft.add(moved(body.like(event, value, other), (place, place), body.draft.unit))
    body.variables = outer
    return wanted, own


def from_until(body: Body) -> None:
    """What happens, or does not, strictly between two events."""
    if not body.draft.has_room(2):
        return
    pairs = [(i, j) for i in body.facts for j in body.facts if body.times[i][1] + 1 < body.times[j][0]]
    if pairs:
        first, second = body.dice.pick(pairs)
    else:
        anchors = [n for n in body.facts if body.times[n][1] + 2 <= LATEST]
        if not anchors:
            return
        first = body.dice.pick(anchors)
        begin = body.dice.number(body.times[first][1] + 2, LATEST)
        event = body.fact_at((begin, begin))
        if event is None:
            return
        second = body.fresh("e")
        body.place(atom(body, event, identifier=second), "conjunction")
    low, high = body.times[first][1] + 1, body.times[second][0] - 1
    between = f"from {first} until {second}:"
    if body.dice.chance(40):
        inside = body.draft.fact(times=(low, body.dice.number(low, high)), values=_joining(body))
        if inside is not None:
            body.items.append(
                _collected(body, body.draft.mark("from until", between, f"while {second}:"), inside, first)
            )
        return
    present = {e.term.label for e in body.known if _inside(body.draft.times(e), (low, high))}
    labels = [label for label in BASE if label not in present]
    outside = [t for t in range(LATEST + 1) if not low <= t <= high]
    if not labels or not outside:
        return
    edge = body.dice.pick(outside)
    killer = body.draft.fact(body.dice.pick(labels), (edge, edge), _joining(body))
    if killer is None:
        return
    wanted, own = _absent(body, killer, (low - 1, high + 1))
    body.items.append(body.draft.mark("from until", f"{between} not {wanted}{own}"))
    # A second pair of the two, with the event in between.
    if edge < low and edge > 0:
        body.draft.add(moved(body.facts[first], (edge - 1, edge - 1), body.draft.unit))
    elif edge < LATEST:
        body.draft.add(moved(body.facts[second], (edge + 1, edge + 1), body.draft.unit))


def negated_derived(body: Body) -> None:
    """The absence of what a rule derives, in an event of which one copy holds it and another does not."""
    if not body.derived or not body.draft.has_room(2):
        return
    event = body.dice.pick(body.derived)
    begin, end = body.draft.times(event)
    there = [body.draft.times(e) for e in body.known if e.term.label == event.term.label]
    free = [s for s in SPANS if s[1] > s[0] and not any(_inside(t, s) for t in there)]
    around = [s for s in SPANS if s[0] < begin and end < s[1]] or [s for s in SPANS if _inside((begin, end), s)]
    if not free or not around:
        return
    anchor = body.draft.fact(times=body.dice.pick(free))
    if anchor is None or anchor.term.label == event.term.label:
        return
    name = body.fresh("e")
    body.place(atom(body, anchor, identifier=name), "conjunction")
    outer = dict(body.variables)
    wanted = pattern(body, event)
    body.variables = outer
    body.items.append(body.draft.mark("negated derived", f"while {name}: not {wanted}"))
    body.draft.add(moved(anchor, body.dice.pick(around), body.draft.unit))
    body.head.append(f"begin({name})")


def collected_derived(body: Body) -> None:
    """A collection of what a rule derives, in an event that holds it."""
    derived = [e for e in body.derived if e.term.children]
    if not derived or body.counts_all or not body.draft.has_room():
        return
    event = body.dice.pick(derived)
    begin, end = body.draft.times(event)
    around = [s for s in SPANS if s[0] <= begin and end <= s[1] and s[0] < s[1]]
    anchor = body.draft.fact(times=body.dice.pick(around)) if around else None
    if anchor is None:
        return
    name = body.fresh("e")
    body.place(atom(body, anchor, identifier=name), "conjunction")
    body.items.append(_collected(body, f"while {name}:", event, name))


# ---- collections -------------------------------------------------------------------------------------------


def collection(body: Body) -> None:
    """A collection with an aggregate of what it gathers, and perhaps a condition on the result."""
    if body.counts_all or not body.draft.has_room(3):
        return
    window = _window(body)
    times = body.times[window]
    text, bounds = _while(body, window)
    low, high = max(times[0] + (not bounds[0]), 0), min(times[1] - (not bounds[1]), LATEST)
    derived = [e for e in body.derived if _inside(body.draft.times(e), times, bounds) and e.term.children]
    if derived and body.dice.chance(75):
        body.items.append(_collected(body, text, body.dice.pick(derived), window))
        return
    shapes = body.draft.shapes.values()
    labels = [s.label for s in shapes if s.arity == 2] or [s.label for s in shapes if s.arity] or list(BASE)
    if low > high:
        return
    if "group by" in body.wishes or "order by" in body.wishes:
        labels = [s.label for s in shapes if s.arity == 2 and s.kind != "tree"] or labels
    if "collect optional" in body.wishes:
        held = body.facts[body.anchors.get(window, window)].term.label
        labels = [label for label in labels if label != held] or labels
    label = body.dice.pick(labels)
    event = body.draft.fact(label, (body.dice.number(low, high),) * 2, (1, 2))
    if event is None:
        return
    if body.dice.chance(90):
        body.draft.fact(
            label,
            (body.dice.number(low, high),) * 2,
            (3, 1) if "order by" in body.wishes else body.dice.pick(((3, 1), (2, 3))),
        )
    for edge in _edges(times, bounds)[:1]:
        body.draft.fact(label, (edge, edge), body.dice.pick(((2, 1), (3, 4))))
    body.items.append(_collected(body, text, event, window))


def _collected(body: Body, window: str, event: Event, anchor: str) -> str:
    """A collection of events like one, joined in by its variables; the head shows what becomes of them."""
    draft, dice = body.draft, body.dice
    outer = dict(body.variables)
    wanted = _flat(body, event) or pattern(body, event)
    new = {n: v for n, v in body.variables.items() if n not in outer}
    numbers = [n for n, v in new.items() if isinstance(v, int)]
    own = ""
    if numbers and draft.has_room() and body.wants("own where", 30):
        name = dice.pick(numbers)
        value = new[name]
        other = dice.pick([v for v in VALUES if v != value])
        draft.add(body.like(event, value, other))
        own = draft.mark("own where", f" where {{ {body.var(name)} != {literal(other)} }}")
    body.variables = outer
    body.collected.update(new)
    if draft.has_room() and body.wants("collect optional", 35):
        times = body.times[anchor]
        label = event.term.label
        there = [draft.times(e) for e in body.known if e.term.label == label]
        shifts = [s for s in _SHIFTS if not any(_inside(t, (times[0] + s, times[1] + s)) for t in there)]
        _shifted_anchor(body, anchor, shifts)
        mode = f"{window} {draft.mark('collect optional', 'collect optional ', 'collect ')}"
    else:
        feature = "collect derived" if event in body.derived else "collect"
        mode = draft.mark(feature, f"{window} collect ", f"{body.fresh('c')}: ")
    _aggregated(body, sorted(new), numbers)
    if draft.has_room() and body.wants("having", 20):
        _having(body, event.term.label, anchor, sorted(new))
    body.collects += 1
    return f"{mode}{wanted}{own}"


def _flat(body: Body, event: Event) -> str | None:
    """A pattern by position whose values are mostly new variables."""
    shape = body.draft.shapes.get(event.term.label)
    if shape is None or shape.kind == "tree" or body.dice.chance(15):
        return None
    values = [c.children[0] if isinstance(c, Term) else c for c in event.term.children]
    if len(values) != shape.arity:
        return None
    arguments: list[str] = []
    for value in values:
        shared = [n for n, v in body.variables.items() if equal(v, value)]
        if shared and body.dice.chance(15):
            arguments.append(body.draft.mark("shared variable", body.var(shared[0]), "_"))
        else:
            name = body.fresh("x")
            body.variables[name] = value
            arguments.append(body.var(name))
    return f"{event.term.label}({', '.join(arguments)})"


def _having(body: Body, label: str, anchor: str, names: Sequence[str]) -> None:
    """A condition on how many there are; a copy of the anchor has more, or less."""
    times = body.times[anchor]
    there = [body.draft.times(e) for e in body.known if e.term.label == label]
    counts = {s: sum(_inside(t, (times[0] + s, times[1] + s)) for t in there) for s in _SHIFTS}
    shift = _shifted_anchor(body, anchor, [s for s in _SHIFTS if counts[s] not in (0, counts[0])])
    if shift is None:
        return
    counted = f"count({'' if body.arrow else 'all '}{body.var(names[0])})" if names else "count(*)"
    few, many = sorted((counts[0], counts[shift]))
    body.having.append(f"{counted} {body.dice.pick((f'>= {many}', f'< {many}', f'= {few}', f'!= {few}'))}")


def _aggregated(body: Body, names: Sequence[str], numbers: Sequence[str]) -> None:
    """Aggregates in the head."""
    dice, draft = body.dice, body.draft
    over = "" if body.arrow else "all "
    counted = ""
    wished = [f for f in AGGREGATES if f in body.wishes]
    functions = [*wished, *dice.shuffled([f for f in AGGREGATES if f not in wished])]
    for function in functions[: max(dice.number(1, 2), len(wished))] if numbers else ():
        name = dice.pick(numbers)
        counted = f"{function}({over}{body.var(name)})"
        body.head.append(draft.mark(function, counted, f"{AGGREGATES[function]}({over}{body.var(name)})"))
    if not body.collects and (not counted or body.wants("count(*)", 25)):
        counted, body.counts_all = "count(*)", True
        body.head.append(draft.mark("count(*)", counted, "0"))
    elif not counted and names:
        counted = f"count({over}{body.var(names[0])})"
        body.head.append(draft.mark("count", counted, "0"))


def result(body: Body) -> None:
    """A condition on the result: on a collection, or one that speaks of a plain variable."""
    if body.dice.chance(50):
        collection(body)
    if body.having or not body.draft.has_room():
        return
    names = [n for n, v in body.variables.items() if isinstance(v, int | str)]
    if names:
        name = body.dice.pick(names)
        value = body.variables[name]
        other = body.dice.pick([v for v in VALUES if v != value])
        body.miss_variable(name, other)
        body.show(name)
        body.having.append(f"{body.var(name)} != {literal(other)}")


def gathered(body: Body, wishes: Sequence[str]) -> str:
    """A block head's `all` over what was collected, or over the bindings of the body."""
    dice, draft = body.dice, body.draft
    names = list(body.collected) or list(body.variables)
    chosen = dice.shuffled(names)[:2]
    first, last = chosen[0], chosen[-1]
    if first == last or not body.collected:
        return draft.mark("all", f"all item {{ var {first} }}", f"count(all var {first})")
    wished = [w for w in wishes if w in ("all", "group by", "order by")]
    match wished[0] if wished else dice.weighed({"all": 3, "group by": 1, "order by": 1}):
        case "group by":
            return f"all item {{ count(all var {first}) }}{draft.mark('group by', f' group by {{ var {last} }}')}"
        case "order by":
            mode = dice.pick(("", "(descending) ", "(lexical, descending) ", "(numeric) "))
            return f"all var {first}{draft.mark('order by', f' order by {mode}[ var {last} ]')}"
        case _:
            return draft.mark("all", f"all item {{ var {first} }}", f"count(all var {first})")
