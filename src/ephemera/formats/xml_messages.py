"""This module reads documents of XML messages.

A document is a root that holds messages, or a single message. A message is an element `event` with the attribute
`time`, or `begin` and `end`, or those that a stream declares: numbers count the program's time unit, others are ISO
8601 with a zone. It holds one element, which is the term, its name the label; it is read as `xml` is in JSON.

    <events>
      <event time="2026-03-01T09:00:00Z"><order lang="de"><id>4711</id></order></event>
      <event begin="5" end="7"><stay><room>4</room></stay></event>
    </events>

Documents come from strangers, so they are parsed as messages are: none may have a document type, nothing is fetched,
and a message is as large and as deep as one in JSON. A document may be of any length: it is read as it comes, and only
one message is held at a time. Where it is not well-formed it ends, and what came before counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import chain
from typing import Any, cast

from lxml import etree

from ephemera.formats.json_events import BadEvent, Message
from ephemera.terms.errors import BadMessage, excerpt
from ephemera.terms.events import Event
from ephemera.terms.json import decode
from ephemera.terms.text import read_number
from ephemera.terms.xml import SAFELY, label_of

_MESSAGE = "event"
_PIECE = 65_536


def pieces(document: bytes) -> Iterator[bytes]:
    """A document in pieces, so that not all of it is parsed before the first message is there."""
    return (document[first : first + _PIECE] for first in range(0, len(document), _PIECE))


def messages(document: Iterable[bytes], name: str) -> Iterator[tuple[str, Message]]:
    """The messages of a document that comes in pieces, each with its place: the document's name and its number."""
    number = 0
    try:
        for element in _elements(document):
            number += 1
            yield f"{name}, message {number}", _message(element)
    except BadMessage as error:
        after = f", after message {number}" if number else ""
        yield f"{name}{after}", Message(name, None, str(error))


def placed(event: Event | BadEvent | None, place: str) -> Event | BadEvent | None:
    """What was read of a message; if it is bad, the reason names the place."""
    return BadEvent(event.original, f"{place}: {event.reason}", event.label) if isinstance(event, BadEvent) else event


def _elements(document: Iterable[bytes]) -> Iterator[etree._Element]:
    """The elements that ought to be messages, each until the next is asked for."""
    parser = etree.XMLPullParser(("start", "end"), **SAFELY)
    path: list[etree._Element] = []
    for piece in chain(document, [None]):
        fault = _feed(parser, piece)
        for event, found in parser.read_events():
            element = cast("etree._Element", found)
            if event == "start":
                _refuse_document_type(element, path)
                path.append(element)
                continue
            path.pop()
            is_only = not path and label_of(element) == _MESSAGE
            if is_only or (len(path) == 1 and label_of(path[0]) != _MESSAGE):
                yield element
                _forget(element)
        if fault is not None:
            raise fault


def _feed(parser: etree.XMLPullParser, piece: bytes | None) -> BadMessage | None:
    """What is wrong with a document up to the end of a piece; None is its end. Not all that is wrong is raised."""
    try:
        if piece is None:
            parser.close()
        else:
            parser.feed(piece)
        is_over = False
    except etree.XMLSyntaxError:
        is_over = True
    log = parser.feed_error_log
    if log.last_error is not None and log.last_error.level == etree.ErrorLevels.FATAL:
        error = next(one for one in log if one.level == etree.ErrorLevels.FATAL)
        place = f"line {error.line}, column {error.column}"
        return BadMessage(f"the XML is not well-formed at {place}: {excerpt(error.message, 100)}")
    is_small = piece is None and log.last_error is not None  # what is wrong in one message is told with it
    return BadMessage("the XML is not well-formed: it has no element") if is_over and not is_small else None


def _refuse_document_type(element: etree._Element, path: list[etree._Element]) -> None:
    if not path and element.getroottree().docinfo.internalDTD is not None:
        raise BadMessage("the XML has a document type (`<!DOCTYPE`), and none is allowed; remove it")


def _forget(element: etree._Element) -> None:
    """A message that has been read, and all before it."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _message(element: etree._Element) -> Message:
    original = etree.tostring(element, encoding="unicode", with_tail=False)
    try:
        return Message(original, _data(element))
    except BadMessage as error:
        return Message(original, None, str(error))


def _data(element: etree._Element) -> dict[str, Any]:
    """A message as JSON says it."""
    if label_of(element) != _MESSAGE:
        raise BadMessage(f"a message is an element `{_MESSAGE}`, not {excerpt(label_of(element))}")
    texts = [element.text, *(child.tail for child in element)]
    if len(element) != 1 or any(text and text.strip() for text in texts):
        raise BadMessage(f"an `{_MESSAGE}` holds one element and no text")
    term = etree.tostring(element[0], encoding="unicode", with_tail=False)
    keys = {str(name): _stamp(str(value)) for name, value in element.attrib.items()}
    if "time" not in keys and "begin" in keys and "end" in keys:
        keys["time"] = [keys["begin"], keys["end"]]
    if not keys:
        raise BadMessage(f"an `{_MESSAGE}` has the attribute `time`, or `begin` and `end`")
    others = {name: value for name, value in keys.items() if name not in ("data", "term")}
    return {**others, "event": label_of(element[0]), "xml": term}


def _stamp(text: str) -> Any:
    """What an attribute says as JSON would: a number if it is one of ours."""
    try:
        return text if read_number(text) is None else decode(text, fraction=Decimal)
    except BadMessage:
        return text
