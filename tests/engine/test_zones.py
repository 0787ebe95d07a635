"""This module shows what times without a zone mean, in whatever form they come, and that a run says what it assumed."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import ephemera
from ephemera.cli.main import app
from ephemera.formats.arrow_columns import in_zone, with_instants
from ephemera.program import Program
from ephemera.rules.outcome import DeadLetter
from ephemera.terms.errors import BadMessage
from ephemera.terms.zones import NO_ZONE, LocalTime

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
BERLIN = 'TIME ZONE "Europe/Berlin"; '
RULES = "EVENT a(x: time, y: any); s(begin(i), x, y) <- i: a(x, y);"
NINE = datetime(2026, 3, 1, 9)  # noqa: DTZ001 - times without a zone are what this is about
SKIPPED = datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001
DOUBLED = datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001


def values(program: Program, events: Any) -> list[Any]:
    return [answer["data"] for answer in program.run_all(events).answers]


def event(time: Any, x: Any = None, y: Any = None) -> dict[str, Any]:
    return {"event": "a", "time": time, "data": [x, y]}


def test_times_of_python_are_times_with_and_without_a_zone() -> None:
    aware = NINE.replace(tzinfo=timezone(timedelta(hours=9)))
    events = [event(NINE, aware, date(2026, 7, 1)), event(aware, "2026-07-01 09:00", NINE)]
    assert values(ephemera.compile(BERLIN + RULES), events) == [
        ["2026-03-01T00:00:00Z", "2026-07-01T07:00:00Z", "2026-03-01T08:00:00Z"],
        ["2026-03-01T08:00:00Z", "2026-03-01T00:00:00Z", "2026-06-30T22:00:00Z"],
    ]
    undeclared = [{"event": "a", "time": NINE, "data": [2, aware]}]
    assert values(ephemera.compile("s(y) <- i: a(x, y);"), undeclared) == [["2026-03-01T00:00:00Z"]]
    tree = [{"event": "a", "time": 1, "data": {"x": {"y": [NINE]}}}]
    program = ephemera.compile(BERLIN + "DETECT s { var Y } ON event i: a {{ x {{ y { var Y } }} }} END")
    assert program.run(tree) == [{"event": "s", "time": 1, "term": 's { "2026-03-01T08:00:00Z" }'}]


def test_times_of_pandas_are_floored_and_its_missing_ones_are_null_or_bad() -> None:
    program = ephemera.compile(BERLIN + RULES)
    fine = pd.Timestamp("2026-03-01T09:00:00.123456999")
    run = program.run_all([event(fine, pd.NaT, pd.Timestamp("1969-12-31T23:00:00.9999999Z")), event(pd.NaT)])
    assert run.answers[0]["data"] == ["2026-03-01T08:00:00.123456Z", None, "1969-12-31T23:00:00.999999Z"]
    assert [bad.reason for bad in run.bad] == [
        "a time is a number or a text such as 2026-03-01T09:00:00Z, and not `NaT`"
    ]


def test_what_no_clock_shows_is_bad_with_the_value_and_of_two_the_earlier_counts() -> None:
    program = ephemera.compile(BERLIN + RULES)
    run = program.run_all([event(SKIPPED), event(NINE, SKIPPED), event(NINE, None, SKIPPED), event(DOUBLED)])
    assert [answer["data"][0] for answer in run.answers] == ["2026-10-25T00:30:00Z"]
    assert {bad.reason for bad in run.bad} == {
        "`2026-03-29T02:30:00` does not exist in Europe/Berlin, whose clocks were put forward; give it a zone"
    }
    assert len(run.bad) == 3
    later = DOUBLED.replace(fold=1)
    assert values(program, [event(later)]) == values(program, [event(DOUBLED)])


def frames() -> dict[str, Any]:
    columns: dict[str, Any] = {"time": [NINE, SKIPPED, DOUBLED], "x": [date(2026, 7, 1)] * 3, "y": [None, NINE, NINE]}
    table = pa.table(
        {
            "time": pa.array(columns["time"], pa.timestamp("us")),
            "x": pa.array(columns["x"], pa.date32()),
            "y": pa.array(columns["y"], pa.timestamp("ns")),
        }
    )
    return {
        "arrow": table,
        "pandas": pd.DataFrame({"time": columns["time"], "x": pd.to_datetime(columns["x"]), "y": columns["y"]}),
        "polars": pl.from_arrow(table),
        "duckdb": duckdb.from_arrow(table),
    }


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "duckdb"])
@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_columns_without_a_zone_are_in_the_zone_of_the_program(kind: str, engine: str) -> None:
    program = ephemera.compile(BERLIN + RULES)
    given = frames()[kind]
    answers = program.run_all(given, engine=engine).answers
    rows = answers.to_arrow_table() if kind == "duckdb" else pa.table(answers)
    summer = datetime(2026, 6, 30, 22, tzinfo=UTC)
    plain = rows.cast(
        pa.schema([(f.name, f.type if f.name == "event" else pa.timestamp("us", "UTC")) for f in rows.schema])
    )
    assert [list(row.values())[3:] for row in plain.to_pylist()] == [
        [datetime(2026, 3, 1, 8, tzinfo=UTC), summer, None],
        [datetime(2026, 10, 25, 0, 30, tzinfo=UTC), summer, datetime(2026, 3, 1, 8, tzinfo=UTC)],
    ]


def test_a_column_in_a_zone_is_what_its_rows_are_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    start = datetime(2026, 3, 28, 22)  # noqa: DTZ001
    moments = [start + timedelta(minutes=7 * k) for k in range(400)]
    moments += [datetime(2026, 10, 24, 22) + timedelta(minutes=7 * k) for k in range(400)]  # noqa: DTZ001
    local = LocalTime("Europe/Berlin", is_declared=True)
    for unit in ("s", "ms", "us", "ns"):
        array = pa.array([*moments, None], pa.timestamp(unit))
        instants, right = in_zone(array, local)
        numbers = instants.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
        assert [v if good else None for v, good in zip(numbers, right, strict=True)] == [*map(_instant, moments), None]
        assert bool(right[-1])
        assert not right.all()
        with monkeypatch.context() as patch:  # as on a machine that has no zones for Arrow
            patch.setattr(pc, "assume_timezone", _no_zones)
            others, fits = in_zone(array, local)
        assert (fits == right).all()
        assert others.cast(pa.int64()).filter(pa.array(right)) == pa.array(numbers).filter(pa.array(right))


def _instant(moment: datetime) -> int | None:
    try:
        return LocalTime("Europe/Berlin").instant(moment)
    except BadMessage:
        return None


def _no_zones(*_: Any, **__: Any) -> None:
    raise pa.ArrowInvalid("cannot locate the time zone database")


def test_old_timestamps_of_parquet_are_instants(tmp_path: Path) -> None:
    table = pa.table({"time": pa.array([NINE], pa.timestamp("ns")), "x": pa.array([NINE], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    read = with_instants(pq.read_table(tmp_path / "old.parquet"), pq.ParquetFile(tmp_path / "old.parquet").schema)
    assert [field.type.tz for field in read.schema] == ["UTC", "UTC"]


# ---- what a run says ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "notes"),
    [
        ([event("2026-03-01T09:00")], (NO_ZONE,)),
        ([event(NINE)], (NO_ZONE,)),
        ([event("2026-03-01T09:00Z", "2026-03-01T09:00")], (NO_ZONE,)),
        ([event("2026-03-01T09:00Z", "2026-03-01T09:00+01:00", "2026-03-01T09:00")], ()),
        ([event(1, 2)], ()),
    ],
)
def test_a_run_says_that_times_had_no_zone_unless_one_is_declared(events: Any, notes: tuple[str, ...]) -> None:
    program = ephemera.compile(RULES)
    assert program.run_all(events).notes == notes
    assert program.run_all([event(1)]).notes == ()
    live = program.engine(allow_unbounded=True)
    live.send_many(events)
    assert live.notes == notes
    assert ephemera.compile('TIME ZONE "UTC"; ' + RULES).run_all(events).notes == ()


def test_the_command_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text(RULES + 'TABLE t(at: time) FROM "t.csv";')
    (tmp_path / "t.csv").write_text("at\n2026-03-01\n")
    lines = [json.dumps(event("2026-03-01T09:00Z")), json.dumps(event("2026-03-01T09:00"))]
    (tmp_path / "in.jsonl").write_text("\n".join(lines * 3))
    for mode in ("batch", "stream"):
        command = ["run", str(tmp_path / "p.eq"), "--input", str(tmp_path / "in.jsonl"), "--engine", "local"]
        result = CliRunner().invoke(app, [*command, "--mode", mode])
        assert result.exit_code == 0, result.output
        assert result.stderr == f"note: {NO_ZONE}\n"


# ---- the last time -----------------------------------------------------------------------------------------


def test_answers_beyond_the_last_time_are_dead_letters_with_their_bindings() -> None:
    program = ephemera.compile(
        "far(x) <- i: a(x), w: extend(i, 146000 weeks), v: extend(w, 4000000 weeks);\n"
        "count(x, count(*)) <- i: a(x), w: shift-backward(i, 4000000 weeks), while i: collect j: a(_);\n"
    )
    events = [{"event": "a", "time": "2026-03-01T09:00Z", "data": [k]} for k in (1, 2)]
    for engine in ("oracle", "local"):
        run = program.run_all(events, engine=engine, allow_unbounded=True)
        assert run.answers == []
        found = sorted((letter.rule, letter.variables["x"], letter.reason) for letter in run.undefined)
        reason = "the time is too far from 1970: more than 2^61 microseconds, about 73,000 years"
        assert found == [(1, 1, reason), (1, 2, reason), (2, 1, reason), (2, 2, reason)]
        assert all(isinstance(letter, DeadLetter) for letter in run.undefined)
