"""This module shows that sinks of live queries have every answer once, and refuse what belongs to others."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ephemera
from ephemera.engine.cluster.message import (
    Answers,
    BadInput,
    EngineStats,
    LateInput,
    StoredAnswers,
    UndefinedHead,
    pack,
)
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.addresses import with_address
from ephemera.formats.encode_typed_arrow import Counting, layout
from ephemera.formats.json_events import read_object, write_event
from ephemera.kernels.event_columns import of_events
from ephemera.kernels.history import FAR
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.spark.runtime.exchange import batches, shipments_of
from ephemera.spark.sinks.encode_answers import AnswerForm, FileFormat, forms_of
from ephemera.spark.sinks.folder_sink import OWNER, Folder, FolderSink, WrongFolder, counts_of, folder_at
from tests.plans.meaning import of_story
from tests.spark.disk import Crash, Disk

STORIES = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))

SHOP = """
EVENT order(id: string, count: int); EVENT paid(id: string);
late(i, n) <- o: order(i, n), w: extend(o, 5), while w: not paid(i);
large(i, n) <- o: order(i, n) where { n > 10 };
"""
SENDING = """
EVENT order(id: string, count: int);
RAISE to(recipient="desk", transport="mail") { letter { var I } } ON order {{ id { var I } }} END
"""


def spread_of(text: str, number: int = 0, places: int = 1) -> DistributedProgram:
    return DistributedProgram(ephemera.compile(text)._compiled, World(), number, places, -FAR, FAR)


def given(
    spread: DistributedProgram, answers: Sequence[Mapping[str, Any]], place: int = 0, rule: int = 0
) -> list[Answers]:
    """Answers as engines ship them."""
    catalogue = spread.compiled.rules.resolved.catalogue
    events = [read_object(answer, catalogue) for answer in answers]
    parts = of_events(events, catalogue.attributes)  # type: ignore[arg-type]
    return [Answers(spread.number, place, rule, pack(part)) for part in parts]


LATES: list[dict[str, Any]] = [{"event": "late", "time": [k, k + 5], "data": [f"ä{k}", k]} for k in range(4)]
LARGE: list[dict[str, Any]] = [{"event": "large", "time": 7, "data": ["x\ny", 11]}]
LETTERS: list[BadInput | LateInput | UndefinedHead] = [
    BadInput(0, 0, 1, b'{"reason": "no event", "event": "{"}'),
    LateInput(0, 0, 1, b'{"reason": "late", "event": "{\\"event\\": \\"order\\"}"}'),
    UndefinedHead(0, 0, 1, b'{"reason": "1/0", "rule": "late", "variables": {}}'),
]


def sink_of(files: Disk, *spreads: DistributedProgram, **more: Any) -> FolderSink:
    forms = forms_of(spreads or [spread_of(SHOP)])
    return FolderSink(forms, "q", Folder(files, "out"), letters=Folder(files, "dead"), **more)


def sink_at(
    path: Path, query: str = "q", spread: DistributedProgram | None = None, form: FileFormat = "json"
) -> FolderSink:
    return FolderSink(forms_of([spread or spread_of(SHOP)]), query, folder_at(str(path)), form)


def lines_of(contents: Iterable[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for data in contents for line in data.splitlines()]


# ---- what is written -----------------------------------------------------------------------------------------


def test_each_partition_writes_one_file_of_answers_and_one_of_dead_letters() -> None:
    spread, disk = spread_of(SHOP), Disk()
    sink = sink_of(disk, spread)
    told = [t for place in (0, 3) for t in sink.write(12, place, [*given(spread, LATES + LARGE), *LETTERS])]
    assert list(disk.contents("out")) == ["part-000000012-00000.jsonl", "part-000000012-00003.jsonl"]
    assert list(disk.contents("dead")) == ["dead-000000012-00000.jsonl", "dead-000000012-00003.jsonl"]
    for data in disk.contents("out").values():
        assert lines_of([data]) == LATES + LARGE
    for data in disk.contents("dead").values():
        assert lines_of([data]) == [json.loads(letter.first) for letter in LETTERS]
    counts = counts_of(told)
    assert counts.answers == {(0, "late"): 8, (0, "large"): 2}
    assert (counts.bad, counts.late, counts.dead) == (2, 2, 2)
    assert json.loads(counts.first or "")["reason"] == "no event"


def test_files_of_this_machine_are_written_in_every_format(tmp_path: Path) -> None:
    spread = spread_of(SHOP)
    times = [(datetime.fromtimestamp(k, UTC), datetime.fromtimestamp(k + 5, UTC)) for k in range(4)]
    for form in get_args(FileFormat):
        sink = sink_at(tmp_path / form, spread=spread, form=form)
        sink.open(0)
        counts = counts_of(sink.write(0, 0, given(spread, LATES + LARGE)))
        assert sum(counts.answers.values()) == 5
        assert sorted(p.name for p in (tmp_path / form).iterdir()) == [OWNER, _name(form)]
    rows = pq.read_table(tmp_path / "parquet" / _name("parquet")).to_pylist()
    assert [(r["begin"], r["end"]) for r in rows[:4]] == times
    assert [(r["event"], r["i"], r["n"]) for r in rows] == [(a["event"], *a["data"]) for a in LATES + LARGE]
    with (tmp_path / "csv" / _name("csv")).open(encoding="utf-8", newline="") as file:
        texts = list(csv.DictReader(file))
    assert texts[1] == {
        "event": "late",
        "begin": "1970-01-01T00:00:01.000000Z",
        "end": "1970-01-01T00:00:06.000000Z",
        "i": "ä1",
        "n": "1",
    }
    assert texts[4]["i"] == "x\ny"


def _name(form: str) -> str:
    return f"part-000000000-00000.{'jsonl' if form == 'json' else form}"


def test_where_there_is_nothing_nothing_is_written() -> None:
    disk = Disk()
    stats = EngineStats(0, 0, {"events": 3})
    assert list(sink_of(disk).write(0, 0, [stats])) == [stats]
    assert disk.done == 0


def test_answers_without_a_folder_pass_on_and_letters_are_counted() -> None:
    spread = spread_of(SHOP)
    answers = given(spread, LATES)
    told = list(FolderSink(forms_of([spread]), "q").write(0, 0, [*answers, *LETTERS]))
    assert told[: len(answers)] == answers
    counts = counts_of(told)
    assert (counts.answers, counts.bad, counts.late, counts.dead) == ({(0, "late"): 4}, 1, 1, 1)


def test_a_head_without_a_value_is_told_once_in_a_place() -> None:
    disk = Disk()
    told = list(sink_of(disk).write(0, 0, [*LETTERS, *LETTERS]))
    counts = counts_of(told)
    assert (counts.bad, counts.late, counts.dead) == (2, 2, 1)
    assert len(lines_of(disk.contents("dead").values())) == 5


def test_messages_say_where_they_go() -> None:
    spread, disk = spread_of(SENDING), Disk()
    told = list(
        sink_of(disk, spread).write(0, 0, given(spread, [{"event": "letter", "time": 1, "data": ["a"]}], rule=1))
    )
    assert counts_of(told).answers == {(0, "letter"): 1}
    (line,) = lines_of(disk.contents("out").values())
    assert (line["recipient"], line["transport"]) == ("desk", "mail")


def test_several_programs_share_columns_and_sign_their_letters(tmp_path: Path) -> None:
    other = spread_of("EVENT order(id: string, count: int); wide(n) <- order(n, m);", 1)
    spread = spread_of(SHOP)
    forms = forms_of([spread, other], [{"program": "a.eq"}, {"program": "b.eq"}])
    sink = FolderSink(forms, "q", folder_at(str(tmp_path / "out")), "parquet", folder_at(str(tmp_path / "dead")))
    sink.open(0)
    answers = [*given(spread, LARGE), *given(other, [{"event": "wide", "time": 1, "data": ["a"]}])]
    list(sink.write(0, 0, [*answers, BadInput(1, 0, 1, b'{"reason": "r", "event": "e"}')]))
    rows = pq.read_table(tmp_path / "out" / _name("parquet")).to_pylist()
    assert [(r["event"], r["n"]) for r in rows] == [("large", "11"), ("wide", '"a"')]
    (letter,) = (tmp_path / "dead").glob("dead-*")
    assert json.loads(letter.read_text(encoding="utf-8")) == {"reason": "r", "event": "e", "program": "b.eq"}


@pytest.mark.parametrize("passes_on", [False, True])
def test_an_answer_that_fits_no_column_goes_to_the_dead_letters(*, passes_on: bool) -> None:
    spread, disk = spread_of("EVENT b(x: int); a(x) <- b(x); c(x) <- a(x);"), Disk()
    answers = [{"event": "c", "time": k, "data": [value]} for k, value in enumerate([1, "one", 3])]
    folder = None if passes_on else Folder(disk, "out")
    sink = FolderSink(forms_of([spread]), "q", folder, "parquet", Folder(disk, "dead"), has_columns=passes_on)
    counts = counts_of(sink.write(0, 0, given(spread, answers)))
    assert (counts.answers, counts.dead) == ({(0, "c"): 2}, 1)
    counts = counts_of(sink.write(1, 0, given(spread, answers[1:2])))
    assert (counts.answers, counts.dead) == ({}, 1)
    assert len(disk.contents("out")) == (0 if passes_on else 1)
    for letter in lines_of(disk.contents("dead").values()):
        assert "`x` of `c` should be int" in letter["reason"]
        assert json.loads(letter["event"])["data"] == ["one"]


def test_the_last_stage_travels_and_speaks_arrow(tmp_path: Path) -> None:
    spread = spread_of(SHOP)
    sink = sink_at(tmp_path, spread=spread)
    travelled = pickle.loads(pickle.dumps(sink))
    told = batches(travelled.write(5, 0, shipments_of(batches(given(spread, LATES)))))
    assert list(shipments_of(told)) == [StoredAnswers(0, 0, "late", 4)]
    assert len(list(tmp_path.iterdir())) == 1


# ---- once and for all ----------------------------------------------------------------------------------------


def attempt(sink: FolderSink, spread: DistributedProgram, places: Sequence[int] = (0, 1)) -> None:
    """Batch 3, from its start to its commit, in two places."""
    sink.open(3)
    halves = (LATES[:2], LATES[2:])
    told = [
        t
        for place, own in zip(places, halves, strict=True)
        for t in sink.write(3, place, [*given(spread, own, place), *LETTERS])
    ]
    sink.settle(3, told)


def empty(spread: DistributedProgram) -> Disk:
    """Nothing was written before."""
    assert spread.places
    return Disk()


def continued(spread: DistributedProgram) -> Disk:
    """Batch 2 has left something."""
    disk = Disk()
    sink = sink_of(disk, spread)
    sink.open(0)
    list(sink.write(2, 0, given(spread, LARGE)))
    return disk


def replayed(spread: DistributedProgram) -> Disk:
    """There was an attempt at batch 3 that was cut into other partitions."""
    disk = continued(spread)
    attempt(sink_of(disk, spread), spread, (1, 2))
    return disk


@pytest.mark.parametrize("names_are_old", [False, True])
@pytest.mark.parametrize(("before", "steps"), [(empty, 24), (continued, 16), (replayed, 26)])
def test_whatever_step_a_crash_hits_the_replay_has_everything_once(
    before: Callable[[DistributedProgram], Disk], steps: int, *, names_are_old: bool
) -> None:
    spread = spread_of(SHOP)
    whole = before(spread)
    done = whole.done
    attempt(sink_of(whole, spread), spread)
    assert whole.done - done == steps
    for step in range(steps):
        disk = before(spread)
        sink = sink_of(disk, spread)
        seen = {*before(spread).contents("out").values(), *whole.contents("out").values()}
        disk.left = step
        with pytest.raises(Crash):
            attempt(sink, spread)
        disk.crash(names_are_old=names_are_old)
        assert {*disk.contents("out").values()} <= seen  # what is seen is whole
        attempt(sink, spread)
        disk.crash(names_are_old=True)
        for folder in ("out", "dead"):
            assert disk.contents(folder) == whole.contents(folder)
            assert not [name for name in disk.names(folder) if name.startswith(".")]
    answers = lines_of(whole.contents("out").values())
    assert [a for a in answers if a not in LARGE] == LATES


def test_each_step_is_told_before_it_is_taken() -> None:
    spread, disk = spread_of(SHOP), Disk()
    steps: list[tuple[str, int]] = []
    sink = sink_of(disk, spread, mark=lambda step: steps.append((step, disk.done)))
    list(sink.write(0, 0, [*given(spread, LATES), *LETTERS]))
    each = ("write", "sync", "rename", "folder sync")
    assert [step for step, _ in steps] == [f"{kind} {step}" for kind in ("answers", "letters") for step in each]
    assert [done for _, done in steps] == list(range(8))


def test_a_replay_that_is_cut_otherwise_leaves_no_answer_twice() -> None:
    spread, disk = spread_of(SHOP), Disk()
    sink = sink_of(disk, spread)
    sink.open(0)
    for place in range(4):
        list(sink.write(0, place, [*given(spread, LATES[place : place + 1], place), *LETTERS[:1]]))
    told = list(sink.write(0, 1, [*given(spread, LATES, 1), *LETTERS[:1] * 4]))
    sink.settle(0, told)
    assert lines_of(disk.contents("out").values()) == LATES
    assert len(lines_of(disk.contents("dead").values())) == 4


def test_what_later_batches_wrote_is_forgotten_when_an_older_checkpoint_goes_on() -> None:
    spread, disk = spread_of(SHOP), Disk()
    sink = sink_of(disk, spread)
    sink.open(0)
    for batch in range(4):
        list(sink.write(batch, 0, given(spread, LATES)))
    sink.open(2)
    assert [name[5:14] for name in disk.contents("out")] == ["000000000", "000000001", "000000002"]


# ---- whose folder it is --------------------------------------------------------------------------------------


def test_a_folder_of_another_query_is_refused(tmp_path: Path) -> None:
    sink_at(tmp_path / "out", "q1").open(0)
    sink_at(tmp_path / "out", "q1").open(7)
    with pytest.raises(WrongFolder, match="query q1 wrote, and this is query q2; go on with the checkpoint"):
        sink_at(tmp_path / "out", "q2").open(0)
    with pytest.raises(WrongFolder, match="query q1"):
        FolderSink({}, "q2", letters=folder_at(str(tmp_path / "out"))).open(0)


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(WrongFolder, match=r"other things, such as `notes\.txt`; name a new folder"):
        sink_at(tmp_path).open(0)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_answers_and_dead_letters_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = folder_at(str(tmp_path))
    with pytest.raises(WrongFolder, match="name two folders"):
        FolderSink({}, "q", folder, letters=folder).open(0)
    assert not list(tmp_path.iterdir())


# ---- all kinds of answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_answers_of_the_story_are_written_in_every_format(path: Path) -> None:
    rules, events, world = of_story(path)
    catalogue = rules.resolved.catalogue
    days = [day for own in world.calendars.values() for day in own]
    form = AnswerForm(layout(rules, Counting(stamps=False, attributes=False), days), {})
    outcome = evaluate(rules, events, world)
    senders = {to: rule for rule, to in form.columns.messages.items()}
    shipments = [Answers(0, 0, 0, pack(part)) for part in of_events(outcome.events, catalogue.attributes)]
    for message in outcome.messages:
        (part,) = of_events([message.event], catalogue.attributes)
        to = (message.recipient, message.transport)
        if to not in senders or None in senders:  # where a rule computes it, messages say it themselves
            part = with_address(part, to)
        shipments.append(Answers(0, 0, senders.get(to) or senders[None], pack(part)))
    expected = [write_event(e, catalogue, as_numbers=True) for s in shipments for e in form.events(s).events()]
    for line, message in zip(expected[len(expected) - len(outcome.messages) :], outcome.messages, strict=True):
        line |= {"recipient": message.recipient, "transport": message.transport}
    for kind in get_args(FileFormat):
        disk = Disk()
        sink = FolderSink({0: form}, "q", Folder(disk, "out"), kind)
        counts = counts_of(sink.write(0, 0, shipments))
        assert sum(counts.answers.values()) + counts.dead == len(expected)
        for data in disk.contents("out").values():
            if kind == "json":
                assert lines_of([data]) == expected
            if kind == "parquet":
                assert pq.read_table(pa.BufferReader(data)).num_rows == sum(counts.answers.values())
        declared = {e.term.label for e in events} <= {*catalogue.events}
        assert not counts.dead or not declared
