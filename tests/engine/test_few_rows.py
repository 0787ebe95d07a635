"""This module shows that a few events as rows are read, matched and kept exactly as they are by columns."""

from __future__ import annotations

import pickle
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pytest

import ephemera
from ephemera.algebra.nodes import Match
from ephemera.base.time import LATEST
from ephemera.base.tree import find
from ephemera.engine.operators.match import Matcher
from ephemera.formats.flat_reader import FlatReader
from ephemera.formats.json_events import read_object
from ephemera.kernels.columns import Batch
from ephemera.kernels.event_columns import REFERENCE, Events, of_events
from ephemera.kernels.tail import RowBatch
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Time, Value

VALUES: list[Value] = [0, 1, 1.0, -0.0, "1", "", True, False, None, Time(1), Term("t", (1,)), 2**53 + 1, float(2**53)]


@pytest.mark.parametrize(
    "pattern",
    [
        "a(x, y)",
        "a(x, x)",
        "a(_, x)",
        "a(x, 1)",
        "a(1.0, x)",
        'a("1", _)',
        "a(true, x)",
        "a(null, x)",
        "a(x, _), x = 1",
    ],
)
def test_rows_match_as_columns_do(pattern: str) -> None:
    program = ephemera.compile(f"q(1) <- e: {pattern};")
    plan = program._compiled.plan
    patterns = [m.pattern for p in plan.points.values() for m in find(p.expression, Match)]
    query = Matcher(patterns, plan.catalogue, keeps_events=False)
    for pair in product(VALUES, repeat=2):
        (part,) = of_events([Event(Term("a", pair), Interval(1, 2))], plan.catalogue.attributes)
        assert isinstance(part.batch, RowBatch)
        rows = Events(part.label, part.batch.numbered(REFERENCE, [7]), part.arity, part.names)
        columns = Events(part.label, Batch(rows.batch.columns, 1), part.arity, part.names)
        mine, other = query.match(rows), query.match(columns)
        assert (mine is None) == (other is None), pair
        if mine is not None and other is not None:
            assert isinstance(mine, RowBatch)
            assert repr(mine.rows()) == repr(other.rows())


GIVEN: list[Any] = [0, -1, 2**63 - 1, 2**63, 1.5, 2.0, float("nan"), Decimal("1.5"), Decimal("1e999"), "x", "", True]
GIVEN += [None, [], [1], {}, {"a": 1}, Time(3), b"x", "2026-03-01T09:00:00Z"]


def test_what_is_read_quickly_is_what_is_read_at_length() -> None:
    text = "TIME UNIT 1 ms; EVENT e(i: int, f: float, s: string, b: bool); EVENT l(v: int[]); EVENT m(v: any, t: time);"
    catalogue = ephemera.compile(text + "q(i) <- x: e(i, _, _, _);")._compiled.rules.resolved.catalogue
    reader = FlatReader(catalogue)
    good = {"i": 1, "f": 1.5, "s": "x", "b": True}
    objects: list[Any] = [{"event": "e", "time": 1, "data": {**good, name: v}} for name in good for v in GIVEN]
    objects += [{"event": "e", "time": 1, "data": list({**good, name: v}.values())} for name in good for v in GIVEN]
    objects += [{"event": "e", "time": v, "data": good} for v in [*GIVEN, 2**60, [1, 1], [1, 2]]]
    objects += [{"event": v, "time": 1, "data": good} for v in ["f", "e:f", None, 1]]
    objects += [{"event": "l", "time": 1, "data": [[1]]}, {"event": "m", "time": 1, "data": [1, 1]}]
    objects += [
        {"event": "e", "time": 1, "data": [1]},
        {"event": "e", "time": 1},
        {"event": "e", "data": good},
        [],
        "x",
    ]
    objects += [
        {"event": "e", "time": 1, "data": good, "term": "e[]"},
        {"event": "e", "time": 1, "data": (1, 1.5, "", True)},
    ]
    objects += [{"event": "e", "time": 1, "data": {**good, "more": 1}}, {"event": "e", "time": 1, "data": {}}]
    quickly = 0
    for given in objects:
        quick = reader.read(given)
        if quick is not None:
            quickly += 1
            assert repr(quick) == repr(read_object(given, catalogue)), given
    assert quickly > 30


def test_rows_are_a_batch_like_any_other() -> None:
    rows = RowBatch([{"$.s": 1, "x": 1}, {"$.s": 2, "x": "a"}])
    assert rows["$.s"].tolist() == [1, 2]
    assert rows.take(np.array([False, True])).rows() == [{"$.s": 2, "x": "a"}]
    nothing = rows.take(np.array([False, False]))
    assert (len(nothing), list(nothing.columns)) == (0, ["$.s", "x"])
    again = pickle.loads(pickle.dumps(rows))
    assert (again.rows(), rows.rows(["x"])) == (rows.rows(), [{"x": 1}, {"x": "a"}])


@pytest.mark.parametrize("values", [(0.0, None), (0.0, "x"), (Term("t", (1.0,)), Term("t", (1, 2)))])
def test_values_that_differ_never_meet(values: tuple[Value, Value]) -> None:
    program = ephemera.compile("q(x) <- e: a(x, x);")
    events = [Event(Term("a", pair), Interval(1, 1)) for pair in (values, (1.0, 1))]
    plan = program._compiled.plan
    (part,) = of_events(events, plan.catalogue.attributes)
    patterns = [m.pattern for p in plan.points.values() for m in find(p.expression, Match)]
    numbered = part.batch.numbered(REFERENCE, [7, 8]) if isinstance(part.batch, RowBatch) else part.batch
    for batch in (numbered, Batch(numbered.columns, 2)):
        found = Matcher(patterns, plan.catalogue, keeps_events=False).match(Events("a", batch, 2, None))
        assert found is not None
        assert [v for row in found.rows() for name, v in row.items() if not name.startswith("$")] == [1]


@pytest.mark.parametrize("count", [16, 17])
def test_what_is_too_late_for_an_answer_is_told_of_all_that_was_bound(count: int) -> None:
    """Rows and columns alike: sixteen events are rows, and of seventeen joins carry only what is needed."""
    program = ephemera.compile(
        "EVENT order(id: string, note: string, qty: int); EVENT shipped(id: string);"
        "overdue(id) <- o: order(id, note, qty), w: extend(o, 6h), while w: not shipped(id), qty < 10;"
    )
    late = LATEST // 1_000_000 - 5
    events = [{"event": "order", "time": late, "data": ["x", f"n{k}", k % 8]} for k in range(count)]
    runs = {engine: program.run_all(events, engine=engine) for engine in ("oracle", "local")}
    told = {name: sorted(str(sorted(one.variables.items())) for one in run.undefined) for name, run in runs.items()}
    assert len(told["oracle"]) == count
    assert told["local"] == told["oracle"]
