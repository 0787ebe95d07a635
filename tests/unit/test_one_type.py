"""This module reads streams that carry one type, and columns and keys that have other names than their attributes."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ephemera
from ephemera.connect.declared_tables import read_file
from ephemera.formats.check_columns import Offer, WrongColumns, check_columns, refused_types, row_label, stamp_columns
from ephemera.formats.decode_arrow import Reader
from ephemera.formats.json_events import BadEvent, decode_line, enveloped, named, read_object, uses_text, write_event
from ephemera.formats.reading import Reading, read_event
from ephemera.terms.events import Event

DECLARED = """
EVENT txn(card: string FROM "card_no", amount: float);
EVENT login(user: string);
EVENT gong();
EVENT remark;
STREAM cards CARRIES txn TIME ts;
STREAM logins CARRIES login TIME begin, end;
STREAM gongs CARRIES gong;
STREAM remarks CARRIES remark;
"""
PROGRAM = ephemera.compile(f"{DECLARED} dear(c) <- t: txn(c, a), a > 10;")
CATALOGUE = PROGRAM.catalogue
TXN = {"event": "txn", "time": 3, "data": {"card": "a", "amount": 3.5}}


def read(only: str | None, written: Any) -> dict[str, Any] | str:
    """An event as it is written, by attributes; or what is wrong with it."""
    found = read_object(written, CATALOGUE.carrying(only))
    return found.reason if isinstance(found, BadEvent) else write_event(found, CATALOGUE, as_numbers=True)


def test_a_source_knows_the_one_type_that_it_carries() -> None:
    assert [source.only for source in CATALOGUE.sources] == ["txn", "login", "gong", "remark"]
    several = ephemera.compile("EVENT a(); EVENT b(); STREAM s CARRIES a, b; p() <- a();")
    assert several.catalogue.sources[0].only is None
    assert ephemera.compile("STREAM s; p(x) <- a(x);").catalogue.sources[0].only is None


@pytest.mark.parametrize(
    "written",
    [
        {"ts": 3, "card_no": "a", "amount": 3.5},
        {"time": 3, "card_no": "a", "amount": 3.5},
        {"ts": 3, "time": "noon", "card_no": "a", "amount": 3.5, "card": "other", "more": [1]},
        {"ts": 3, "data": {"card_no": "a", "amount": 3.5}},
        {"time": 3, "data": {"card_no": "a", "amount": 3.5}},
        {"event": "txn", "ts": 3, "card_no": "a", "amount": 3.5},
        {"event": "txn", "time": 3, "data": {"card_no": "a", "amount": 3.5}},
        {"ts": 3, "term": 'txn{ card{ "a" }, amount{ 3.5 } }'},
        {"ts": 3, "xml": "<txn><card>a</card><amount>3.5</amount></txn>"},
    ],
)
def test_objects_of_a_stream_of_one_type_need_not_name_it(written: dict[str, Any]) -> None:
    assert read("txn", written) == TXN
    again = enveloped(enveloped(written, CATALOGUE.carrying("txn")), CATALOGUE.carrying("txn"))
    assert read("txn", again) == TXN


def test_positions_have_no_keys() -> None:
    assert read("txn", {"ts": 3, "data": ["a", 3.5]}) == {**TXN, "data": ["a", 3.5]}


def test_a_name_that_is_there_counts() -> None:
    assert read("txn", {"event": "login", "time": 3, "data": ["x"]}) == {"event": "login", "time": 3, "data": ["x"]}
    assert read("txn", {"event": None, "ts": 3, "card_no": "a"}) == "an event has a name under `event`"
    assert "`STREAM … FROM … CARRIES …;`" in str(read(None, {"ts": 3, "card_no": "a"}))
    assert read("gong", {"event": "gong", "time": 3}) == {"event": "gong", "time": 3, "data": []}


def test_plain_objects_of_types_without_attributes_or_of_any_shape() -> None:
    assert read("gong", {"time": 3}) == {"event": "gong", "time": 3, "data": {}}
    assert read("remark", {"time": 3, "by": "me", "text": {"a": 1}}) == {
        "event": "remark",
        "time": 3,
        "data": {"by": "me", "text": {"a": 1}},
    }


def test_plain_objects_may_say_when_as_tables_do() -> None:
    lasting = DECLARED.replace("EVENT login(user: string)", "EVENT login(user: string) LASTS ANY")
    catalogue = ephemera.compile(f"{lasting.replace(' TIME begin, end', '')} p(c) <- t: txn(c, a);").catalogue
    found = read_object({"begin": 1, "end": 2, "user": "x"}, catalogue.carrying("login"))
    assert isinstance(found, Event)
    assert (found.time.begin, found.time.end) == (1_000_000, 2_000_000)
    assert uses_text({"ts": "2026-03-01T09:00:00Z", "card_no": "a"}, CATALOGUE.carrying("txn"))
    assert not uses_text({"ts": 3, "card_no": "a"}, CATALOGUE.carrying("txn"))


def test_an_attribute_of_the_key_event_is_no_name() -> None:
    program = ephemera.compile(
        'EVENT click(kind: string FROM "event", data: float); STREAM c CARRIES click; p(k) <- c: click(k, d);'
    )
    catalogue = program.catalogue.carrying("click")
    found = read_object({"time": 1, "event": "login", "data": 2.5}, catalogue)
    assert isinstance(found, Event)
    assert write_event(found, catalogue, as_numbers=True)["data"] == {"kind": "login", "data": 2.5}
    assert row_label(["event", "time", "data"], catalogue) == "click"
    assert row_label(["event", "time", "data"], program.catalogue) is None


def test_what_is_wrong_is_told_of_the_key() -> None:
    assert read("txn", {"ts": 3, "card_no": 5, "amount": 3.5}) == "`card_no` is string, and 5 is not"
    assert (
        read("txn", {"card_no": "a"}) == "a time is a number or a text such as 2026-03-01T09:00:00Z; there is no `ts`"
    )


def test_keys_that_are_missing_are_told_with_their_attribute() -> None:
    reading = Reading(PROGRAM._compiled.carrying("txn"))
    reading.add({"ts": 1, "card-no": "a", "amount": 11.0})
    reading.add(b'{"ts": 2, "card-no": "b", "amount": 12.5}')
    assert len(reading.events) == 2
    told = "txn: `card_no` (for `card`) was missing in all 2 events; did you mean `card-no`, which they have?"
    assert reading.keys.notes() == [told]


def test_a_reader_of_a_stream_leaves_others_alone() -> None:
    plain = {"ts": 1, "card_no": "a", "amount": 11.0}
    assert isinstance(read_event(plain, PROGRAM._compiled.carrying("txn")), Event)
    assert isinstance(read_event(plain, PROGRAM._compiled), BadEvent)
    assert PROGRAM._compiled.carrying(None) is PROGRAM._compiled
    assert PROGRAM._compiled.carrying("txn").carrying(None).rules == PROGRAM._compiled.rules


# ---- columns -----------------------------------------------------------------------------------------------


def test_columns_of_a_stream_of_one_type() -> None:
    check_columns([Offer("cards.csv", ["ts", "card_no", "amount"], only="txn")], CATALOGUE)
    columns = ["event", "time", "card_no", "amount"]
    check_columns([Offer("cards.csv", columns, lambda label: label == "txn", only="txn")], CATALOGUE)
    assert stamp_columns(["ts", "begin", "end", "amount"], CATALOGUE.carrying("txn")) == ("ts",)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["ts", "card_nr", "amount"], "no column `card_no` (for `card`) in cards.csv; did you mean `card_nr`?"),
        (["ts", "card", "amount"], "no column `card_no` (for `card`) in cards.csv; did you mean `card`?"),
        (["ts", "card_no"], "no column `amount` in cards.csv\n"),
        (["tz", "card_no", "amount"], "cards.csv: the stream declares `TIME ts`, and there is no such column"),
    ],
)
def test_a_column_that_is_missing_is_told_with_its_attribute(columns: list[str], told: str) -> None:
    with pytest.raises(WrongColumns) as error:
        check_columns([Offer("cards.csv", columns, only="txn")], CATALOGUE)
    assert str(error.value).startswith(told)


def test_another_type_is_not_missed_in_a_file_of_one() -> None:
    offers = [Offer("cards.csv", ["ts", "card_no", "amount"], only="txn"), Offer("l.csv", ["time"], only="login")]
    with pytest.raises(WrongColumns, match=r"no column `user` in l\.csv"):
        check_columns(offers, CATALOGUE)
    check_columns(offers[:1], CATALOGUE)


def test_a_file_of_several_types_without_their_names_is_refused_with_a_way_out() -> None:
    with pytest.raises(WrongColumns, match="let one stream alone read it that carries one type") as error:
        check_columns([Offer("cards.csv", ["ts", "card_no", "amount"])], CATALOGUE)
    assert "STREAM" in str(error.value)


def test_types_whose_columns_are_missing_are_refused_by_column() -> None:
    told = refused_types(["event", "time", "card_nr", "amount", "user"], "a.csv", CATALOGUE)
    assert told == {"txn": "no column `card_no` (for `card`) in a.csv; did you mean `card_nr`?"}


# ---- tables ------------------------------------------------------------------------------------------------

TABLED = ephemera.compile(
    'TABLE room(name: string FROM "who", seats: int); EVENT a(r: string); p(s) <- a(r), room(r, s);'
)


@pytest.mark.parametrize("rows", [[{"who": "x", "seats": 3}], pa.table({"who": ["x"], "seats": [3]})])
def test_columns_of_tables_have_other_names_too(rows: Any) -> None:
    for engine in ("local", "oracle"):
        answers = TABLED.run([{"event": "a", "time": 1, "data": ["x"]}], tables={"room": rows}, engine=engine)
        assert [answer["data"] for answer in answers] == [[3]]


def test_a_column_of_a_table_that_is_missing_is_told_with_its_attribute() -> None:
    with pytest.raises(WrongColumns, match=r"no column `who` \(for `name`\) in the table `room`"):
        TABLED.run([], tables={"room": pa.table({"name": ["x"], "seats": [3]})})


def test_a_table_is_read_from_a_file_by_its_columns(tmp_path: Path) -> None:

    (tmp_path / "rooms.csv").write_text("seats,who\n3,x\n", encoding="utf-8")
    rows = read_file(tmp_path / "rooms.csv", TABLED.catalogue.tables["room"], TABLED.catalogue)
    assert rows == [{"who": "x", "seats": 3}]


# ---- in this process -----------------------------------------------------------------------------------------


def test_the_live_engine_reads_keys_of_other_names() -> None:
    engine = PROGRAM.engine()
    quick = {"event": "txn", "time": 1, "data": {"card_no": "a", "amount": 11.5}}
    slow = {"event": "txn", "ts": "1970-01-01T00:00:02Z", "data": {"card_no": "b", "amount": 11}}
    answers = [*engine.send(quick), *engine.send(slow), *engine.finish()]
    assert [answer["data"] for answer in answers] == [["a"], ["b"]]
    assert engine.warnings == ()


def test_the_live_engine_takes_lines_of_a_stream_of_one_type_that_have_been_named() -> None:
    engine = PROGRAM.engine()
    given = [b'{"ts": 1, "card_no": "a", "amount": 11.5}', b'{"ts": 2, "card_no": 5}', b"{", b"7"]
    of_stream = CATALOGUE.carrying("txn")
    answers = [*engine.send_many([named(decode_line(line), of_stream) for line in given]), *engine.finish()]
    assert [answer["data"] for answer in answers] == [["a"]]
    assert [bad.original for bad in engine.bad] == [line.decode() for line in given[1:]]


# ---- one event, however it is written ------------------------------------------------------------------------

KINDS = {"s": pa.string(), "f": pa.float64(), "i": pa.int64(), "b": pa.bool_(), "t": pa.timestamp("us", "UTC")}
WIDE = ephemera.compile(
    'EVENT e(s: string FROM "f", f: float FROM "s", i: int FROM "a number", b: bool, t: time FROM "i");'
    "STREAM es CARRIES e TIME at; p(x) <- e: e(x, f, i, b, t);"
)
COLUMNS = dict(zip(KINDS, WIDE.catalogue.columns("e") or (), strict=True))
VALUES = st.fixed_dictionaries(
    {
        "s": st.none() | st.text(max_size=3),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | st.booleans(),
        "t": st.none() | st.datetimes(timezones=st.just(UTC)),
    }
)


@given(VALUES, st.integers(-(10**6), 10**6))
def test_an_event_is_the_same_by_position_by_key_plain_and_in_columns(values: dict[str, Any], at: int) -> None:
    """Columns have the names of other attributes here, so that each mistake is seen."""
    of_stream = WIDE._compiled.carrying("e")
    by_key = {COLUMNS[name]: value for name, value in values.items()}
    found = [
        read_event({"event": "e", "time": at, "data": [values[name] for name in KINDS]}, WIDE._compiled),
        read_event({"event": "e", "time": at, "data": by_key}, WIDE._compiled),
        read_event({"at": at, "data": by_key}, of_stream),
        read_event({"at": at, **by_key}, of_stream),
    ]
    columns = {COLUMNS[name]: pa.array([value], KINDS[name]) for name, value in values.items()}
    table = pa.table({"at": pa.array([at], pa.int64()), **columns})
    (part,) = Reader(table, of_stream).read().parts
    found += part.events()
    first = found[0]
    assert isinstance(first, Event)
    for other in found:
        assert isinstance(other, Event)
        assert (other.term.key, other.time) == (first.term.key, first.time)
