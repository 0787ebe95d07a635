"""This module damages snapshots in folders: each damage is told, and what has another meaning is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import ephemera
from ephemera.engine.state.durable_files import seal
from ephemera.engine.state.identity import ChangedData
from ephemera.engine.state.snapshot import FORMAT, KIND, MANIFEST, WrongSnapshot, load

PROGRAM = """
TIME UNIT 1 hour; TIME ZONE "UTC";
EVENT a(x: int); EVENT b(x: int);
STREAM s CARRIES a, b WATERMARK 2;
TABLE known(x: int);
p(x) <- i: a(x), j: b(x), {i, j} within 5, known(x);
"""
ROWS = {"known": [{"x": 1}, {"x": 2}]}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snapshot")
    engine = ephemera.compile(PROGRAM).engine(tables=ROWS)
    engine.send_many([{"event": "ab"[k % 2], "time": k, "data": [k % 3]} for k in range(6)])
    engine.snapshot().save(folder)
    return folder


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "deleted": lambda _: None,
    "empty": lambda _: b"",
    "cut": lambda data: data[:-7],
    "flipped": lambda data: data[:70] + bytes([data[70] ^ 4]) + data[71:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_snapshot_is_told(tmp_path: Path, saved: Path, damage: str) -> None:
    names = sorted(path.name for path in saved.iterdir())
    assert len(names) > 2
    for name in names:
        copied = tmp_path / name
        shutil.copytree(saved, copied)
        data = DAMAGES[damage]((saved / name).read_bytes())
        (copied / name).unlink()
        if data is not None:
            (copied / name).write_bytes(data)
        with pytest.raises(WrongSnapshot, match=name if name != MANIFEST else "manifest.json|no snapshot") as told:
            load(copied)
        assert "\n" not in str(told.value)


def test_a_segment_of_another_snapshot_is_told(tmp_path: Path, saved: Path) -> None:
    engine = ephemera.compile(PROGRAM).engine(tables=ROWS)
    engine.send_many([{"event": "ab"[k % 2], "time": k, "data": [k % 3 + 10]} for k in range(6)])
    engine.snapshot().save(tmp_path)
    name = next(path.name for path in saved.glob("run-*"))
    shutil.copyfile(saved / name, tmp_path / name)
    with pytest.raises(WrongSnapshot, match=f"{name} is damaged, or the segment of another snapshot"):
        load(tmp_path)


def test_a_snapshot_of_another_version_is_refused(tmp_path: Path, saved: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(saved, copied)
    content = json.loads((copied / MANIFEST).read_bytes())["content"]
    (copied / MANIFEST).write_bytes(seal(KIND, FORMAT + 1, content))
    with pytest.raises(WrongSnapshot, match=f"has format {FORMAT + 1}, and this version of Ephemera reads"):
        load(copied)
    (copied / MANIFEST).write_text(json.dumps({"format": 2, **content}))
    with pytest.raises(WrongSnapshot, match="has format 2, and this version of Ephemera reads"):
        load(copied)
    (copied / MANIFEST).write_bytes(seal(KIND, 3, content))  # it named state by where rules stood
    with pytest.raises(WrongSnapshot, match="has format 3, and this version of Ephemera reads format 4; go on with"):
        load(copied)


@pytest.mark.parametrize(
    ("old", "new"),
    [("1 hour", "1 min"), ('"UTC"', '"Asia/Tokyo"'), ("WATERMARK 2", "WATERMARK 3"), ("within 5", "within 6")],
)
def test_a_snapshot_of_a_program_that_means_something_else_is_refused(saved: Path, old: str, new: str) -> None:
    other = ephemera.compile(PROGRAM.replace(old, new)).engine(tables=ROWS)
    with pytest.raises(WrongSnapshot, match="is of another program"):
        other.restore(load(saved))


def test_other_rows_are_told_and_other_stamps_refused(saved: Path) -> None:
    program = ephemera.compile(PROGRAM)
    program.engine(tables={"known": ROWS["known"][::-1]}).restore(load(saved))
    with pytest.warns(ChangedData, match="table `known` has changed since the snapshot was taken"):
        program.engine(tables={"known": [{"x": 1}]}).restore(load(saved))
    with pytest.raises(WrongSnapshot, match='stamp="event", and this has stamp="arrival"'):
        program.engine(stamp="arrival", tables=ROWS).restore(load(saved))


def test_what_an_earlier_snapshot_had_must_be_there(tmp_path: Path) -> None:
    engine = ephemera.compile(PROGRAM).engine(tables=ROWS)
    engine.send_many([{"event": "ab"[k % 2], "time": k, "data": [k % 3]} for k in range(60)])
    first = engine.snapshot()
    second = engine.snapshot(since=first)
    with pytest.raises(WrongSnapshot, match="no snapshot"):
        second.save(tmp_path / "elsewhere")
    with pytest.raises(WrongSnapshot, match="lacks the segment"):
        ephemera.compile(PROGRAM).engine(tables=ROWS).restore(second)
    first.save(tmp_path / "here")
    second.save(tmp_path / "here")
    ephemera.compile(PROGRAM).engine(tables=ROWS).restore(load(tmp_path / "here"))
