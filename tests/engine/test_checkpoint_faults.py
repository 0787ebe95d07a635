"""This module damages the files of a checkpoint in many ways: each is told, and no answer is lost."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from pathlib import Path
from random import Random

import pytest

from ephemera.engine.cluster.message import Answers, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import Progress
from ephemera.engine.state.durable_files import Broken, seal
from ephemera.engine.state.identity import ChangedData
from ephemera.engine.state.segments import Origin
from ephemera.formats.reading import read_event
from ephemera.kernels.history import FAR
from ephemera.language import compile
from ephemera.rules.outcome import World
from ephemera.spark.live.checkpoint import FORMAT, Checkpoint, WrongCheckpoint
from ephemera.spark.sinks.folder_sink import WrongFolder, folder_at
from ephemera.terms.events import Event
from tests.engine.living import Beat, Host, of_kind

PROGRAM = """
TIME UNIT 1 hour;
TIME ZONE "Europe/Berlin";
EVENT order(id: int, customer: int) RATE 5 per sec;
EVENT paid(id: int) LASTS AT MOST 2;
EVENT call(customer: int);
STREAM shop FROM "shop/*.jsonl" CARRIES order, paid WATERMARK 2 IDLE 4;
STREAM desk CARRIES call;
TABLE vip(customer: int);
late(i, c) <- o: order(i, c), w: extend(o, 6), while w: not paid(i);
angry(c, i) <- l: late(i, c), k: call(c), {l, k} within 20, vip(c);
"""
BATCHES = 3
MORE = BATCHES + 2
PLACES = 2
EMPTY = World(tables={"vip": []})


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """Nothing here outlives the machine, so the disk need not be waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def spread_of(program: str = PROGRAM, world: World = EMPTY) -> DistributedProgram:
    return DistributedProgram(compile(program)._compiled, world, 0, PLACES, -FAR, FAR)


SPREAD = spread_of()


def batch_of(spread: DistributedProgram, number: int) -> Beat:
    dice = Random(number)
    lines = [{"event": "order", "time": 3 * number + k % 3, "data": [10 * number + k, k % 4]} for k in range(8)]
    lines += [{"event": "paid", "time": 3 * number, "data": [dice.randrange(10 * number + 5)]} for _ in range(4)]
    lines += [{"event": "call", "time": 3 * number + 2, "data": [k]} for k in range(4)]
    return Beat([e for line in lines if isinstance(e := read_event(line, spread.compiled), Event)])


def go_on(folder: Path, first: int, last: int, spread: DistributedProgram | None = None) -> Counter[str]:
    """As a start does: opens the checkpoint and does some batches, which Spark would name; says what they answer."""
    own = spread or SPREAD
    ledger = Checkpoint(str(folder))
    assert ledger.open([own], PLACES, PLACES) == PLACES
    standing = ledger.before(first).get(0, Progress())
    origin = Origin(ledger.query, ledger.programs, places=PLACES)
    state = Path(ledger.state)
    host = Host(own, state, Random(1), workers=1, fails=False, standing=standing, batch=first, origin=origin)
    for number in range(first, last):
        host.beat(batch_of(own, number))
        ledger.commit(number, {0: host.standing})
    found = [unpack(s.events, own.plan.catalogue) for s in of_kind(host.carried, Answers)]
    return Counter(str(event.key) for part in found for event in part.events())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint after some batches, as it is copied and damaged."""
    folder = tmp_path_factory.mktemp("kept") / "checkpoint"
    go_on(folder, 0, BATCHES)
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of another query of the same program, with the same events."""
    folder = tmp_path_factory.mktemp("other") / "checkpoint"
    go_on(folder, 0, BATCHES)
    return folder


@pytest.fixture(scope="module")
def due(tmp_path_factory: pytest.TempPathFactory, kept: Path) -> Counter[str]:
    """What the next batches answer."""
    copied = tmp_path_factory.mktemp("due") / "checkpoint"
    shutil.copytree(kept, copied)
    found = go_on(copied, BATCHES, MORE)
    assert found.total() > 5
    return found


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def kind_of(name: str) -> str:
    return "segment" if name.endswith(".segment") else "progress" if "progress" in name else "query"


Damage = Callable[[bytes], bytes | None]
DAMAGES: dict[str, Damage] = {
    "deleted": lambda _: None,
    "empty": lambda _: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "without its end": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    **{f"flipped {k}": lambda data, k=k: flipped(data, k) for k in (0, 100, -60)},  # type: ignore[misc]
}


def flipped(data: bytes, place: int) -> bytes:
    at = place % len(data)
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def judge(folder: Path, name: str, due: Counter[str]) -> str | None:
    """Goes on from a damaged checkpoint: the answers are all there, or what is told names the file in one line."""
    try:
        assert go_on(folder, BATCHES, MORE) == due
    except Broken as error:
        told = str(error)
        assert "\n" not in told
        assert name in told or Path(name).name in told or str(Path(name).parent) in told, told
        assert "bring" in told or "begin anew" in told, told
        return told
    return None


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_told_and_the_next_start_with_it_mended_goes_on(
    tmp_path: Path, kept: Path, due: Counter[str], damage: str
) -> None:
    told: Counter[str] = Counter()
    last = {f"state/0-0/{BATCHES - 1}.segment", f"state/1-1/{BATCHES - 1}.segment", "state/0-1/1.segment"}
    for number, name in enumerate(n for n in files_of(kept) if n in last or not n.endswith(".segment")):
        copied = tmp_path / str(number)
        shutil.copytree(kept, copied)
        data = DAMAGES[damage]((kept / name).read_bytes())
        if data is None:
            (copied / name).unlink()
        else:
            (copied / name).write_bytes(data)
        if judge(copied, name, due):
            told[kind_of(name)] += 1
            shutil.copyfile(kept / name, copied / name)
            assert go_on(copied, BATCHES, MORE) == due, name
    assert told["query"] == 1
    assert told["progress"] == 1  # that of the batch before the last is for Spark, should it come back to it
    assert told["segment"] == len(last)


def test_each_file_in_the_place_of_another_is_told(tmp_path: Path, kept: Path, due: Counter[str]) -> None:
    names = ["query.json", "progress/1.json", "progress/2.json"]
    names += [f"state/{place}/{batch}.segment" for place, batch in [("0-0", 1), ("0-0", 2), ("0-1", 2), ("1-0", 2)]]
    for number, (one, another) in enumerate(permutations(names, 2)):
        copied = tmp_path / str(number)
        shutil.copytree(kept, copied)
        shutil.copyfile(kept / one, copied / another)
        told = judge(copied, another, due)
        assert told is not None or another == "progress/1.json", (one, another)


def test_a_file_of_another_query_of_the_same_program_is_told(
    tmp_path: Path, kept: Path, other: Path, due: Counter[str]
) -> None:
    told: Counter[str] = Counter()
    for number, name in enumerate(files_of(kept)):
        copied = tmp_path / str(number)
        shutil.copytree(kept, copied)
        shutil.copyfile(other / name, copied / name)
        if kind_of(name) == "query":
            with pytest.raises(Broken, match="it should be of batch 2 of query"):
                go_on(copied, BATCHES, BATCHES + 1)
            told["query"] += 1
        elif judge(copied, name, due):
            told[kind_of(name)] += 1
    assert min(told["query"], told["progress"]) >= 1
    assert told["segment"] == 8  # what the first batch left is dead by now


def swaps(kept: Path) -> Iterator[tuple[str, str]]:
    folders = sorted(str(path.relative_to(kept)) for path in (kept / "state").iterdir())
    assert folders == ["state/0-0", "state/0-1", "state/1-0", "state/1-1"]
    yield from combinations(folders, 2)


def test_folders_that_changed_places_are_told(tmp_path: Path, kept: Path) -> None:
    for one, another in swaps(kept):
        copied = tmp_path / f"{one} {another}".replace("/", "-")
        shutil.copytree(kept, copied)
        shutil.rmtree(copied / one)
        shutil.rmtree(copied / another)
        shutil.copytree(kept / one, copied / another)
        shutil.copytree(kept / another, copied / one)
        with pytest.raises(Broken) as told:
            go_on(copied, BATCHES, BATCHES + 1)
        assert "2.segment is of batch 2, shard" in str(told.value)
        assert "it should be of batch 2, shard" in str(told.value)


@pytest.mark.parametrize("lost", ["state", "progress", "state/0-1"])
def test_a_folder_that_is_gone_is_told(tmp_path: Path, kept: Path, lost: str) -> None:
    copied = tmp_path / "checkpoint"
    shutil.copytree(kept, copied)
    shutil.rmtree(copied / lost)
    with pytest.raises(Broken, match="progress/2.json" if lost == "progress" else "state after batch 2 is not in"):
        go_on(copied, BATCHES, BATCHES + 1)


def test_batches_that_spark_has_forgotten_are_not_done_over_what_is_there(tmp_path: Path, kept: Path) -> None:
    copied = tmp_path / "checkpoint"
    shutil.copytree(kept, copied)
    before = {name: (copied / name).read_bytes() for name in files_of(copied)}
    for batch in range(BATCHES - 1):
        with pytest.raises(Broken, match=f"Spark would begin batch {batch}, and .*progress has batch 2 already"):
            go_on(copied, batch, batch + 1)
    assert {name: (copied / name).read_bytes() for name in files_of(copied)} == before
    go_on(copied, BATCHES - 1, BATCHES)  # the last one may be done again: Spark had not committed it


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path, kept: Path) -> None:
    for name in ("query.json", "progress/2.json"):
        copied = tmp_path / name.replace("/", "-")
        shutil.copytree(kept, copied)
        content = json.loads((copied / name).read_text())["content"]
        (copied / name).write_bytes(seal(kind_of(name), 99, content))
        with pytest.raises(Broken, match=f"{name} has format 99, and this version of Ephemera reads format {FORMAT}"):
            go_on(copied, BATCHES, BATCHES + 1)


# ---- what belongs to a program -----------------------------------------------------------------------------

CHANGES = {
    "TIME UNIT": ("TIME UNIT 1 hour", "TIME UNIT 1 min"),
    "TIME ZONE": ("Europe/Berlin", "UTC"),
    "a type": ("id: int, customer: int", "id: float, customer: int"),
    "LASTS": ("LASTS AT MOST 2", "LASTS AT MOST 3"),
    "ARRIVES": ("LASTS AT MOST 2", "LASTS AT MOST 2 ARRIVES AT BEGIN"),
    "WATERMARK": ("WATERMARK 2", "WATERMARK 3"),
    "IDLE": ("IDLE 4", "IDLE 5"),
    "TIME of a stream": ("desk CARRIES call", "desk CARRIES call TIME at"),
    "CARRIES": ("CARRIES order, paid", "CARRIES order"),
    "a table": ("TABLE vip(customer: int)", "TABLE vip(customer: float)"),
    "a duration": ("extend(o, 6)", "extend(o, 7)"),
    "a condition": ("within 20", "within 21"),
    "a head": ("late(i, c) <-", "late(c, i) <-"),
    "a rule more": ("angry(c, i)", "more(c) <- k: call(c);\nangry(c, i)"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_all_that_has_a_meaning_belongs_to_the_program(kept: Path, change: str) -> None:
    old, new = CHANGES[change]
    assert old in PROGRAM
    before = {name: (kept / name).read_bytes() for name in files_of(kept)}
    with pytest.raises(WrongCheckpoint, match="is of another program"):
        Checkpoint(str(kept)).open([spread_of(PROGRAM.replace(old, new))], PLACES, PLACES)
    assert {name: (kept / name).read_bytes() for name in files_of(kept)} == before


def test_layout_comments_places_and_rates_do_not(kept: Path) -> None:
    text = PROGRAM.replace("shop/*.jsonl", "elsewhere/*.jsonl").replace("RATE 5 per sec", "RATE 50 per sec")
    text = text.replace(";\n", ";  -- as ever\n\n")
    assert Checkpoint(str(kept)).open([spread_of(text)], PLACES, PLACES) == PLACES


def test_a_calendar_more_is_another_program_and_other_rows_are_told(tmp_path: Path, kept: Path) -> None:
    given = World(tables={"vip": []}, calendars={"cal:workday": []})
    with pytest.raises(WrongCheckpoint, match="it lacks `calendar cal:workday`"):
        Checkpoint(str(kept)).open([spread_of(world=given)], PLACES, PLACES)
    copied = tmp_path / "checkpoint"
    shutil.copytree(kept, copied)
    rows = compile(PROGRAM)._world({"vip": [{"customer": 3}]})
    with pytest.warns(ChangedData, match=r"table `vip` has changed since batch 2"):
        go_on(copied, BATCHES, BATCHES + 1, spread_of(world=rows))
    assert go_on(copied, BATCHES + 1, BATCHES + 2, spread_of(world=rows)) is not None


# ---- folders of answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"query": "a"}', b"\xff"])
def test_a_folder_whose_owner_cannot_be_read_is_refused(tmp_path: Path, data: bytes) -> None:
    folder = folder_at(str(tmp_path / "out"))
    folder.claim("a")
    folder.claim("a")
    with pytest.raises(WrongFolder, match="holds what query a wrote, and this is query b"):
        folder.claim("b")
    (tmp_path / "out" / "_ephemera.json").write_bytes(data)
    with pytest.raises(Broken, match=r"_ephemera.json .*; bring the file back from a copy, or name a new folder"):
        folder.claim("a")
    assert (tmp_path / "out" / "_ephemera.json").read_bytes() == data
