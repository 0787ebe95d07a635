"""This module shows that marks are told to whoever listens, and that a step waits until they were heard."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ephemera.spark.live.fault_points import MARKS, mark


def test_without_a_listener_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MARKS, raising=False)
    mark("read")


def test_a_step_waits_until_it_was_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    went_on = threading.Event()

    def step() -> None:
        mark("segment write")
        went_on.set()

    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as door:
        door.bind(str(Path(folder) / "door"))
        door.listen()
        monkeypatch.setenv(MARKS, f"{folder}/door")
        stepping = threading.Thread(target=step)
        stepping.start()
        line, _ = door.accept()
        with line:
            assert line.makefile().readline() == f"{os.getpid()} segment write\n"
            assert not went_on.is_set()
        stepping.join()
    assert went_on.is_set()
