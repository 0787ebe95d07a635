"""This module makes the answers of random programs short: all events of each rule are within a length of each other.

Rules without a key can then be cut along time. The length is a part of the stream, so that answers are on both sides of
every cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ephemera.analysis.limits import Limits
from ephemera.base.span import Source
from ephemera.pipeline import check

from .cases import Case, cases, sample
from .streams import Dice

_BODY = re.compile(r"(<- |ON and \{)(.*?)(?=;$|END$)", re.DOTALL | re.MULTILINE)
_EVENT = re.compile(r"\b([eijw][0-9]*):")
"""How bodies name their events and timers; windows only name those again."""


def shortened(case: Case, dice: Dice) -> Case | None:
    """The case with a length for each of its rules; None if its program is refused then."""

    def limited(body: re.Match[str]) -> str:
        names = ", ".join(dict.fromkeys(_EVENT.findall(body[2])))
        limit = f"{{{names}}} within {dice.weighed({2: 1, 4: 2, 6: 3, 9: 2})}"
        return f"{body[1]} {limit}{',' if body[1] == '<- ' else ''} {body[2].lstrip()}"

    program = _BODY.sub(limited, case.program)
    checked = check(Source("program.eq", program))
    if checked.rules is None or checked.plan is None or checked.facts is None:
        return None
    limits = Limits(checked.plan, checked.facts)  # what comes from outside is no longer than what the rules now derive
    events = tuple(event for event in case.events if limits.complaint(event) is None)
    return replace(case, program=program, ruleset=checked.rules, events=events)


@st.composite
def _short_cases(draw: DrawFn) -> tuple[Case, tuple[int, ...]]:
    dice = Dice(lambda below: draw(st.integers(0, below - 1)))
    case = shortened(draw(cases()), dice)
    assume(case is not None)
    assert case is not None
    return case, cuts(case, dice)


def short_cases() -> SearchStrategy[tuple[Case, tuple[int, ...]]]:
    """Cases with short answers, and up to six times at which they are cut."""
    return _short_cases()


def short_sample(count: int) -> Iterator[tuple[Case, tuple[int, ...]]]:
    """The same cases every time, each apart from the others, and at which times they are cut."""
    return islice(_all_of(3 * count), count)


def _all_of(count: int) -> Iterator[tuple[Case, tuple[int, ...]]]:
    for seed, case in enumerate(sample(count)):
        dice = Dice(Random(seed).randrange)
        short = shortened(case, dice) if case is not None else None
        if short is not None:
            yield short, cuts(short, dice)


def cuts(case: Case, dice: Dice) -> tuple[int, ...]:
    """Some times to cut a case at: where events end or begin, just before, between, and where there is nothing."""
    known = sorted({t for e in case.events for t in (e.time.begin, e.time.end)}) or [0]
    found: set[int] = set()
    for _ in range(dice.number(1, 6)):
        around = dice.weighed({0: 4, -1: 2, 1: 1, 500_000: 1})
        found.add(dice.pick(known) + around if dice.chance(90) else dice.number(-5, 20) * 1_000_000)
    return tuple(sorted(found))
