"""This module tests the file operations on each kind of files, and which paths are taken."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from ephemera.engine.state import durable_files as files_module
from ephemera.engine.state.durable_files import ArrowFiles, Chunks, Files, Posix, WrongPlace, files_of
from tests.engine.failing_files import OUTCOMES, FailingFiles


def ignore(_: str) -> None:
    """Nobody is told of the steps."""


@pytest.fixture(params=["posix", "local", "subtree", "mock", "failing"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Files, str]:
    match request.param:
        case "posix":
            return files_of(f"{tmp_path}/a/b")
        case "local":
            return ArrowFiles(LocalFileSystem()), f"{tmp_path}/a/b"
        case "subtree":
            return ArrowFiles(SubTreeFileSystem(str(tmp_path), LocalFileSystem())), "a/b"
        case "mock":
            return files_of("mock:///a/b")
        case _:
            return FailingFiles(), "/a/b"


def test_files_are_put_read_named_and_removed(place: tuple[Files, str]) -> None:
    files, folder = place
    assert files.names(folder) == []
    files.make(folder)
    files.make(folder)
    assert files.names(folder) == []
    files.put(f"{folder}/two", [b"0123", pa.py_buffer(b"456"), b"", b"789"], ignore)
    files.put(f"{folder}/one", [], ignore)
    assert files.names(folder) == ["one", "two"]
    for start, length, wanted in [
        (0, None, b"0123456789"),
        (3, 4, b"3456"),
        (-4, None, b"6789"),
        (-4, 2, b"67"),
        (-40, None, b"0123456789"),
        (8, 40, b"89"),
        (40, None, b""),
    ]:
        assert files.read(f"{folder}/two", start, length).to_pybytes() == wanted
    assert files.read(f"{folder}/one").to_pybytes() == b""
    files.remove(f"{folder}/one")
    files.remove(f"{folder}/one")
    assert files.names(folder) == ["two"]
    with pytest.raises(FileNotFoundError):
        files.read(f"{folder}/one")


def test_a_file_is_replaced(place: tuple[Files, str]) -> None:
    files, folder = place
    files.make(folder)
    files.put(f"{folder}/x", [b"old and long"], ignore)
    files.put(f"{folder}/x", [b"new"], ignore)
    assert files.read(f"{folder}/x").to_pybytes() == b"new"
    assert files.names(folder) == ["x"]


def test_folders_are_no_files(place: tuple[Files, str]) -> None:
    files, folder = place
    files.make(f"{folder}/c")
    assert files.names(folder) == []


def test_what_was_read_stays_when_the_file_is_replaced_or_removed(tmp_path: Path) -> None:
    files, path = Posix(), f"{tmp_path}/x"
    files.put(path, [b"old"], ignore)
    old = files.read(path)
    files.put(path, [b"new"], ignore)
    new = files.read(path)
    files.remove(path)
    assert (old.to_pybytes(), new.to_pybytes()) == (b"old", b"new")


def test_reading_maps_the_file(tmp_path: Path) -> None:
    files, path = Posix(), f"{tmp_path}/x"
    files.put(path, [bytes(1 << 20)], ignore)
    before = pa.total_allocated_bytes()
    buffer = files.read(path)
    assert len(buffer) == 1 << 20
    assert pa.total_allocated_bytes() == before


def test_a_file_is_synced_before_it_has_its_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Any] = []
    synced = os.fsync

    def fsync(number: int) -> None:
        steps.append([path.suffix for path in tmp_path.iterdir()])
        synced(number)

    monkeypatch.setattr(os, "fsync", fsync)
    Posix().put(f"{tmp_path}/x.segment", [b"1"], steps.append)
    assert steps == ["write", "sync", [".tmp"], "rename", "folder sync", [".segment"]]


def test_a_disk_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    class Full(Posix):
        def sync(self, path: str) -> None:
            raise OSError(28, "no space left", path)

    Posix().put(f"{tmp_path}/x", [b"old"], ignore)
    with pytest.raises(OSError, match="no space left"):
        Full().put(f"{tmp_path}/x", [b"new"], ignore)
    assert Posix().names(str(tmp_path)) == ["x"]
    assert Posix().read(f"{tmp_path}/x").to_pybytes() == b"old"


def test_two_attempts_at_one_file_do_not_meet(tmp_path: Path) -> None:
    class Slow(Posix):
        def write(self, path: str, chunks: Chunks) -> None:
            super().write(path, chunks)
            Posix().put(f"{tmp_path}/x", [b"theirs"], ignore)

    Slow().put(f"{tmp_path}/x", [b"ours"], ignore)
    assert Posix().names(str(tmp_path)) == ["x"]
    assert Posix().read(f"{tmp_path}/x").to_pybytes() == b"ours"


# ---- the double --------------------------------------------------------------------------------------------


def test_the_double_keeps_what_was_put_whatever_happens() -> None:
    for outcome in OUTCOMES:
        files = FailingFiles()
        files.make("/a")
        files.put("/a/x", [b"1"], ignore)
        assert files.after_crash(outcome).read("/a/x").to_pybytes() == b"1"


def test_the_double_may_lose_what_was_not_synced() -> None:
    files = FailingFiles()
    files.make("/a")
    files.put("/a/x", [b"old"], ignore)
    files.write("/a/y", [b"new!"])
    files.rename("/a/y", "/a/x")
    found = {outcome.name: files.after_crash(outcome).read("/a/x").to_pybytes() for outcome in OUTCOMES}
    assert set(found.values()) == {b"old", b"new!", b"ne", b""}
    files.sync("/a/x")
    found = {outcome.name: files.after_crash(outcome).read("/a/x").to_pybytes() for outcome in OUTCOMES}
    assert set(found.values()) == {b"old", b"new!"}


# ---- paths -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/var/state", "/var/state"),
        ("/var/state/", "/var/state"),
        ("/var/a:b", "/var/a:b"),
        ("file:/var/state", "/var/state"),
        ("file:///var/the%20state", "/var/the state"),
        ("file://localhost/var/state", "/var/state"),
    ],
)
def test_paths_of_this_machine(path: str, wanted: str) -> None:
    files, found = files_of(path)
    assert isinstance(files, Posix)
    assert found == wanted


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert files_of("state")[1] == f"{tmp_path}/state"


def test_what_arrow_opens_is_taken() -> None:
    files, path = files_of("mock:///shop/state")
    assert isinstance(files, ArrowFiles)
    assert path == "shop/state"


def test_spark_s_name_of_s3_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class System:
        @staticmethod
        def from_uri(uri: str) -> tuple[LocalFileSystem, str]:
            asked.append(uri)
            return LocalFileSystem(), "bucket/state"

    monkeypatch.setattr(files_module, "FileSystem", System)
    assert files_of("s3a://bucket/state")[1] == "bucket/state"
    assert asked == ["s3://bucket/state"]


@pytest.mark.parametrize("path", ["dbfs:/state", "ftp://host/state", "kafka://topic"])
def test_other_places_are_refused_with_a_way_out(path: str) -> None:
    scheme = path.partition(":")[0]
    with pytest.raises(WrongPlace, match=rf"Arrow does not open `{scheme}:` here.*Give a path of this machine.*s3:"):
        files_of(path)


@pytest.mark.parametrize("path", ["file://other/state", "file:state"])
def test_files_of_other_machines_are_refused(path: str) -> None:
    with pytest.raises(WrongPlace, match="no file of this machine: write file:///folder"):
        files_of(path)
