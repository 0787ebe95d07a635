"""This module holds a table of mistakes in data: what is in a file, what people are told of it, and what still counts.

Every file of lines or rows has a good event before the mistake and one behind it, with an identifier of its own. A
mistake is either an error before the run, or a dead letter, and then both good events are answered.
"""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

PROGRAM = """
EVENT order(id: string, qty: int);
EVENT price(id: string, value: float, open: bool, since: time);
EVENT stay(room: int) LASTS AT MOST 2 sec;
EVENT tags(id: string, tag: string[]);
got(i) <- o: order(i, q);
got(i) <- p: price(i, v, o, s);
got(r) <- s: stay(r);
got(i) <- t: tags {{ id { var i } }};
"""
BEFORE, BEHIND = "before", "behind"


@dataclass(frozen=True, slots=True)
class Mistake:
    """A file with a mistake in it."""

    name: str
    file: str
    content: bytes
    told: str
    """A part of what is told: of the error, or of the reason of each dead letter."""
    kind: Literal["letter", "error"] = "letter"
    letters: int = 1
    good: tuple[str, ...] = (BEFORE, BEHIND)


def _of_lines(name: str, line: bytes, told: str, letters: int = 1) -> Mistake:
    good = [b'{"event": "order", "time": 1, "data": ["%s", 1]}' % id_.encode() for id_ in (BEFORE, BEHIND)]
    return Mistake(name, "events.jsonl", b"\n".join([good[0], line, good[1]]) + b"\n", told, letters=letters)


def _of_rows(name: str, row: bytes, told: str, letters: int = 1) -> Mistake:
    rows = [b"event,time,id,qty", b"order,1,before,1", row, b"order,2,behind,1"]
    return Mistake(name, "events.csv", b"\n".join(rows) + b"\n", told, letters=letters)


def _of_header(name: str, header: bytes, told: str) -> Mistake:
    return Mistake(f"header: {name}", "events.csv", header + b"\norder,1,before,1\n", told, "error", 0, ())


def _of_messages(
    name: str, message: str, told: str, letters: int = 1, good: tuple[str, ...] = (BEFORE, BEHIND)
) -> Mistake:
    around = [f'<event time="1"><order><id>{name}</id><qty>1</qty></order></event>' for name in (BEFORE, BEHIND)]
    text = f"<events>{around[0]}{message}{around[1]}</events>"
    return Mistake(name, "events.xml", text.encode(), told, letters=letters, good=good)


def _parquet(**columns: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _of_columns(name: str, told: str, letters: int = 1, **changed: Any) -> Mistake:
    columns: dict[str, Any] = {"event": ["order"] * 3, "time": [1, 2, 3], "id": [BEFORE, "x", BEHIND], "qty": [1, 1, 1]}
    return Mistake(name, "events.parquet", _parquet(**columns | changed), told, letters=letters)


def _order(**more: Any) -> bytes:
    fields = {"event": '"order"', "time": "1", "data": '["x", 1]'} | more
    return ("{" + ", ".join(f'"{key}": {value}' for key, value in fields.items() if value is not None) + "}").encode()


def _price(*values: str) -> bytes:
    return _order(event='"price"', data="[" + ", ".join(values) + "]")


def _csv(text: bytes, name: str, told: str, **more: Any) -> Mistake:
    return Mistake(name, "events.csv", text, told, **more)


_GOOD_CSV = b"event,time,id,qty\norder,1,before,1\norder,2,behind,1\n"
_GOOD_LINES = b"".join(b'{"event": "order", "time": 1, "data": ["%s", 1]}\n' % i for i in (b"before", b"behind"))
_GOOD_PARQUET = _parquet(event=["order"] * 2, time=[1, 2], id=[BEFORE, BEHIND], qty=[1, 1])

LINES = [
    _of_lines("no JSON", b"order", "the JSON cannot be read at column 1: Expecting value"),
    _of_lines("no object", b"[1]", "an event has a name under `event`"),
    _of_lines(
        "cut off",
        b'{"event": "order", "time": 1, "da',
        "the JSON cannot be read at column 31: Unterminated string starting at",
    ),
    _of_lines(
        "single quotes",
        b"{'event': 'order', 'time': 1, 'data': ['x', 1]}",
        "the JSON cannot be read at column 2: Expecting property name enclosed in double quotes",
    ),
    _of_lines(
        "a comma too many",
        b'{"event": "order", "time": 1, "data": ["x", 1],}',
        "the JSON cannot be read at column 4",  # from Python 3.13 on it is the comma that is told
    ),
    _of_lines("two objects", _order() + _order(), "the JSON cannot be read at column 48: Extra data"),
    _of_lines("text behind", _order() + b" x", "the JSON cannot be read at column 49: Extra data"),
    _of_lines(
        "no UTF-8",
        _order(data='["\xff", 1]').decode().encode("latin-1"),
        "the JSON is not UTF-8: invalid start byte at byte 40",
    ),
    _of_lines("half a character", _order(data='["\\ud800", 1]'), "the JSON has half a character, '\\ud800'"),
    _of_lines(
        "a NUL byte",
        b'{"event": "order", "time": 1, "data": ["\x00", 1]}',
        "the JSON cannot be read at column 41: Invalid control character at",
    ),
    _of_lines(
        "a key twice",
        b'{"event": "order", "time": 1, "time": 2, "data": ["x", 1]}',
        "the JSON has the key `time` twice in one object; write its values as an array",
    ),
    _of_lines(
        "an attribute twice",
        _order(data='{"id": "x", "qty": 1, "qty": 2}'),
        "the JSON has the key `qty` twice in one object; write its values as an array",
    ),
    _of_lines(
        "nested too deep",
        _order(event='"tags"', data='{"id": ' + "[" * 3000 + "]" * 3000 + "}"),
        "deep",  # some versions of Python read it, and then the data are judged
    ),
    _of_lines("no name", _order(event=None), "an event has a name under `event`"),
    _of_lines("a name that is a number", _order(event="5"), "an event has a name under `event`"),
    _of_lines("no time", _order(time=None), "a time is a number or a text such as 2026-03-01T09:00:00Z"),
    _of_lines("time is null", _order(time="null"), "a time is a number or a text such as 2026-03-01T09:00:00Z"),
    _of_lines("time is true", _order(time="true"), "a time is a number or a text such as 2026-03-01T09:00:00Z"),
    _of_lines("time is a word", _order(time='"yesterday"'), "`yesterday` is no time such as 2026-03-01T09:00:00Z"),
    _of_lines(
        "time is no day",
        _order(time='"2026-02-30T09:00:00Z"'),
        "`2026-02-30T09:00:00Z` is no time such as 2026-03-01T09:00:00Z",
    ),
    _of_lines(
        "second 60",
        _order(time='"2026-03-01T09:00:60Z"'),
        "`2026-03-01T09:00:60Z` is no time such as 2026-03-01T09:00:00Z",
    ),
    _of_lines(
        "an offset of 25 hours",
        _order(time='"2026-03-01T09:00:00+25:00"'),
        "`2026-03-01T09:00:00+25:00` is no time such as 2026-03-01T09:00:00Z",
    ),
    _of_lines(
        "an unknown zone",
        _order(time='"2026-03-01T09:00:00 Mars/Base"'),
        "`2026-03-01T09:00:00 Mars/Base` is no time such as 2026-03-01T09:00:00Z",
    ),
    _of_lines("time too large", _order(time="9999999999999999999"), "a number out of range"),
    _of_lines(
        "time is no number",
        _order(time="NaN"),
        "the JSON has the number `NaN`, and there are only finite ones; leave it out or write null",
    ),
    _of_lines("time is infinite", _order(time="1e999"), "the time is too far from 1970"),
    _of_lines("ends before it begins", _order(event='"stay"', time="[3, 2]", data="[1]"), "it begins after its end"),
    _of_lines("three times", _order(event='"stay"', time="[1, 2, 3]", data="[1]"), "`time` is a point or [begin, end]"),
    _of_lines(
        "longer than declared", _order(event='"stay"', time="[1, 9]", data="[1]"), "it lasts longer than declared"
    ),
    _of_lines("a point that lasts", _order(time="[1, 2]"), "it lasts longer than declared"),
    _of_lines("too few values", _order(data='["x"]'), "`order` has 2 attributes, not 1"),
    _of_lines("too many values", _order(data='["x", 1, 2]'), "`order` has 2 attributes, not 3"),
    _of_lines("data is a text", _order(data='"x"'), "`data` is an array or an object"),
    _of_lines("a text for a number", _order(data='["x", "1"]'), '`qty` is int, and "1" is not'),
    _of_lines("a number for a text", _order(data="[7, 1]"), "`id` is string, and 7 is not"),
    _of_lines("a fraction for a whole number", _order(data='["x", 1.5]'), "`qty` is int, and 1.5 is not"),
    _of_lines("a whole number too large", _order(data='["x", 9223372036854775808]'), "a number out of range"),
    _of_lines("true for a number", _order(data='["x", true]'), "`qty` is int, and true is not"),
    _of_lines(
        "a list for a number",
        _order(data='["x", [1]]'),
        "an attribute by position is a text, a number, a time, true, false or null",
    ),
    _of_lines(
        "an object for a text",
        _order(data='{"id": {"x": 1}, "qty": 1}'),
        "an attribute by position is a text, a number, a time, true, false or null",
    ),
    _of_lines(
        "not a number",
        _price('"x"', "NaN", "true", "1"),
        "the JSON has the number `NaN`, and there are only finite ones; leave it out or write null",
    ),
    _of_lines("infinite", _price('"x"', "1e999", "true", "1"), "integers have 64 bits, other numbers are finite"),
    _of_lines("yes for true", _price('"x"', "1", '"yes"', "1"), '`open` is bool, and "yes" is not'),
    _of_lines("one for true", _price('"x"', "1", "1", "1"), "`open` is bool, and 1 is not"),
    _of_lines(
        "a time in words", _price('"x"', "1", "true", '"noon"'), "`noon` is no time such as 2026-03-01T09:00:00Z"
    ),
    _of_lines("a time too far", _price('"x"', "1", "true", "99999999999999999"), "the time is too far from 1970"),
    _of_lines(
        "a list of another type",
        _order(event='"tags"', data='{"id": "x", "tag": ["a", 2]}'),
        "`tag` is string, and 2 is not",
    ),
    _of_lines("data and term", _order(term='"order[]"'), "an event has one of `data`, `term` and `xml`"),
    _of_lines(
        "a term of another type", _order(data=None, term='"price[]"'), "the event is `order`, and its text `price`"
    ),
    _of_lines(
        "a term that is none",
        _order(data=None, term='"order["'),
        "the term cannot be read at line 1, column 7: expected a child or `]`, found the end",
    ),
    _of_lines(
        "XML that is none",
        _order(data=None, xml='"<order>"'),
        "the XML is not well-formed at line 1, column 8: `Premature end of data in tag order line 1`",
    ),
    Mistake(
        "a broken last line",
        "events.jsonl",
        _GOOD_LINES + b'{"event": "ord',
        "the JSON cannot be read at column 11: Unterminated string starting at",
    ),
    Mistake("UTF-16", "events.jsonl", "order\n".encode("utf-16"), "the JSON ", letters=2, good=()),
    Mistake(
        "lines in a cut gzip",
        "events.jsonl.gz",
        gzip.compress(_GOOD_LINES * 50)[:-20],
        "events.jsonl.gz",
        "error",
        0,
        (),
    ),
    Mistake("lines that are no gzip", "events.jsonl.gz", _GOOD_LINES, "events.jsonl.gz", "error", 0, ()),
]
ROWS = [
    _of_rows("too many cells", b"order,1,x,1,5", "the row has 5 cells, and the header 4"),
    _of_rows("too few cells", b"order,1,x", "the row has 3 cells, and the header 4"),
    _of_rows("one cell", b"order", "the row has 1 cells, and the header 4"),
    _of_rows("semicolons", b"order;1;x;1", "the row has 1 cells, and the header 4"),
    _of_rows("a quote not closed", b'order,1,"x,1', "a quote is not closed in its line"),
    _of_rows("a quote not closed at the end", b'order,1,x,"1', "a quote is not closed in its line"),
    _of_rows("text behind a quote", b'order,1,"x"y,1', "behind the quote that closes a cell comes a comma"),
    _of_rows("a line break in quotes", b'order,1,"x\ny",1', "events.csv", 2),
    _of_rows("no UTF-8", b"order,1,\xe4,1", "the line is not UTF-8: invalid continuation byte at byte 8"),
    _of_rows("a NUL byte", b"order,1,x\x00,1", "the line has a NUL byte"),
    _of_rows("no type", b",1,x,1", "an event has a name under `event`"),
    _of_rows("no time", b"order,,x,1", "a time is a number or a text such as 2026-03-01T09:00:00Z"),
    _of_rows("a time in words", b"order,noon,x,1", "`noon` is no time such as 2026-03-01T09:00:00Z"),
    _of_rows(
        "a time that is no day",
        b"order,2026-02-30T09:00:00Z,x,1",
        "`2026-02-30T09:00:00Z` is no time such as 2026-03-01T09:00:00Z",
    ),
    _of_rows("a time too large", b"order,99999999999999999999,x,1", "the time is too far from 1970"),
    _of_rows("a word for a number", b"order,1,x,many", '`qty` is int, and "many" is not'),
    _of_rows("a fraction for a whole number", b"order,1,x,1.5", "`qty` is int, and 1.5 is not"),
    _of_rows("a decimal comma", b'order,1,x,"1,5"', '`qty` is int, and "1,5" is not'),
    _of_rows("a number too large", b"order,1,x,9223372036854775808", "integers have 64 bits, other numbers are finite"),
    _of_rows("the header again", b"event,time,id,qty", "`time` is no time such as 2026-03-01T09:00:00Z"),
    _csv(_GOOD_CSV.replace(b"\n", b"\r\n") + b"order,3\r\n", "CRLF, and a short row", "the row has 2 cells"),
    _csv(b"\xef\xbb\xbf" + _GOOD_CSV + b"order,3", "a byte order mark, and a short row", "the row has 2 cells"),
    _csv(_GOOD_CSV + b'order,3,"', "a quote not closed in the last line", "a quote is not closed in its line"),
]
HEADERS = [
    _of_header("another column", b"event,time,id,quantity", "no column `qty` in events.csv; did you mean `quantity`?"),
    _of_header("upper case", b"event,time,id,QTY", "no column `qty` in events.csv; did you mean `QTY`?"),
    _of_header("a blank in front", b"event,time,id, qty", "no column `qty` in events.csv; did you mean ` qty`?"),
    _of_header("a column less", b"event,time,id,more", "no column `qty` in events.csv"),
    _of_header("Event", b"Event,time,id,qty", "no column `event` in events.csv; did you mean `Event`?"),
    _of_header("no type", b"kind,time,id,qty", "the table has no column `event`"),
    _of_header("no time", b"event,when,id,qty", "does not say when events happen"),
    _of_header("Time", b"event,Time,id,qty", "did you mean `Time`?"),
    _of_header("a column twice", b"event,time,qty,qty", "several columns `qty`"),
    _of_header("semicolons", b"event;time;id;qty", "are cells divided by commas?"),
    _of_header("a quote not closed", b'event,time,id,"qty', "its header, the first line, is wrong"),
    _of_header("no UTF-8", b"event,time,id,\xe4", "its header, the first line, is wrong"),
    _csv(_GOOD_CSV.decode().encode("utf-16"), "UTF-16", "it is UTF-16", kind="error", letters=0, good=()),
    _csv(_GOOD_CSV.replace(b"\n", b"\r"), "CR alone", "its lines end in CR alone", kind="error", letters=0, good=()),
    Mistake("a cut gzip", "events.csv.gz", gzip.compress(_GOOD_CSV * 50)[:-20], "events.csv.gz", "error", 0, ()),
    Mistake("no gzip", "events.csv.gz", _GOOD_CSV, "events.csv.gz", "error", 0, ()),
]
COLUMNS = [
    _of_columns("a type that is null", "an event has a name in the column `event`", event=["order", None, "order"]),
    _of_columns("a time that is null", "a time is a number or a text such as 2026-03-01T09:00:00Z", time=[1, None, 3]),
    _of_columns("a time too large", "the time is too far from 1970", time=[1, 2**62, 3]),
    _of_columns("a fraction for a whole number", "`qty` is int, and 1.5 is not", qty=[1.0, 1.5, 1.0]),
    _of_columns("not a number", "integers have 64 bits, other numbers are finite", qty=[1.0, float("nan"), 1.0]),
    _of_columns(
        "a number too large",
        "integers have 64 bits, other numbers are finite",
        qty=pa.array([1, 2**63, 1], pa.uint64()),
    ),
    Mistake(
        "another column",
        "events.parquet",
        _parquet(event=["order"], time=[1], id=["x"], quantity=[1]),
        "no column `qty` in events.parquet; did you mean `quantity`?",
        "error",
        0,
        (),
    ),
    Mistake(
        "no time", "events.parquet", _parquet(event=["order"], id=["x"], qty=[1]), "does not say when", "error", 0, ()
    ),
    Mistake("a cut file", "events.parquet", _GOOD_PARQUET[:-30], "events.parquet", "error", 0, ()),
    Mistake("an empty file", "events.parquet", b"", "events.parquet", "error", 0, ()),
    Mistake("no Parquet", "events.parquet", _GOOD_CSV, "events.parquet", "error", 0, ()),
]
MESSAGES = [
    _of_messages(
        "no time",
        "<event><order><id>x</id><qty>1</qty></order></event>",
        "an `event` has the attribute `time`, or `begin` and `end`",
    ),
    _of_messages("another element", "<order><id>x</id></order>", "a message is an element `event`, not `order`"),
    _of_messages(
        "a value twice",
        '<event time="1"><order><id>x</id><id>y</id><qty>1</qty></order></event>',
        "`id` occurs 2 times",
    ),
    _of_messages(
        "a word for a number",
        '<event time="1"><order><id>x</id><qty>many</qty></order></event>',
        '`qty` is int, and "many" is not',
    ),
    _of_messages(
        "not closed",
        '<event time="1"><order></event>',
        "the XML is not well-formed at line 1, column 106: `Opening and ending tag mismatch: order line 1 and event`",
        good=(BEFORE,),
    ),
]
ALL = [*LINES, *ROWS, *HEADERS, *COLUMNS, *MESSAGES]
