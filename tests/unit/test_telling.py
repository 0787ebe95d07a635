"""This module shows that nothing about data is silent: names to emit, what a run lacked, what it could not use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.cli.main import app
from ephemera.rules.emitted import unknown_emitted

SHOP = """
TIME UNIT 1 hour;
EVENT order(id: string);
EVENT shipped(id: string);
EVENT spare(x: int);
late(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);
worse(id) <- l: late(id), s: shipped(id), {l, s} within 20;
RAISE to(recipient="b", transport="console") { alarm { var I } } ON event l: late {{ var I }} END
"""
UNBOUNDED = "EVENT a(x: int); EVENT b(x: int); pair(x) <- i: a(x), j: b(x);"
ENGINES = [
    pytest.param(["--engine", "local"], id="local"),
    pytest.param(["--engine", "oracle"], id="oracle"),
    pytest.param(["--engine", "spark"], id="spark"),
    pytest.param(["--mode", "stream", "--engine", "local"], id="live"),
]


def event(label: str, when: Any, *data: Any) -> dict[str, Any]:
    return {"event": label, "time": when, "data": list(data)}


ORDERS = [event("order", 1, "a"), event("order", 2, 4), event("order", 3, "b")]


class Place:
    """A folder with a program and events."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "in").mkdir()
        self.write("shop.eq", SHOP)
        self.write("other.eq", "EVENT order(id: string); seen(id) <- o: order(id);")
        self.write("unbounded.eq", UNBOUNDED)
        self.write("in/events.jsonl", "".join(json.dumps(one) + "\n" for one in ORDERS))
        self.write("out.jsonl", "mine")
        self.write("dead.jsonl", "mine too")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, *options: str, programs: tuple[str, ...] = ("shop.eq",)) -> Result:
        paths = [str(self.folder / name) for name in programs]
        return CliRunner().invoke(app, ["run", *paths, "--input", str(self.folder / "in/events.jsonl"), *options])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# ---- names to emit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_an_unknown_name_to_emit_is_refused_and_nothing_is_touched(place: Place, engine: list[str]) -> None:
    outputs = ["--output", str(place.folder / "out.jsonl"), "--dead-letter", str(place.folder / "dead.jsonl")]
    result = place.run("--emit", "worse", "--emit", "lat", *outputs, *engine)
    assert result.exit_code == 2
    assert result.stderr == ("there is no event `lat` to emit; did you mean `late`? there are alarm, late, worse\n")
    assert (place.folder / "out.jsonl").read_text() == "mine"
    assert (place.folder / "dead.jsonl").read_text() == "mine too"
    assert not result.stdout


def test_an_unknown_name_to_emit_makes_no_folder_for_a_live_run_on_spark(place: Place) -> None:
    out, checkpoint = place.folder / "answers", place.folder / "checkpoint"
    paths = ["--output", str(out), "--checkpoint", str(checkpoint), "--input", str(place.folder / "in")]
    result = CliRunner().invoke(
        app, ["run", str(place.folder / "shop.eq"), "--mode", "stream", "--emit", "latest", *paths]
    )
    assert result.exit_code == 2
    assert "did you mean `late`?" in result.stderr
    assert not out.exists()
    assert not checkpoint.exists()


def test_of_several_programs_one_must_give_what_is_to_be_emitted(place: Place) -> None:
    both = ("shop.eq", "other.eq")
    good = place.run("--emit", "seen", "--engine", "local", programs=both)
    assert {json.loads(line)["event"] for line in good.stdout.splitlines()} == {"seen"}
    wrong = place.run("--emit", "sen", "--engine", "local", programs=both)
    assert (wrong.exit_code, "there are alarm, late, seen, worse" in wrong.stderr) == (2, True)


def test_what_comes_from_outside_is_never_emitted(place: Place) -> None:
    result = place.run("--emit", "order", "--engine", "local")
    assert (result.exit_code, "`order` comes from outside and is never emitted" in result.stderr) == (2, True)


def test_messages_can_be_emitted(place: Place) -> None:
    result = place.run("--emit", "alarm", "--engine", "local")
    assert [json.loads(line)["event"] for line in result.stdout.splitlines()] == ["alarm", "alarm"]


def test_where_a_variable_decides_any_name_may_be_emitted() -> None:
    program = ephemera.compile("DETECT var L { } ON event e: tag {{ var L }} END")
    assert unknown_emitted(["anything"], [program._compiled.rules.resolved]) is None


def test_python_refuses_unknown_names_to_emit_and_takes_one_as_a_text() -> None:
    program = ephemera.compile(SHOP)
    for call in (program.run, program.run_all):
        with pytest.raises(ValueError, match="did you mean `late`"):
            call([], emit=["lat"])
    with pytest.raises(ValueError, match="did you mean `late`"):
        program.stream(None, emit=["lat"])
    assert [a["event"] for a in program.run([ORDERS[0]], emit="late")] == ["late"]
    table = pa.table({"event": ["order"], "time": [1], "id": ["a"]})
    assert program.run(table, emit=["alarm"])["event"].to_pylist() == ["alarm"]


# ---- what a run lacked -------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [e for e in ENGINES if e.id != "spark"])
def test_the_summary_tells_what_never_came_and_what_never_matched(place: Place, engine: list[str]) -> None:
    result = place.run("--progress", *engine)
    lines = [line for line in result.stderr.splitlines() if line.startswith("note: ")]
    assert lines == [
        "note: never came: `shipped`, `spare`",
        f"note: never matched: rule 2 `worse` ({place.folder / 'shop.eq'}:7)",
    ]
    asked = place.run("--progress", "--emit", "late", *engine)
    assert [line for line in asked.stderr.splitlines() if line.startswith("note: ")] == [
        "note: never came: `shipped`",
        "note: 1 rule was not run: nobody asked for `worse`",
    ]
    quiet = place.run(*engine)
    assert "note: " not in quiet.stderr


def test_of_several_programs_each_says_what_it_lacked(place: Place) -> None:
    result = place.run("--progress", "--engine", "local", programs=("shop.eq", "other.eq"))
    assert f"note: never came: `shipped`, `spare` (in {place.folder / 'shop.eq'})" in result.stderr
    assert "other.eq" not in "".join(line for line in result.stderr.splitlines() if line.startswith("note: "))


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_python_has_what_a_run_lacked(engine: str) -> None:
    program = ephemera.compile(SHOP, "shop.eq")
    run = program.run_all(ORDERS, engine=engine)
    assert (run.never_came, run.never_matched) == (("shipped", "spare"), (2,))
    assert run.notes == ("never came: `shipped`, `spare`", "never matched: rule 2 `worse` (shop.eq:7)")
    assert (len(run.answers), len(run.messages), len(run.bad), run.late, run.read) == (2, 2, 1, [], 3)
    whole = program.run_all([*ORDERS, event("shipped", 9, "a"), event("spare", 9, 1)], engine=engine)
    assert (whole.never_came, whole.never_matched, whole.notes) == ((), (), ())


def test_types_by_the_clock_tables_and_calendars_are_not_missed() -> None:
    program = ephemera.compile(
        "TIME UNIT 1 hour; EVENT o(i: int); TABLE t(i: int); p(i) <- e: o(i), t(i);"
        "q(i) <- e: o(i), n: timer:datetime(hour: h), {e, n} within 1; r(i) <- e: o(i), d: cal:day(), {e, d} within 1;"
    )
    run = program.run_all([], tables={"t": []}, calendars={"cal:day": []}, allow_unbounded=True)
    assert (run.never_came, run.never_matched) == (("o",), (1, 2, 3))


def test_a_head_without_a_value_is_a_match_and_a_bad_event_has_come() -> None:
    program = ephemera.compile("EVENT a(x: int); EVENT b(x: int); p(1 / x) <- i: a(x); q(x) <- i: b(x);")
    run = program.run_all([event("a", 1, 0), event("b", 2, "no")])
    assert (run.never_came, run.never_matched, len(run.undefined)) == ((), (2,), 1)


def test_an_engine_knows_what_it_lacked_so_far() -> None:
    engine = ephemera.compile(SHOP).engine()
    engine.send_many(ORDERS)
    assert (engine.never().came, engine.never().matched) == (("shipped", "spare"), (1, 2, 3))
    engine.finish()
    assert engine.never(emit=["worse"]).matched == (2,)
    assert engine.never(emit=["late"]).came == ("shipped",)


# ---- names that are hardly meant ---------------------------------------------------------------------------

STRANGE = [event("order", 1, "a"), event("Order", 2, "b"), event("shiped", 3, "a"), event("invoice", 4, "a")]
"""`invoice` is like nothing that a rule reads, so it is none of this program's business."""
MISNAMED = [
    "events `Order` were passed over, since no rule reads them; did you mean `order`?",
    "events `shiped` were passed over, since no rule reads them; did you mean `shipped`, which never came?",
]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_type_that_is_spelled_otherwise_than_one_that_rules_read_is_told(place: Place, engine: list[str]) -> None:
    place.write("in/events.jsonl", "".join(json.dumps(one) + "\n" for one in STRANGE))
    result = place.run(*engine)
    assert [line for line in result.stderr.splitlines() if line.startswith("warning: ")] == [
        f"warning: {told}" for told in MISNAMED
    ]
    assert place.run("--strict", *engine).exit_code == 1


@pytest.mark.parametrize("engine", ["local", "oracle"])
def test_python_is_told_of_types_that_are_spelled_otherwise(engine: str) -> None:
    program = ephemera.compile(SHOP)
    assert list(program.run_all(STRANGE, engine=engine).notes[:2]) == MISNAMED
    both = program.run_all([*STRANGE, event("shipped", 9, "a")], engine=engine)
    assert [note for note in both.notes if "passed over" in note] == MISNAMED[:1]  # `shiped` may be a type of its own


def test_an_engine_tells_of_types_that_are_spelled_otherwise() -> None:
    engine = ephemera.compile(SHOP).engine()
    for one in STRANGE:
        engine.send(one)
    assert list(engine.warnings) == MISNAMED


# ---- what could not be used --------------------------------------------------------------------------------


def frames() -> dict[str, Any]:
    table = pa.table({"event": ["order", "order", None], "time": [1, 2, 3], "id": ["a", "b", "c"]})
    return {
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "duckdb": duckdb.from_arrow(table),
    }


def test_what_run_cannot_use_is_a_warning_that_says_where_it_is() -> None:
    program = ephemera.compile(SHOP)
    with pytest.warns(
        ephemera.EphemeraWarning, match=r"1 of 3 events could not be used, the first: .*run_all\(…\).bad"
    ):
        assert len(program.run(ORDERS)) == 2
    divided = ephemera.compile("EVENT a(x: int); p(1 / x) <- i: a(x);")
    with pytest.warns(ephemera.EphemeraWarning, match=r"1 answers had no value, the first of rule 1: .*undefined"):
        assert divided.run([event("a", 1, 0)]) == []


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "duckdb"])
def test_frames_are_taken_by_both_and_answered_in_kind(kind: str) -> None:
    given = frames()[kind]
    program = ephemera.compile(SHOP)
    with pytest.warns(ephemera.EphemeraWarning, match="1 of 3 events could not be used"):
        answers = program.run(given)
    run = program.run_all(given)
    assert type(run.answers) is type(answers) is type(given)
    as_pandas = {"arrow": "to_pandas", "polars": "to_pandas", "duckdb": "df", "pandas": "copy"}
    shown: pd.DataFrame = getattr(run.answers, as_pandas[kind])()
    assert sorted(shown["event"]) == ["alarm", "alarm", "late", "late"]
    assert [m["event"] for m in run.messages] == ["alarm", "alarm"]
    assert [(json.loads(b.original)["id"], "column `event`" in b.reason) for b in run.bad] == [("c", True)]
    assert (run.read, run.late, run.undefined, run.never_came) == (3, [], [], ("shipped", "spare"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (ORDERS[0], r"give \[event\]"),
        ('{"event": "order"}', "splitlines"),
        (b"events.jsonl", "splitlines"),
        (5, "this is a int"),
        (None, "this is a NoneType"),
    ],
)
def test_what_is_no_list_of_events_is_refused_in_words(given: Any, told: str) -> None:
    program = ephemera.compile(SHOP)
    for call in (program.run, program.run_all, program.engine().send_many):
        with pytest.raises(TypeError, match=told):
            call(given)


def test_one_event_is_sent_and_several_are_refused() -> None:
    engine = ephemera.compile(SHOP).engine()
    for wrong in (ORDERS, 5, None):
        with pytest.raises(TypeError, match="send_many"):
            engine.send(wrong)  # type: ignore[arg-type]
    assert engine.stats().received == 0


def test_wrong_things_in_a_list_are_bad_events() -> None:
    run = ephemera.compile(SHOP).run_all([ORDERS[0], 5, None, "no json", ["order", 1], {}])
    assert (len(run.bad), run.read, len(run.answers)) == (5, 6, 1)
    assert all(bad.reason for bad in run.bad)


def test_an_engine_counts_and_keeps_what_it_could_not_use() -> None:
    engine = ephemera.compile(SHOP).engine()
    engine.send_many([*ORDERS, event("order", 2, "late")])
    engine.send(event("shipped", 1, "late"))
    stats = engine.stats()
    assert (stats.received, stats.bad, stats.late) == (5, 1, 2)
    assert [len(engine.bad), len(engine.late)] == [1, 2]


# ---- state without a bound ---------------------------------------------------------------------------------


def codes(error: ephemera.ProgramError) -> list[tuple[str, int]]:
    return [(str(d.code), d.span.start) for report in error.reports for d in report.diagnostics]


def test_all_ways_judge_state_without_a_bound_alike(place: Place) -> None:
    program = ephemera.compile(UNBOUNDED)
    path = str(place.folder / "unbounded.eq")
    checked = CliRunner().invoke(app, ["check", path, "--format", "json"])
    told = [entry["code"] for entry in json.loads(checked.stdout)]
    assert (checked.exit_code, told) == (1, ["unbounded-relevance"] * 2)
    with pytest.raises(ephemera.ProgramError) as live:
        program.engine()
    with pytest.raises(ephemera.ProgramError) as streamed:
        program.stream(None)
    assert codes(live.value) == codes(streamed.value)
    assert [code for code, _ in codes(live.value)] == told
    assert "allow_unbounded=True" in "".join(live.value.__notes__)
    with pytest.warns(ephemera.EphemeraWarning, match="a `i` would be kept forever; b `j` would be kept forever"):
        program.run([])
    with pytest.warns(ephemera.EphemeraWarning, match="kept forever"):
        program.run_all([])
    assert program.run([], engine="oracle") == program.run([], allow_unbounded=True) == []
    assert program.engine(allow_unbounded=True).finish() == []


@pytest.mark.parametrize(
    ("options", "code"), [(["--mode", "stream", "--engine", "local"], 1), (["--engine", "local"], 0)]
)
def test_the_command_line_refuses_it_live_and_warns_of_it_in_a_batch(
    place: Place, options: list[str], code: int
) -> None:
    result = place.run(*options, programs=("unbounded.eq",))
    assert result.exit_code == code
    assert "unbounded-relevance" in result.stderr
    allowed = place.run(*options, "--allow-unbounded", programs=("unbounded.eq",))
    assert (allowed.exit_code, "unbounded-relevance" in allowed.stderr) == (0, False)


@pytest.mark.parametrize("command", [["check"], ["explain", "--stage", "relevance"]])
def test_check_and_explain_let_it_be_if_it_is_allowed(place: Place, command: list[str]) -> None:
    path = str(place.folder / "unbounded.eq")
    told = CliRunner().invoke(app, [*command, path])
    assert "unbounded-relevance" in told.stderr
    allowed = CliRunner().invoke(app, [*command, path, "--allow-unbounded"])
    assert (allowed.exit_code, allowed.stderr) == (0, "")
