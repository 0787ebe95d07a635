"""This module tests how XML is read as terms, what is refused, and how terms are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ephemera.terms.errors import DEEPEST_TERM, LARGEST_MESSAGE, BadMessage
from ephemera.terms.values import LARGEST_INTEGER, Term, Time, Value
from ephemera.terms.xml import MOST_ATTRIBUTES, from_xml, to_xml


def refused(message: str | bytes) -> str:
    with pytest.raises(BadMessage) as caught:
        from_xml(message)
    return str(caught.value)


# ---- reading -----------------------------------------------------------------------------------------------


def test_elements_are_ordered_terms_and_attributes_are_apart() -> None:
    found = from_xml('<order lang="de"><id>4711</id> soon <gift/></order>')
    assert found == Term("order", (Term("id", (4711,)), "soon", Term("gift")), attributes=(("lang", "de"),))
    assert found.ordered


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4711", 4711),
        (" \n-2.50\t", -2.5),
        ("1e3", 1000.0),
        ("007", "007"),
        ("+1", "+1"),
        ("1.", "1."),
        ("٣", "٣"),
        ("NaN", "NaN"),
        ("true", "true"),
        ("\u00a0x", "\u00a0x"),
        (str(LARGEST_INTEGER), LARGEST_INTEGER),
        ("<![CDATA[<b>]]> &amp; &#65;", "<b> & A"),
        ("a<!-- 1 -->b<?php 2 ?>c", "abc"),
    ],
)
def test_text_is_trimmed_and_a_number_where_it_is_one_of_json(text: str, value: Value) -> None:
    assert from_xml(f"<a>{text}</a>") == Term("a", (value,))


@pytest.mark.parametrize("text", ["", " \t\r\n", "<!-- nothing -->"])
def test_nothing_but_space_is_no_child(text: str) -> None:
    assert from_xml(f"<a>{text}</a>") == Term("a")


def test_attributes_may_be_numbers_and_are_not_trimmed() -> None:
    assert from_xml('<a x="5" y=" 5" z=""/>').attributes == (("x", 5), ("y", " 5"), ("z", ""))


def test_a_declared_string_stays_a_text() -> None:
    found = from_xml("<o><id>1.50</id><n>1.50</n><p><id>2</id></p></o>", strings={"id"})
    assert found == Term("o", (Term("id", ("1.50",)), Term("n", (1.5,)), Term("p", (Term("id", (2,)),))))


@pytest.mark.parametrize("text", ["9223372036854775808", "1" * 5000, "1e999", "-1e999"])
def test_a_number_out_of_range_is_refused(text: str) -> None:
    assert "out of range" in refused(f"<a>{text}</a>")


def test_labels_keep_their_prefixes_as_written() -> None:
    found = from_xml('<a xmlns="u" xmlns:p="u" xmlns:q="u"><p:b q:x="1" p:y="2" z="3" xml:lang="de"/><q:b/></a>')
    inner = Term("p:b", attributes=(("q:x", 1), ("p:y", 2), ("z", 3), ("xml:lang", "de")))
    assert found == Term("a", (inner, Term("q:b")))


def test_a_declaration_of_another_encoding_is_ignored() -> None:
    message = '<?xml version="1.0" encoding="ISO-8859-1"?><a>ü</a>'
    assert from_xml(message) == from_xml(message.encode()) == from_xml("\ufeff" + message) == Term("a", ("ü",))


# ---- refusals ----------------------------------------------------------------------------------------------


def test_a_billion_laughs_are_not_heard() -> None:
    entities = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
    for use in ("<a>&l9;</a>", '<a x="&l9;"/>'):
        assert "document type" in refused(f'<!DOCTYPE a [<!ENTITY l0 "ha">{entities}]>{use}')


def test_no_file_is_fetched_for_an_entity(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush")
    for kind in ("ENTITY e", "ENTITY % e"):
        message = refused(f'<?xml version="1.0"?><!DOCTYPE a [<!{kind} SYSTEM "{secret.as_uri()}">]><a>&e;</a>')
        assert "document type" in message
        assert "hush" not in message


@pytest.mark.parametrize(
    "prolog",
    [
        "<!DOCTYPE a>",
        '<!DOCTYPE a SYSTEM "http://localhost:1/a.dtd">',
        "<?xml version='1.0'?>\n<!-- > --><?pi ?> <!DOCTYPE a [<!ATTLIST a x CDATA 'y'>]>",
    ],
)
def test_no_document_type_is_allowed(prolog: str) -> None:
    assert "document type" in refused(f"{prolog}<a/>")
    assert "document type" in refused(f"{prolog}<a/>".encode())


def test_a_document_type_in_a_text_or_comment_is_none() -> None:
    assert from_xml("<!-- <!DOCTYPE a> --><a><![CDATA[<!DOCTYPE html>]]></a>") == Term("a", ("<!DOCTYPE html>",))


def test_no_other_document_is_included() -> None:
    message = '<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="file:///etc/passwd"/></a>'
    assert from_xml(message) == Term("a", (Term("xi:include", attributes=(("href", "file:///etc/passwd"),)),))


def test_a_large_message_is_refused_and_one_at_the_limit_is_not() -> None:
    filler = "x" * (LARGEST_MESSAGE - len("<a></a>"))
    assert from_xml(f"<a>{filler}</a>") == Term("a", (filler,))
    for message in (f"<a>{filler}x</a>", f"<a>{filler}x</a>".encode(), f"<a>{'ü' * 6_000_000}</a>"):
        assert "more than 10,000,000 bytes" in refused(message)


def test_a_deep_message_is_refused_and_one_at_the_limit_is_not() -> None:
    nested = [f"{'<a>' * depth}{'</a>' * depth}" for depth in (DEEPEST_TERM, DEEPEST_TERM + 1, 10_000)]
    assert from_xml(nested[0]) == from_xml(nested[0])
    assert from_xml(to_xml(from_xml(nested[0]))) == from_xml(nested[0])
    for message in (*nested[1:], "<a>" * 1_000_000):
        assert "more than 200 deep" in refused(message)


def test_the_number_of_attributes_is_limited() -> None:
    most = [f'n:x{k}="{k}"' for k in range(MOST_ATTRIBUTES + 1)]
    found = from_xml(f'<a xmlns:n="u" {" ".join(most[:-1])}/>')
    assert found.attributes == tuple((f"n:x{k}", k) for k in range(MOST_ATTRIBUTES))
    assert "more than 256 attributes" in refused(f'<a xmlns:n="u" {" ".join(most)}/>')


@pytest.mark.parametrize("message", [b"<a>\xff</a>", "<a>ü</a>".encode("latin-1"), "<a/>".encode("utf-16")])
def test_what_is_not_utf8_is_refused(message: bytes) -> None:
    assert "not UTF-8" in refused(message)


@pytest.mark.parametrize(
    "message",
    ["", " ", "junk", "<a>", "<a></b>", "<a/><b/>", "<a/>x", "<a>&e;</a>", "<p:a/>", "<a x='1' x='2'/>", "<a>\x00</a>"],
)
def test_junk_is_refused_with_its_place(message: str) -> None:
    assert "not well-formed" in refused(message)
    assert "line 1" in refused(message)


def test_a_refusal_is_short_whatever_the_message() -> None:
    assert len(refused(f"<{'a' * 40_000}></b>")) < 300


def test_half_a_character_is_refused() -> None:
    assert "half a character" in refused("<a>\ud800</a>")


# ---- writing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "written"),
    [
        (Term("a"), "<a/>"),
        (Term("a", ("<&\r\n>", Term("b"))), "<a>&lt;&amp;&#13;\n&gt;<b/></a>"),
        (Term("a", attributes=(("x", '"<\t\n>"'),)), '<a x="&quot;&lt;&#9;&#10;&gt;&quot;"/>'),
        (Term("a", (Term("c"), Term("b")), ordered=False), "<a><c/><b/></a>"),
        (Term("a", (1.0,)), "<a>1</a>"),
        (Term("a", (1e300,)), "<a>1e+300</a>"),
        (Term("a", (None, True, Time(0))), "<a>null true 1970-01-01T00:00:00Z</a>"),
        (Term("a", ("x", "y", Term("b"), 1, 2)), "<a>x y<b/>1 2</a>"),
        (Term("n:a", (Term("xml:b"),)), '<n:a xmlns:n="urn:ephemera:n"><xml:b/></n:a>'),
    ],
)
def test_a_term_is_written_so(term: Term, written: str) -> None:
    assert to_xml(term) == written
    assert to_xml(from_xml(written)) == written


def test_a_text_that_looks_like_a_number_comes_back_as_one_unless_declared() -> None:
    written = to_xml(Term("o", (Term("id", ("1",)),)))
    assert from_xml(written) == Term("o", (Term("id", (1,)),))
    assert from_xml(written, strings=("id",)) == Term("o", (Term("id", ("1",)),))


@pytest.mark.parametrize("label", ["", "1a", "a b", "a:b:c", ":a", "a:", "@a", "a>", "xmlns:a", "xmlns"])
def test_a_label_that_is_no_name_is_refused(label: str) -> None:
    for term in (Term(label), Term("a", (Term(label),)), Term("a", attributes=((label, 1),))):
        with pytest.raises(BadMessage, match="no XML name"):
            to_xml(term)


@pytest.mark.parametrize("text", ["\x00", "a\x08", "\x1b", "\ud800", "\ufffe"])
def test_a_character_that_xml_does_not_have_is_refused(text: str) -> None:
    for term in (Term("a", (text,)), Term("a", attributes=(("x", text),))):
        with pytest.raises(BadMessage, match=r"the character U\+"):
            to_xml(term)


def test_an_attribute_holds_one_plain_value() -> None:
    with pytest.raises(BadMessage, match="holds a term"):
        to_xml(Term("a", attributes=(("x", Term("b")),)))
    with pytest.raises(BadMessage, match="stands twice"):
        to_xml(Term("a", attributes=(("x", 1), ("x", 2))))


def test_a_number_that_is_none_of_ours_is_not_written() -> None:
    for number in (float("nan"), float("inf"), 2**63, 10**5000):
        with pytest.raises(BadMessage, match="out of range"):
            to_xml(Term("a", (number,)))
