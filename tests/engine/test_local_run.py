"""Runs from sources to sinks give what the oracle gives, however the input is cut, ordered and packed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ephemera
from ephemera.algebra.lower import lower
from ephemera.analysis.relevance import derive
from ephemera.base.scratch import scratch
from ephemera.connect import external_sort, file_source
from ephemera.connect.file_sink import File
from ephemera.connect.file_source import Files
from ephemera.connect.local_run import LetterSink, ProgramRun, run_local
from ephemera.connect.sink import Memory
from ephemera.connect.source import Memory as Listed
from ephemera.formats.answers import AnswerBatch
from ephemera.formats.json_events import write_event
from ephemera.kernels.event_columns import of_events
from ephemera.physical.plan import prepare
from ephemera.rules.outcome import World
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term
from tests.strategies.cases import Case, cases

SHOP = """
TIME UNIT 1 sec;
EVENT order(id: string, qty: int);
EVENT shipped(id: string);
overdue(id) <- o: order(id, qty), w: extend(o, 60), while w: not shipped(id), qty < 10;
pair(id, q) <- o: order(id, q), s: shipped(id), {o, s} within 30;
"""


def lines(count: int, seed: int = 7) -> list[str]:
    dice = Random(seed)
    found: list[str] = []
    for k in range(count):
        number = f"n{dice.randrange(count // 3 + 1)}"
        event = {"event": "order", "time": k, "data": [number, dice.randrange(20)]}
        if dice.random() < 0.5:
            event = {"event": "shipped", "time": k, "data": [number]}
        found.append(json.dumps(event))
    return found


def run(text: str, sources: Sequence[Files | Listed], **more: int) -> list[str]:
    program = ephemera.compile(text)
    sink = Memory()
    run_local([ProgramRun(program._compiled, World())], sources, sink, **more)  # type: ignore[arg-type]
    return [json.dumps(answer) for answer in sink.answers]


def by_the_oracle(given: Sequence[str]) -> list[str]:
    answers = ephemera.compile(SHOP).run([json.loads(line) for line in given], engine="oracle")
    return [json.dumps(answer) for answer in answers]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks, slices and rows so small that a few lines need several."""
    monkeypatch.setattr(file_source, "_BLOCK", 128)
    monkeypatch.setattr(external_sort, "_ROWS", 5)
    monkeypatch.setattr("ephemera.connect.local_run.SLICE", 8)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("order", ["sorted", "shuffled", "reversed", "last first"])
@pytest.mark.parametrize("window", [0, 400, 3_000, 1 << 20])
@pytest.mark.parametrize("block", [128, 3_000])
def test_the_order_of_the_input_means_nothing(
    tmp_path: Path, order: str, window: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_source, "_BLOCK", block)
    given = lines(240)
    expected = [
        json.dumps(a) for a in ephemera.compile(SHOP).run([json.loads(line) for line in given], engine="oracle")
    ]
    match order:
        case "shuffled":
            Random(1).shuffle(given)
        case "reversed":
            given.reverse()
        case "last first":
            given = [given[-1], *given[:-1]]
    (tmp_path / "a.jsonl").write_text("\n".join(given), encoding="utf-8")
    assert run(SHOP, [Files([str(tmp_path / "a.jsonl")])], window=window, memory=500) == expected


@pytest.mark.usefixtures("small")
def test_inputs_side_by_side_are_read_in_the_order_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = lines(200)
    expected = [
        json.dumps(a) for a in ephemera.compile(SHOP).run([json.loads(line) for line in given], engine="oracle")
    ]
    for name in ("order", "shipped"):
        own = [line for line in given if f'"{name}"' in line]
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(own))
    sources = [Files([str(tmp_path / f"{name}.jsonl.gz")]) for name in ("order", "shipped")]
    monkeypatch.setattr(external_sort.ExternalSort, "__init__", None)  # it would fail
    assert run(SHOP, sources, window=600) == expected


def test_what_can_be_read_once_is_read_once() -> None:
    given = lines(50)
    expected = run(SHOP, [Listed(given)])
    assert expected
    assert run(SHOP, [Listed(iter(reversed(given)))]) == expected


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_a_file_of_any_format_is_answered_with_one(tmp_path: Path, form: str) -> None:
    rows = [json.loads(line) for line in lines(90)]
    table = pa.table(
        {
            "event": [row["event"] for row in rows],
            "time": [row["time"] for row in rows],
            "id": [row["data"][0] for row in rows],
            "qty": pa.array([row["data"][1] if len(row["data"]) > 1 else None for row in rows], pa.int64()),
        }
    )
    source, target = tmp_path / f"in.{form}", tmp_path / f"out.{form}"
    match form:
        case "jsonl":
            source.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        case "csv":
            pv.write_csv(table, source)
        case "parquet":
            pq.write_table(table, source, row_group_size=20)
    program = ephemera.compile(SHOP)
    run_local([ProgramRun(program._planned(["pair"]), World())], [Files([str(source)])], File(str(target)))
    expected = program.run(rows, engine="oracle", emit=["pair"])
    match form:
        case "jsonl":
            assert [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()] == expected
            return
        case "csv":
            found = pv.read_csv(target).to_pylist()
        case _:
            found = pq.read_table(target).to_pylist()
    assert list(found[0]) == ["event", "begin", "end", "id", "q"]
    told = [([row["begin"], row["end"]], [row["id"], row["q"]]) for row in found]
    assert told == [(answer["time"], answer["data"]) for answer in expected]


def test_files_of_one_name_in_several_folders_offer_their_own_columns(tmp_path: Path) -> None:
    for folder, columns in (("a", {"id": ["x"]}), ("b", {"id": ["x"], "qty": [3]})):
        (tmp_path / folder).mkdir()
        table = pa.table({"event": ["order"], "time": [1], **columns})
        pq.write_table(table, tmp_path / folder / "part-0.parquet")
    paths = [str(tmp_path / folder / "part-0.parquet") for folder in ("a", "b")]
    assert run(SHOP, [Files(paths)]) == ['{"event": "overdue", "time": [1, 61], "data": ["x"]}']


class Steps:
    """A sink that counts the answers of each step."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def open(self) -> Steps:
        return self

    def write(self, answers: AnswerBatch) -> None:
        self.sizes.append(len(answers))

    def commit(self) -> None:
        pass

    def abort(self) -> None:
        self.sizes.clear()


def test_long_texts_are_not_held(tmp_path: Path) -> None:
    text = "TIME UNIT 1 ms; EVENT note(id: int, text: string); late(i) <- n: note(i, _), w: extend(n, 5);"
    lines = (json.dumps({"event": "note", "time": k, "data": [k, "x" * 20_000]}) + "\n" for k in range(300))
    (tmp_path / "notes.jsonl").write_text("".join(lines), encoding="utf-8")
    steps = Steps()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ephemera.connect.local_run.WINDOW", 1 << 20)
        program = ephemera.compile(text)
        run_local([ProgramRun(program._compiled, World())], [Files([str(tmp_path / "notes.jsonl")])], steps, window=0)
    assert sum(steps.sizes) == 300
    assert max(steps.sizes) < 200


def test_a_run_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(lines(30)), encoding="utf-8")
    (tmp_path / "b.jsonl.gz").write_bytes(b"no gzip at all")
    target = tmp_path / "answers.jsonl"
    target.write_text("before", encoding="utf-8")
    program = ephemera.compile(SHOP)
    sources = [Files([str(tmp_path / "a.jsonl")]), Files([str(tmp_path / "b.jsonl.gz")])]
    with pytest.raises(ephemera.EphemeraError, match=r"b\.jsonl\.gz"):
        run_local([ProgramRun(program._compiled, World())], sources, File(str(target)))
    assert target.read_text(encoding="utf-8") == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "answers.jsonl", "b.jsonl.gz"]


@settings(max_examples=40)
@given(case=cases(), data=st.data())
def test_random_programs_are_answered_from_lines_as_by_the_oracle(case: Case, data: st.DataObject) -> None:
    catalogue = case.ruleset.resolved.catalogue
    given = [json.dumps(write_event(event, catalogue, as_numbers=True)) for event in case.events]
    dice = Random(data.draw(st.integers(0, 99)))
    if data.draw(st.booleans()):
        dice.shuffle(given)
    plan = lower(case.ruleset)
    compiled = prepare(case.ruleset, plan, derive(plan), case.world.calendars)
    letters: list[object] = []

    class Kept(LetterSink):
        def bury(self, program: int, bad: Sequence[object], undefined: Sequence[object]) -> None:
            assert not program
            letters.extend([*bad, *undefined])

    sink = Memory()
    sources = [Listed(given[::2]), Listed(given[1::2])] if data.draw(st.booleans()) else [Listed(given)]
    window, memory = data.draw(st.sampled_from([0, 300, 1 << 20])), data.draw(st.sampled_from([0, 1 << 20]))
    run_local([ProgramRun(compiled, case.world)], sources, sink, Kept, window=window, memory=memory)
    outcome = case.outcome()
    told = [answer for answer in sink.answers if "recipient" not in answer]
    events = [write_event(event, catalogue, as_numbers=True) for event in sorted(outcome.events, key=lambda e: e.key)]
    rules = case.ruleset.resolved.rules
    heads = {label: {type(rules[n - 1].head) for n in numbers} for label, numbers in catalogue.derived.items()}

    def shown(answer: dict[str, object]) -> str:
        """What arrow heads and construct terms both derive is written in either form."""
        is_either = len(heads[str(answer["event"])]) > 1
        return json.dumps([answer["event"], answer["time"]] if is_either else answer)

    assert list(map(shown, told)) == list(map(shown, events)), case.program
    assert len(sink.answers) - len(told) == len(outcome.messages)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers()), max_size=60), st.integers(1, 400))
def test_events_come_out_sorted_and_all_of_them(rows: list[tuple[str, int, int]], memory: int) -> None:
    events = [Event(Term(label, (value,)), Interval(end, end), positional=True) for label, end, value in rows]
    events = [event for event in events if abs(event.term.children[0]) < 2**62]  # type: ignore[arg-type]
    with scratch("sort") as folder:
        sort = external_sort.ExternalSort(folder, 1, memory)
        for start in range(0, len(events), 7):
            sort.add([of_events(events[start : start + 7], lambda _label: None)])
        found: list[Event] = []
        for first, parts in sort.slices(3):
            own = [event for part in parts[0] for event in part.events()]
            assert all(event.time.end >= first for event in own)
            assert not found or min((e.time.end for e in own), default=99) >= max(e.time.end for e in found)
            found += own
    assert sorted(event.key for event in found) == sorted(event.key for event in events)
