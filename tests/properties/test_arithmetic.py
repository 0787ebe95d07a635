"""This module shows that columns compute and test what `terms/compute` does row by row, on the most hostile values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import ephemera
from ephemera.algebra import truth
from ephemera.algebra.attributes import begin, end
from ephemera.algebra.scalar import Distance, Every, Formula, Holds, Negation, Some
from ephemera.base.time import LATEST
from ephemera.kernels.arithmetic import Arithmetic
from ephemera.kernels.columns import UNBOUND, Batch, Column, column, ints, objects
from ephemera.kernels.computed import Derived, gathered, key_column, whole_numbers
from ephemera.kernels.filter import Filter
from ephemera.syntax.nodes import Comparison, IsNull
from ephemera.terms.compute import compute
from ephemera.terms.functions import Undefined
from ephemera.terms.nodes import Binary, Bool, Call, Expression, Name, Negative, Null, Number, Text, Var
from ephemera.terms.values import Term, Time, Value

LARGEST = 2**63 - 1
WHOLE: tuple[int, ...] = (
    *(0, 1, -1, 2, 3, 7, -10, 999, LARGEST, -LARGEST, -LARGEST - 1, 2**62, -(2**62), 2**61, 2**61 + 1),
    *(sign * (2**53 + k) for sign in (1, -1) for k in (-1, 0, 1)),
    *(3037000499, 3037000500, -3037000500, 2**32),
)
DOUBLES = (
    *(0.0, -0.0, 1.0, 0.1, 0.5, 1.5, -2.5, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**63 - 1024, 2.0**64),
    *(1e308, -1e308, 1.7976931348623157e308, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 1e300, 999.0),
)
TIMES = tuple(Time(t) for t in (0, 1, -1, 1_500_000, 10**15, LATEST, -LATEST, LATEST - 1, LATEST + 1, LARGEST))
ODD: tuple[Value, ...] = ("", "a", "1", None, True, False, Term("t", (1,)))
OPERATORS = ("+", "-", "*", "/", "div", "mod")
UNITS = ("1 sec", "1 ms", "1 us", "7 days")

_COLUMNS: SearchStrategy[SearchStrategy[Any]] = st.sampled_from(
    [
        st.sampled_from(WHOLE),
        st.integers(-LARGEST - 1, LARGEST),
        st.sampled_from(DOUBLES),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(TIMES),
        st.sampled_from(("", "a", "b", "1")),
        st.sampled_from([*WHOLE, *DOUBLES]),
        st.sampled_from([*WHOLE, *DOUBLES, *TIMES, *ODD, UNBOUND]),
        st.sampled_from([*WHOLE, None]),
    ]
)


@st.composite
def batches(draw: DrawFn) -> Batch:
    """A few rows of three variables and an event, each column of one kind or of many."""
    length = draw(st.integers(1, 6))
    columns: dict[str, Column] = {}
    for name in draw(st.sampled_from(["xyz", "xyz", "xy"])):
        values = draw(st.lists(draw(_COLUMNS), min_size=length, max_size=length))
        is_any = draw(st.booleans())
        columns[name] = Column(objects(values), "any") if is_any else column(values)
    stamps = st.sampled_from([0, 1, 999, 1_000_000, 1_500_000, 86_400_000_000, 2**54 + 1, LATEST - 10])
    opens = draw(st.lists(stamps, min_size=length, max_size=length))
    lasts = draw(st.lists(st.sampled_from([0, 1, 500, 1_000_000, 2**55 + 1]), min_size=length, max_size=length))
    columns[begin("e")] = ints(opens)
    columns[end("e")] = ints([min(t + d, LATEST + 1) for t, d in zip(opens, lasts, strict=True)])
    return Batch(columns, length)


_LEAVES: SearchStrategy[Expression] = st.one_of(
    st.sampled_from([Var("x"), Var("y"), Var("z")]),
    st.sampled_from([*WHOLE[:8], *DOUBLES[:9], LARGEST, 2**53 + 1, 1e308]).map(Number),
    st.sampled_from([Text("a"), Null(), Bool(True), Call("datetime", (Text("2026-01-01T00:00:00Z"),))]),
    st.sampled_from([Call(f, (Name("e"),)) for f in ("begin", "end", "duration")]),
)


def _grown(inner: SearchStrategy[Expression]) -> SearchStrategy[Expression]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.builds(Binary, st.sampled_from(OPERATORS), inner, inner),
        st.builds(Binary, st.sampled_from(OPERATORS), inner, inner),
        st.builds(Negative, inner),
        st.builds(Call, st.sampled_from(["add", "mult", "subtract", "div", "mod", "concat"]), pairs),
        st.builds(Call, st.just("add"), st.tuples(inner, inner, inner)),
    )


EXPRESSIONS = st.recursive(_LEAVES, _grown, max_leaves=4)
_CONDITIONS: SearchStrategy[Holds] = st.one_of(
    st.builds(
        lambda o, a, b: Holds(Comparison(o, a, b)),
        st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
        EXPRESSIONS,
        EXPRESSIONS,
    ),
    st.builds(lambda e, n: Holds(IsNull(e, n)), EXPRESSIONS, st.booleans()),
)
FORMULAS = st.recursive(
    st.one_of(_CONDITIONS, _CONDITIONS.map(Negation), st.just(Distance(end("e"), begin("e"), 500))),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Every(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Some(tuple(parts))),
    ),
    max_leaves=4,
)


def _tester(unit: str) -> truth.Tester:
    plan = ephemera.compile(f"TIME UNIT {unit}; q(x) <- e: a(x);")._compiled.plan
    return truth.Tester(plan.catalogue, {})


TESTERS = {unit: _tester(unit) for unit in UNITS}


def _right(e: Expression, row: Mapping[str, Any], tester: truth.Tester) -> str:
    try:
        return repr(compute(e, row, tester.scope(row)))
    except Undefined:
        return "undefined"


@given(batches(), EXPRESSIONS, st.sampled_from(UNITS))
def test_columns_compute_what_rows_do(batch: Batch, e: Expression, unit: str) -> None:
    tester = TESTERS[unit]
    right = [_right(e, row, tester) for row in batch.rows()]
    shares = Arithmetic(batch, tester.scope({})).shares(e)
    doubt = np.zeros(len(batch), dtype=np.int64)
    held = np.zeros(len(batch), dtype=np.int64)
    for share in shares:
        held[slice(None) if share.rows is None else share.rows] += 1
        doubt[slice(None) if share.rows is None else share.rows] += share.kind == "doubt"
    assert held.max() <= 1
    found, sure = gathered(shares, len(batch))
    values = found.tolist()
    assert found.kind == "any" or {type(v) for v in values} <= {{"int": int, "float": float}.get(found.kind, str), int}
    for row, is_right in enumerate(right):
        if doubt[row]:
            assert sure is not None
            assert not sure[row]
        elif sure is None or sure[row]:
            assert repr(values[row]) == is_right
        else:
            assert is_right == "undefined"


@given(batches(), FORMULAS, st.sampled_from(UNITS))
def test_columns_test_what_rows_do(batch: Batch, f: Formula, unit: str) -> None:
    tester = TESTERS[unit]
    numbered = batch.with_columns({"n": ints(np.arange(len(batch)))})
    right = [row["n"] for row in numbered.rows() if tester.truth(f, row) is True]
    assert Filter(tester, lambda b: b).keep(f, numbered)["n"].tolist() == right


@given(batches(), EXPRESSIONS, st.sampled_from(UNITS))
def test_keys_are_what_rows_have_or_null(batch: Batch, e: Expression, unit: str) -> None:
    tester = TESTERS[unit]
    right = [_right(e, row, tester).replace("undefined", "None") for row in batch.rows()]
    keys = key_column(e, batch, tester.scope)
    assert [repr(v) for v in keys.tolist()] == right
    assert keys.kind == "any" or keys.kind == column(keys.tolist()).kind
    found, where = whole_numbers(e, batch, tester.scope({}))
    for row, value in enumerate(found.tolist()):
        if where is None or where[row]:
            assert repr(value) == right[row]
    if any(isinstance(part, Name) for part in _parts(e)):
        return
    derived = Derived(repr(e), e, tester.scope({}), whole=True).column(batch)
    if derived is not None:
        assert [type(v) for v in derived.tolist() if v is not None] == [int] * sum(
            r.lstrip("-").isdigit() for r in right
        )


def _parts(e: Expression) -> list[object]:
    match e:
        case Binary(_, left, right):
            return [*_parts(left), *_parts(right)]
        case Negative(operand):
            return _parts(operand)
        case Call(_, arguments):
            return [p for a in arguments for p in _parts(a)]
        case _:
            return [e]


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_pair_of_hostile_numbers(operator: str) -> None:
    values: list[Value] = [*WHOLE, *DOUBLES, *TIMES[:-1], *ODD]
    pairs = [(a, b) for a in values for b in values]
    batch = Batch({"x": column([a for a, _ in pairs]), "y": column([b for _, b in pairs])}, len(pairs))
    tester = TESTERS["1 sec"]
    e = Binary(operator, Var("x"), Var("y"))  # type: ignore[arg-type]
    right = [_right(e, row, tester).replace("undefined", "None") for row in batch.rows()]
    assert [repr(v) for v in key_column(e, batch, tester.scope).tolist()] == right


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_every_pair_of_hostile_numbers_is_compared_exactly(operator: str) -> None:
    values: list[Value] = [*WHOLE, *DOUBLES, *TIMES[:-1], *ODD]
    pairs = [(a, b) for a in values for b in values]
    whole = Batch({"x": column([a for a, _ in pairs]), "y": column([b for _, b in pairs])}, len(pairs))
    numbers = [(a, b) for a in WHOLE for b in DOUBLES]
    typed = Batch({"x": column([a for a, _ in numbers]), "y": column([b for _, b in numbers])}, len(numbers))
    tester = TESTERS["1 sec"]
    for batch in (whole, typed):
        numbered = batch.with_columns({"n": ints(np.arange(len(batch)))})
        for f in (Comparison(operator, Var("x"), Var("y")), Comparison(operator, Var("y"), Var("x"))):  # type: ignore[arg-type]
            for formula in (Holds(f), Negation(Holds(f))):
                right = [n for n, row in enumerate(batch.rows()) if tester.truth(formula, row) is True]
                assert Filter(tester, lambda b: b).keep(formula, numbered)["n"].tolist() == right


def test_common_arithmetic_leaves_nothing_in_doubt() -> None:
    batch = Batch({"x": ints([1, LARGEST, 3]), "y": ints([2, 1, 0]), "z": column([0.5, 1e308, -0.0])}, 3)
    scope = TESTERS["1 sec"].scope({})
    x, y, z = Var("x"), Var("y"), Var("z")
    for e in (Binary("+", x, y), Binary("-", x, y), Binary("mod", x, y), Binary("*", x, z), Binary("/", z, y)):
        assert all(share.kind != "doubt" for share in Arithmetic(batch, scope).shares(e))
