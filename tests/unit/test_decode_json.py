"""Lines of JSON are read by columns exactly as they are one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import ephemera
from ephemera.formats.decode_json import JsonDecoder
from ephemera.formats.json_events import BadEvent, decode_line, enveloped, uses_text
from ephemera.formats.json_lines import lines_of
from ephemera.formats.reading import Keys, read_event
from ephemera.physical.plan import Compiled
from ephemera.terms.events import Event

_PROGRAM = """
TIME UNIT 1 ms;
TIME ZONE "Europe/Berlin";
EVENT a(id: int, x: int);
EVENT b(name: string, price: float, is_new: bool, at: time, what: any) LASTS AT MOST 2 sec;
EVENT c(tags: string[]);
EVENT d();
EVENT e(n: int) LASTS ANY;
STREAM s CARRIES e TIME begin, end;
r(x) <- i: a(x, _), j: b(name: y), k: c(_), l: d(), m: e(x);
"""
_CLOSED = ephemera.compile(_PROGRAM)._compiled
_OPEN = ephemera.compile("TIME UNIT 1 ms; r(x) <- i: a(x, _); s(x) <- i: open(x), j: b(_, _, _);")._compiled

_numbers = st.sampled_from(
    "0 1 -1 7 1.0 1.5 1e3 -0 -0.0 9007199254740992 9007199254740993 9223372036854775807 9223372036854775808 "
    "-9223372036854775809 1e400 0.1 1234567890123456789012345 NaN Infinity 9007199254740993.0 1e22".split()
)
_texts = st.sampled_from(
    ['""', '"a"', '"1"', '"\\u00e4"', '"ä"', '"\\ud800"', '"a\\":b"', '"\\n"', '"2026-03-01T09:00:00Z"', '"x": 1']
)
_scalars = (
    _numbers | _texts | st.sampled_from(["null", "true", "false", "[]", "[1]", "{}", '{"a": 1}', '{"a": 1, "a": 2}'])
)
_times = st.sampled_from(
    [
        *"0 1 5 1.5 -3 9223372036854775807 99999999999999999999 1e2 1e-99999999999999999999 null true".split(),
        '"2026-03-01T09:00:00Z"',
        '"2026-03-01T09:00:00.123456Z"',
        '"2026-03-01T09:00:00.1234567Z"',
        '"2026-03-01"',
        '"2026-02-30T09:00:00Z"',
        '"2026-03-29T02:30:00"',
        '"2026-03-01T09:00:00+02:00"',
        '"2026-03-01T09:00:60Z"',
        '"0000-03-01T09:00:00Z"',
        '"24"',
        "[1, 2]",
        "[2, 1]",
        '[1, "1970-01-01T00:00:01Z"]',
        "[1]",
        "[0, 5000]",
    ]
)
_good_times = st.sampled_from(["1", "2", "[1, 2]", '"2026-03-01T09:00:00Z"', '"2026-03-01T09:00:00.5Z"', "[0, 3000]"])
_labels = st.sampled_from(["a", "b", "c", "d", "e", "open", "other", "ä", "time"])
_keys = st.sampled_from(["id", "x", "name", "price", "is_new", "at", "what", "tags", "n", "more"])


def _joined(values: Sequence[str], form: str) -> str:
    return f"[{', '.join(values)}]" if form == "list" else f"[{','.join(values)}]"


_data = st.one_of(
    st.builds(_joined, st.lists(_scalars, max_size=5), st.just("list")),
    st.builds(_joined, st.lists(st.sampled_from(["1", "2", '"a"']), min_size=2, max_size=2), st.just("")),
    st.lists(st.tuples(_keys, _scalars), max_size=4).map(lambda p: "{" + ", ".join(f'"{k}": {v}' for k, v in p) + "}"),
    st.sampled_from(
        ['{"id": 1, "x": 2}', '{"id": 3, "x": null, "more": {"deep": [1, {"id": 2}]}}', '["a", 1, true, 5, 2]']
    ),
    _scalars,
)


def _line(label: str, time: str, data: str, more: list[str], broken: int) -> str:
    pairs = [f'"event": {json.dumps(label, ensure_ascii=False)}', f'"time": {time}', f'"data": {data}', *more]
    text = "{" + ", ".join(pairs) + "}"
    match broken:
        case 1:
            return text[:-1]
        case 2:
            return text + " " + text
        case 3:
            return text.replace(": ", ":", 2)
        case 4:
            return "{" + ", ".join(reversed(pairs)) + "}"
        case 5:
            return text.replace('": ', '" : ')
        case 6:
            return f"  {text} "
    return text


_more = st.lists(
    st.sampled_from(
        [
            '"begin": 1',
            '"end": 2',
            '"xml": "<a/>"',
            '"term": "a{}"',
            '"note": "x"',
            '"time": 3',
            '"time" : 3',
            '"note":1',
        ]
    ),
    max_size=2,
)
_odd = st.builds(_line, _labels, _times, _data, _more, st.integers(0, 8))
_good = st.builds(_line, _labels, _good_times, _data, st.just([]), st.just(0))
_others = st.sampled_from(
    ["", "   ", "nothing", "[1]", '"a"', "null", '{"event": 1}', "{}", '{"event": "a"}', "\ufeff{}"]
)
_blocks = st.lists(_good | _odd | _others, max_size=8) | st.lists(_good, max_size=12)


def _told(
    compiled: Compiled, lines: Sequence[bytes]
) -> tuple[list[tuple[int, object]], list[tuple[int, BadEvent]], bool | None, list[str]]:
    keys = Keys(compiled.physical)
    good: list[tuple[int, object]] = []
    bad: list[tuple[int, BadEvent]] = []
    form: bool | None = None
    for row, line in enumerate(lines):
        message = decode_line(line)
        event = read_event(message, compiled)
        if isinstance(event, BadEvent):
            bad.append((row, event))
            continue
        if event is None:
            continue
        keys.note(enveloped(message.data, compiled.rules.resolved.catalogue))
        good.append((row, _shown(event, compiled)))
        if form is None:
            form = not uses_text(message.data, compiled.rules.resolved.catalogue)
    return good, bad, form, keys.notes()


def _shown(event: Event, compiled: Compiled) -> object:
    """An event with the forms of its values; of one that no rule reads, only when it was."""
    return repr((event.term.label, event.time) if compiled.is_unread(event.term.label) else event.key)


@given(st.sampled_from(["closed", "open"]), _blocks, st.sampled_from(["\n", "\r\n"]))
@example(
    "closed",
    [
        '{"event": "a", "time": 1, "data": [1, 2]} {"event": "a", "time": 1, "data": [1, 2]}',
        '{"event": "a",',
        '"time": 2, "data": [1, 2]}',
    ],
    "\n",
)
@example(
    "closed",
    [
        '{"event": "other", "time": "2026-03-01T09:00:00Z", "data": {"x": 1, "x": 2}}',
        '{"event": "other", "data": {"x": 1}}',
        '{"event": "a", "event": "other", "time": 1, "data": []}',
        '{"event": "other", "time": 1.5, "data": {"x": 1, "x": 2}}',
        '{"event": "a", "time": 1, "data": [1, 2]}',
    ],
    "\n",
)
@example(
    "closed",
    ['{"event": "a", "time": 1, "data": {"id": 1, "x": 2, "id": 2}}', '{"event": "a", "time": 1, "data": {"id": 1}}'],
    "\n",
)
def test_a_block_by_columns_is_its_lines_one_by_one(name: str, given: list[str], end: str) -> None:
    compiled = _CLOSED if name == "closed" else _OPEN
    block = "".join(line + end for line in given).encode("utf-8", "surrogatepass")
    lines = [line.rstrip(b"\r") for line in lines_of(block)]
    found = JsonDecoder(compiled, Keys(compiled.physical)).decode(block)
    good, bad, form, _notes = _told(compiled, lines)
    events = [
        (row, _shown(event, compiled))
        for part, rows in zip(found.parts, found.rows, strict=True)
        for row, event in zip(rows.tolist(), part.events(), strict=True)
    ]
    assert sorted(events) == good
    assert sorted(found.bad, key=lambda one: one[0]) == bad
    assert found.count == len(lines)
    assert found.as_numbers == form


_ONLY = {
    "ts": ephemera.compile(
        'EVENT txn(card: string FROM "card_no", amount: float); STREAM s CARRIES txn TIME ts; r(c) <- t: txn(c, _);'
    )._compiled.carrying("txn"),
    "time": ephemera.compile("EVENT txn(card: string, amount: float); r(c) <- t: txn(c, _);")._compiled.carrying("txn"),
    "pair": ephemera.compile(
        "EVENT txn(card: string, amount: float) LASTS ANY; STREAM s CARRIES txn TIME a, b; r(c) <- t: txn(c, _);"
    )._compiled.carrying("txn"),
    "own": ephemera.compile(
        "EVENT txn(card: string, time: int); STREAM s CARRIES txn TIME ts; r(c) <- t: txn(c, _);"
    )._compiled.carrying("txn"),
}
_plain_pairs = st.tuples(
    st.sampled_from(["ts", "time", "card", "card_no", "amount", "a", "b", "begin", "end", "note", "event", "data"]),
    st.sampled_from(["1", "2", "3.5", '"c"', '"txn"', "null", '"2026-03-01T09:00:00Z"', "[1, 2]", '{"card": "x"}']),
)
_plain_lines = st.one_of(
    st.lists(_plain_pairs, max_size=5).map(lambda pairs: "{" + ", ".join(f'"{k}": {v}' for k, v in pairs) + "}"),
    st.builds(
        lambda time, card, amount: f'{{"{time}": 1, "b": 2, "{card}": "c", "amount": {amount}}}',
        st.sampled_from(["ts", "time", "a"]),
        st.sampled_from(["card", "card_no"]),
        st.sampled_from(["1.5", "2", "null"]),
    ),
)


@given(st.sampled_from(sorted(_ONLY)), st.lists(_plain_lines, max_size=6))
def test_plain_objects_of_a_stream_of_one_type_are_read_by_columns_as_one_by_one(name: str, given: list[str]) -> None:
    compiled = _ONLY[name]
    block = "".join(line + "\n" for line in given).encode()
    found = JsonDecoder(compiled, Keys(compiled.physical)).decode(block)
    good, bad, form, _notes = _told(compiled, lines_of(block))
    events = [
        (row, _shown(event, compiled))
        for part, rows in zip(found.parts, found.rows, strict=True)
        for row, event in zip(rows.tolist(), part.events(), strict=True)
    ]
    assert sorted(events) == good
    assert sorted(found.bad, key=lambda one: one[0]) == bad
    assert found.as_numbers == form


@pytest.mark.parametrize("size", [1, 3])
def test_what_every_event_lacks_is_told_as_one_by_one(size: int) -> None:
    lines = [json.dumps({"event": "a", "time": k, "data": {"id": k, "y": 1}}).encode() for k in range(6)]
    keys = Keys(_CLOSED.physical)
    decoder = JsonDecoder(_CLOSED, keys)
    for k in range(0, 6, size):
        decoder.decode(b"\n".join(lines[k : k + size]))
    assert keys.notes() == _told(_CLOSED, lines)[3] == ["a: `x` was missing in all 6 events"]
