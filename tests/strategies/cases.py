"""This module generates cases: a program of one to four rules with all features, and a stream that is aimed at it.

The rules derive p, q and r in layers over the base events a, b and c. After each rule the oracle says what the program
so far derives, and the next rule may build on it. `Case.without` gives the case with a feature taken out, which is how
`tests/properties/test_generator.py` sees whether the answers depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.rules.nodes import Ruleset
from ephemera.semantics.oracle import Outcome, World, evaluate
from ephemera.terms.events import Event
from ephemera.terms.values import Term

from . import filters, joins, timers, windows
from .drafts import Body, Draft
from .marks import feature_of, mark, names, render
from .shapes import atom
from .streams import MOST_EVENTS, Dice

ADDITIONS: dict[Callable[[Body], object], int] = {
    # What needs most room in the stream comes first.
    joins.algebra: 40,
    windows.collection: 26,
    windows.negation: 16,
    windows.from_until: 18,
    joins.disjunction: 18,
    joins.join: 1,
    timers.timers: 30,
    timers.clock: 9,
    filters.comparison: 34,
    filters.null: 12,
    filters.undefined: 8,
    filters.table: 28,
    filters.absent_value: 14,
    windows.result_condition: 10,
    joins.relations: 90,
    joins.within: 12,
    joins.apart: 16,
    joins.fixed_time: 10,
    joins.identity: 9,
    timers.head_times: 8,
}
"""What a rule may have besides its first event, each with its weight."""

GENTLE: dict[Callable[[Body], object], int] = {
    windows.collection: 3,
    timers.timers: 3,
    filters.comparison: 3,
    filters.undefined: 1,
    filters.table: 2,
    timers.head_times: 2,
}
_ORDER = [windows.negated_derived, windows.collected_derived, *ADDITIONS]


@dataclass(frozen=True, slots=True)
class Case:
    """A program, what it runs on, and the features it has."""

    program: str
    ruleset: Ruleset = field(repr=False)
    events: tuple[Event, ...]
    tables: Mapping[str, Sequence[Term]]
    features: frozenset[str]
    marked: str = field(repr=False)
    """The program with its features marked."""

    @property
    def world(self) -> World:
        return World(self.tables)

    def outcome(self) -> Outcome:
        return evaluate(self.ruleset, self.events, self.world)

    def without(self, feature: str) -> Iterator[Outcome]:
        """What comes of the case if the feature is taken out, for each place where it stands."""
        for name in names(self.marked):
            if feature_of(name) == feature:
                rules = compiled(render(self.marked, name))
                if rules is not None:
                    yield evaluate(rules, self.events, self.world)


def compiled(program: str) -> Ruleset | None:
    """The rules of a program, or None if it is refused."""
    return check(Source("program.eq", tidy(program))).rules


def tidy(program: str) -> str:
    """The program without the commas around what was left out."""
    program = re.sub(r",(\s*,)+", ",", program)
    program = re.sub(r"(<-\s*|\(\s*|\{\s*),", r"\1", program)
    return re.sub(r",\s*([;)}\]])", r"\1", program)


def make(dice: Dice) -> Case | None:
    """A case by the dice, or None if its program is refused."""
    draft = Draft(dice)
    count = dice.weighed({1: 4, 2: 6, 3: 3, 4: 1})
    if dice.chance(8):
        _recursion(draft)
    while len(draft.rules) < count:
        share = (len(draft.rules) + 1) * MOST_EVENTS // count
        draft.room = min(max(share, 3), MOST_EVENTS)
        _add_rule(draft, count)
        rules = compiled(render(_written(draft)))
        if rules is None:
            return None
        draft.derived = evaluate(rules, draft.stream, World(draft.tables)).events
    draft.room = MOST_EVENTS
    for _ in range(dice.weighed({0: 6, 1: 3, 2: 1})):
        draft.fact()
    marked = _written(draft)
    program = tidy(render(marked))
    rules = compiled(program)
    if rules is None:
        return None
    events = dice.shuffled(draft.stream)
    if dice.chance(4):
        events = events[: dice.number(0, len(events))]
    features = frozenset(feature_of(name) for name in names(marked))
    return Case(program, rules, tuple(events), draft.tables, features, marked)


@st.composite
def _cases(draw: DrawFn) -> Case:
    case = make(Dice(lambda below: draw(st.integers(0, below - 1))))
    assume(case is not None)
    assert case is not None
    return case


def cases() -> SearchStrategy[Case]:
    """Cases with every feature of the language."""
    return _cases()


def sample(count: int) -> Iterator[Case | None]:
    """The same cases every time, each apart from the others; Hypothesis draws families of cases that are alike."""
    for seed in range(count):
        yield make(Dice(Random(seed).randrange))


# ---- programs ----------------------------------------------------------------------------------------------


def _written(draft: Draft) -> str:
    declarations = [draft.declares_unit] if draft.declares_unit else []
    if draft.is_closed:
        name = draft.name("declaration")
        for shape in draft.shapes.values():
            attributes = ", ".join(f"{name}: any" for name in ("k", "v")[: shape.arity])
            declarations.append(mark(name, f"EVENT {shape.label}({attributes}) LASTS ANY;"))
    if draft.tables:
        declarations.append("TABLE t(k: any, w: any);")
    return "\n".join([*declarations, *draft.rules])


def _recursion(draft: Draft) -> None:
    """Paths over the pairs of a base event: a rule that asks for its own head, over small domains."""
    pairs = [s for s in draft.shapes.values() if s.arity == 2 and s.kind != "tree"]
    if not pairs:
        return
    label = draft.dice.pick(pairs).label
    for values in ((1, 2), (2, 3), (draft.dice.number(1, 3), draft.dice.number(1, 3))):
        draft.fact(label, values=values)
    step = f"p(x, z) <- i: p(x, y), j: {label}(y, z), {draft.dice.pick(('i before j', '{i, j} within 9', 'i != j'))};"
    draft.rules.append(f"p(x, y) <- i: {label}(x, y);\n{draft.mark('recursion', step)}")
    rules = compiled(render(_written(draft)))
    assert rules is not None, render(_written(draft))
    draft.derived = evaluate(rules, draft.stream, World()).events


def _add_rule(draft: Draft, count: int) -> None:
    dice = draft.dice
    used = sorted({e.term.label for e in draft.derived if e.term.label in "pqr"})
    label = "pqr"[min(len(used), 2)] if not used or dice.chance(70) else used[-1]
    known = [e for e in draft.derived if e.term.label < label]
    arrow = dice.chance(50)
    body = Body(draft, known, arrow=arrow)
    body.items.append(atom(body, body.any_fact(50)))
    few, many = {1: 5, 2: 3}, {1: 1, 2: 5, 3: 5, 4: 2}
    # Conditions on times would hide what the near misses of a demanding pattern show.
    additions = GENTLE if body.is_fancy else ADDITIONS
    number = dice.number(0, 1) if body.is_fancy else dice.weighed(few if count > 2 else many)
    chosen = [dice.weighed(additions) for _ in range(number)]
    if known and dice.chance(45):
        chosen.append(dice.pick((windows.negated_derived, windows.collected_derived)))
    for addition in sorted(chosen, key=_ORDER.index):
        addition(body)
    draft.rules.append(_rule(body, label))


def _rule(body: Body, label: str) -> str:
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
    made = _construct(body, label, head)
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


def _construct(body: Body, label: str, head: list[str]) -> str:
    """The head of a block rule: an event, or a message."""
    dice, draft = body.dice, body.draft
    children = list(body.optional)
    if dice.chance(85 if len(body.collected) > 1 else 10 if body.collected or body.variables else 0):
        children.append(f"z [ {windows.gathered(body)} ]")
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


def answers(outcome: Outcome) -> frozenset[tuple[object, ...]]:
    """What an outcome answers, to be compared: events and messages."""
    events = [("event", e.key) for e in outcome.events]
    return frozenset([*events, *(("message", m.event.key, m.recipient, m.transport) for m in outcome.messages)])
