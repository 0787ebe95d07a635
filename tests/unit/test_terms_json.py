"""This module tests how JSON and the text of terms are read and written, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from ephemera.syntax import lexer
from ephemera.terms import text as terms_text
from ephemera.terms.errors import DEEPEST_TERM, LARGEST_MESSAGE, BadMessage
from ephemera.terms.json import decode, from_object, to_object
from ephemera.terms.text import from_text, to_text
from ephemera.terms.values import LARGEST_INTEGER, Term, Time


def leaf(label: str, *values: Any) -> Term:
    return Term(label, values)


def unordered(label: str, *children: Any, **attributes: Any) -> Term:
    return Term(label, children, ordered=False, attributes=tuple(attributes.items()))


# ---- objects -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "term"),
    [
        ({}, leaf("o")),
        ({"a": 1, "b": "x"}, unordered("o", leaf("a", 1), leaf("b", "x"))),
        ({"a": [2, 1, 2]}, unordered("o", leaf("a", 2), leaf("a", 1), leaf("a", 2))),
        ({"a": []}, leaf("o")),
        ({"a": None}, unordered("o", leaf("a", None))),
        ({"a": {}}, unordered("o", leaf("a"))),
        ({"a": [{"b": 1}, 2]}, unordered("o", unordered("a", leaf("b", 1)), leaf("a", 2))),
        ({"@lang": "de", "a": True}, unordered("o", leaf("a", True), lang="de")),
        ({"": LARGEST_INTEGER}, unordered("o", leaf("", LARGEST_INTEGER))),
    ],
)
def test_an_object_is_an_unordered_term(data: dict[str, Any], term: Term) -> None:
    assert from_object("o", data) == term
    again = to_object(term)
    assert again is not None
    assert from_object("o", again) == term


def test_the_children_of_an_object_have_no_order() -> None:
    assert not from_object("o", {"a": 1, "b": 2}).is_ordered
    assert from_object("o", {"a": [1, 2]}) == from_object("o", {"a": [2, 1]})


def test_an_object_comes_out_sorted_whatever_went_in() -> None:
    term = unordered("o", leaf("b", 2.0), leaf("a", "x"), leaf("a", 1), unordered("c", leaf("e", None), leaf("d", 1)))
    assert repr(to_object(term)) == "{'a': [1, 'x'], 'b': 2, 'c': {'d': 1, 'e': None}}"


def test_a_time_comes_out_as_a_text() -> None:
    assert to_object(unordered("o", leaf("at", Time(1)))) == {"at": "1970-01-01T00:00:00.000001Z"}


@pytest.mark.parametrize(
    "term",
    [
        leaf("o", "text"),
        leaf("o", leaf("a", 1), leaf("b", 2)),
        unordered("o", leaf("a", 1), "text"),
        unordered("o", leaf("a", 1, 2)),
        unordered("o", unordered("a", 1, 2)),
        unordered("o", unordered("a", 1, leaf("b", 2))),
        unordered("o", leaf("a", leaf("b", 1), leaf("c", 2))),
        unordered("o", unordered("a", 1, unit="kg")),
        unordered("o", x=leaf("a", 1)),
        Term("o", attributes=(("x", 1), ("x", 2))),
        unordered("o", leaf("@a", 1)),
    ],
    ids=repr,
)
def test_other_terms_are_no_objects(term: Term) -> None:
    assert to_object(term) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"a": [[1]]}, "`o/a` has an array in an array"),
        ({"a": [{"b": [1, [2]]}]}, "`o/a/b` has an array in an array"),
        ({"a": float("nan")}, "`o/a` has a number out of range, `nan`"),
        ({"a": [float("-inf")]}, "out of range"),
        ({"a": 2**63}, "out of range, an integer of 64 bits"),
        ({"a": 10**5000}, "out of range"),
        ({"@x": {"b": 1}}, "`o/@x` has a dict"),
        ({"@x": [1, 2]}, "`o/@x` has 2 values"),
        ({"a": "\ud800"}, "`o/a` has half a character"),
        ({"\ud800": 1}, "`o` has half a character"),
        ({1: 1}, "`o` has the key `1`"),
        ({"a": b"x"}, "`o/a` has a bytes"),
    ],
)
def test_what_is_no_term_is_refused(data: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadMessage) as caught:
        from_object("o", data)
    assert reason in str(caught.value)


def test_an_attribute_cannot_be_an_event() -> None:
    with pytest.raises(BadMessage, match="cannot label an event"):
        from_object("@o", {})


def nest(depth: int) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for _ in range(depth - 1):
        data = {"a": data}
    return data


def test_a_deep_object_is_refused_and_one_at_the_limit_is_not() -> None:
    term = from_object("a", nest(DEEPEST_TERM))
    assert to_object(term) == nest(DEEPEST_TERM)
    for depth in (DEEPEST_TERM + 1, 10_000):
        with pytest.raises(BadMessage, match="more than 200 deep"):
            from_object("a", nest(depth))


# ---- JSON text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, "ü\\ud83d\\ude00", true, null]}', {"a": [1, 2.5, "ü😀", True, None]}),
        (b'\xef\xbb\xbf{"a": "\xc3\xbc"}', {"a": "ü"}),
        ("-0", 0),
    ],
)
def test_json_is_decoded(text: str | bytes, value: object) -> None:
    assert decode(text) == value


def test_fractions_stay_exact_where_asked_for() -> None:
    assert decode('["\\ud83d\\ude00", 0.1, 1]', fraction=Decimal) == ["😀", Decimal("0.1"), 1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "the key `c` twice"),
        ("", "at column 1"),
        ("junk", "at column 1"),
        ("{\n1}", "at line 2, column 1"),
        ('{"a": 1,\nx}', "line 2, column 1"),
        ("{'a': 1}", "cannot be read"),
        ('{"a": 1} 2', "Extra data"),
        ('"\n"', "control character"),
        ('{"a": NaN}', "`NaN`"),
        ("[-Infinity]", "`-Infinity`"),
        ("1e999", "out of range"),
        ("9223372036854775808", "out of range"),
        ("1" * 10_000, "out of range"),
        ('"\\ud800"', "half a character"),
        ('{"\\uDC00": 1}', "half a character"),
        ("[" * 10_000, "more than 200 deep"),
        ('{"a":' * 100_000, "more than 200 deep"),
        (b'"\xff"', "not UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (" " * (LARGEST_MESSAGE + 1), "more than 10,000,000 bytes"),
    ],
    ids=range(20),
)
def test_what_is_no_json_of_ours_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(BadMessage) as caught:
        decode(text)
    assert reason in str(caught.value)


# ---- terms as text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "term", "canonical"),
    [
        ('a{ "1", "2" }', unordered("a", "1", "2"), 'a { "1", "2" }'),
        (
            'order [ id { 4711 }, @lang { "de" } ]',
            Term("order", (leaf("id", 4711),), attributes=(("lang", "de"),)),
            'order { @lang { "de" }, id { 4711 } }',
        ),
        (" a { }\n", leaf("a"), "a { }"),
        ("a[]", leaf("a"), "a { }"),
        ("a [2 1]", leaf("a", 2, 1), "a [ 2, 1 ]"),
        ("a {2, 1,}", unordered("a", 1, 2), "a { 1, 2 }"),
        ('a { b { }, null, true, - 2.50, "x", 1e300 }', None, 'a { null, true, -2.5, 1e+300, "x", b { } }'),
        ("order-id { 007 }", leaf("order-id", 7), "order-id { 7 }"),
        ("`order id` { }", leaf("order id"), "`order id` { }"),
        ("`a` { }", leaf("a"), "a { }"),
        ("ns:a { n2 : `b` [ ] }", leaf("ns:a", leaf("n2:b")), "ns:a { n2:b { } }"),
        ("`ns:a` { }", leaf("ns:a"), "ns:a { }"),
        ("ns:`a b` { }", leaf("ns:a b"), "`ns:a b` { }"),
        ("true { false { } }", leaf("true", leaf("false")), "true { false { } }"),
        ("a { @xml:lang { 1 } }", unordered("a", **{"xml:lang": 1}), "a { `@xml:lang` { 1 } }"),
        ("a { `@b c` { d { } } }", unordered("a", **{"b c": leaf("d")}), "a { `@b c` { d { } } }"),
        (r'a { "\"\\\n\u00fc" }', leaf("a", '"\\\nü'), r'a { "\"\\\nü" }'),
    ],
)
def test_a_term_is_read_and_written_so(text: str, term: Term | None, canonical: str) -> None:
    found = from_text(text)
    assert term is None or found == term
    assert to_text(found) == canonical
    assert from_text(canonical) == found


def test_a_time_is_written_as_a_text() -> None:
    assert to_text(leaf("a", Time(1_500_000))) == 'a { "1970-01-01T00:00:01.5Z" }'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1, column 1: expected a label and a bracket, found the end"),
        ("4711", "expected a label and a bracket"),
        ("a", "expected a label and a bracket"),
        ("}", "expected a label and a bracket"),
        ("a {\n b }", "line 2, column 2: expected a child or `}`, found `b }`"),
        ("a { ]", "expected a child or `}`"),
        ("a [ }", "expected a child or `]`"),
        ("a { {", "expected a child or `}`, found `{`"),
        ("a {{ }}", "expected a child or `}`"),
        ("a { , }", "expected a child or `}`"),
        ("a { 1,, 2 }", "expected a child or `}`"),
        ("a { } b", "expected nothing more, found `b`"),
        ("a { },", "expected nothing more"),
        ("a { 1x }", "expected a child"),
        ("a { trues }", "expected a child"),
        ("a { var X }", "expected a child"),
        ('a { "x }', "expected a child"),
        ("a { 'x' }", "expected a child"),
        ('a { "\\x" }', "line 1, column 5: the text has a wrong escape"),
        ('a { "\\ud800" }', "half a character"),
        ("a { 9223372036854775808 }", "line 1, column 5: the text has a number out of range"),
        ("a { -1e999 }", "out of range"),
        ("@a { 1 }", "cannot stand alone"),
        ("a { @b { } }", "`@b` must hold one value"),
        ("a { @b { 1, 2 } }", "`@b` must hold one value"),
        ("a { @b { 1, @c { 2 } } }", "`@b` must hold one value"),
        ("a { @b { 1 }, @b { 1 } }", "`@b` stands twice"),
        ("a {" * 10_000, "more than 200 deep at line 1, column 601"),
        ('a { "' + "x" * LARGEST_MESSAGE, "more than 10,000,000 bytes"),
        ("\ud800", "half a character"),
    ],
    ids=range(30),
)
def test_what_is_no_term_in_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadMessage) as caught:
        from_text(text)
    assert reason in str(caught.value)


def test_terms_at_the_limit_of_depth_can_be_compared() -> None:
    text = "a { " * (DEEPEST_TERM - 1) + "a { }" + " }" * (DEEPEST_TERM - 1)
    assert from_text(text) == from_text(text)
    assert to_text(from_text(text)) == text
    assert to_text(unordered("b", from_text(text), from_text(text))) == f"b {{ {text}, {text} }}"


@pytest.mark.parametrize("label", ["", "a`b", "a\nb", "@a"])
def test_a_label_that_cannot_be_written_is_refused(label: str) -> None:
    with pytest.raises(BadMessage, match="cannot"):
        to_text(leaf("a", leaf(label)))


def test_names_are_those_of_the_language() -> None:
    assert terms_text.NAME == lexer.NAME
