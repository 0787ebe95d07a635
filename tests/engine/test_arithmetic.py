"""This module shows that rules which compute answer what the oracle answers: by rows and by columns, however cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ephemera
from ephemera.base.span import Source
from ephemera.engine.hosts.batch import BatchRun
from ephemera.engine.operators import join
from ephemera.formats.json_events import read_object
from ephemera.kernels import history
from ephemera.physical.nodes import Probe
from ephemera.physical.plan import prepare
from ephemera.pipeline import check
from ephemera.rules.outcome import Outcome, World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.strategies.arithmetic import DECLARED, EQUATIONS, HEADS, OTHERS, PAIRS, STREAMS, TRIPLES, programs, stream
from tests.strategies.cases import formed


def _agree(text: str, rows: list[dict[str, Any]], cuts: set[int]) -> int:
    """Checks that all ways give what the oracle gives; says how many answers there are."""
    found = check(Source("arithmetic.eq", text))
    assert found.rules is not None, found.report
    assert found.plan is not None
    assert found.facts is not None
    events = [e for row in rows if isinstance(e := read_object(row, found.rules.resolved.catalogue), Event)]
    assert len(events) == len(rows)
    outcome = evaluate(found.rules, events, World())
    expected = formed(outcome)
    plan = prepare(found.rules, found.plan, found.facts)
    ends = sorted({e.time.end for e in events})
    for stops, few, many in (([], 0, 0), (ends, 16, 0), (sorted(c * 1_000_000 for c in cuts), 2, 1 << 10)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(history, "FEW", few)
            patch.setattr(history, "MANY", 5)
            patch.setattr(join, "MANY", many)
            answered = BatchRun(plan, events, World()).run(stops)
        assert formed(answered) == expected
        assert _letters(answered, text) == _letters(outcome, text)
    return len(outcome.events)


def _letters(outcome: Outcome, text: str) -> set[str]:
    """What had no value, and why; of what a window holds a letter names any, and here none."""
    rules = [line for line in text.splitlines() if "<-" in line]
    collected = {number: {"j", "w"} if "collect" in rule else set() for number, rule in enumerate(rules, 1)}
    return {
        f"{one.rule} {sorted((n, v) for n, v in one.variables.items() if n not in collected[one.rule])} {one.reason}"
        for one in outcome.dead_letters
    }


@given(program=programs(), seed=st.integers(0, 10_000), cuts=st.sets(st.integers(0, 12), max_size=3))
@settings(max_examples=40)
def test_a_random_program_that_computes_is_the_oracle_s(
    program: tuple[str, str, bool], seed: int, cuts: set[int]
) -> None:
    text, numbers, is_declared = program
    _agree(text, stream(seed, numbers, is_declared=is_declared), cuts)


@pytest.mark.parametrize("numbers", STREAMS)
def test_every_equation_is_the_oracle_s(numbers: str) -> None:
    pairs = [c for c in EQUATIONS if " u" not in c]
    text = "".join(PAIRS.format(n, HEADS[n % len(HEADS)], c) for n, c in enumerate([*pairs, *OTHERS]))
    assert _agree(text, stream(len(numbers), numbers, is_declared=False), {3, 7}) > 20


@pytest.mark.parametrize("numbers", ["mixed", "large"])
@pytest.mark.parametrize("body", TRIPLES)
def test_every_equation_of_three_events_is_the_oracle_s(body: str, numbers: str) -> None:
    text = "".join(body.format(n, HEADS[n % len(HEADS)], c) for n, c in enumerate(EQUATIONS))
    assert _agree(text, stream(5, numbers, is_declared=False), {3, 7}) > 20


BIG = 2**60


@pytest.mark.parametrize("forms", [(float(BIG), BIG), (BIG, float(BIG))])
@pytest.mark.parametrize("other", [BIG + 1, float(BIG)])
def test_a_sum_is_that_of_the_form_in_which_all_events_meet(forms: tuple[Any, Any], other: Any) -> None:
    text = "p(x, y) <- i: a(x), j: b(x), k: c(y), {i,j,k} within 100, y = x + 1;"
    values = [("a", forms[0]), ("b", forms[1]), ("c", other)]
    for turned in (values, values[::-1], [values[2], values[0], values[1]]):
        rows = [{"event": label, "time": n, "data": [v]} for n, (label, v) in enumerate(turned)]
        _agree(text, rows, set())


def _probes(text: str) -> list[Probe]:
    program = ephemera.compile(text)
    return [p for rule in program._compiled.physical.rules.values() for o in rule.orders for p in o.probes]


TWO = DECLARED + "p(i, j) <- a: c(i, v), b: d(j, w), {a,b} within 9, "


@pytest.mark.parametrize("condition", ["v = w", "v = w + 1", "v = 2 * w", "w = 999 - v", "v mod 2 = w mod 3"])
def test_what_each_side_computes_is_a_key_and_not_tested_again(condition: str) -> None:
    for probe in _probes(f"{TWO}{condition};"):
        assert [one.is_solved for one in probe.equations] == [False]
        assert not probe.tests


@pytest.mark.parametrize("condition", ["v + w = 999", "999.0 = v + w", "v - w = 1", "begin(a) + w = begin(a) + v"])
def test_what_is_solved_is_a_key_and_tested_again(condition: str) -> None:
    probes = [p for p in _probes(f"{TWO}{condition};") if p.equations]
    assert probes
    for probe in probes:
        assert [one.is_solved for one in probe.equations] == [True]
        assert probe.tests


@pytest.mark.parametrize("condition", ["v * w = 12", "v + w / 2 = 1", "v > w", "v = v + 1", "not v = w"])
def test_what_cannot_be_solved_is_no_key(condition: str) -> None:
    assert not any(probe.equations for probe in _probes(f"{TWO}{condition};"))


def test_a_key_looks_at_few_pairs() -> None:
    rows = [{"event": "cd"[k % 2], "time": k, "data": [k, k]} for k in range(400)]
    for condition in ("v + w = 399", "v = w + 1"):
        program = ephemera.compile(f"p(i, j) <- a: c(i, v), b: d(j, w), {{a,b}} within 1000, {condition};")
        engine = program.engine()
        answers = [*engine.send_many(rows), *engine.finish()]
        assert len(answers) >= 199
        assert engine.stats().examined < 10 * len(rows)
