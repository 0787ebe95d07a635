from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ephemera.spark.runtime.class_archive import SWITCH, Start, start_of
from ephemera.spark.runtime.java import Java

OLDER, NEWER = Java(Path("/opt/java/bin/java"), 17, ""), Java(Path("/opt/java/bin/java"), 25, "")
WHOLE = (0xF00BABA8).to_bytes(4, "little") + b"and classes"
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(SWITCH, raising=False)
    return tmp_path / "ephemera"


def made(java: Java = OLDER) -> Path:
    """The file that Java is asked to write."""
    start = start_of(java, "short", may_make=True)
    assert start.makes
    assert start.options[:2] == QUICK
    return Path(start.options[-1].strip('"').partition("=")[2])


def test_the_first_run_that_may_has_an_archive_made(folder: Path) -> None:
    assert start_of(OLDER, "short", may_make=False) == Start(QUICK)
    new = made()
    assert new.parent == folder
    assert new.read_bytes() == b""


def test_nobody_tries_again_while_one_is_being_made(folder: Path) -> None:
    made()
    assert start_of(OLDER, "short", may_make=True) == Start(QUICK)
    assert len(list(folder.iterdir())) == 1


def test_what_was_given_up_is_removed_after_a_day(folder: Path) -> None:
    new = made()
    long_ago = time.time() - 90_000
    os.utime(new, (long_ago, long_ago))
    assert made() != new
    assert not new.exists()
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize(("java", "option"), [(OLDER, "SharedArchiveFile"), (NEWER, "AOTCache")])
def test_a_whole_archive_gets_its_name_and_is_used(folder: Path, java: Java, option: str) -> None:
    made(java).write_bytes(WHOLE)
    start = start_of(java, "short", may_make=True)
    (archive,) = folder.iterdir()
    assert start == Start((*QUICK, "-Xlog:disable", f'"-XX:{option}={archive}"'))
    assert archive.read_bytes() == WHOLE
    assert archive.suffix == ""


def test_long_runs_have_an_archive_of_their_own_and_all_of_the_compiler(folder: Path) -> None:
    made().write_bytes(WHOLE)
    start = start_of(OLDER, "long", may_make=True)
    assert start.makes
    assert not set(QUICK) & set(start.options)
    assert len(list(folder.iterdir())) == 2


def test_archives_that_nobody_used_for_long_are_removed(folder: Path) -> None:
    folder.mkdir()
    old = folder / "classes-short-0123456789ab"
    old.write_bytes(WHOLE)
    long_ago = time.time() - 70 * 86_400
    os.utime(old, (long_ago, long_ago))
    made().write_bytes(WHOLE)
    start_of(OLDER, "short", may_make=True)
    assert not old.exists()


def test_archives_can_be_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert start_of(OLDER, "long", may_make=True) == Start()
    assert not folder.exists()


def test_where_nothing_can_be_kept_java_starts_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    monkeypatch.delenv(SWITCH, raising=False)
    assert start_of(OLDER, "short", may_make=True) == Start(QUICK)
