"""This module makes rules: a body around a witness with the features that are wished for, and a head that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.terms.events import Event

from . import windows
from .drafts import Body, Draft
from .marks import mark
from .mix import ATOMIC, BLOCK_ONLY, DERIVED, GENTLE, PATTERNS, TREES, WEIGHTS, by_maker, by_turn
from .shapes import atom
from .streams import MOST_EVENTS, VALUES

MOST_ATOMS = 3
"""How many atoms and timers a rule has before more of them are only added for what it is made for."""

STEPS = tuple(root**0.5 % 1 for root in (1.25, 2, 3, 7, 11, 13, 17, 19))
"""How far the turn moves from one rule to the next, for each wish: irrational, so that all features come evenly."""

RESERVED = 2
"""How many events more a rule has for what it is made for before all."""


def wished(draft: Draft, count: int, turn: int) -> list[str]:
    """The features that the next of so many rules is made for, the most important first; each in its turn."""
    dice = draft.dice
    first, *others = (by_turn(turn * step % 1) for step in STEPS)
    if first in PATTERNS:
        weights = {f: w for f, w in WEIGHTS.items() if f in GENTLE}
        return [first, *(dice.weighed(weights) for _ in range(dice.number(0, 1)))]
    derived = sorted(DERIVED) if draft.derived and dice.chance(60) else []
    few, many = {1: 4, 2: 3}, {2: 5, 3: 5, 4: 2}
    number = dice.weighed(few if count > 2 else many)
    return [first, *derived, *[f for f in others if f not in PATTERNS][:number]]


def add_rule(draft: Draft, wishes: Sequence[str]) -> str:
    """A rule more, made for the wishes as far as there is room; says what it derives."""
    dice = draft.dice
    used = sorted({e.term.label for e in draft.derived if e.term.label in "pqr"})
    label = "pqr"[min(len(used), 2)] if not used or dice.chance(70) else used[-1]
    known = [e for e in draft.derived if e.term.label < label]
    arrow = dice.chance(50) and not BLOCK_ONLY.intersection(wishes)
    body = Body(draft, known, arrow=arrow)
    body.is_fancy, body.wishes = wishes[0] in PATTERNS, wishes[:1]
    body.items.append(atom(body, _first_fact(body, wishes[0])))
    room, star = draft.room, wishes[0]
    draft.room = room if body.is_fancy else room - 1
    for maker, granted in by_maker(wishes):
        if star in granted:
            draft.room = min(room + RESERVED, MOST_EVENTS)
        elif maker in ATOMIC and len(body.facts) + len(body.anchors) > MOST_ATOMS:
            continue
        body.wishes = granted
        maker(body)
    draft.room, body.wishes = room, ()
    draft.rules.append(_rule(body, label, wishes))
    return label


def _first_fact(body: Body, wish: str) -> Event:
    """A fact for the first atom, of a shape that can have what is wished for."""
    shapes = body.draft.shapes.values()
    if wish == "repeated variable":
        labels, values = [s.label for s in shapes if s.arity == 2], [body.dice.pick(VALUES)] * 2
    elif wish in TREES:
        labels, values = [s.label for s in shapes if s.kind == "tree"], ["x"] if wish == "regex" else []
    else:
        labels, values = [], []
    made = body.draft.fact(body.dice.pick(labels), values=values) if labels else None
    return made or body.any_fact(50)


def _rule(body: Body, label: str, wishes: Sequence[str]) -> str:
    dice, draft = body.dice, body.draft
    others = [n for n in dice.shuffled(list(body.variables)) if n not in body.shown]
    for name in [*body.shown, *others[: max(3 - len(body.shown), 0)]]:
        body.head.append(_shown(body, name))
    form = draft.name("arrow form" if body.arrow else "block form")
    body.head = list(dict.fromkeys(body.head))
    items, conditions, having, head = body.assembled()
    silenced = mark(form, "", "1 = 2")
    if body.arrow:
        return f"{label}({', '.join(head)}) <- {', '.join([*items, *conditions, silenced])}{_having(body, having)};"
    made = _construct(body, label, head, wishes)
    where = [f"where {{ {c} }}" for c in conditions if not c.startswith("\x01") and dice.chance(50)]
    inside = [c for c in conditions if f"where {{ {c} }}" not in where]
    query = "\n".join(["and {", *(f"  {item}" for item in [*items, *inside, silenced]), "}", *where])
    return f"{made} ON {query}{_having(body, having)} END"


def _having(body: Body, having: Sequence[str]) -> str:
    return "".join(body.draft.mark("having", f" having {{ {c} }}") for c in having[:1])


def _shown(body: Body, name: str) -> str:
    """A variable in the head, or something computed from it."""
    spelled = body.var(name)
    if isinstance(body.variables[name], int) and body.dice.chance(12):
        operator = body.dice.pick(("+ 1", "* 2", "- 3", "/ 2", "mod 2", "* -1"))
        return body.draft.mark("head expression", f"{spelled} {operator}", spelled)
    return spelled


def _construct(body: Body, label: str, head: list[str], wishes: Sequence[str]) -> str:
    """The head of a block rule: an event, or a message."""
    dice, draft = body.dice, body.draft
    children = list(body.optional)
    percent = 85 if len(body.collected) > 1 else 10 if body.collected or body.variables else 0
    if (BLOCK_ONLY.intersection(wishes) and body.collected) or dice.chance(percent):
        children.append(f"z [ {windows.gathered(body, wishes)} ]")
    if dice.chance(50):
        inner = f"{label} [ {', '.join([*head, *children])} ]"
    else:
        named = [f"{'kvwxy'[k % 5]} {{ {child} }}" for k, child in enumerate(head)]
        inner = f"{label} {{ {', '.join([*named, *children])} }}"
    if dice.chance(15):
        name = draft.name("message")
        opener = mark(name, 'RAISE to(recipient="r", transport="console") {', "DETECT")
        return f"{opener} {inner} {mark(name, '}')}"
    return f"DETECT {inner}"
