"""This module shows that conditions on time in an accumulated query's own `where` are kept, whatever else is asked."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.algebra.nodes import Plan
from ephemera.analysis.nodes import Facts
from ephemera.base.span import Source
from ephemera.engine.hosts.batch import BatchRun
from ephemera.formats.json_events import read_object
from ephemera.kernels import history
from ephemera.kernels import keys as numbering
from ephemera.physical.plan import prepare
from ephemera.pipeline import check
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.strategies.cases import answers
from tests.strategies.own_conditions import CONDITIONS, WINDOWS, programs

COLLECTIONS = [
    "Q{}(i, count(*), sum(u), avg(u), min(u), max(u)) <- o: o(i), {} collect p: p(_, u) where {{ {} }};\n",
    "Q{}(i, count(u)) <- o: o(i), {} collect p: p(_, u) where {{ {} }};\n",
    "Q{}(i, count(*)) <- o: o(i), {} collect optional p: p(_, u) where {{ {} }};\n",
]
"""What is summed up without being unfolded, and what is not."""


@cache
def program(window: str, kind: str) -> tuple[Ruleset, Plan, Facts]:
    """Two rules for every condition: an absence and a collection; windows take turns in which."""
    body, others = WINDOWS[window]
    text = f"EVENT p(k: int, v: int){kind};\nEVENT o(i: int) LASTS AT MOST 3;\nEVENT c(j: int) LASTS AT MOST 3;\n"
    for number, condition in enumerate(CONDITIONS):
        turn = number + list(WINDOWS).index(window)
        own = condition.replace("OTHER", others[number % 2])
        text += f"N{number}(i) <- o: o(i), {body} not p: p(_, u) where {{ {own} }};\n"
        text += COLLECTIONS[turn % 3].format(number, body, condition.replace("OTHER", others[turn // 3 % 2]))
    found = check(Source("own.eq", text))
    assert found.rules is not None, found.report
    assert found.plan is not None
    assert found.facts is not None
    return found.rules, found.plan, found.facts


def stream(seed: int, rules: Ruleset, *, lasting: bool) -> list[Event]:
    dice = Random(seed)
    told = []
    for label, count in (("o", 3), ("c", 2), ("p", 6)):
        for number in range(count):
            at = dice.randrange(12)
            length = dice.randrange(4) if label != "p" or lasting else 0
            data = [number] if label != "p" else [number, dice.randrange(4)]
            told.append({"event": label, "time": [at, at + length], "data": data})
    events = [read_object(one, rules.resolved.catalogue) for one in told]
    assert all(isinstance(e, Event) for e in events), events
    return [e for e in events if isinstance(e, Event)]


@pytest.mark.parametrize("kind", ["", " LASTS AT MOST 3"])
@pytest.mark.parametrize("window", WINDOWS)
def test_every_relation_in_every_window_is_the_oracle_s(window: str, kind: str) -> None:
    rules, plan, facts = program(window, kind)
    given = 0
    for seed, few in ((1, None), (2, 1)):
        events = stream(seed, rules, lasting=bool(kind))
        expected = answers(evaluate(rules, events, World()))
        given += len(expected)
        stops = sorted({e.time.end for e in events}) if few is None else []
        with pytest.MonkeyPatch.context() as patch:
            if few is not None:
                patch.setattr(numbering, "FEW", few)
                patch.setattr(history, "FEW", few)
            found = BatchRun(prepare(rules, plan, facts), events, World()).run(stops)
        assert answers(found) == expected
    assert given > 50


@given(program=programs(), seed=st.integers(0, 10_000), cuts=st.sets(st.integers(0, 15)))
@settings(max_examples=40)
def test_a_random_program_of_such_windows_is_the_oracle_s(program: tuple[str, bool], seed: int, cuts: set[int]) -> None:
    text, lasting = program
    found = check(Source("own.eq", text))
    assert found.rules is not None, found.report
    assert found.plan is not None
    assert found.facts is not None
    events = stream(seed, found.rules, lasting=lasting)
    expected = answers(evaluate(found.rules, events, World()))
    for stops in ([], sorted(cut * 1_000_000 for cut in cuts)):
        assert answers(BatchRun(prepare(found.rules, found.plan, found.facts), events, World()).run(stops)) == expected
