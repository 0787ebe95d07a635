"""This module runs programs with some rewrites only: each alone, each omitted, all and none; and has programs for that.

A choice that makes the same plan as one before it would run the same, so each plan runs once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random

from ephemera.algebra.attributes import is_blank
from ephemera.algebra.fingerprint import fingerprints
from ephemera.algebra.nodes import Plan
from ephemera.analysis.flows import declared
from ephemera.analysis.nodes import Facts
from ephemera.base.span import Source
from ephemera.formats.json_events import read_object
from ephemera.physical.plan import Compiled, prepare
from ephemera.pipeline import Checked, check
from ephemera.rewrite import ALL_REWRITES, JOINS, REWRITES
from ephemera.rewrite.optimize import Rewrite, Rewritten, optimize_more
from ephemera.rules.emitted import emitted_label
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import DeadLetter, Outcome, World
from ephemera.rules.scope import pattern_bindings
from ephemera.semantics.oracle import evaluate
from ephemera.stories.read import read_story
from ephemera.terms.atoms import attributes_term
from ephemera.terms.events import Event, Interval
from tests.engine import test_alike_limits
from tests.engine.test_alike import CONSTANTS, DECLARED, KINDS, TEMPLATES
from tests.plans.meaning import of_story
from tests.strategies import chains, planned
from tests.strategies.cases import Answers, formed, sample
from tests.strategies.goals import goals

STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))
Letters = frozenset[tuple[object, ...]]


def choices(rewrites: Sequence[Rewrite]) -> dict[str, tuple[Rewrite, ...]]:
    """None, all, each alone, and all but one."""
    return {
        "none": (),
        "all": tuple(rewrites),
        **{f"only {one.__name__}": (one,) for one in rewrites},
        **{f"without {one.__name__}": tuple(other for other in rewrites if other is not one) for one in rewrites},
    }


IN_ONE_PLACE = choices((*REWRITES, *JOINS))
IN_SEVERAL = choices(ALL_REWRITES)


@dataclass(frozen=True, slots=True)
class Subject:
    """A program with what it runs on and what it is asked for."""

    name: str
    rules: Ruleset
    plan: Plan
    facts: Facts
    events: tuple[Event, ...]
    world: World
    emit: frozenset[str]

    def prepared(self, rewrites: Sequence[Rewrite]) -> Compiled:
        """As engines need it, with some rewrites."""
        return prepare(self.rules, self.plan, self.facts, self.world.calendars, self.emit, rewrites=rewrites)

    def expected(self) -> tuple[Answers, Letters]:
        """What the oracle answers to what is asked for, and the dead letters of the rules that this needs."""
        running = self.prepared(ALL_REWRITES).physical.running
        whole = evaluate(self.rules, self.events, self.world, running=running)
        return self.told(whole)

    def told(self, outcome: Outcome) -> tuple[Answers, Letters]:
        """What is compared of an outcome; without `drop_unasked` other rules have dead letters, too.

        What only a collection binds is left out of letters: engines do not gather what nobody asks for.
        """
        running = self.prepared(ALL_REWRITES).physical.running
        letters = frozenset(
            letter_of(one, self._collected(one.rule)) for one in outcome.dead_letters if one.rule in running
        )
        if self.emit:
            outcome.only(self.emit)
        return formed(outcome), letters

    def _collected(self, rule: int) -> frozenset[str]:
        """The variables that only collections of a rule bind."""
        own = [normal for normal in self.rules.normal if normal.rule == rule]
        patterns = [one.event.pattern for normal in own for one in normal.collects]
        bound = [event.pattern for normal in own for event in normal.events]
        collected = frozenset[str]().union(*(pattern_bindings(p).bound for p in patterns))
        return collected.difference(*(pattern_bindings(p).bound for p in bound))


def letter_of(letter: DeadLetter, without: frozenset[str] = frozenset()) -> tuple[object, ...]:
    """A dead letter with what has a name; terms and times are texts, as they are where letters travel."""
    bound = letter.told()["variables"].items()
    named = ((name, repr(value)) for name, value in bound if not is_blank(name) and name not in without)
    return (letter.rule, letter.reason, *sorted(named))


def before_rewriting(subject: Subject) -> Rewritten:
    """The plan as it is written, with what is known of it."""
    known = declared(subject.plan.catalogue)
    plan, prints = subject.plan, fingerprints(subject.plan)
    return Rewritten(plan, subject.facts, prints, emit=subject.emit, written=plan, statistics=known)


def distinct(
    subject: Subject, choice: Mapping[str, Sequence[Rewrite]], *, reads: bool = False
) -> Iterator[tuple[str, Compiled]]:
    """The choices that make different plans, or that read different columns.

    Of events that have been read all columns are there.
    """
    plain = before_rewriting(subject)
    seen: list[Rewritten] = []
    for name, rewrites in choice.items():
        own = replace(optimize_more(plain, rewrites), reading=None)
        own = own if reads else replace(own, columns=None)
        if own not in seen:
            seen.append(own)
            yield name, subject.prepared(rewrites)


# ---- programs ----------------------------------------------------------------------------------------------


def of_path(path: Path) -> Subject:
    """A story."""
    _, events, world = of_story(path)
    story = read_story(path.read_text(encoding="utf-8"))
    return _subject(path.stem, check(Source(path.name, story.program)), events, world, story.emit or frozenset())


def random_subjects(count: int) -> Iterator[Subject]:
    """The same programs every time, so many of each kind.

    They are of all features, views, chains, rules that are alike, and those that leave a choice.
    """
    for number, case in enumerate(islice((case for case in sample(2 * count) if case is not None), count)):
        checked = check(Source("case.eq", case.program))
        labels = sorted({emitted_label(rule.head) or "" for rule in case.ruleset.resolved.rules} - {""})
        dice = Random(number)
        asked = (
            frozenset(dice.sample(labels, dice.randint(1, len(labels)))) if labels and number % 2 else frozenset[str]()
        )
        yield _subject(case.program, checked, case.events, case.world, asked)
    for goal in goals(count):
        own = goal.checked
        yield Subject(goal.program, own.rules, own.plan, own.facts, goal.events, World(), goal.emit)
    for seed in range(count):
        dice = Random(seed)
        text = chains.program(dice)
        checked = check(Source("chain.eq", text))
        assert checked.plan is not None
        given = (read_object(one, checked.plan.catalogue) for one in chains.stream(dice, 24))
        yield _subject(text, checked, [e for e in given if isinstance(e, Event)], World())
    for seed in range(count):
        text, events = _alike(Random(seed), list(TEMPLATES.values())[seed % len(TEMPLATES)])
        yield _subject(text, check(Source("alike.eq", text)), events, World())
    for seed in range(count // 3):
        text, events = _of_many_lengths(Random(seed))
        yield _subject(text, check(Source("limits.eq", text)), events, World())
    yield from planned_subjects(count)


def planned_subjects(count: int) -> Iterator[Subject]:
    """Programs that leave a choice; each of them is changed by several laws."""
    for own in islice(filter(_is_sound, map(planned.make, map(Random, range(2 * count)))), count):
        checked = check(Source("planned.eq", own.program))
        assert checked.plan is not None
        given = (read_object(one, checked.plan.catalogue) for one in own.events)
        yield _subject(own.program, checked, [e for e in given if isinstance(e, Event)], World(), own.emit)


def _is_sound(own: planned.Planned) -> bool:
    """Whether a program is not refused, as one is whose conditions contradict each other."""
    return check(Source("planned.eq", own.program)).plan is not None


def _subject(
    name: str, checked: Checked, events: Sequence[Event], world: World, emit: frozenset[str] = frozenset()
) -> Subject:
    assert checked.rules is not None, (name, checked.report)
    assert checked.plan is not None
    assert checked.facts is not None
    return Subject(name, checked.rules, checked.plan, checked.facts, tuple(events), world, emit)


def _alike(dice: Random, template: str) -> tuple[str, list[Event]]:
    """Rules of one template with different constants, and events."""
    pairs = [(dice.choice(CONSTANTS), dice.choice(CONSTANTS)) for _ in range(3)]
    text = DECLARED + "\n".join(template.format(n=n, c=c, d=d) for n, (c, d) in enumerate(pairs))
    values = dice.choice(KINDS)
    events = []
    for number in range(24):
        attributes = [("id", number % 7), ("x", dice.randrange(3)), ("v", dice.choice(values))]
        at = dice.randrange(20) * 1_000_000
        events.append(Event(attributes_term(dice.choice("AB"), attributes), Interval(at, at), positional=True))
    return text, list(dict.fromkeys(events))


def _of_many_lengths(dice: Random) -> tuple[str, list[Event]]:
    """Rules of one template with different lengths of time, and events."""
    template = dice.choice(list(test_alike_limits.TEMPLATES.values()))
    pairs = [(s, dice.choice(test_alike_limits.LIMITS)) for s in test_alike_limits.LIMITS]
    rules = (template.format(n=n, s=min(pair), t=max(pair)) for n, pair in enumerate(pairs))
    events = []
    for number in range(24):
        label, at = dice.choice("ABC"), dice.randrange(20)
        term = attributes_term(label, [("id", number % 7), ("x", dice.randrange(3))])
        begin = at - (dice.randrange(9) if label == "C" else 0)
        events.append(Event(term, Interval(begin * 1_000_000, at * 1_000_000), positional=True))
    return test_alike_limits.DECLARED + "\n".join(rules), list(dict.fromkeys(events))
