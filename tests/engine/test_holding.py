"""This module takes checkpoints twice: the second run is refused and told who has it, unless that one died."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import fs

from ephemera.engine.state.checkpoint_lock import LOCK, CheckpointHeld, _by_name, hold
from ephemera.engine.state.durable_files import ArrowFiles

HOLDING = (
    "import sys, time; from ephemera.engine.state.checkpoint_lock import hold; own = hold(sys.argv[1]);"
    "print('held', flush=True);"
    "time.sleep(600)"
)


def test_a_second_run_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with hold(str(tmp_path / "a" / "checkpoint")) as own:
        own.check()
        with pytest.raises(CheckpointHeld) as told:
            hold(str(tmp_path / "a" / "checkpoint"))
        who = f"process {os.getpid()} on {re.escape(socket.gethostname())}"
        assert re.search(rf"checkpoint` is in use by another run: {who}, since 20\S+Z; stop that", str(told.value))
        hold(str(tmp_path / "a" / "another")).release()
    hold(f"file://{tmp_path}/a/checkpoint").release()


def test_another_process_is_refused_and_one_that_was_killed_has_nothing(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(CheckpointHeld, match=f"process {process.pid} on "):
            hold(str(tmp_path))
        process.send_signal(signal.SIGKILL)
    hold(str(tmp_path)).release()


def test_a_forked_process_does_not_keep_it(tmp_path: Path) -> None:
    own = hold(str(tmp_path))
    ends = os.pipe()
    child = os.fork()
    if not child:
        os.read(ends[0], 1)
        os._exit(0)
    own.release()
    try:
        hold(str(tmp_path)).release()
    finally:
        os.write(ends[1], b"x")
        os.waitpid(child, 0)


def test_what_has_ended_here_without_saying_so_gives_it_back(tmp_path: Path) -> None:
    first = hold(str(tmp_path))
    first.is_over = lambda: True
    second = hold(str(tmp_path))
    first.release()
    with pytest.raises(CheckpointHeld):
        hold(str(tmp_path))
    second.release()


def test_a_lock_that_was_removed_is_noticed(tmp_path: Path) -> None:
    own = hold(str(tmp_path))
    (tmp_path / LOCK).unlink()
    other = hold(str(tmp_path))
    other.check()
    with pytest.raises(CheckpointHeld, match="is not ours any more: somebody has removed"):
        own.check()
    own.release()
    other.check()
    other.release()


def test_an_unreadable_lock_is_one_all_the_same(tmp_path: Path) -> None:
    with hold(str(tmp_path)):
        (tmp_path / LOCK).write_bytes(b"\xff")
        with pytest.raises(CheckpointHeld, match="one that has not said yet who it is"):
            hold(str(tmp_path))


def test_without_locks_the_last_one_has_it(tmp_path: Path) -> None:
    files = ArrowFiles(fs.LocalFileSystem())
    first = _by_name(files, str(tmp_path / "checkpoint"), "s3://shop/checkpoint")
    first.check()
    second = _by_name(files, str(tmp_path / "checkpoint"), "s3://shop/checkpoint")
    second.check()
    with pytest.raises(
        CheckpointHeld, match=f"another run has taken the checkpoint `s3:.*` over: process {os.getpid()} on "
    ):
        first.check()
    (tmp_path / "checkpoint" / "run.json").write_bytes(b"")
    with pytest.raises(CheckpointHeld, match="nobody knows who"):
        second.check()
