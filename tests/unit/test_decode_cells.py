"""Rows of CSV files are read by columns exactly as they are one by one."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

import ephemera
from ephemera.formats.decode_cells import CellDecoder
from ephemera.formats.decode_csv import event_of_row, is_blank, row_of
from ephemera.formats.json_events import BadEvent, uses_text
from ephemera.physical.plan import Compiled

_PROGRAM = """
TIME UNIT 1 ms;
TIME ZONE "Europe/Berlin";
EVENT a(id: int, x: float);
EVENT b(id: string, x: any, at: time, is_new: bool);
EVENT c(tags: string[]);
EVENT e(id: int) LASTS AT MOST 1 sec;
STREAM s CARRIES e TIME begin, end;
r(i) <- k: a(i, _), l: e(i); s(i) <- l: b(i, _, _, _), m: c(_);
"""
_SEVERAL = ephemera.compile(_PROGRAM)._compiled
_ONE = ephemera.compile("EVENT a(id: int, x: float); r(i) <- k: a(i, _);")._compiled
_COLUMNS = {
    "several": ("event", "time", "id", "x", "at", "is_new", "tags", "begin", "end"),
    "one": ("time", "id", "x", "other"),
}

_cells = st.sampled_from(
    [
        *"0 1 -1 7 007 +1 1.0 1.5 1e3 1e400 -0 -0.0 .5 5.".split(),
        *"9007199254740993 9223372036854775807 9223372036854775808".split(),
        *[
            "",
            " ",
            " 1",
            "a",
            "ä",
            "true",
            "false",
            "True",
            "null",
            "NaN",
            "[1]",
            '"1"',
            '"a,b"',
            '"a""b"',
            '"x',
            "a\tb",
        ],
        *['"1"', '"2026-03-01T09:00:00Z"', '""', '"a"b', 'a"b', '"', '"a\n', "'"],
        *["2026-03-01T09:00:00Z", "2026-03-29T02:30:00", "2026-03-01", "2026-02-30T09:00:00Z", "20260301"],
    ]
)
_plain = st.sampled_from(["1", "2", "3", "2026-03-01T09:00:00Z", "0.5", "true", "", '"1"', '"a,b"', '""'])
_quoted = st.sampled_from(['"1"', '"a,b"', '""', '",', '"', 'a"b', ',"', '"x"y', "1"])
_labels = st.sampled_from(["a", "b", "c", "e", "other", "", "1"])


def _row(name: str, label: str, cells: list[str], cut: int) -> str:
    given = [label, *cells] if name == "several" else cells
    whole = given[: len(_COLUMNS[name])]
    return ",".join(whole[:-1] if cut == 0 else [*whole, ""] if cut == 1 else whole)


@st.composite
def _files(draw: st.DrawFn) -> tuple[str, list[str], str]:
    name = draw(st.sampled_from(["several", "one"]))
    cells = draw(st.sampled_from([_cells, _plain, _quoted]))
    row = st.builds(
        _row,
        st.just(name),
        _labels,
        st.lists(cells, min_size=8, max_size=8),
        st.integers(0, 2) if cells is _cells else st.just(2),
    )
    lines = draw(st.lists(row | st.sampled_from(["", "  "]) if cells is _cells else row, max_size=8))
    return name, lines, draw(st.sampled_from(["\n", "\r\n"]))


@given(_files())
@example(("one", ["1,2,3,\r4", "5,6,7,8"], "\n"))
@example(("one", ["1,2,3,4\r5,6,7,8", ""], "\n"))
@example(("one", ["1,2,3,y\r"], "\r\n"))
@example(("one", ['1,"a,"b",c",5'], "\n"))
@example(("one", ["\ufeff,2,3,4"], "\n"))
@example(("one", ['1,2,3,",4,a"b', "5,6,7,8"], "\n"))
def test_a_block_by_columns_is_its_rows_one_by_one(given: tuple[str, list[str], str]) -> None:
    name, texts, end = given
    compiled: Compiled = _SEVERAL if name == "several" else _ONE
    block = "".join(text + end for text in texts).encode()
    found = CellDecoder(compiled, "folder/file.csv", _COLUMNS[name]).decode(block, 2)
    good: list[tuple[int, str]] = []
    bad: list[tuple[int, BadEvent]] = []
    form: bool | None = None
    lines = [(number, line) for number, line in enumerate(block.split(b"\n"), 2) if not is_blank(line)]
    for row, (number, line) in enumerate(lines):
        event, data = event_of_row(row_of(line, number, _COLUMNS[name]), "file.csv", compiled)
        if isinstance(event, BadEvent):
            bad.append((row, event))
            continue
        if event is None:
            continue
        good.append((row, repr(event.key)))
        form = not uses_text(data, compiled.rules.resolved.catalogue) if form is None else form
    events = [
        (row, repr(event.key))
        for part, rows in zip(found.parts, found.rows, strict=True)
        for row, event in zip(rows.tolist(), part.events(), strict=True)
    ]
    assert (sorted(events), sorted(found.bad, key=lambda one: one[0])) == (good, bad)
    assert (found.count, found.as_numbers) == (len(lines), form)
