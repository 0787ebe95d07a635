"""This module shows that engines keep what must be kept and next to nothing else, for every relation and both arrivals.

What must be kept is found by plain search in `tests/strategies/lifetimes`, from the definitions of the relations. It is
counted after each instant, once the bound has passed it. Longer streams, by columns and with other lengths, run in
`tests/slow/test_lifetimes.py`, and with fresh randomness by `python -m tests.hunt_lifetimes`.
"""

from __future__ import annotations

import pytest

import ephemera
from tests.engine.keeping import answers, kept, written
from tests.strategies.lifetimes import FORMS, Form, Setting

MOST = 1.1
"""What is kept in multiples of what must be."""


@pytest.mark.parametrize("at_begin", [False, True], ids=["at-end", "at-begin"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_no_more_is_kept_than_must_be_and_no_answer_is_lost(form: Form, *, at_begin: bool) -> None:
    setting = Setting(form, (6, 8), at_begin)
    stream = setting.stream(seed=1, count=160 if form in ENDLESS else 80, rate=4, keys=2)
    found = kept(setting, stream)
    assert found.answers == setting.answers(stream)
    assert found.missing == 0
    assert found.ratio <= MOST, (found.held, found.needed)
    assert found.repeated == 0
    assert found.rows - found.pairs <= MOST * found.needed, (found.rows, found.pairs, found.needed)
    assert found.rows <= (MOST_ROWS.get(str(form), 1.4) if at_begin else MOST) * found.needed
    assert found.held > 0 or (not at_begin and form.parameters[2:] == () and form.relation in AT_ONCE)


MOST_ROWS = {"met-by[2]": 1.85, "meets[2]": 1.8}
"""All rows in multiples of the events that must be kept, for events that arrive at their begin.

A pair is found when the second event begins, and is a row until both have ended. No row says what another does, but an
event of several pairs stands in each: most often where all that ends within some time meets all that begins then.
"""
ENDLESS = (Form("before"), Form("after"))
"""One of the two is kept forever, so both are used at their end, and the other waits for that even without a partner.

That is much as long as little has come: in a stream of 80 events what is kept is 1.12 times what must be.
"""
AT_ONCE = {"equals", "finishes", "finished-by"}
"""Both end together, so that nothing is kept once an instant is closed."""


@pytest.mark.parametrize("form", [f for f in FORMS if f.parameters == (2, 3) or len(f.parameters) == 4], ids=str)
def test_many_at_once_are_kept_as_long_as_one_by_one(form: Form) -> None:
    setting = Setting(form, (6, 8), at_begin=False)
    stream = setting.stream(seed=2, count=1500, rate=30, keys=20)
    found = kept(setting, stream, at_once=100)
    assert found.answers == setting.answers(stream)
    assert found.missing == 0
    assert found.ratio <= MOST


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_what_must_be_answered_is_what_the_oracle_answers(form: Form) -> None:
    setting = Setting(form, (6, 8), at_begin=False)
    stream = setting.stream(seed=3, count=40, rate=2, keys=1)
    told = ephemera.compile(setting.program).run([written(e) for e in stream], engine="oracle")
    assert answers(told) == setting.answers(stream)


def test_an_event_that_its_own_stamps_rule_out_is_never_stored() -> None:
    """What it contains begins two seconds after it and ends two before it; and it lasts six at most."""
    engine = ephemera.compile(Setting(Form("contains", (2,)), (6, 6), at_begin=False).program).engine()
    for label, begin, end in [("i", 0, 3), ("j", 0, 3), ("i", 0, 4), ("j", 2, 4), ("j", 2, 5)]:
        engine.send({"event": label, "time": [begin, end], "data": [0]})
    engine.advance(5)
    assert {h.name.partition("(")[0]: h.tuples for h in engine.stats().histories} == {"i": 0, "j": 1}
    assert engine.send({"event": "i", "time": [0, 6], "data": [0]}) + engine.finish() == [
        {"event": "p", "time": [0, 6], "data": [0]}
    ]
