"""This module is the table of the paper on event lifetimes (L), entry by entry, beside what the analysis derives.

Table 2 gives for a relation with parameters between which limits the begins, and the ends, of two events lie apart:
`j.s - i.s` and `j.e - i.e`. Equations 1 to 3 say for the plain relations how long an event is needed. Where the paper
is wrong or longer than needed, the entry has a reason. That the analysis is right is shown by trying all pairs of
events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from ephemera.analysis.nodes import Facts
from ephemera.base.span import Source
from ephemera.pipeline import check
from tests.strategies.lifetimes import FOREVER, FORMS, INVERSES, SECOND, Form, last_arrival

Limits = tuple[int | None, int | None]
"""The least and the greatest difference, in seconds; None is any."""

SYMMETRIC = "taken symmetrically, and longer than needed: the relation says which of the two comes first"
PARTNER = "ignores how long the partner lasts, and would lose answers: nothing bounds that"
ITS_END = "it is the end of the event and then the parameter, not its end"
CONTAINED = "what it contains begins until it ends; to drop it at once would lose answers"


class Entry(NamedTuple):
    """What the paper says of begins and of ends, and where that is not so, what is and why."""

    form: Form
    begins: Limits | None
    ends: Limits
    right_begins: Limits | None = None
    right_ends: Limits | None = None
    why: tuple[str, ...] = ()


TABLE = [
    Entry(Form("equals", (2,)), (-2, 2), (-2, 2)),
    Entry(Form("equals", (1, 3)), (-1, 1), (-3, 3)),
    Entry(Form("starts", (3,)), (0, 0), (-3, 3), right_ends=(3, 3), why=(SYMMETRIC,)),
    Entry(Form("starts", (1, 4)), (0, 0), (-4, 4), right_ends=(1, 4), why=(SYMMETRIC,)),
    Entry(Form("starts", (2, 1, 4)), (-2, 2), (-4, 4), right_ends=(1, 4), why=(SYMMETRIC,)),
    Entry(Form("during", (2,)), (-2, 2), (-2, 2), (-2, -2), (2, 2), (SYMMETRIC,)),
    Entry(Form("during", (2, 3)), (-2, 2), (-3, 3), (-2, -2), (3, 3), (SYMMETRIC,)),
    Entry(Form("during", (1, 3, 2, 4)), (-3, 3), (-4, 4), (-3, -1), (2, 4), (SYMMETRIC,)),
    Entry(Form("finishes", (3,)), (-3, 3), (0, 0), right_begins=(-3, -3), why=(SYMMETRIC,)),
    Entry(Form("finishes", (1, 4)), (-4, 4), (0, 0), right_begins=(-4, -1), why=(SYMMETRIC,)),
    Entry(Form("finishes", (2, 1, 4)), (-4, 4), (-2, 2), right_begins=(-4, -1), why=(SYMMETRIC,)),
    Entry(Form("overlaps", (2,)), (-2, 2), (-2, 2), (2, 2), (2, 2), (SYMMETRIC,)),
    Entry(Form("overlaps", (2, 4)), (-2, 2), (-4, 4), (2, 2), (4, 4), (SYMMETRIC,)),
    Entry(Form("overlaps", (1, 3, 2, 4)), (-3, 3), (-4, 4), (1, 3), (2, 4), (SYMMETRIC,)),
    Entry(Form("meets", (2,)), None, (-2, 2), (-2, None), (-2, None), (PARTNER, ITS_END)),
    Entry(Form("before", (3,)), None, (-3, 3), (3, None), (3, None), (SYMMETRIC, PARTNER)),
    Entry(Form("before", (2, 5)), None, (-5, 5), (2, None), (2, None), (SYMMETRIC, PARTNER)),
]


def facts_of(form: Form, lasts: str, arrives: str = "") -> Facts:
    declared = "".join(f"EVENT {label}(x: int) {lasts}{arrives};\n" for label in "ij")
    found = check(Source("l.eq", f"TIME UNIT 1 sec;\n{declared}p(x) <- a: i(x), b: j(x), a {form} b;"))
    assert found.facts is not None, found.report
    return found.facts


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: str(entry.form))
def test_the_table_of_the_paper_is_what_the_analysis_finds_but_for_what_is_named(entry: Entry) -> None:
    begins, ends = entry.right_begins or entry.begins, entry.right_ends or entry.ends
    ((_, closure),) = facts_of(entry.form, "LASTS ANY").cases["p"]

    def limits(side: str) -> Limits:
        least, most = closure.distance(f"b.{side}", f"a.{side}"), closure.distance(f"a.{side}", f"b.{side}")
        return None if least is None else -least.bound // SECOND, None if most is None else most.bound // SECOND

    assert (limits("s"), limits("e")) == (begins, ends)
    assert tried(entry.form) == (begins, ends)
    assert bool(entry.why) == ((begins, ends) != (entry.begins, entry.ends)), "a deviation has a reason"


def tried(form: Form) -> tuple[Limits, Limits]:
    """The least and greatest differences over all pairs of events in the relation, up to forty seconds away."""
    far = 40
    times = np.arange(-far, far + 1) * SECOND
    found: tuple[list[int], list[int]] = ([], [])
    begins, ends = (m.ravel() for m in np.meshgrid(times, times))
    begins, ends = begins[begins <= ends], ends[begins <= ends]
    for length in range(12):
        fits = form.holds(0, length * SECOND, begins, ends)
        found[0].extend((begins[fits] // SECOND).tolist())
        found[1].extend((ends[fits] // SECOND - length).tolist())
    near = far // 4
    limited = [tuple(None if abs(x) > near else x for x in (min(side), max(side))) for side in found]
    return limited[0], limited[1]  # type: ignore[return-value]


def test_met_at_its_begin_an_event_is_waited_for_until_the_end_of_the_other_and_the_parameter() -> None:
    """The paper has the end of the event as the start bound of `meets[a]`."""
    found = {r.name: r for r in facts_of(Form("meets", (2,)), "LASTS ANY", " ARRIVES AT BEGIN").relevance}
    assert [(b.stamp, b.time and b.time.bound) for b in found["a"].minimal] == [("a.e", 2 * SECOND)]
    assert last_arrival(Form("meets", (2,)), (9, 9), True, "i", 4) == (4 + 2) * SECOND


PLAIN = {
    "before": ("forever", "forever"),
    "after": ("at once", "at once"),
    "meets": ("forever", "end"),
    "met-by": ("at once", "at once"),
    "equals": ("at once", "at once"),
    "during": ("forever", "at once"),
    "contains": ("at once", "end"),
    "overlaps": ("forever", "end"),
    "overlapped-by": ("at once", "at once"),
    "starts": ("forever", "at once"),
    "started-by": ("at once", "at once"),
    "finishes": ("at once", "at once"),
    "finished-by": ("at once", "end"),
}
"""How long the first event is needed once it has arrived, at its end (equation 3), and at its begin (1 and 2).

A bound of 0 or of minus infinity is `at once`: it is needed for those that arrive at the same instant, or not at all.
"""
DEVIATIONS = {("contains", "at once"): CONTAINED}
"""What equation 2 says of an event that is known at its begin, where it is not so: minus infinity for its end."""


@pytest.mark.parametrize("relation", PLAIN)
@pytest.mark.parametrize("at_begin", [False, True])
def test_plain_relations_need_an_event_as_long_as_the_equations_say(relation: str, *, at_begin: bool) -> None:
    arrives = " ARRIVES AT BEGIN" if at_begin else ""
    found = {r.name: r for r in facts_of(Form(relation), "LASTS ANY", arrives).relevance}["a"]
    expected = PLAIN[relation][at_begin]
    assert found.is_bounded == (expected != "forever")
    last = last_arrival(Form(relation), (20, 20), at_begin, "i", 4)
    own, its_end = (0 if at_begin else 4) * SECOND, 4 * SECOND
    if expected == "at once":
        assert last <= own
    elif expected == "end":
        assert own < last <= its_end
        assert [bound.stamp for bound in found.minimal] == ["a.e"]
    else:
        assert last > its_end or last == FOREVER


@pytest.mark.parametrize(("relation", "said"), DEVIATIONS)
def test_what_the_equations_say_otherwise_would_lose_answers(relation: str, said: str) -> None:
    assert PLAIN[relation][1] != said == "at once"
    assert last_arrival(Form(relation), (20, 20), True, "i", 4) > 0, DEVIATIONS[relation, said]


def test_every_relation_with_every_number_of_parameters_is_there() -> None:
    assert len(FORMS) == len(set(FORMS)) == 45
    assert {form.relation for form in FORMS} == PLAIN.keys()
    assert all(entry.form in FORMS for entry in TABLE)
    named = {form for form in FORMS if form.parameters and form.relation not in INVERSES}
    assert {entry.form for entry in TABLE} == named
