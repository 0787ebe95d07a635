"""This module adds to rule bodies what joins: events, alternatives, algebra, and relations in time between them.

Every addition takes a body whose witness satisfies it so far, and leaves one whose witness still does, as far as it
can; where there is no room for what it needs, it adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ephemera.base.time import SECOND
from ephemera.semantics.conditions import related
from ephemera.syntax.nodes import Parameter, Unlimited
from ephemera.terms.events import Event, Interval
from ephemera.terms.nodes import Duration, Quantity
from ephemera.terms.values import Term, Value, equal

from .drafts import BASE, Body, Draft, Span, literal
from .shapes import atom
from .streams import LATEST, SPANS, VALUES, moved

INVERSES = {
    "before": "after",
    "meets": "met-by",
    "overlaps": "overlapped-by",
    "starts": "started-by",
    "during": "contains",
    "finishes": "finished-by",
}
RELATIONS = (*INVERSES, *INVERSES.values(), "equals")
METRIC = (*INVERSES, "equals")
_ALGEBRA_MODES = ("algebra limit", "algebra restricted", "algebra unrestricted")
_BASES = {inverse: base for base, inverse in INVERSES.items()}


# ---- joins -------------------------------------------------------------------------------------------------


def join(body: Body) -> None:
    """Another event, often with a variable in common."""
    body.place(atom(body, body.any_fact(35)), "conjunction")


def identity(body: Body) -> None:
    """Two atoms for events of one label that must not be the same."""
    if not body.draft.has_room():
        return
    first, event = body.dice.pick(list(body.facts.items()))
    others = [e for e in body.known if e.term.label == event.term.label and e.time != event.time]
    if not others:
        if not body.draft.add(moved(event, body.dice.pick(SPANS[13:40]), body.draft.unit)):
            return
        others = [body.draft.stream[-1]]
    other = body.dice.pick(others)
    name = body.fresh("e")
    body.facts[name], body.times[name] = other, body.draft.times(other)
    label, shape = event.term.label, body.draft.shapes.get(event.term.label)
    blanks = ", ".join("_" for _ in range(shape.arity)) if shape is not None else ""
    wanted = f"{label}({blanks})" if shape is not None and shape.kind != "tree" else f"{label} {{{{ }}}}"
    body.items.append(f"{'' if body.arrow else 'event '}{name}: {wanted}")
    body.head.append(f"end({name})")
    body.condition(body.draft.mark("identity", f"{first} != {name}"))


def disjunction(body: Body) -> None:
    """Alternatives that all give one identifier; a branch may have conditions, or alternatives, of its own."""
    if not body.draft.has_room():
        return
    name = body.fresh("e")
    known = dict(body.variables)
    branches: list[str] = []
    used: list[Event] = []
    body.in_branch = True
    is_nested = body.wants("nested disjunction", 40)
    for _ in range(3 if is_nested else 2):
        body.variables = dict(known)
        event = body.any_fact(50)
        others = [e for e in body.known if e not in used and e.term.label != event.term.label]
        event = body.dice.pick(others) if event in used and others else event
        used.append(event)
        text = atom(body, event, identifier=name)
        new = [n for n in body.variables if n not in known]
        values = [n for n in new if isinstance(body.variables[n], int | str)]
        if values and body.wants("branch where", 60):
            chosen = body.dice.pick(values)
            value = body.variables[chosen]
            other = body.dice.pick([v for v in VALUES if v != value])
            body.miss_value(name, value, other)
            text += body.draft.mark("branch where", f" where {{ {body.var(chosen)} = {literal(value)} }}")
        branches.append(text)
    body.variables, body.in_branch = known, False
    if is_nested:
        inner = f"or {{ {branches[1]}, {branches[2]} }}"
        branches = [branches[0], body.draft.mark("nested disjunction", inner, branches[1])]
    body.items.append(body.draft.mark("disjunction", f"or {{ {branches[0]}, {branches[1]} }}", branches[0]))
    body.facts.pop(name)
    body.head += [f"begin({name})", f"end({name})"]
    body.times.pop(name)


# ---- relations in time -------------------------------------------------------------------------------------


def _holds(relation: str, i: Span, j: Span, parameters: tuple[Parameter, ...] = ()) -> bool:
    return related(relation, Interval(*i), Interval(*j), parameters)


@dataclass(frozen=True, slots=True)
class _Form:
    """A relation in words, and a time at which the second event stands in it to the first."""

    feature: str
    text: str
    times: Span
    holds: Callable[[Span], bool]


def relations(body: Body) -> None:
    """How two events lie to each other: one relation, or several of which one must hold, each with its own pair."""
    if not body.draft.has_room():
        return
    draft, misses = body.draft, list[Term]()
    body.deferred = misses
    wishes = body.wishes or (body.dice.pick(METRIC),)
    base = wishes[0].removeprefix("metric ")
    found = _related_pair(body, body.dice.pick((base, INVERSES.get(base, base))))
    body.deferred = None
    if found is None:
        return
    first, second = found
    event = body.facts[second]
    forms = [_form(body, first, second, wishes[0], body.times[second])]
    for k in range(max(body.dice.number(0, 4), len(wishes) - 1)):
        form = _form(body, first, second, wishes[k + 1] if k + 1 < len(wishes) else "")
        apart = form is not None and not any(
            f is not None and (f.holds(form.times) or form.holds(f.times)) for f in forms
        )
        if form is not None and apart and draft.add(moved(event, form.times, draft.unit)):
            forms.append(form)
    known = [form for form in forms if form is not None]
    for made in misses[:2] if known else ():
        spans = [s for s in SPANS if known[0].holds(s) and s != body.times[second]]
        draft.add(replace(draft.at(made, body.dice.pick(spans or [body.times[second]])), positional=event.positional))
    if len(known) == 1:
        body.miss_time(second, lambda s: not known[0].holds(s))
        body.condition(_marked(draft, known[0], ""))
    elif known:
        body.condition(f"({' or '.join(_marked(draft, form, '1 = 2') for form in known)})")
    body.head += [f"begin({second})", f"end({second})"]


def _marked(draft: Draft, form: _Form, instead: str) -> str:
    text = draft.mark(form.feature, form.text, instead)
    turned = any(f" {inverse}" in form.text for inverse in _BASES)
    return draft.mark("inverse relation", text, instead) if turned else text


def _form(body: Body, first: str, second: str, wish: str, times: Span | None = None) -> _Form | None:
    """A relation that can hold, plain or with parameters; at the given time, if there is one."""
    dice, i = body.dice, body.times[first]
    base = wish.removeprefix("metric ") or dice.pick(METRIC)
    wanted = dice.pick((base, INVERSES.get(base, base)))
    if times is not None:
        there = [r for r in RELATIONS if _holds(r, i, times)]
        wished = [r for r in there if _BASES.get(r, r) == base]
        wanted = dice.pick(wished or there or RELATIONS)
    spans = [s for s in SPANS if _holds(wanted, i, s)] if times is None else [times]
    if not spans or not _holds(wanted, i, spans[0]):
        return None
    chosen = dice.pick(spans[:50])
    base = _BASES.get(wanted, wanted)
    if wish == base or (wish != f"metric {base}" and dice.chance(45)):
        return _Form(base, f"{first} {wanted} {second}", chosen, lambda s: _holds(wanted, i, s))
    turned = wanted in _BASES
    shown, given = _parameters(body, base, *((chosen, i) if turned else (i, chosen)))
    text = f"{first} {wanted}[{', '.join(shown)}] {second}"
    return _Form(f"metric {base}", text, chosen, lambda s: _holds(wanted, i, s, given))


def _related_pair(body: Body, wanted: str) -> tuple[str, str] | None:
    """Two identifiers whose witnesses stand in the relation; the second is usually made for it."""
    pairs = [(i, j) for i in body.times for j in body.times if i != j]
    there = [(i, j) for i, j in pairs if j in body.facts and _holds(wanted, body.times[i], body.times[j])]
    if there and body.dice.chance(60):
        return body.dice.pick(there)
    names = [i for i in body.times if any(_holds(wanted, body.times[i], s) for s in SPANS)]
    if not names:
        return there[0] if there else None
    first = body.dice.pick(names)
    event = body.fact_at(body.dice.pick([s for s in SPANS if _holds(wanted, body.times[first], s)][:40]))
    if event is None:
        return there[0] if there else None
    second = body.fresh("e")
    body.place(atom(body, event, identifier=second), "conjunction")
    return first, second


def _parameters(body: Body, wanted: str, i: Span, j: Span) -> tuple[list[str], tuple[Parameter, ...]]:
    dice = body.dice
    gap, begins, ends = j[0] - i[1], i[0] - j[0], j[1] - i[1]

    def exact(distance: int) -> list[int | None]:
        return [abs(distance)]

    def ranged(distance: int) -> list[int | None]:
        low = max(abs(distance) - dice.number(0, 1), 0)
        high = abs(distance) + dice.number(0, 2)
        return [None if dice.chance(15) and distance else low, None if dice.chance(15) else high]

    match wanted:
        case "before":
            chosen = dice.pick([exact(gap), ranged(gap)])
        case "meets":
            chosen = [abs(gap) + dice.number(0, 1)]
        case "equals":
            chosen = dice.pick([[dice.number(0, 1)], [dice.number(0, 1), dice.number(0, 1)]])
        case "during":
            chosen = dice.pick([exact(begins) + exact(ends), ranged(begins) + ranged(ends)])
            chosen = [abs(ends)] if begins == ends and dice.chance(50) else chosen
        case "overlaps":
            chosen = dice.pick([exact(begins) + exact(ends), ranged(begins) + ranged(ends)])
            chosen = [abs(ends)] if -begins == ends and dice.chance(50) else chosen
        case "starts":
            chosen = dice.pick([exact(ends), ranged(ends), [dice.number(0, 1), *ranged(ends)]])
        case _:
            chosen = dice.pick([exact(begins), ranged(begins), [dice.number(0, 1), *ranged(begins)]])
    nodes = tuple(Unlimited() if p is None else Duration((Quantity(p, "us"),)) for p in chosen)  # type: ignore[arg-type]
    return ["*" if p is None else str(p) for p in chosen], nodes


def within(body: Body) -> None:
    """Some events within a length; one event is no longer than it."""
    if not body.draft.has_room():
        return
    names = body.dice.shuffled(list(body.facts))[: body.dice.number(1, 3)]
    begin, end = min(body.times[n][0] for n in names), max(body.times[n][1] for n in names)
    length = end - begin + body.dice.number(0, 1)
    others = [body.times[n] for n in names[1:]]

    def fails(s: Span) -> bool:
        return max(s[1], *(o[1] for o in others), 0) - min(s[0], *(o[0] for o in others), LATEST) > length

    body.miss_time(names[0], fails)
    body.head.append(f"end({names[0]})")
    body.condition(body.draft.mark("within", f"{{{', '.join(names)}}} within {length}"))


def apart(body: Body) -> None:
    """A gap of some length between two events."""
    if not body.draft.has_room():
        return
    found = _related_pair(body, body.dice.pick(("before", "after")))
    if found is None:
        return
    first, second = found
    i, j = body.times[first], body.times[second]
    gap = max(j[0] - i[1], i[0] - j[1])
    body.miss_time(second, lambda s: max(s[0] - i[1], i[0] - s[1]) < gap)
    form = "{{{}, {}}} apart-by {}" if body.dice.chance(60) else "{{{}, {}}} {} sec apart"
    if not form.endswith("{}") and body.draft.unit != SECOND:
        form = "{{{}, {}}} apart-by {}"
    body.condition(body.draft.mark("apart-by", form.format(first, second, gap)))


def fixed_time(body: Body) -> None:
    """A moment in place of an event."""
    if not body.draft.has_room():
        return
    name = body.dice.pick(list(body.facts))
    begin, end = body.times[name]
    fits = [
        (r, t) for r in ("before", "after", "meets", "during") for t in range(LATEST + 1) if _fits(r, t, begin, end)
    ]
    if not fits:
        return
    wanted, time = body.dice.pick(fits)
    body.miss_time(name, lambda s: not _fits(wanted, time, *s))
    minutes, seconds = divmod(time * body.draft.unit // SECOND, 60)
    text = f"1970-01-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"
    moment = f'datetime("{text}")'
    sides = (moment, name) if wanted == "during" else (name, moment)
    body.condition(body.draft.mark("fixed time", f"{sides[0]} {wanted} {sides[1]}"))


def _fits(wanted: str, time: int, begin: int, end: int) -> bool:
    point, other = (time, time), (begin, end)
    return _holds(wanted, point, other) if wanted == "during" else _holds(wanted, other, point)


# ---- the event detection algebra ---------------------------------------------------------------------------


def algebra(body: Body) -> None:
    """An algebra expression over new events, restricted or not."""
    if not body.draft.has_room(3):
        return
    dice, draft = body.dice, body.draft
    begin = dice.number(0, 6)
    first = draft.fact(times=(begin, begin))
    if first is None:
        return
    label = dice.pick([b for b in BASE if b != first.term.label])
    second = draft.fact(label, (begin + dice.number(2, 3), begin + dice.number(3, 5)), _leaves(first.term)[:1])
    if second is None:
        return
    bound: dict[str, Value] = {}
    a = _primitive(body, first, bound)
    left = dict(bound)
    b = _primitive(body, second, bound)
    again, late = (draft.at(first.term, (t, t)) for t in (begin + 1, LATEST))
    end = draft.times(second)[1]
    operators = (";", "+", "|") if body.wishes and body.wishes[0] in _ALGEBRA_MODES else (";", "+", "|", "-")
    operator = body.chosen({f"algebra {o}": 1 for o in operators}).removeprefix("algebra ")
    restricted = body.chosen({"algebra restricted": 1, "algebra unrestricted": 1}) == "algebra restricted"
    match operator:
        case ";":
            text = f"{a}{draft.mark('algebra ;', ';', ' +')} {b}"
            draft.add(again)
            draft.add(late)
            length = end - begin - 1
        case "+":
            text = f"{a} {draft.mark('algebra +', '+', ';')} {b}"
            draft.add(late)
            draft.add(again)
            length = end - begin
        case "|":
            bound = {n: v for n, v in bound.items() if n in a and n in b}
            text = f"{a}{draft.mark('algebra |', f' | {b}')}"
            draft.add(draft.at(first.term, (dice.number(0, begin), end)))
            length = dice.number(0, 1)
        case _:
            bound = left
            draft.add(again)
            draft.add(late)
            text = f"({a}; {a}){draft.mark('algebra -', f' - {_primitive(body, second, dict(left))}')}"
            length = LATEST
    if length < LATEST and not (restricted and operator == ";") and body.wants("algebra limit", 75):
        text = f"({text}){draft.mark('algebra limit', f'[{length}]')}"
    name = body.fresh("e")
    mode = _mode(body, restricted=restricted) if operator != "-" else "unrestricted "
    body.items.append(f"{'' if body.arrow else 'event '}{name}: algebra {mode}({text})")
    body.head += [f"begin({name})", f"end({name})"]
    body.variables.update(bound)


def _mode(body: Body, *, restricted: bool) -> str:
    if restricted:
        return body.draft.mark("algebra restricted", body.dice.pick(("", "restricted ")), "unrestricted ")
    return body.draft.mark("algebra unrestricted", "unrestricted ")


def _leaves(value: Value) -> list[Value]:
    return [leaf for child in value.children for leaf in _leaves(child)] if isinstance(value, Term) else [value]


def _primitive(body: Body, event: Event, bound: dict[str, Value]) -> str:
    """An atom of an expression, or the bare label of its event."""
    label = event.term.label
    shape = body.draft.shapes[label]
    if shape.kind == "tree" or not shape.arity or body.dice.chance(35):
        return label
    values = [c.children[0] if isinstance(c, Term) else c for c in event.term.children]
    arguments: list[str] = []
    for value in [*values, *([None] * shape.arity)][: shape.arity]:
        shared = [n for n, v in bound.items() if equal(v, value)]
        if shared and body.dice.chance(70):
            arguments.append(body.var(shared[0]))
        elif value is not None and body.dice.chance(50):
            bound[(name := body.fresh("x"))] = value
            arguments.append(body.var(name))
        else:
            arguments.append("_")
    return f"{label}({', '.join(arguments)})"
