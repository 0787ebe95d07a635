"""This module adds timers to rule bodies, and what is accumulated in windows: absences, collections, aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.base.time import HOUR, MINUTE
from ephemera.semantics.answers import timed
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Value

from .drafts import BASE, Body, Span, literal
from .marks import mark
from .shapes import atom, pattern
from .streams import LATEST, VALUES, moved

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
BOUNDARIES = {(True, True): "incl,incl", (True, False): "incl,excl", (False, True): "excl,incl", (False, False): "excl,excl"}
AGGREGATES = {"sum": "max", "avg": "sum", "min": "max", "max": "min", "count": "sum"}


# ---- timers ------------------------------------------------------------------------------------------------


def timer(body: Body, anchor: str | None = None, kinds: Sequence[str] = TIMERS) -> str | None:
    """A relative timer on an event or a timer; its ends show in the head."""
    base = anchor if anchor is not None else body.dice.pick(list(body.times))
    kind = body.dice.pick(kinds)
    length = body.dice.number(1, 4)
    time = timed(kind, Interval(*body.times[base]), length)
    if time.begin > time.end:
        if base not in body.facts or not body.miss_longer(base, length):
            return None
        time = timed(kind, Interval(*body.times[base]), length)
    name = body.fresh("w")
    spelled = "extend-backward" if kind == "extend-begin" and body.dice.chance(30) else kind
    feature = body.draft.name(f"timer {kind}")
    anchored = base
    if base not in body.facts:
        first = next(n for n in body.times if n in body.facts)
        anchored = body.draft.mark("timer on a timer", base, first)
    length_text = mark(feature, str(length), "0")
    if body.arrow:
        text = f"{name}: {spelled}({anchored}, {length_text})"
    else:
        text = f"event {name}: timer:{spelled}[event {anchored}, {length_text}]"
    body.items.append(text)
    body.times[name] = (time.begin, time.end)
    return name


def clock(body: Body) -> None:
    """An absolute timer close to an event of the body."""
    near = body.dice.pick(list(body.facts))
    begin, end = body.times[near]
    point = body.dice.number(0, LATEST)
    field = {MINUTE: "minute", HOUR: "hour-of-day"}.get(body.draft.unit, "second")
    name = body.fresh("w")
    value = body.draft.mark("absolute timer", str(point), str((point + 1) % (LATEST + 1)))
    if body.arrow or body.dice.chance(50):
        text = f"{name}: timer:datetime({field}: {value})"
    else:
        text = f"event {name}: timer:datetime {{{{ {field} {{ {value} }} }}}}"
    body.items.append(text if body.arrow else text.replace(f"{name}:", f"event {name}:").replace("event event", "event"))
    body.condition(f"{{{near}, {name}}} within {max(end, point) - min(begin, point) + body.dice.number(0, 2)}")
    body.times[name] = (point, point)
    body.draft.fact(times=(LATEST, LATEST))


def head_times(body: Body) -> None:
    """The times of an event or timer in the head."""
    name = body.dice.pick(list(body.times))
    function = body.dice.pick(("begin", "end", "duration"))
    body.head.append(body.draft.mark(f"{function}()", f"{function}({name})", "0"))


# ---- windows -----------------------------------------------------------------------------------------------


def _window(body: Body) -> str:
    """An event that lasts, or a timer, to look into."""
    lasting = [n for n, (b, e) in body.times.items() if e > b]
    if lasting and body.dice.chance(50):
        return body.dice.pick(lasting)
    anchor = body.dice.pick(list(body.facts))
    return timer(body, anchor, ("extend", "extend-begin", "from-end", "from-start", "from-end-backward")) or anchor


def _while(body: Body, window: str) -> tuple[str, tuple[bool, bool]]:
    """`while` with its boundaries; without the feature both count, or neither."""
    begin, end = body.dice.pick(list(BOUNDARIES))
    written = BOUNDARIES[begin, end]
    full = "while" if begin and end and body.dice.chance(60) else f"while({written})"
    other = "while(excl,excl)" if begin and end else "while"
    return f"{body.draft.mark(f'while({written})', full, other)} {window}:", (begin, end)


def _inside(times: Span, window: Span, bounds: tuple[bool, bool]) -> bool:
    after = window[0] <= times[0] if bounds[0] else window[0] < times[0]
    return after and (times[1] <= window[1] if bounds[1] else times[1] < window[1])


def negation(body: Body) -> None:
    """An absence: nothing of the kind lies in the witness's window, and something does in a copy's."""
    window = _window(body)
    text, bounds = _while(body, window)
    times = body.times[window]
    victims = [e for e in body.known if not _inside(body.draft.times(e), times, bounds)]
    killer = body.dice.pick(victims) if victims and body.dice.chance(50) else None
    if killer is None:
        edge = times[0] if not bounds[0] else times[1] if not bounds[1] else max(times[1] + 1, 0)
        killer = body.draft.fact(times=(min(max(edge, 0), LATEST),) * 2, values=_joining(body))
    if killer is None:
        return
    feature = body.draft.name("negated derived" if killer in body.derived else "negation")
    wanted, own = _accumulated(body, killer)
    found = [e for e in body.known if e.term.label == killer.term.label and _inside(body.draft.times(e), times, bounds)]
    if found and not own and body.dice.chance(50):
        return
    body.items.append(mark(feature, f"{text} not {wanted}{own}"))
    _second_trace(body, window, killer)


def _joining(body: Body) -> list[Value]:
    values = [v for v in body.variables.values() if isinstance(v, int | str)]
    return [body.dice.pick(values)] if values and body.dice.chance(70) else []


def _second_trace(body: Body, window: str, killer: Event) -> None:
    """A copy of the window's anchor, placed so that the killer lies in its window."""
    anchor = window if window in body.facts else next(n for n in body.facts)
    event = body.facts[anchor]
    begin, end = body.draft.times(event)
    first, last = body.times[window]
    kb, ke = body.draft.times(killer)
    shifts = [s for s in range(-LATEST, LATEST + 1) if first + s < kb and ke < last + s] or [
        s for s in range(-LATEST, LATEST + 1) if first + s <= kb and ke <= last + s
    ]
    fits = [(begin + s, end + s) for s in shifts if 0 <= begin + s and end + s <= LATEST and s]
    if fits:
        body.draft.add(moved(event, body.dice.pick(fits), body.draft.unit))


def _accumulated(body: Body, event: Event) -> tuple[str, str]:
    """A query for events like one, and perhaps a condition of its own; what it binds stays inside."""
    outer = dict(body.variables)
    wanted = pattern(body, event)
    new = [n for n in body.variables if n not in outer and isinstance(body.variables[n], int | str)]
    own = ""
    if new and body.dice.chance(45):
        name = body.dice.pick(new)
        own = f" where {{ {body.var(name)} = {literal(body.variables[name])} }}"
        other = body.dice.pick([v for v in VALUES if v != body.variables[name]])
        if body.dice.chance(30):
            own = f" where {{ {body.var(name)} != {literal(other)} }}"
        own = body.draft.mark("own where", own)
    body.variables = outer
    return wanted, own


def from_until(body: Body) -> None:
    """What happens, or does not, strictly between two events."""
    names = [(i, j) for i in body.facts for j in body.facts if body.times[i][1] + 1 < body.times[j][0]]
    if not names:
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
    else:
        first, second = body.dice.pick(names)
    low, high = body.times[first][1] + 1, body.times[second][0] - 1
    between = body.draft.fact(times=(low, body.dice.number(low, high)), values=_joining(body))
    if between is None:
        return
    feature = body.draft.name("from until")
    if body.dice.chance(50):
        body.items.append(mark(feature, _collected(body, f"from {first} until {second}:", between)))
        return
    wanted, own = _accumulated(body, between)
    body.items.append(mark(feature, f"from {first} until {second}: not {wanted}{own}"))
    # Another end before the event in between: the witness is the pair with nothing inside.
    body.draft.add(moved(body.facts[first], (min(high + 1, LATEST), min(high + 1, LATEST)), body.draft.unit))
    body.miss_time(second, lambda s: s[0] == low)


# ---- collections -------------------------------------------------------------------------------------------


def collection(body: Body) -> None:
    """A collection with an aggregate of what it gathers, and perhaps a condition on the result."""
    window = _window(body)
    text, bounds = _while(body, window)
    times = body.times[window]
    inside = [e for e in body.known if _inside(body.draft.times(e), times, bounds) and e.term.children]
    derived = [e for e in inside if e in body.derived]
    chosen = body.dice.pick(derived) if derived and body.dice.chance(60) else None
    if chosen is None and inside and body.dice.chance(40):
        chosen = body.dice.pick(inside)
    if chosen is None:
        low, high = max(times[0] + (not bounds[0]), 0), min(times[1] - (not bounds[1]), LATEST)
        if low > high:
            return
        chosen = body.draft.fact(times=(body.dice.number(low, high),) * 2, values=_joining(body))
    if chosen is None:
        return
    if chosen.term.label in BASE:
        edge = times[1] if body.dice.chance(50) else times[0]
        if 0 <= edge <= LATEST:
            body.draft.fact(chosen.term.label, (edge, edge))
    body.items.append(_collected(body, text, chosen))


def _collected(body: Body, window: str, event: Event) -> str:
    """A collection of events like one, joined in by its variables; the head shows what becomes of them."""
    draft, dice = body.draft, body.dice
    outer = dict(body.variables)
    wanted = pattern(body, event)
    new = {n: v for n, v in body.variables.items() if n not in outer}
    numbers = [n for n, v in new.items() if isinstance(v, int)]
    own = ""
    if numbers and dice.chance(40):
        name = dice.pick(numbers)
        value = new[name]
        draft.add(moved(draft.at(event.term, (0, 0)), draft.times(event), draft.unit))
        own = draft.mark("own where", f" where {{ {body.var(name)} <= {literal(value)} }}")
    body.variables = outer
    body.collected.update(new)
    body.grouped = True
    kind = draft.name("collect derived" if event in body.derived else "collect")
    mode = mark(kind, f"{window} collect ", f"{body.fresh('c')}: ")
    if dice.chance(35):
        lonely = next((e for e in body.facts.values()), event)
        draft.add(moved(lonely, (0, 0), draft.unit) if dice.chance(50) else moved(lonely, (LATEST, LATEST), draft.unit))
        mode = f"{window} {draft.mark('collect optional', 'collect optional ', 'collect ')}"
    _aggregated(body, sorted(new), numbers)
    return f"{mode}{wanted}{own}"


def _aggregated(body: Body, names: Sequence[str], numbers: Sequence[str]) -> None:
    dice, draft = body.dice, body.draft
    if not names or dice.chance(15):
        counted = "count(*)"
        body.head.append(draft.mark("count(*)", counted, "0"))
    else:
        function = dice.pick(tuple(AGGREGATES)) if numbers else "count"
        name = dice.pick(numbers or names)
        over = "" if body.arrow else "all "
        counted = f"{function}({over}{body.var(name)})"
        other = f"{AGGREGATES[function]}({over}{body.var(name)})" if numbers else "0"
        body.head.append(draft.mark(function, counted, other))
    if dice.chance(35):
        limit = dice.number(1, 2)
        operator = dice.pick((">=", "<=", "=", "!="))
        body.having.append(f"{counted} {operator} {limit}")


def group_having(body: Body) -> None:
    """A condition on the result that speaks of a plain variable."""
    if body.variables:
        name = body.dice.pick(list(body.variables))
        value = body.variables[name]
        if isinstance(value, int | str):
            other = body.dice.pick([v for v in VALUES if v != value])
            body.having.append(f"{body.var(name)} != {literal(other)}")


def gathered(body: Body) -> str:
    """A block head's `all` over what was collected, or over the bindings of the body."""
    dice, draft = body.dice, body.draft
    names = list(body.collected) or list(body.variables)
    chosen = dice.shuffled(names)[:2]
    first, last = chosen[0], chosen[-1]
    match dice.pick(("all", "group by", "order by")):
        case "group by":
            inner = f"item {{ count(all var {first}) }}"
            return f"all {inner}{draft.mark('group by', f' group by {{ var {last} }}')}"
        case "order by":
            return f"all var {first}{draft.mark('order by', f' order by [ var {last} ]')}"
        case _:
            return draft.mark("all", f"all item {{ var {first} }}", f"count(all var {first})")
