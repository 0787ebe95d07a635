"""This module generates the smallest parts of syntax trees: names, labels, values, durations and expressions.

A name may be any text that backquotes can hold, in any place: the formatter has to quote what would be misread.
Trees grow by an explicit `depth`, the number of levels that may still branch; at 0 only leaves are drawn. Of
several kinds the simplest comes first, since Hypothesis shrinks towards it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, get_args

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ephemera.terms.nodes import (
    Aggregate,
    ArithmeticOperator,
    Binary,
    Bool,
    Call,
    Duration,
    Expression,
    Label,
    Name,
    Negative,
    Null,
    Number,
    Quantity,
    Text,
    Value,
    Var,
)

T = TypeVar("T")

PLAIN = ("a", "b", "o", "order", "order-id", "x1", "X", "über", "_x", "名")

# Words the grammar uses somewhere, so that every position gets to see them as names.
CLASHING = tuple(
    """
    while event and or not where all var desc without optional before within from until at collect mod div is true
    false null having algebra timer extend END DETECT min count _ incl apart in group by order max sum avg excl
    datetime with default restricted unrestricted group-by apart-by during equals extend-begin shift-forward lexical
    per to recipient transport ON RAISE STRATUM TIME UNIT ZONE EVENT STREAM TABLE WRITE TO FROM FORMAT LASTS ANY AT RATE
    int h d m sec ms weeks e6
    """.split()
)
QUOTED = (
    "order id",
    "1st",
    "a-",
    "-",
    "a--b",
    "-- a",
    "/* a */",
    "a:b",
    "@a",
    "3",
    " ",
    "{",
    '"',
    "\\",
    "'",
    "var X",
)

UNITS = ("week", "day", "hour", "min", "sec", "ms", "us")
AGGREGATIONS = ("min", "max", "sum", "count", "avg")
ORDERED = ("first", "last", "nth", "list", "top")


def among(*groups: SearchStrategy[T]) -> SearchStrategy[T]:
    """One of the groups, all being equally likely; `one_of` would weigh a group by its members."""
    # Drawn by index: the groups must not show in the repr, which would grow with the depth, and Hypothesis warns.
    return st.sampled_from(range(len(groups))).flatmap(lambda index: groups[index])


def node(target: Callable[..., T], *parts: SearchStrategy[Any]) -> SearchStrategy[T]:
    """What `target` makes of the parts.

    `st.builds` would do, but it notes every call for the report of a failing example, and printing calls within
    calls takes Hypothesis time exponential in their depth: a minute for a program.
    """

    @st.composite
    def made(draw: DrawFn) -> T:
        return target(*[draw(part) for part in parts])

    return made()


def several(elements: SearchStrategy[T], least: int = 0, most: int = 3) -> SearchStrategy[tuple[T, ...]]:
    """A tuple of few elements."""
    return node(tuple, st.lists(elements, min_size=least, max_size=most))


def maybe(elements: SearchStrategy[T]) -> SearchStrategy[T | None]:
    """An element or None."""
    return among(st.none(), elements)


_PLAIN = st.sampled_from(PLAIN)
_CLASHING = st.sampled_from(CLASHING)
_QUOTED = st.sampled_from(QUOTED)
_FREE = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="`"),
    min_size=1,
    max_size=5,
)
_NAMES = among(_PLAIN, _PLAIN, _PLAIN, _PLAIN, _CLASHING, _CLASHING, _QUOTED, _FREE)


def names() -> SearchStrategy[str]:
    """Names of every kind, the plain ones most often."""
    return _NAMES


def plain_names() -> SearchStrategy[str]:
    """Names that are one word without backquotes, be it a word of the grammar."""
    return among(_PLAIN, _CLASHING)


@cache
def labels(*, prefixed: bool = True) -> SearchStrategy[Label]:
    """Labels of events; a name with ``@`` in front is left out, as it would be an attribute's."""
    own = names().filter(lambda name: not name.startswith("@"))
    bare = node(Label, own)
    foreign = names().filter(lambda name: name not in ("timer", "datetime"))  # these are built in
    return among(bare, bare, node(Label, own, foreign)) if prefixed else bare


@cache
def element_labels() -> SearchStrategy[Label]:
    """Labels of elements, which may be attributes (``@x``)."""
    attributes = node(Label, names().filter(lambda name: not name.startswith("@")).map("@{}".format))
    events = labels()
    return among(events, events, events, attributes)


def bare_names() -> SearchStrategy[Name]:
    return node(Name, names())


def variables() -> SearchStrategy[Var]:
    return node(Var, names())


def texts() -> SearchStrategy[Text]:
    return node(Text, st.text(max_size=5))


@cache
def numbers() -> SearchStrategy[Number]:
    """Numbers of every size, small integers most often; an integral float stays a float."""
    small = st.integers(-9, 99)
    large = st.integers(-(2**63), 2**63 - 1)
    floats = st.floats(allow_nan=False, allow_infinity=False)
    return node(Number, among(small, small, large, st.integers(-9, 99).map(float), floats))


@cache
def values() -> SearchStrategy[Value]:
    return among(node(Null), node(Bool, st.booleans()), numbers(), texts())


@cache
def amounts() -> SearchStrategy[Decimal]:
    """Amounts as they are written, without a sign: integers mostly, some with one decimal digit."""
    integers = st.integers(0, 1000).map(Decimal)
    return among(integers, integers, integers, st.integers(0, 999).map(lambda tenths: Decimal(tenths).scaleb(-1)))


def _descending(parts: list[Quantity]) -> Duration:
    return Duration(tuple(sorted(parts, key=lambda part: UNITS.index(part.unit))))


@cache
def durations(*, bare: bool = True) -> SearchStrategy[Duration]:
    """Durations; where a plain number would be a `Number`, `bare` is False and all of them have units."""
    part = node(Quantity, amounts(), st.sampled_from(UNITS))
    long = node(_descending, st.lists(part, min_size=1, max_size=3, unique_by=lambda part: part.unit))
    counted = node(Duration, st.tuples(node(Quantity, amounts(), st.just(""))))
    return among(counted, long, long) if bare else long


@cache
def expressions(depth: int = 2, *, in_construct: bool = False) -> SearchStrategy[Expression]:
    """Expressions; in a construct term a bare name stands only as a direct argument of a call."""
    leaves: SearchStrategy[Expression] = (
        among(variables(), values(), durations(bare=False))
        if in_construct
        else among(variables(), bare_names(), values(), durations(bare=False))
    )
    if depth == 0:
        return leaves
    inner = expressions(depth - 1, in_construct=in_construct)
    arguments: SearchStrategy[Expression] = among(inner, bare_names()) if in_construct else inner
    # `-3` is a number, so a negative never has a number under it.
    negatives = node(Negative, inner.filter(lambda operand: not isinstance(operand, Number)))
    operators: SearchStrategy[ArithmeticOperator] = st.sampled_from(get_args(ArithmeticOperator))
    functions = plain_names().filter(lambda name: name not in (*AGGREGATIONS, *ORDERED))
    return among(
        leaves,
        leaves,
        leaves,
        negatives,
        node(Binary, operators, inner, inner),
        node(Call, functions, several(arguments)),
        _aggregates(inner),
    )


def _aggregates(arguments: SearchStrategy[Expression]) -> SearchStrategy[Aggregate]:
    """``count(*)``, ``sum(e)`` and ``sum(all e group by { … })``; ``last(e)``, ``nth(e, 2)``, ``top(e, 3 by f)``."""
    functions, numbers = st.sampled_from(AGGREGATIONS), st.integers(1, 2**63 - 1)
    return among(
        st.just(Aggregate("count", None)),
        node(Aggregate, functions, arguments),
        node(Aggregate, functions, arguments, st.just(True), several(variables())),
        node(Aggregate, st.sampled_from(("first", "last", "list")), arguments, st.booleans()),
        node(Aggregate, st.sampled_from(("nth", "top")), arguments, st.booleans(), st.just(()), numbers),
        node(Aggregate, st.just("top"), arguments, st.booleans(), st.just(()), numbers, arguments),
    )
