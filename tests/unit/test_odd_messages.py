"""One odd message of a broker is a bad event, or has no value where it is odd: it never ends a run."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pytest

import ephemera
from ephemera.connect.systems.address import address
from ephemera.connect.systems.kafka_topic import Messages
from ephemera.formats.decode import Batch, Decoder, Noticed
from ephemera.formats.decoded import Decoded
from ephemera.formats.reading import Keys

CREATED = 1
"""What Kafka calls the time of a message that its writer gave it."""
PROGRAM = "EVENT a(id: any, x: any{more}); b(i, x) <- e: a(i, x{rest});"


@dataclass(frozen=True)
class Sent:
    """A message as a client of Kafka gives it."""

    data: bytes | None
    at: int
    stamp: tuple[int, int] = (CREATED, 1_700_000_000_000)
    name: bytes | None = b"k"

    def value(self) -> bytes | None:
        return self.data

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return self.stamp

    def key(self) -> bytes | None:
        return self.name


@dataclass
class Once:
    """A source of one batch."""

    batch: Batch | None
    only: str | None = None
    name: str = "one batch"
    can_reopen: bool = False
    position: int = 0

    def open(self, position: int | None = None) -> Once:
        assert not position
        return self

    def read(self) -> Batch | None:
        found, self.batch = self.batch, None
        return found

    def close(self) -> None: ...


def read(where: str, messages: Sequence[Sent], *extra: str) -> Decoded:
    """What comes of some messages; what is bad has its place."""
    more = "".join(f', {name}: any FROM "{name}"' for name in extra)
    compiled = ephemera.compile(PROGRAM.format(more=more, rest=", _" * len(extra)))._compiled
    arrived = Messages(address(f"kafka://127.0.0.1/t{where}"), extra).arrived(0, messages)
    assert arrived is not None
    assert arrived.place is not None
    found = Decoder(compiled, Noticed(Keys(compiled.physical)), "a").decode(arrived.batch)
    found.place_bad(arrived.place)
    return found


def sent(*values: bytes | None) -> list[Sent]:
    return [Sent(value, 10 + k) for k, value in enumerate(values)]


def good(found: Decoded) -> int:
    return sum(len(part) for part in found.parts)


def bad_offsets(found: Decoded) -> list[int]:
    return [int(one.reason.partition("offset ")[2].partition(":")[0]) for one in found.bad_events]


# ---- rows of CSV -----------------------------------------------------------------------------------------------

CSV = "?format=csv&columns=event,time,id,x"


@pytest.mark.parametrize(
    "odd",
    [
        b'a,2,"p\nq",3',
        b"a,2,p,3\na,3,q,4",
        b'a,2,p,3\r\na,3,"q",4',
        b"a,2\n,p,3",
        b'"a\n",2,"p",3',
    ],
)
def test_a_row_with_a_line_break_is_one_bad_event(odd: bytes) -> None:
    found = read(CSV, sent(b"a,1,o,1", odd, b"no row", None, b'a,4,"s",5'))
    assert (good(found), bad_offsets(found)) == (2, [11, 12])
    assert "without line breaks" in found.bad_events[0].reason
    assert found.bad_events[0].original.startswith('"')


def test_a_key_with_a_line_break_does_not_shift_the_rows_behind_it() -> None:
    messages = [Sent(b"a,1,o,1", 10, name=b"k\nl"), Sent(b"a,2,o,1", 11), Sent(b"no row", 12)]
    found = read(CSV, messages, "kafka_key")
    assert good(found) == 1
    assert bad_offsets(found) == [10, 12]


# ---- objects of JSON -------------------------------------------------------------------------------------------


def test_a_blank_message_is_no_event_and_shifts_no_place() -> None:
    found = read("", sent(b" ", b'{"event": "a", "time": 1, "data": [1, 2]}', b"{no json"))
    assert (good(found), bad_offsets(found)) == (1, [12])


@pytest.mark.parametrize("value", [b"[" * 100_000 + b"]" * 100_000, b'"\xff"', b"1" * 400, b'"\\ud800"'])
def test_what_json_cannot_hold_is_a_bad_event_where_more_is_put_beside_it(value: bytes) -> None:
    odd = b'{"event": "a", "time": 2, "data": {"id": ' + value + b', "x": 1}}'
    found = read("", sent(b'{"event": "a", "time": 1, "data": {"id": 1, "x": 2}}', odd), "kafka_key")
    assert (good(found), bad_offsets(found)) == (1, [11])


# ---- records of Avro -------------------------------------------------------------------------------------------


def record(schema: Any, value: Any) -> bytes:
    found = io.BytesIO()
    fastavro.schemaless_writer(found, schema, value)
    return found.getvalue()


def container(schema: Any, value: Any, codec: str = "null") -> bytes:
    found = io.BytesIO()
    fastavro.writer(found, schema, [value], codec=codec)
    return found.getvalue()


def plain(kind: Any) -> dict[str, Any]:
    """A schema of events whose `id` is of a type."""
    fields = [("event", "string"), ("time", "long"), ("id", kind), ("x", "int")]
    return {"type": "record", "name": "a", "fields": [{"name": n, "type": t} for n, t in fields]}


LONG = 2**63 - 1
ODD = [
    ({"type": "long", "logicalType": "timestamp-millis"}, "long", LONG),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, "long", -LONG),
    ({"type": "int", "logicalType": "date"}, "int", 2**31 - 1),
    ({"type": "long", "logicalType": "time-micros"}, "long", LONG),
    ({"type": "string", "logicalType": "uuid"}, "string", "none"),
    ({"type": "enum", "name": "e", "symbols": ["p"]}, "int", 7),
    (["null", "int"], "int", 7),
]


@pytest.mark.parametrize(("kind", "raw", "value"), ODD)
def test_a_record_that_cannot_be_decoded_is_a_bad_event(tmp_path: Path, kind: Any, raw: Any, value: Any) -> None:
    (tmp_path / "a.avsc").write_text(json.dumps(plain(kind)))
    odd = record(plain(raw), {"event": "a", "time": 1, "id": value, "x": 1})
    found = read(f"?format=avro&schema={tmp_path}/a.avsc", sent(odd, b"\x02", b"\xff" * 40))
    assert (good(found), bad_offsets(found)) == (0, [10, 11, 12])
    assert "no record of the schema" in found.bad_events[0].original


SPOILT = {
    "cut off": lambda whole: whole[:-20],
    "unknown codec": lambda whole: whole.replace(b"deflate", b"deflatf"),
    "unknown type": lambda whole: whole.replace(b'"record"', b'"recorc"'),
    "no schema": lambda whole: whole.replace(b"avro.schema", b"avro.schemb"),
    "broken block": lambda whole: whole[:-27] + b"\xff" * 8 + whole[-19:],
    "begin alone": lambda whole: whole[:4],
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_container_that_is_broken_is_a_bad_event(tmp_path: Path, spoil: Any) -> None:
    (tmp_path / "a.avsc").write_text(json.dumps(plain("int")))
    whole = container(plain("int"), {"event": "a", "time": 1, "id": 5, "x": 1}, "deflate")
    found = read(f"?format=avro&schema={tmp_path}/a.avsc", sent(whole, spoil(whole)))
    assert (good(found), bad_offsets(found)) == (1, [11])


# ---- what a message has besides --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stamp",
    [
        (CREATED, 1_700_000_000_000_000),
        (CREATED, 1_700_000_000_000_000_000),
        (CREATED, 2**63 - 1),
        (CREATED, -1),
        (0, 0),
    ],
)
def test_a_timestamp_that_is_none_is_null(stamp: tuple[int, int]) -> None:
    arrived = Messages(address("kafka://127.0.0.1/t"), ["kafka_timestamp"]).arrived(0, [Sent(b"{}", 0, stamp)])
    assert arrived is not None
    assert arrived.batch.beside == ({"kafka_timestamp": None},)  # type: ignore[union-attr]


def test_an_event_whose_time_is_such_a_timestamp_is_bad() -> None:
    program = ephemera.compile("EVENT a(x: int); STREAM s CARRIES a TIME kafka_timestamp; b(x) <- i: a(x);")
    messages = [Sent(b'{"x": 1}', 0), Sent(b'{"x": 2}', 1, (CREATED, 1_700_000_000_000_000))]
    arrived = Messages(address("kafka://127.0.0.1/t"), ["kafka_timestamp"]).arrived(0, messages)
    assert arrived is not None
    found = Decoder(program._compiled, Noticed(Keys(program._compiled.physical)), "a").decode(arrived.batch)
    assert (good(found), [row for row, _ in found.bad]) == (1, [1])


@pytest.mark.parametrize(
    "value",
    [
        b'{"event": "order", "time": 1, "data": ["a", 1234567890123456789]}',
        b'{"event": "order", "time": 1, "data": {"id": "a", "n": 1234567890123456789}}',
        b'{"event": "order", "time": 1, "data": ["a", "k", 3, 1234567890123456789]}',
        b'{"event": "order", "time": 1, "id": "a", "n": 1234567890123456789}',
    ],
)
def test_columns_of_a_message_are_put_where_their_attributes_are_declared(value: bytes) -> None:
    program = ephemera.compile(
        'EVENT order(id: string, who: string FROM "kafka_key", at: int FROM "kafka_offset", n: any);'
        "seen(i, w, a, n) <- o: order(i, w, a, n);"
    )
    arrived = Messages(address("kafka://127.0.0.1/t"), ["kafka_key", "kafka_offset"]).arrived(0, [Sent(value, 3)])
    assert arrived is not None
    (found,) = program.run(Once(arrived.batch, "order"))
    assert found["data"] == ["a", "k", 3, 1234567890123456789]


def test_programs_that_do_not_ask_for_a_column_read_the_same_message_as_it_is() -> None:
    lines = sent(b'{"event": "a", "time": 1, "data": [1]}', b'{"event": "b", "time": 2, "data": ["x"]}')
    arrived = Messages(address("kafka://127.0.0.1/t"), ["kafka_key"]).arrived(0, lines)
    assert arrived is not None
    for text in (
        "EVENT a(n: int); EVENT b(x: string); c(n) <- e: a(n);",
        'EVENT a(key: string FROM "kafka_key", n: int); EVENT b(x: string); c(n) <- e: a(k, n);',
        "EVENT a(n: int); EVENT b(x: string, kafka_key: string); c(n) <- e: b(n, k);",
    ):
        program = ephemera.compile(text)
        found = Decoder(program._compiled, Noticed(Keys(program._compiled.physical))).decode(arrived.batch)
        assert not found.bad, text


def test_a_type_of_nothing_but_columns_of_its_message_needs_no_data() -> None:
    program = ephemera.compile('EVENT ping(who: string FROM "kafka_key"); seen(w) <- p: ping(w);')
    arrived = Messages(address("kafka://127.0.0.1/t"), ["kafka_key"]).arrived(0, sent(b'{"event": "ping", "time": 1}'))
    assert arrived is not None
    found = Decoder(program._compiled, Noticed(Keys(program._compiled.physical))).decode(arrived.batch)
    assert (good(found), found.bad) == (1, [])


def test_the_time_of_a_message_is_that_of_its_event_also_where_data_stands_apart() -> None:
    program = ephemera.compile("EVENT a(x: int); STREAM s CARRIES a TIME kafka_timestamp; b(x) <- i: a(x);")
    values = sent(b'{"event": "a", "data": {"x": 1}}', b'{"event": "a", "data": [1]}', b'{"x": 1}')
    arrived = Messages(address("kafka://127.0.0.1/t"), ["kafka_timestamp"]).arrived(0, values)
    assert arrived is not None
    found = Decoder(program._compiled, Noticed(Keys(program._compiled.physical)), "a").decode(arrived.batch)
    assert (good(found), found.bad) == (3, [])
