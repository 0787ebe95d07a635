"""This module generates data: values, the terms that text and XML can hold, and the objects of JSON.

A time is drawn only where asked for, since no format reads one back as a time.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ephemera.terms.text import Scalar
from ephemera.terms.values import LARGEST_INTEGER, Term, Time, Value

from .words import among, names, node, several

_ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
_TEXTS = among(st.sampled_from(("", "1", "1.0", "true", "a b", '"', "\\", "<&>", "]]>", "\n", "de")), _ANY_TEXT)
AT_THE_LIMITS: tuple[int | float, ...] = (
    *(-(2**63), -(2.0**63), 2**63 - 1, 2.0**63),
    *(sign * form for sign in (1, -1) for form in (2**53 - 1, 2.0**53 - 1, 2**53, 2.0**53, 2**53 + 1, 2.0**53 + 2)),
)
"""The numbers at which doubles and integers of 64 bits part, in both forms where there are two."""
_NUMBERS: SearchStrategy[int | float] = among(
    st.integers(-3, 3),
    st.integers(-LARGEST_INTEGER - 1, LARGEST_INTEGER),
    st.sampled_from((0.0, -0.0, 1.0, 0.1, 1e300, 5e-324)),
    st.sampled_from(AT_THE_LIMITS),
    st.floats(allow_nan=False, allow_infinity=False),
)


def scalars() -> SearchStrategy[Scalar]:
    """Values that are neither times nor terms."""
    return among(_NUMBERS, _TEXTS, st.booleans(), st.none())


def times() -> SearchStrategy[Time]:
    """Any time of 64 bits."""
    return node(Time, st.integers(-LARGEST_INTEGER - 1, LARGEST_INTEGER))


def term_labels() -> SearchStrategy[str]:
    """Labels of elements, some with a namespace."""
    own = names().filter(lambda name: not name.startswith("@"))
    return among(own, own, node(lambda prefix, name: f"{prefix}:{name}", own, own))


@cache
def terms(depth: int = 3, *, with_times: bool = False) -> SearchStrategy[Term]:
    """Terms of every kind: ordered and not, with attributes, with equal children."""
    leaves: SearchStrategy[Value] = among(scalars(), times()) if with_times else scalars()
    children = among(leaves, terms(depth - 1, with_times=with_times)) if depth else leaves
    attributes = st.dictionaries(names(), children, max_size=2).map(lambda found: tuple(found.items()))
    repeated = several(children).flatmap(lambda found: st.sampled_from((found, found, found + found[:1])))
    return node(Term, term_labels(), repeated, st.booleans(), attributes)


@st.composite
def equal_terms(draw: st.DrawFn) -> tuple[Term, Term]:
    """A term, and an equal one that was put together otherwise."""
    term = draw(terms(with_times=True))
    return term, _retold(draw, term)


def _retold(draw: st.DrawFn, value: Value) -> Any:
    if isinstance(value, float) and value.is_integer() and -(2**63) <= value < 2**63:
        return draw(st.sampled_from((value, int(value))))
    if not isinstance(value, Term):
        return value
    children = [_retold(draw, child) for child in value.children]
    if not value.is_ordered:
        children = draw(st.permutations(children))
    ordered = draw(st.booleans()) if len(children) < 2 else value.ordered
    attributes = draw(st.permutations([(name, _retold(draw, inner)) for name, inner in value.attributes]))
    return Term(value.label, tuple(children), ordered, tuple(attributes))


# ---- XML ---------------------------------------------------------------------------------------------------

_XML_CHARACTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")
_XML_TEXTS = among(
    st.sampled_from(("a", "<&>", "]]>", 'a "b"', "a\r\nb\tc", "007", "1 2", "-")),
    st.text(_XML_CHARACTERS).filter(lambda text: not re.match("-?[0-9]", text)),  # no numbers
)
_XML_NAMES = st.sampled_from(("a", "b", "order-id", "x.1", "_", "über", "名", "xmlish"))
_XML_LABELS = among(_XML_NAMES, _XML_NAMES, node("{}:{}".format, among(_XML_NAMES, st.just("xml")), _XML_NAMES))


@cache
def xml_terms(depth: int = 3) -> SearchStrategy[Term]:
    """Terms that XML can hold: in order, with texts that stay as they are and never stand side by side."""
    values = among(_NUMBERS, _XML_TEXTS)
    trimmed = among(_NUMBERS, _XML_TEXTS.filter(lambda text: text == text.strip(" \t\r\n") != ""))
    children: SearchStrategy[Value] = among(trimmed, xml_terms(depth - 1)) if depth else trimmed
    attributes = st.dictionaries(_XML_LABELS, values, max_size=3).map(lambda found: tuple(found.items()))
    return node(Term, _XML_LABELS, several(children, most=4).map(_apart), st.just(True), attributes)


def _apart(children: tuple[Value, ...]) -> tuple[Value, ...]:
    """The children without those texts that follow a text."""
    pairs = zip((None, *children), children, strict=False)
    return tuple(
        child
        for k, (before, child) in enumerate(pairs)
        if k == 0 or isinstance(before, Term) or isinstance(child, Term)
    )


# ---- JSON --------------------------------------------------------------------------------------------------


@cache
def json_objects(depth: int = 3) -> SearchStrategy[dict[str, Any]]:
    """Objects that are terms: no array in an array, one value in an attribute."""
    items: SearchStrategy[Any] = among(scalars(), json_objects(depth - 1)) if depth else scalars()
    children = st.dictionaries(
        among(names(), _TEXTS).filter(lambda name: not name.startswith("@")),
        among(items, st.lists(items, max_size=3)),
        max_size=3,
    )
    attributes = st.dictionaries(names().map("@{}".format), scalars(), max_size=2)
    return node(lambda first, second: {**first, **second}, children, attributes)
