"""This module shows single properties of kernels: hashes, searches, groups, and that the rare cases are right, too."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ephemera.engine.operators.window import Extremes
from ephemera.kernels import buckets as bucketing
from ephemera.kernels import groups as grouping
from ephemera.kernels import history as histories
from ephemera.kernels import keys as numbering
from ephemera.kernels import search as searching
from ephemera.kernels.columns import UNBOUND, Batch, Column, column, concat, from_arrow, ints, to_arrow
from ephemera.kernels.groups import aggregate, grouped
from ephemera.kernels.history import History
from ephemera.kernels.keys import (
    all_distinct,
    fingerprints,
    hash_column,
    hash_columns,
    joins,
    numbered,
    same,
    sorted_by,
)
from ephemera.kernels.search import Question, bucket_pairs, search
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Time, equal, key
from tests.strategies.data import AT_THE_LIMITS

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1.0, 2.0, -0.0, 0.0, *AT_THE_LIMITS]),
    st.text(max_size=4),
    st.builds(Time, st.integers(-9, 9)),
    st.builds(lambda v: Term("t", (v,)), st.integers(0, 3)),
)
MANY = st.lists(VALUES, min_size=1, max_size=12)


@example([-(2**63)], [-(2.0**63)])
@example([2**53, 2**53 + 1], [2.0**53, "x"])
@given(MANY, MANY)
def test_equal_values_have_equal_hashes_whatever_their_column(a: list[Any], b: list[Any]) -> None:
    left, right = hash_column(column(a)), hash_column(column(b))
    for x, h in zip(a, left, strict=True):
        for y, g in zip(b, right, strict=True):
            if key(x) == key(y):
                assert h == g, (x, y)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=9))
def test_columns_compare_as_values_do(pairs: list[tuple[Any, Any]]) -> None:
    a, b = column([x for x, _ in pairs]), column([y for _, y in pairs])
    assert joins(a, b).tolist() == [equal(x, y) is True for x, y in pairs]
    assert same(a, b).tolist() == [key(x) == key(y) for x, y in pairs]


def test_a_variable_without_a_value_joins_with_anything_and_is_one_only_with_itself() -> None:
    a, b = column([UNBOUND, 1, UNBOUND]), column([1, UNBOUND, UNBOUND])
    assert joins(a, b).tolist() == [True, True, True]
    assert same(a, b).tolist() == [False, False, True]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=40), st.integers(1, 5))
def test_a_search_finds_what_looking_at_every_row_finds(rows: list[tuple[int, int]], parts: int) -> None:
    history = History(("$.e",))
    for part in range(parts):
        mine = rows[part::parts]
        history.append(Batch({"k": ints([k for k, _ in mine]), "$.e": ints([t for _, t in mine])}, len(mine)), part)
    asking = Batch({"k": ints([0, 1, 2, 9]), "lo": ints([0, 5, 10, 0]), "hi": ints([30, 12, 9, 30])}, 4)
    question = Question(("k",), "$.e", asking["lo"], asking["hi"], (asking.columns["k"],))
    found = sorted(
        (int(a), int(run.batch["k"][b]), int(run.batch["$.e"][b]))
        for run in history.flush()
        for rows, others in search(run, question)
        for a, b in zip(rows, others, strict=True)
    )
    assert found == sorted(
        (a, k, t) for a in range(4) for k, t in rows if k == asking["k"][a] and asking["lo"][a] <= t <= asking["hi"][a]
    )


KEYED = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), min_size=1, max_size=60)


@given(
    rows=KEYED,
    asking=st.lists(st.tuples(st.integers(0, 7), st.integers(-3, 33), st.integers(-1, 20)), min_size=1, max_size=60),
)
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("grain", [1, 1 << 56])
def test_many_questions_find_what_few_do(
    rows: list[tuple[int, int]], asking: list[tuple[int, int, int]], alike: bool, grain: int
) -> None:
    """The ways for many rows, for keys that share a hash, and for more pairs than are made at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "FEW", 1)
        patch.setattr(searching, "UNSORTED", 1)
        patch.setattr(searching, "MOST_PAIRS", 7)
        patch.setattr(searching, "bucket_pairs", lambda _run, _asked: None)
        if alike:
            for module in (histories, searching):
                patch.setattr(module, "hash_columns", lambda columns, length: hash_columns(columns, length) % 2)
        history = History(("$.e",))
        history.append(
            Batch({"k": ints([k for k, _ in rows]), "$.e": ints([t * grain for _, t in rows])}, len(rows)), 1
        )
        keys = ints([k for k, _, _ in asking])
        least, most = ints([lo * grain for _, lo, _ in asking]), ints([(lo + n) * grain for _, lo, n in asking])
        question = Question(("k",), "$.e", least.values, most.values, (keys,))
        (run,) = history.flush()
        parts = list(search(run, question))
        assert all(len(r) <= 7 for r, _ in parts)
        found = sorted((int(a), int(b)) for r, o in parts for a, b in zip(r, o, strict=True))
    assert found == sorted(
        (a, b)
        for a, (key, lo, n) in enumerate(asking)
        for b, (k, t) in enumerate(rows)
        if k == key and lo <= t <= lo + n
    )


OF_MANY_KINDS = st.sampled_from([0, 1, 2**40, 1.0, 0.5, -0.0, "a", "b", None, True, UNBOUND])


@given(
    rows=st.lists(st.tuples(st.integers(0, 5) | OF_MANY_KINDS, st.integers(-40, 40)), min_size=1, max_size=40),
    asking=st.lists(
        st.tuples(st.integers(0, 5) | OF_MANY_KINDS, st.integers(-50, 50), st.integers(-1, 30)), min_size=1, max_size=40
    ),
    is_open=st.booleans(),
    narrow=st.sampled_from([1, 4]),
    bits=st.sampled_from([1, 3, 6]),
)
def test_buckets_find_what_an_index_finds(
    rows: list[tuple[Any, int]], asking: list[tuple[Any, int, int]], is_open: bool, narrow: int, bits: int
) -> None:
    """Keys of all kinds, which share slots, in one cell of time and in many; unless too many rows share a slot."""
    history = History(("$.e",))
    history.restore(Batch({"k": column([k for k, _ in rows]), "$.e": ints([t for _, t in rows])}, len(rows)))
    keys = column([k for k, _, _ in asking])
    least = np.array([-histories.FAR if is_open else lo for _, lo, _ in asking])
    most = np.array([lo + n for _, lo, n in asking])
    (run,) = history.flush()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "NARROW", narrow)
        patch.setattr(bucketing, "LEAST_BITS", bits)
        patch.setattr(bucketing, "MOST_BITS", bits)
        pairs = bucket_pairs(run, Question(("k",), "$.e", least, most, (keys,)))
        patch.setattr(searching, "bucket_pairs", lambda _run, _asked: None)
        by_index = list(search(run, Question(("k",), "$.e", least, most, (keys,))))
    if pairs is not None:
        assert _listed(pairs) == _listed(by_index)


@pytest.mark.parametrize("width", [1, 1000])
def test_buckets_are_given_up_where_one_key_has_most_rows(width: int) -> None:
    history = History(("$.e",))
    history.append(Batch({"k": ints([7] * 500), "$.e": ints(np.arange(500))}, 500), 1)
    (run,) = history.flush()
    asked = Question(("k",), "$.e", np.arange(90), np.arange(90) + width, (ints([7] * 90),))
    pairs = bucket_pairs(run, asked)
    assert (pairs is None) == asked.is_crowded == (width == 1000)
    found = _listed(list(search(run, asked)))
    assert found == [(a, b) for a in range(90) for b in range(a, min(a + width, 499) + 1)]


def _listed(parts: list[tuple[Any, Any]]) -> list[tuple[int, int]]:
    return sorted((int(a), int(b)) for rows, others in parts for a, b in zip(rows, others, strict=True))


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 8))
def test_numbers_stand_for_hashes(hashes: list[int], few: int) -> None:
    given = np.array(hashes, dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "FEW", few)
        found, numbers = numbered(given)
        assert found.hashes[numbers].tolist() == hashes == given[found.rows][numbers].tolist()
        assert len(found) == len(set(hashes))
        others = np.array([*hashes, *range(12)], dtype=np.uint64)
        places = found.find(others)
        assert [p if p < 0 else int(found.hashes[p]) for p in places.tolist()] == [
            h if h in hashes else -1 for h in others.tolist()
        ]
        assert not all_distinct(given) or len(set(hashes)) == len(hashes)


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=60))
def test_rows_are_sorted_by_their_numbers(given: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "FEW", 1)
        assert sorted_by(np.array(given), max(given) + 1).tolist() == np.argsort(given, kind="stable").tolist()


@given(MANY, MANY)
def test_equal_rows_have_equal_fingerprints(a: list[Any], b: list[Any]) -> None:
    both = [*a, *b]
    found = fingerprints([column(both), column(both[::-1])], len(both))
    for x, one in enumerate(zip(both, both[::-1], strict=True)):
        for y, other in enumerate(zip(both, both[::-1], strict=True)):
            if [key(v) for v in one] == [key(v) for v in other]:
                assert found[x] == found[y]


def test_runs_that_would_outlive_their_tuples_are_not_merged() -> None:
    def filled(relevant: int | None) -> History:
        history = History(("$.e",))
        history.relevant = relevant
        for step in range(64):
            history.append(Batch({"$.e": ints(np.arange(step * 5000, step * 5000 + 5000))}, 5000), step)
            history.compact(step + 1)
        return history

    assert 5_000 < max(len(run.batch) for run in filled(160_000).flush()) <= 20_000
    assert max(len(run.batch) for run in filled(None).flush()) > 100_000


def test_a_run_over_thousands_of_years_and_many_keys_is_searched_all_the_same() -> None:
    history = History(("$.e",))
    times = [-(1 << 61), 0, 1 << 61]
    keys = list(range(3000))
    rows = [(k, t) for k in keys for t in times]
    history.append(Batch({"k": ints([k for k, _ in rows]), "$.e": ints([t for _, t in rows])}, len(rows)), 1)
    (run,) = history.flush()
    for is_crowded in (False, True):
        asked = Question(("k",), "$.e", np.array([-5]), np.array([5]), (ints([7]),), is_crowded)
        found = [int(run.batch["$.e"][b]) for _, others in search(run, asked) for b in others]
        assert found == [0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), min_size=1, max_size=30), st.sampled_from([1, 512]))
def test_aggregates_by_columns_are_those_of_python(rows: list[tuple[int, int]], few: int) -> None:
    batch = Batch({"k": ints([k for k, _ in rows]), "v": ints([v for _, v in rows])}, len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "FEW", few)
        groups = grouped(batch, ["k"])
    of = {int(k): [v for g, v in rows if g == k] for k in batch["k"][groups.first]}
    expected: dict[str, Any] = {
        "sum": [sum(v) for v in of.values()],
        "avg": [sum(v) / len(v) for v in of.values()],
        "min": [min(v) for v in of.values()],
        "max": [max(v) for v in of.values()],
        "count": [len(set(v)) for v in of.values()],
    }
    for function, values in expected.items():
        found = aggregate(function, batch.columns["v"], groups)
        assert found is not None
        assert found.tolist() == values


DOUBLES = st.one_of(
    st.floats(-1e3, 1e3),
    st.integers(-999, 999).map(lambda n: n / 100),
    st.sampled_from([0.0, -0.0, 0.1, 1e16, -1e16, 1.0, 2.0**-1074, 2.0**52 + 1, 1e300, 5e-324]),
)


@given(st.lists(st.tuples(st.integers(0, 2), DOUBLES), min_size=1, max_size=20))
@example([(0, 1e308), (0, 1e308)])
@example([(0, 1.0), (0, 1.0 + 2**-52), (0, 2**-54)])
def test_sums_and_averages_of_doubles_are_rounded_once(rows: list[tuple[int, float]]) -> None:
    batch = Batch({"k": ints([k for k, _ in rows]), "v": Column(np.array([v for _, v in rows]), "float")}, len(rows))
    groups = grouped(batch, ["k"])
    of = [[v for g, v in rows if g == k] for k in batch["k"][groups.first]]
    exactly = [sum(map(Fraction, values), Fraction()) for values in of]
    for function, expected in (("sum", exactly), ("avg", [s / len(v) for s, v in zip(exactly, of, strict=True)])):
        found = aggregate(function, batch.columns["v"], groups)
        if found is None:  # it is told one by one that some have no value
            assert any(abs(total) > 2**1023 for total in exactly)
        else:
            assert found.tolist() == [float(value) for value in expected]


def test_groups_that_share_a_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "hash_columns", lambda columns, length: np.zeros(length, dtype=np.uint64))  # noqa: ARG005
    batch = Batch({"k": ints([1, 2, 1, 3])}, 4)
    groups = grouped(batch, ["k"])
    assert sorted(groups.sizes.tolist()) == [1, 1, 2]


@given(MANY)
def test_columns_survive_arrow(values: list[Any]) -> None:
    event = Event(Term("t", (1, "x"), ordered=False, attributes=(("a", 2.5),)), Interval(1, 2), positional=True)
    mixed = column([*values, UNBOUND, event])  # type: ignore[list-item]
    batch = Batch({"a": column(values), "b": column(values[::-1])}, len(values))
    again = from_arrow(to_arrow(batch))
    assert [key(v) for v in again.columns["a"].tolist()] == [key(v) for v in values]
    assert [c.kind for c in again.columns.values()] == [c.kind for c in batch.columns.values()]
    back = from_arrow(to_arrow(Batch({"m": mixed}, len(mixed)))).columns["m"].tolist()
    assert back[-2] is UNBOUND
    assert back[-1] == event


def test_columns_of_two_kinds_become_one_of_any() -> None:
    whole = concat([ints([1]), column(["a"]), Column(np.array([2.5]), "float")])
    assert whole.kind == "any"
    assert whole.tolist() == [1, "a", 2.5]


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=70), st.data())
def test_extremes_of_ranges_are_those_of_python(values: list[int], data: st.DataObject) -> None:
    places = st.integers(0, len(values) - 1)
    pairs = data.draw(st.lists(st.tuples(places, places).map(sorted), min_size=1, max_size=9))
    starts, stops = np.array([a for a, _ in pairs]), np.array([b + 1 for _, b in pairs])
    for greatest, extreme in ((False, min), (True, max)):
        found = Extremes(np.array(values), greatest=greatest).of(starts, stops)
        assert found.tolist() == [extreme(values[a : b + 1]) for a, b in pairs]
