"""This module reads documents of XML messages: what is good, and what is bad, where and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ephemera
from ephemera.cli.main import app
from ephemera.formats.json_events import BadEvent
from ephemera.formats.reading import read_event
from ephemera.formats.xml_messages import messages, pieces, placed
from ephemera.terms.events import Event

PROGRAM = """
EVENT order(id: string, qty: int);
EVENT stay LASTS ANY;
seen(id, q) <- o: order(id, q);
DETECT stayed { var R } ON event s: stay {{ room { var R } }} END
"""
GOOD = """<?xml version="1.0" encoding="latin-1"?>
<!-- a day --> <events xmlns:h="urn:hotel">
  <event time="2"><order><id>007</id><qty>3</qty></order></event>
  <event begin="1970-01-01T00:00:05Z" end="1970-01-01T00:00:07.5+00:00" note="1e999">
    <!-- ü --><stay lang="de">soon<room>4</room></stay>
  </event><event time='1.5'><h:event><event>ü</event></h:event></event>
</events>"""


def read(document: bytes, program: str = PROGRAM) -> list[Event | BadEvent]:
    compiled = ephemera.compile(program)._compiled
    found = messages(pieces(document), "day.xml")
    read = (placed(read_event(message, compiled), place) for place, message in found)
    return [event for event in read if event is not None]


def as_json(*given: tuple[str, Any, str]) -> list[Event | BadEvent]:
    compiled = ephemera.compile(PROGRAM)._compiled
    read = (read_event(json.dumps({"event": e, "time": t, "xml": x}), compiled) for e, t, x in given)
    return [event for event in read if event is not None]


def test_messages_are_what_they_are_as_xml_in_json() -> None:
    assert read(GOOD.encode()) == as_json(
        ("order", 2, "<order><id>007</id><qty>3</qty></order>"),
        (
            "stay",
            ["1970-01-01T00:00:05Z", "1970-01-01T00:00:07.5+00:00"],
            '<stay lang="de">soon<room>4</room></stay>',
        ),
        ("h:event", 1.5, '<h:event xmlns:h="urn:hotel"><event>ü</event></h:event>'),
    )


def test_a_message_may_be_the_whole_document() -> None:
    given = b'\xef\xbb\xbf<event time="2"><order><id>a</id><qty>3</qty></order></event>'
    assert read(given) == as_json(("order", 2, "<order><id>a</id><qty>3</qty></order>"))


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_it_makes_no_difference_in_which_pieces_a_document_comes(size: int) -> None:
    document = GOOD.replace("</events>", "<event time='1'><order>&x;</order></event></events>").encode()
    cut = [document[k : k + size] for k in range(0, len(document), size)]
    assert list(messages(cut, "day.xml")) == list(messages([document], "day.xml"))


FINE = "<event time='1'><order><id>a</id><qty>1</qty></order></event>"
FAULTS = {
    "no time": ("<event><order/></event>", "message 2: an `event` has the attribute `time`, or `begin` and `end`"),
    "another attribute": ("<event at='5'><order/></event>", "message 2: a time is a number"),
    "half a time": ("<event begin='5'><order/></event>", "message 2: a time is a number"),
    "no moment": ("<event time='soon'><order/></event>", "message 2: `soon` is no time"),
    "out of range": ("<event time='1e999'><order/></event>", "message 2: `1e999` is no time"),
    "backwards": ("<event begin='5' end='4'><order/></event>", "message 2: it begins after its end"),
    "nothing": ("<event time='1'/>", "message 2: an `event` holds one element and no text"),
    "text": ("<event time='1'>x<order/></event>", "message 2: an `event` holds one element and no text"),
    "two": ("<event time='1'><order/><order/></event>", "message 2: an `event` holds one element and no text"),
    "no message": ("<order/>", "message 2: a message is an element `event`, not `order`"),
    "no attribute": (
        "<event time='1'><order><qty>x</qty></order></event>",
        'message 2: `qty` is int, and "x" is not',
    ),
    "no namespace": ("<event time='1'><order><h:id/></order></event>", "message 2: the XML is not well-formed"),
    "too deep": (
        "<event time='1'><order>" + "<a>" * 201 + "</a>" * 201 + "</order></event>",
        "message 2: the XML nests elements",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_message_is_told_with_its_place_and_the_others_count(name: str) -> None:
    message, reason = FAULTS[name]
    first, bad, last = read(f"<events>{FINE}{message}{FINE}</events>".encode())
    assert isinstance(first, Event)
    assert isinstance(last, Event)
    assert isinstance(bad, BadEvent)
    assert bad.reason.startswith(f"day.xml, {reason}")
    assert bad.original.startswith("<")


BROKEN = {
    "cut off": (f"<events>{FINE}{FINE}<event time='1'>", 2, "day.xml, after message 2: the XML is not well-formed"),
    "wrong end": (
        f"<events>{FINE}<event></events>",
        1,
        "day.xml, after message 1: the XML is not well-formed at line 1",
    ),
    "an entity": (
        f"<events>{FINE}<event>&x;</event>{FINE}</events>",
        1,
        "day.xml, after message 1: the XML is not well-f",
    ),
    "text behind": (f"<events>{FINE}</events>{FINE}", 1, "day.xml, after message 1: the XML is not well-formed"),
    "a document type": (
        "<!DOCTYPE e [<!ENTITY x 'y'>]><events>&x;</events>",
        0,
        "day.xml: the XML has a document type",
    ),
    "far too deep": ("<events><event>" + "<a>" * 10_000, 0, "day.xml: the XML is not well-formed"),
    "no XML": ("order", 0, "day.xml: the XML is not well-formed"),
    "nothing": ("", 0, "day.xml: the XML is not well-formed: it has no element"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_document_ends_where_it_is_not_well_formed(name: str) -> None:
    document, good, reason = BROKEN[name]
    *first, bad = read(document.encode())
    assert [isinstance(event, Event) for event in first] == [True] * good
    assert isinstance(bad, BadEvent)
    assert bad.reason.startswith(reason)


def test_what_was_read_is_not_kept() -> None:
    document = (piece for piece in [b"<events>", *[FINE.encode()] * 1_000, b"</events>"])
    places = [place for place, message in messages(document, "day.xml") if message.complaint is None]
    assert places[-1] == "day.xml, message 1000"


def test_local_runs_read_files_of_messages(tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "a.xml").write_bytes(GOOD.encode())
    (tmp_path / "b.xml").write_text(f"<events>{FINE}<event/></events>", encoding="utf-8")
    args = ["run", str(tmp_path / "p.eq"), "--input", str(tmp_path / "*.xml"), "--engine", "local"]
    done = CliRunner().invoke(app, [*args, "--dead-letter", str(tmp_path / "dead.jsonl")])
    assert done.exit_code == 0, done.output
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"event": "seen", "time": 1, "data": ["a", 1]},  # as the first message writes its time
        {"event": "seen", "time": 2, "data": ["007", 3]},
        {"event": "stayed", "time": [5, 7.5], "term": "stayed { 4 }"},
    ]
    (letter,) = (json.loads(line) for line in (tmp_path / "dead.jsonl").read_text(encoding="utf-8").splitlines())
    assert letter["reason"] == "b.xml, message 2: an `event` holds one element and no text"
