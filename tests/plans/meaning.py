"""This module interprets the plan of a program and gives its answers as the oracle gives them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ephemera.algebra.interpret import Given, Relation, events_of, interpret
from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import Plan, Points
from ephemera.base.span import Source
from ephemera.formats.addresses import fixed_address
from ephemera.formats.json_events import read_object, read_row, read_time
from ephemera.physical.lanes import by_the_clock
from ephemera.pipeline import check
from ephemera.rules.clock import Clock
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import World
from ephemera.semantics.apart import judged
from ephemera.semantics.oracle import look_back
from ephemera.stories.judge import typed_rows
from ephemera.stories.read import read_story
from ephemera.syntax.nodes import Raise
from ephemera.terms.events import Event

Answers = frozenset[tuple[object, ...]]
COMPUTED = (None, None)
"""Stands for an address that a rule computes: plans build terms, and engines say where these go."""


def told_by_plans(rules: Ruleset, answers: Answers) -> Answers:
    """Answers as far as plans know them: without addresses, if a rule computes some."""
    heads = [rule.head for rule in rules.resolved.rules]
    if not any(isinstance(head, Raise) and fixed_address(head) is None for head in heads):
        return answers
    return frozenset((*one[:2], *COMPUTED) if one[0] == "message" else one for one in answers)


def plan_answers(rules: Ruleset, events: Sequence[Event], world: World, points: Points = "rules") -> Answers:
    """What the plan of a program answers, to be compared: events and messages.

    Events that come too close are judged before any plan.
    """
    plan = lower(rules, points)
    good, _ = judged(events, rules.resolved.catalogue, None)
    return as_answers(plan, interpret(plan, given(rules, good, world)), rules, good, world)


def given(rules: Ruleset, events: Sequence[Event], world: World) -> Given:
    first, last = limits(events, world)
    clock = Clock(rules.resolved.catalogue.zone, first - look_back(rules), last)
    calendars = {name: list(days) for name, days in world.calendars.items()}
    return Given(list(events), world.tables, calendars, clock.events)


def limits(events: Sequence[Event], world: World) -> tuple[int, int]:
    """The earliest and the latest end: between them answers that ask the clock are given."""
    ends = [e.time.end for e in events] + ([world.until] if world.until is not None else [])
    firsts = [e.time.end for e in events] or ends
    return (min(firsts), max(ends)) if ends else (0, -1)


def as_answers(
    plan: Plan, found: dict[str, Relation], rules: Ruleset, events: Sequence[Event], world: World
) -> Answers:
    first, last = limits(events, world)
    clocked = by_the_clock(rules, frozenset(world.calendars))
    made: set[tuple[object, ...]] = set()
    for name, relation in found.items():
        point = plan.points[name]
        if point.kind != "rule" or point.rule is None:
            continue
        head = rules.resolved.rules[point.rule - 1].head
        for event in events_of(point, relation):
            if event.time.end < first or (point.rule in clocked and event.time.end > last):
                continue
            if isinstance(head, Raise):
                made.add(("message", event.key, *(fixed_address(head) or COMPUTED)))
            else:
                made.add(("event", event.key))
    return frozenset(made)


def of_story(path: Path) -> tuple[Ruleset, list[Event], World]:
    """The rules of a story, its events as far as they can be read, and the rest of its world."""
    story = read_story(path.read_text(encoding="utf-8"))
    rules = check(Source(path.name, story.program)).rules
    assert rules is not None
    catalogue = rules.resolved.catalogue
    read = (read_object(e, catalogue) for e in story.events)
    tables = {
        label: [read_row(row, catalogue.tables[label], catalogue) for row in typed_rows(catalogue.tables[label], rows)]
        for label, rows in story.tables.items()
    }
    until = max((read_time(t, catalogue.unit, catalogue.local) for t in story.advances), default=None)
    return rules, [e for e in read if isinstance(e, Event)], World(tables, {}, until)
