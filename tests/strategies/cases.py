"""This module generates cases: a program of one to four rules with all features, and a stream that is aimed at it.

The rules derive p, q and r in layers over the base events a, b and c. After each rule the oracle says what the program
so far derives, and the next rule may build on it. `Case.without` gives the case with a feature taken out, which is how
`tests/properties/test_generator.py` sees whether the answers depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.rules.findings import Findings
from ephemera.rules.growth import growth
from ephemera.rules.nodes import Ruleset
from ephemera.rules.normalize import normalize
from ephemera.rules.outcome import Outcome, World
from ephemera.rules.resolve import resolve
from ephemera.rules.stratify import stratify
from ephemera.semantics.oracle import evaluate
from ephemera.syntax.parser import parse
from ephemera.terms.events import Event
from ephemera.terms.values import Term, Value

from .drafts import Draft
from .made_once import made_once
from .making import add_rule, wished
from .marks import feature_of, mark, names, render, taken_out
from .mix import FRAIL
from .numbers import rewritten
from .streams import MOST_EVENTS, Dice

Answers = frozenset[tuple[object, ...]]
MOST_ATTEMPTS = 3
"""How often a rule is made until the answers depend on what it is made for."""

MOSTLY = 75
"""How often, of a hundred times, a frail feature is looked at; some that nothing depends on belong to the mix."""

MOST_DERIVED = 24
"""How many events a program may derive, lest later rules have too many to join."""

SAMPLE = 200
"""How many cases properties draw from, where they are to be the same every time."""


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
    """The rules of a program, or None if it is refused; what the plan would say of it is left for later."""
    parsed = parse(Source("program.eq", tidy(program)))
    findings = Findings()
    resolved = resolve(parsed.program, findings, complete=not parsed.report.failed)
    if parsed.report.failed or findings.diagnostics:
        return None
    strata, dependencies = stratify(resolved, findings)
    if findings.diagnostics:
        return None
    normal = normalize(resolved)
    return Ruleset(resolved, strata, dependencies, normal, growth(resolved, normal))


def tidy(program: str) -> str:
    """The program without the commas around what was left out."""
    program = re.sub(r",(\s*,)+", ",", program)
    program = re.sub(r"(<-\s*|\(\s*|\{\s*),", r"\1", program)
    return re.sub(r",\s*([;)}\]])", r"\1", program)


def make(dice: Dice, turn: int) -> Case | None:
    """A case by the dice, or None if its program is refused; its rules are made for the features whose turn it is."""
    draft = Draft(dice)
    count = dice.weighed({1: 1, 2: 3, 3: 6, 4: 4})
    if dice.chance(8):
        _recursion(draft)
    for done in range(len(draft.rules), count):
        share = (done + 1) * MOST_EVENTS // count
        draft.room = min(max(share, 4), MOST_EVENTS)
        extended = _extended(draft, count, turn * 4 + done)
        if extended is None:
            return None
        draft = extended
    if not draft.rules:
        return None
    draft.room = MOST_EVENTS
    for _ in range(dice.weighed({0: 6, 1: 3, 2: 1})):
        draft.fact()
    marked = _written(draft)
    program = tidy(render(marked))
    rules = check(Source("program.eq", program)).rules
    if rules is None:
        return None
    events = dice.shuffled(draft.stream)
    if dice.chance(4):
        events = events[: dice.number(0, len(events))]
    features = frozenset(feature_of(name) for name in names(marked))
    if dice.chance(25):
        events = rewritten(dice, events)
    if draft.is_closed and dice.chance(30):
        marked = _apart(dice, marked)
        rules = compiled(render(marked)) or rules
        program = tidy(render(marked))
    return Case(program, rules, tuple(events), draft.tables, features, marked)


def _apart(dice: Dice, marked: str) -> str:
    """The program with a distance that events of a type have to keep."""
    label = dice.pick(sorted(set(re.findall(r"EVENT ([abc])\(", marked))))
    per = dice.pick(("", " PER k", " PER k", " PER v, k"))
    declared = re.search(rf"EVENT {label}\(([^)]*)\) LASTS ANY", marked)
    assert declared is not None
    names = [name for name in ("k", "v") if f"{name}:" in declared[1]]
    asked = [name for name in re.findall(r"[kv]\b", per) if name in names]
    clause = f" AT LEAST {dice.number(1, 5)} APART{' PER ' + ', '.join(asked) if asked else ''}"
    return marked[: declared.end()] + clause + marked[declared.end() :]


def _extended(draft: Draft, count: int, turn: int) -> Draft | None:
    """The draft with a rule more; if its answers do not depend on what it was made for, it is made again."""
    wishes = wished(draft, count, turn)
    trial: _Trial | None = None
    for _ in range(MOST_ATTEMPTS):
        made = draft.fork()
        label = add_rule(made, wishes)
        outcome = _outcome(render(_written(made)), made.stream, made)
        if outcome is None:
            return None
        if len(outcome.events) <= MOST_DERIVED:
            made.derived = outcome.events
            trial = _Trial(made, label)
            if trial.depends_on(wishes[0]):
                break
    return trial.without_idle() if trial is not None else draft


def _outcome(program: str, events: Sequence[Event], draft: Draft) -> Outcome | None:
    rules = compiled(program)
    return evaluate(rules, events, World(draft.tables)) if rules is not None else None


class _Trial:
    """The last rule of a draft on its own, over the facts it can ask for, to see what its answers depend on."""

    def __init__(self, draft: Draft, label: str) -> None:
        self._draft = draft
        self._below = [e for e in draft.derived if e.term.label < label]
        self._base = self._answers(draft.rules[-1])

    def _answers(self, rule: str) -> Answers | None:
        draft = self._draft
        if draft.is_closed:  # no rule may then ask for what none derives
            found = _outcome(render(_written(draft, *draft.rules[:-1], rule)), draft.stream, draft)
        else:
            found = _outcome(render(_written(draft, rule)), [*draft.stream, *self._below], draft)
        return answers(found) if found is not None else None

    def depends_on(self, feature: str) -> bool:
        """Whether the rule has the feature, and its answers depend on it."""
        rule = self._draft.rules[-1]
        places = [name for name in names(rule) if feature_of(name) == feature]
        return any(self._answers(taken_out(rule, name)) not in (None, self._base) for name in places[:1])

    def without_idle(self) -> Draft:
        """The draft, its last rule without the frail features on which the answers do not depend."""
        for name in names(self._draft.rules[-1]):
            if feature_of(name) in FRAIL and self._draft.dice.chance(MOSTLY):
                simpler = taken_out(self._draft.rules[-1], name)
                if self._base is not None and self._answers(simpler) == self._base:
                    self._draft.rules[-1] = simpler
        return self._draft


@st.composite
def _cases(draw: DrawFn) -> Case:
    turn = draw(st.integers(0, 999))
    case = make(Dice(lambda below: draw(st.integers(0, below - 1))), turn)
    assume(case is not None)
    assert case is not None
    return case


@st.composite
def _of_the_sample(draw: DrawFn) -> Case:
    case = _of_seed(draw(st.sampled_from(range(SAMPLE))))
    assume(case is not None)
    assert case is not None
    return case


def cases() -> SearchStrategy[Case]:
    """Cases with every feature of the language: some of the sample, and on a hunt ever new ones."""
    return _cases() if settings.get_current_profile_name() == "hunt" else _of_the_sample()


def sample(count: int) -> Iterator[Case | None]:
    """The same cases every time, each apart from the others; Hypothesis draws families of cases that are alike."""
    return map(_of_seed, range(count))


def _of_seed(seed: int) -> Case | None:
    return made_once("case", seed, lambda seed: make(Dice(Random(seed).randrange), seed))


# ---- programs ----------------------------------------------------------------------------------------------


def _written(draft: Draft, *rules: str) -> str:
    """The program, or just some rules with its declarations."""
    declarations = [draft.declares_unit] if draft.declares_unit else []
    if draft.is_closed:
        name = draft.name("declaration")
        for shape in draft.shapes.values():
            attributes = ", ".join(f"{name}: any" for name in ("k", "v")[: shape.arity])
            declarations.append(mark(name, f"EVENT {shape.label}({attributes}) LASTS ANY;"))
    if draft.tables:
        declarations.append("TABLE t(k: any, w: any);")
    return "\n".join([*declarations, *(rules or draft.rules)])


def _recursion(draft: Draft) -> None:
    """Paths over the pairs of a base event: a rule that asks for its own head, over small domains."""
    pairs = [s for s in draft.shapes.values() if s.arity == 2 and s.kind != "tree"]
    if not pairs:
        return
    dice = draft.dice
    label = dice.pick(pairs).label
    longest = dice.weighed({2: 4, 3: 2, 4: 1})
    for values in (*((k, k + 1) for k in range(1, longest + 1)), (dice.number(1, 3), dice.number(1, 3))):
        draft.fact(label, values=values)
    condition = dice.pick(("i before j", "{i, j} within 9", "i != j"))
    step = dice.weighed(
        {
            f"p(x, z) <- i: p(x, y), j: {label}(y, z), {condition};": 4,
            f"p(x, z) <- i: p(x, y), j: p(y, z), {condition};": 2,
            f"p(x, y + 1) <- i: p(x, y), j: {label}(x, _), y < 4;": 1,
        }
    )
    draft.rules.append(f"p(x, y) <- i: {label}(x, y);\n{draft.mark('recursion', step)}")
    rules = compiled(render(_written(draft)))
    assert rules is not None, render(_written(draft))
    draft.derived = evaluate(rules, draft.stream, World()).events


def answers(outcome: Outcome) -> Answers:
    """What an outcome answers, to be compared: events and messages."""
    events = [("event", e.key) for e in outcome.events]
    return frozenset([*events, *(("message", m.event.key, m.recipient, m.transport) for m in outcome.messages)])


def formed(outcome: Outcome) -> Answers:
    """The same, and the form of each number: `1` and `1.0` are not one."""
    events = [("event", e.key, *_forms(e.term)) for e in outcome.events]
    messages = [("message", m.event.key, m.recipient, m.transport, *_forms(m.event.term)) for m in outcome.messages]
    return frozenset([*events, *messages])


def _forms(term: Term) -> list[tuple[Any, ...]]:
    """All doubles of a term, each with the labels above it."""
    found: list[tuple[Any, ...]] = []
    stack: list[tuple[tuple[str, ...], Value]] = [((), term)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, float):
            found.append((path, value))
        elif isinstance(value, Term):
            stack += [((*path, value.label), c) for c in value.children]
            stack += [((*path, value.label, n), v) for n, v in value.attributes]
    return sorted(found)
