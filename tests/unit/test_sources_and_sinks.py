"""This module shows that sources and sinks take what people give them, destroy nothing, and say what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ephemera
from ephemera import sinks, sources
from ephemera.connect.atomic_files import CannotWrite
from ephemera.connect.file_source import CannotRead, format_of

TEXT = """
EVENT order(id: string, qty: int);
TABLE known(id: string) FROM "known.csv";
large(i) <- o: order(i, q), q > 100;
"""
PROGRAM = ephemera.compile(TEXT)
LARGE = [{"event": "large", "time": 1, "data": ["a"]}, {"event": "large", "time": 2, "data": ["b"]}]


def line(time: int, name: str) -> str:
    return json.dumps({"event": "order", "time": time, "data": [name, 250]}) + "\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in", "a.jsonl").write_text(line(1, "a"), encoding="utf-8")
    Path("in", "b.jsonl").write_text(line(2, "b"), encoding="utf-8")
    Path("in", "_SUCCESS").write_text("no event", encoding="utf-8")
    Path("orders.jsonl").write_text(line(1, "a") + line(2, "b"), encoding="utf-8")
    Path("soft.jsonl").symlink_to("orders.jsonl")
    Path("hard.jsonl").hardlink_to("orders.jsonl")
    Path("p.eq").write_text(TEXT, encoding="utf-8")
    Path("known.csv").write_text("id\na\n", encoding="utf-8")
    return tmp_path


# ---- nothing is written over -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        (lambda: sources.Files(["orders.jsonl"]), "orders.jsonl", "the sink orders.jsonl is the input orders.jsonl"),
        (lambda: sources.Files(["orders.jsonl"]), "in/../orders.jsonl", "is the input"),
        (lambda: sources.Files(["orders.jsonl"]), "soft.jsonl", "is the input"),
        (lambda: sources.Files(["orders.jsonl"]), "hard.jsonl", "is the input"),
        (lambda: sources.Files("soft.jsonl"), "orders.jsonl", "is the input"),
        (lambda: sources.Files("in"), "in/answers.jsonl", "lies in the input in"),
        (lambda: sources.Files("in/*.jsonl"), "in/a.jsonl", "lies in the input"),
        (lambda: [sources.Files("in"), sources.Files("orders.jsonl")], "orders.jsonl", "is the input"),
        (lambda: Path("orders.jsonl").open("rb"), "orders.jsonl", "is the input"),  # noqa: SIM115 - it is given away
        (lambda: sources.Memory(Path("orders.jsonl").open("rb")), "hard.jsonl", "is the input"),  # noqa: SIM115
        (lambda: sources.Files("orders.jsonl"), "p.eq", "is the program"),
        (lambda: sources.Files("orders.jsonl"), "known.csv", "is a table of the program, known.csv"),
    ],
    ids=count(),
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_run_writes_over_nothing_that_it_reads(shop: Path, source: Callable[[], Any], target: str, told: str) -> None:
    before = {str(path): path.read_bytes() for path in shop.rglob("*") if path.is_file()}
    with pytest.raises(CannotWrite, match=told):
        ephemera.load("p.eq").run(source(), sink=sinks.File(target))
    assert {str(path): path.read_bytes() for path in shop.rglob("*") if path.is_file()} == before


def test_other_files_are_written(shop: Path) -> None:
    del shop
    PROGRAM.run(sources.Files("in"), sink=sinks.File("answers.jsonl"))
    PROGRAM.run(sources.Files("in"), sink=sinks.File("answers.jsonl"))
    assert [json.loads(one) for one in Path("answers.jsonl").read_text(encoding="utf-8").splitlines()] == LARGE


# ---- what can be named -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        lambda: sources.Files("orders.jsonl"),
        lambda: sources.Files(Path("orders.jsonl")),
        lambda: sources.Files([Path("in/a.jsonl"), "in/b.jsonl"]),
        lambda: sources.Files("in"),
        lambda: sources.Files("in/"),
        lambda: sources.Files("in/*.jsonl"),
        lambda: sources.Files(Path("in") / "?.jsonl"),
        lambda: [sources.Files("in/a.jsonl"), sources.Files("in/b.jsonl")],
        lambda: (sources.Files("in/a.jsonl"), sources.Memory([line(2, "b")])),
    ],
    ids=count(),
)
def test_files_are_named_as_on_the_command_line(shop: Path, source: Callable[[], Any]) -> None:
    del shop
    assert PROGRAM.run(source()) == LARGE


def test_a_folder_without_files_is_told_of(shop: Path) -> None:
    (shop / "empty").mkdir()
    with pytest.warns(ephemera.EphemeraWarning, match="there are no files in empty"):
        assert PROGRAM.run(sources.Files("empty")) == []
    with pytest.raises(CannotRead, match=r"cannot read nope\*: No such file"):
        PROGRAM.run(sources.Files("nope*"))


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(shop: Path) -> None:
    (shop / "[ab].jsonl").write_text(line(1, "a"), encoding="utf-8")
    assert PROGRAM.run(sources.Files("[ab].jsonl")) == LARGE[:1]


def test_endings_count_in_any_letters(shop: Path) -> None:
    assert [format_of(name) for name in ("A.CSV", "a.csv.GZ", "a.Parquet", "a.JSONL.gz")] == [
        "csv",
        "csv",
        "parquet",
        "json",
    ]
    PROGRAM.run(sources.Files("in"), sink=sinks.File(shop / "ANSWERS.CSV"))
    assert Path("ANSWERS.CSV").read_text(encoding="utf-8").startswith('"event","begin","end","i"\n')


# ---- what is wrong is told ---------------------------------------------------------------------------------------


SOURCES: Any = sources
SINKS: Any = sinks
RUN: Any = PROGRAM.run
"""The same without their types, since type checkers would tell of these mistakes, too."""


@pytest.mark.parametrize(
    ("work", "error", "told"),
    [
        (lambda: SOURCES.Files("in", format="cvs"), ValueError, "no format `cvs`; did you mean `csv`"),
        (lambda: SOURCES.Folder("in", format="cvs"), ValueError, "no format `cvs`"),
        (lambda: SINKS.Folder("out", format="xml"), ValueError, "no format `xml`"),
        (lambda: SOURCES.Files(3), TypeError, "sources.Files takes a path or a list of paths, and this is a int"),
        (lambda: SOURCES.Files([b"in"]), TypeError, "takes paths, and this is a bytes"),
        (lambda: SOURCES.Files([""]), ValueError, "this one is empty"),
        (lambda: SOURCES.Files("in", only=["order"]), TypeError, "`only` of sources.Files"),
        (lambda: SINKS.File(3), TypeError, "sinks.File takes paths"),
        (lambda: SINKS.File("s.jsonl.gz"), ValueError, "not packed; name `s.jsonl.gz` without"),
        (lambda: SINKS.File("s.CSV.GZ"), ValueError, "not packed"),
        (lambda: RUN(sources.Files("in", only="zz")), ValueError, "in is said to hold only `zz`"),
        (lambda: RUN(sources.Files("in", only="ordr")), ValueError, "did you mean `order`"),
        (lambda: RUN([sources.Files("in"), 3]), TypeError, "one thing in it is a int"),
        (lambda: RUN([], sink="s.csv"), TypeError, r'write sinks\.File\("s\.csv"\)'),
        (lambda: RUN([], sink=Path("s.csv")), TypeError, r'write sinks\.File\("s\.csv"\)'),
        (lambda: RUN([], sink=sinks.Folder("s")), TypeError, "sinks.Folder is for live queries"),
        (lambda: RUN([], sink=sinks.Table("s")), TypeError, "sinks.Table is for live queries"),
        (lambda: RUN([], sink=sinks.Batches(print)), TypeError, "sinks.Batches is for live queries"),
        (lambda: RUN([], sink=sinks.Memory), TypeError, "the class Memory itself"),
        (lambda: RUN([], sink=3), TypeError, "and this is a int"),
    ],
    ids=count(),
)
def test_a_mistake_gets_a_sentence(shop: Path, work: Callable[[], Any], error: type[Exception], told: str) -> None:
    del shop
    with pytest.raises(error, match=told):
        work()


def test_any_type_may_come_where_a_rule_reads_any() -> None:
    program = ephemera.compile("DETECT seen { var X } ON event e: var X {{ }} END")
    assert program.run(sources.Memory([{"time": 1, "data": [1]}], only="zz"))


# ---- of one's own ------------------------------------------------------------------------------------------------


class Counted:
    """A source that gives a few batches, whatever they are, and can be opened again."""

    name, only, can_reopen = "the counter", None, True

    def __init__(self, *batches: Any) -> None:
        self.batches = batches

    def open(self, position: int | None = None) -> Opened:
        return Opened(self.batches, position or 0)


class Opened:
    def __init__(self, batches: tuple[Any, ...], position: int) -> None:
        self.batches = batches
        self.position = position

    def read(self) -> Any:
        self.position += 1
        return self.batches[self.position - 1] if self.position <= len(self.batches) else None

    def close(self) -> None: ...


def test_a_source_may_be_ones_own() -> None:
    lines, objects = sources.Lines(line(1, "a").encode()), sources.Objects([json.loads(line(2, "b"))])
    assert isinstance(Counted(), sources.Source)
    assert PROGRAM.run(Counted(lines, objects)) == LARGE
    assert PROGRAM.run(Counted(objects, lines)) == LARGE


@pytest.mark.parametrize("wrong", [[{"event": "order"}], {"event": "order"}, b"{}", 3])
def test_what_a_source_gives_is_a_batch(wrong: Any) -> None:
    kind = type(wrong).__name__
    with pytest.raises(TypeError, match=rf"`read` of the counter gave a {kind}; it gives sources\.Objects"):
        PROGRAM.run(Counted(wrong))


def test_all_names_of_the_protocols_are_offered() -> None:
    for name in ("Batch", "Cells", "Lines", "Objects", "OpenSource", "Rows", "Source"):
        assert name in sources.__all__
        assert getattr(sources, name)
    for name in ("AnswerBatch", "OpenSink", "Sink"):
        assert name in sinks.__all__
        assert getattr(sinks, name).__doc__


# ---- files of answers --------------------------------------------------------------------------------------------


def columns(path: Path) -> dict[str, str]:
    schema = pq.read_schema(path)
    return {one.name: str(one.type) for one in schema}


def test_times_between_two_units_are_doubles_as_in_json_lines(tmp_path: Path) -> None:
    program = ephemera.compile(
        "EVENT o(i: string); p(i, begin(o)) <- o: o(i); q(duration(w)) <- o: o(i), w: extend(o, 1);"
    )
    events = [{"event": "o", "time": time, "data": ["a"]} for time in (1, 2.5)]
    for name in ("a.csv", "a.parquet", "a.jsonl"):
        program.run(events, sink=sinks.File(tmp_path / name))
    lines = [json.loads(one) for one in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    times = [one["time"] if isinstance(one["time"], list) else [one["time"]] * 2 for one in lines]
    found = pq.read_table(tmp_path / "a.parquet")
    assert [list(row) for row in zip(found["begin"].to_pylist(), found["end"].to_pylist(), strict=True)] == times
    expected = {"event": "string", "begin": "double", "end": "double", "i": "string", "begin_o": "double"}
    assert columns(tmp_path / "a.parquet") == {**expected, "duration_w": "int64"}
    assert '"p",2.5,2.5,"a",2.5,' in (tmp_path / "a.csv").read_text(encoding="utf-8")
    table = program.run(pa.table({"event": ["o", "o"], "time": [1, 2.5], "i": ["a", "a"]}))
    assert table.to_pylist() == found.to_pylist()
    assert table.schema.types == found.schema.types
    assert [str(kind) for kind in program.run(events)["p"].schema.types] == ["double", "double", "string", "double"]


def test_whole_times_are_whole_numbers_in_every_file(tmp_path: Path) -> None:
    program = ephemera.compile("EVENT o(i: string); p(i, begin(o)) <- o: o(i);")
    program.run([{"event": "o", "time": 2, "data": ["a"]}], sink=sinks.File(tmp_path / "a.parquet"))
    assert list(columns(tmp_path / "a.parquet").values()) == ["string", "int64", "int64", "string", "int64"]


@pytest.mark.parametrize("form", ["number", "text"])
def test_a_column_has_the_type_of_its_values_if_nothing_is_declared(tmp_path: Path, form: str) -> None:
    program = ephemera.compile("seen(x, n) <- i: a(x, n);")

    def written(*rows: list[Any]) -> tuple[list[str], list[list[Any]]]:
        times = range(len(rows)) if form == "number" else [f"2026-03-02T09:00:0{n}Z" for n in range(len(rows))]
        events = [{"event": "a", "time": time, "data": row} for time, row in zip(times, rows, strict=True)]
        program.run(events, sink=sinks.File(tmp_path / "a.parquet"))
        program.run(events, sink=sinks.File(tmp_path / "a.csv"))
        table = pq.read_table(tmp_path / "a.parquet").select(["x", "n"])
        own = program.run(events)["seen"].select(["x", "n"])
        assert own.to_pylist() == table.to_pylist()
        return [str(kind) for kind in table.schema.types], [list(row.values()) for row in table.to_pylist()]

    assert written(["tea", 5]) == (["string", "int64"], [["tea", 5]])
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[1].endswith(',"tea",5')
    assert written(["tea", 5], [None, 5.5]) == (["string", "double"], [["tea", 5.0], [None, 5.5]])
    assert written(["tea", True], [7, False]) == (["string", "bool"], [['"tea"', True], ["7", False]])
    far = 2**60 + 1
    assert written([far, 1.5], [1, far]) == (["int64", "string"], [[far, "1.5"], [1, str(far)]])
    assert written([far, 1.5], [1, 2**60])[0] == ["int64", "double"]
    assert written(["", None], ['"', None])[1] == [["", None], ['"', None]]


def test_answers_that_wait_for_their_types_keep_their_order(tmp_path: Path) -> None:
    program = ephemera.compile("seen(x) <- i: a(x); other(x, 1) <- i: a(x);")
    events = [{"event": "a", "time": n // 3, "data": [f"{n * 7919 % 101}"]} for n in range(3_000)]
    program.run(events, sink=sinks.File(tmp_path / "a.parquet"))
    found = pq.read_table(tmp_path / "a.parquet")
    expected = program.run(events)
    assert found["event"].to_pylist() == [one["event"] for one in expected]
    assert found["x"].to_pylist() == [one["data"][0] for one in expected]
