"""Namespaces at the borders: documents, JSON, tables, what is printed, and answers that come in again."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import ephemera
from ephemera.engine.state.identity import DETAILS, RULE, program_of
from ephemera.formats.xml_messages import messages
from ephemera.terms.namespaces import namespaces
from ephemera.terms.values import Term
from ephemera.terms.xml import from_xml, to_xml

SHOP = namespaces({"o": "urn:o", "p": "urn:o", "x": "urn:x&y"})
PROGRAM = """
    NAMESPACE o = "urn:o";
    NAMESPACE p = "urn:o";
    EVENT p:order(id: string, qty: int);
    seen(i, q) <- e: o:order(i, q);
"""


def test_what_is_written_is_read_again() -> None:
    term = Term("o:order", (Term("id", (1,)), Term("x:note", ("soon",))), attributes=(("x:kind", "new"), ("n", 2)))
    written = to_xml(term, SHOP)
    assert written.startswith('<o:order xmlns:o="urn:o" xmlns:x="urn:x&amp;y" ')
    assert from_xml(written, namespaces=SHOP) == term


def test_the_prefix_of_xml_is_known_everywhere() -> None:
    term = from_xml('<a xml:lang="de" xmlns="urn:o"/>', namespaces=SHOP)
    assert (term.label, term.attributes) == ("o:a", (("xml:lang", "de"),))


@pytest.mark.parametrize("engine", ["oracle", "local"])
@pytest.mark.parametrize("label", ["o:order", "p:order"])
def test_declared_events_have_one_label_by_all_their_prefixes(engine: str, label: str) -> None:
    program = ephemera.compile(PROGRAM)
    expected = [{"event": "seen", "time": 1, "data": ["a", 2]}]
    for given in (
        {"data": ["a", 2]},
        {"data": {"id": "a", "qty": 2}},
        {"term": f'{label} {{ id {{ "a" }}, qty {{ 2 }} }}'},
    ):
        assert program.run([{"event": label, "time": 1, **given}], engine=engine) == expected
    columns = pa.table({"event": [label], "time": [1], "id": ["a"], "qty": [2]})
    assert program.run(columns, engine=engine).select(["event", "i", "q"]).to_pylist() == [
        {"event": "seen", "i": "a", "q": 2}
    ]
    live = program.engine()
    assert [*live.send({"event": label, "time": 1, "data": ["a", 2]}), *live.finish()] == expected


def test_messages_of_a_document_have_their_own_prefixes() -> None:
    document = (
        '<q:all xmlns:q="urn:all"><event time="1"><order xmlns="urn:o"><id>a</id></order></event>'
        '<event time="2" xmlns:r="urn:o"><r:order><r:id>b</r:id></r:order></event></q:all>'
    )
    program = ephemera.compile('NAMESPACE o = "urn:o"; seen(var I) <- e: o:order {{ o:id { var I } }};')
    read = [message for _, message in messages([document.encode()], "a.xml")]
    assert [a["data"] for a in program.run_all(read).answers] == [["a"], ["b"]]


def test_a_message_that_is_no_xml_is_told_as_that() -> None:
    program = ephemera.compile('NAMESPACE o = "urn:o"; seen(var I) <- e: o:order {{ o:id { var I } }};')
    (bad,) = program.run_all([json.dumps({"event": "o:order", "time": 1, "xml": "<o:order"})]).bad
    assert "not well-formed" in bad.reason
    assert bad.label == "o:order"
    (other,) = program.run_all([{"event": "o:order", "time": 1, "xml": "<order/>"}]).bad
    assert other.reason == "the event is `o:order`, and its text `order`"


def test_a_stored_state_belongs_to_one_namespace() -> None:
    def stored(uri: str) -> dict[str, str]:
        program = ephemera.compile(f'NAMESPACE o = "{uri}"; seen(var I) <- e: o:order {{{{ o:id {{ var I }} }}}};')
        return program_of(program._compiled, program._world())

    first, other = stored("urn:o"), stored("urn:x")
    assert {name for name in first if first[name] != other.get(name) and not name.startswith(RULE)} == {
        "NAMESPACE o",
        DETAILS,
    }
    assert not {name for name in first if name.startswith(RULE)} & set(other)
