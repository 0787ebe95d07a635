"""This module shows that terms survive being written and read, and that no message can do worse than be refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from ephemera.terms.errors import BadMessage
from ephemera.terms.json import decode, from_object, to_object
from ephemera.terms.match import descendants
from ephemera.terms.text import from_text, iso, to_text
from ephemera.terms.values import Term, Time
from ephemera.terms.xml import from_xml, to_xml
from tests.strategies.data import equal_terms, json_objects, terms, xml_terms


@given(terms())
def test_a_term_survives_text(term: Term) -> None:
    assert from_text(to_text(term)) == term


@given(equal_terms())
def test_equal_terms_are_written_alike(pair: tuple[Term, Term]) -> None:
    one, other = pair
    assert one == other
    assert to_text(one) == to_text(other)
    assert json.dumps(to_object(one)) == json.dumps(to_object(other))


@given(xml_terms())
def test_a_term_survives_xml(term: Term) -> None:
    assert from_xml(to_xml(term)) == term


@given(terms(with_times=True))
def test_any_term_is_refused_by_xml_or_written_well_formed(term: Term) -> None:
    try:
        written = to_xml(term)
    except BadMessage:
        return
    assert len(list(etree.fromstring(written).iter())) == sum(isinstance(value, Term) for value in descendants(term))


@given(json_objects())
def test_an_object_survives_being_a_term(data: dict[str, Any]) -> None:
    term = from_object("o", data)
    again = to_object(term)
    assert again is not None
    assert from_object("o", again) == term


@given(terms(with_times=False))
def test_a_term_that_is_an_object_survives_being_one(term: Term) -> None:
    data = to_object(term)
    if data is not None:
        assert from_object(term.label, data) == term


@given(json_objects())
def test_json_is_decoded_as_python_does(data: dict[str, Any]) -> None:
    assert repr(decode(json.dumps(data))) == repr(data)


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31, 23, 59, 59)))  # noqa: DTZ001
def test_a_time_is_written_as_python_reads_it(moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC)
    since = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert datetime.fromisoformat(iso(Time(since))) == moment


READERS: dict[str, Callable[[str | bytes], object]] = {
    "xml": from_xml,
    "json": decode,
    "text": lambda data: from_text(data if isinstance(data, str) else data.decode("latin-1")),
}


def survive(read: Callable[[str | bytes], object], data: str | bytes) -> None:
    try:
        read(data)
    except BadMessage as error:
        told = str(error)
    else:
        return
    assert told.isprintable()
    assert len(told) < 500


@pytest.mark.parametrize("name", READERS)
@given(data=st.one_of(st.text(st.characters()), st.binary()))
def test_any_message_is_read_or_refused(name: str, data: str | bytes) -> None:
    survive(READERS[name], data)


PIECES = {
    "xml": (
        "<a>",
        "</a>",
        "<n:a ",
        "xmlns:n='u'",
        "<a/>",
        ">",
        " x='1'",
        "&amp;",
        "&e;",
        "<!DOCTYPE a>",
        "<?x?>",
        "<!--",
    ),
    "json": ("{", "}", "[", "]", '"a"', ":", ",", "1", "-", "1e999", "NaN", '"\\ud800"', "null", " "),
    "text": ("a", "{", "}", "[", "]", ",", '"x"', "@b", "`c d`", "n:", "-", "1", "1e999", '"\\ud800"', "true", " "),
}


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_a_soup_of_pieces_is_read_or_refused(name: str, data: st.DataObject) -> None:
    survive(READERS[name], "".join(data.draw(st.lists(st.sampled_from(PIECES[name]), max_size=20))))
