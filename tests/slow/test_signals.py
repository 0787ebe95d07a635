"""This module ends runs on Spark as those do who run services: with signals to all of their processes at once.

Java and Python workers are among them. No run may hang, say more than a line, or leave processes; what was answered
stays, and another start goes on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.spark.machine import SOURCES

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")]

PROGRAM = "EVENT order(id: string);\nseen(id) <- o: order(id);\n"
COUNTS = "EVENT order(id: string);\nnear(count(i)) <- o: order(id), w: extend(o, 3), while w: collect order(i);\n"
PATIENCE = 400.0
SLOW = """
import time
from ephemera.engine.operators.head import HeadBuilder

def wait(self, batch):
    open({!r}, "w").close()
    time.sleep(600)

HeadBuilder.step = wait
"""


class Shop:
    """A folder with a program, events that arrive, and a place for temporary files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "p.eq").write_text(PROGRAM, encoding="utf-8")
        for name in ("in", "tmp", "site"):
            (folder / name).mkdir()

    def wait_in_tasks(self) -> Path:
        """Has each task of a run wait for ever; where it shows that one has begun."""
        begun = self.folder / "begun"
        (self.folder / "p.eq").write_text(COUNTS, encoding="utf-8")
        (self.folder / "site" / "sitecustomize.py").write_text(SLOW.format(str(begun)), encoding="utf-8")
        return begun

    def put(self, number: int) -> None:
        """A file with one event arrives."""
        event = {"event": "order", "time": number, "data": [f"o{number}"]}
        (self.folder / "new").write_text(json.dumps(event) + "\n", encoding="utf-8")
        (self.folder / "new").replace(self.folder / "in" / f"{number}.jsonl")

    def answers(self) -> list[str]:
        texts = [p.read_text(encoding="utf-8") for p in sorted((self.folder / "out").glob("*.jsonl"))]
        return [json.loads(line)["data"][0] for text in texts for line in text.splitlines()]

    @contextmanager
    def started(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        words = ["run", "p.eq", "--input", "in", "--output", "out/", "--master", "local[1]", *options]
        environment = {
            **os.environ,
            "TMPDIR": str(self.folder / "tmp"),
            "PYTHONPATH": os.pathsep.join([str(self.folder / "site"), str(SOURCES)]),
        }
        with subprocess.Popen(
            [sys.executable, "-m", "ephemera", *words],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - it may come ignored
        ) as process:
            try:
                yield process
            finally:
                for number in tree(process.pid):
                    os.kill(number, signal.SIGKILL)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def tree(root: int) -> list[int]:
    """A process and all below it that live."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state != "Z":
                parents.setdefault(int(parent), []).append(int(entry.name))
    found = [root] if any(root in below for below in parents.values()) else []
    for number in found:
        found += parents.get(number, [])
    return found


def until(claim: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE
    while not claim():
        assert time.monotonic() < last
        time.sleep(0.05)


def gone(processes: list[int]) -> bool:
    return not any(set(tree(number)) for number in processes)


LIVE = ("--mode", "stream", "--checkpoint", "check", "--trigger", "100 ms")


def test_signals_to_all_processes_end_a_live_run_and_another_start_goes_on(shop: Shop) -> None:
    wanted: list[str] = []

    def one_more(number: int) -> None:
        # What happens at one instant is certain when an event of a later one has come.
        shop.put(number)
        wanted.append(f"o{number}")
        until(lambda: set(shop.answers()) >= set(wanted[:-1]))

    one_more(1)
    with shop.started(*LIVE) as process:
        one_more(2)
        all_of_it = tree(process.pid)
        assert len(all_of_it) >= 3
        for number in all_of_it:
            os.kill(number, signal.SIGTERM)
        out, told = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (0, "")
        assert told.splitlines()[-1].startswith("stopped after ")
        assert told.splitlines()[-1].endswith("go on with --checkpoint check")
        assert len(told.splitlines()) == 1
        until(lambda: gone(all_of_it))
    assert list((shop.folder / "tmp").iterdir()) == []
    with shop.started(*LIVE) as process:
        one_more(3)
        all_of_it = tree(process.pid)
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
        out, told = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, len(told.splitlines())) == (130, "", 1), told
        until(lambda: gone(all_of_it))
    with shop.started(*LIVE) as process:
        one_more(4)
        all_of_it = tree(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        until(lambda: gone(all_of_it))
    left = {p.name for p in (shop.folder / "tmp").iterdir() if p.name.startswith("ephemera-")}
    assert left
    with shop.started(*LIVE) as process:
        one_more(5)
        assert not left & {p.name for p in (shop.folder / "tmp").iterdir()}
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    found = shop.answers()
    assert sorted(found) == sorted(set(found))
    assert set(found) >= {"o1", "o2", "o3", "o4"}


def test_a_java_that_was_killed_is_told_as_that(shop: Shop) -> None:
    begun = shop.wait_in_tasks()
    shop.put(1)
    with shop.started() as process:
        until(lambda: begun.exists() or process.poll() is not None)
        (java,) = (n for n in tree(process.pid) if "java" in Path(f"/proc/{n}/exe").resolve().name)
        os.kill(java, signal.SIGKILL)
        _, told = process.communicate(timeout=PATIENCE)
    (line,) = told.splitlines()
    assert (process.returncode, line.partition(" while ")[0]) == (3, "Java ended (killed by SIGKILL)")
    assert sorted(p.name for p in shop.folder.iterdir()) == ["begun", "in", "p.eq", "site", "tmp"]


def test_sigterm_to_all_processes_ends_a_batch_run_and_leaves_nothing(shop: Shop) -> None:
    begun = shop.wait_in_tasks()
    shop.put(1)
    with shop.started() as process:
        until(lambda: begun.exists() or process.poll() is not None)
        all_of_it = tree(process.pid)
        os.killpg(process.pid, signal.SIGTERM)
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
        until(lambda: gone(all_of_it))
    assert (process.returncode in (130, 143), told) == (True, "stopped\n")
    assert sorted(p.name for p in shop.folder.iterdir()) == ["begun", "in", "p.eq", "site", "tmp"]
    assert list((shop.folder / "tmp").iterdir()) == []
