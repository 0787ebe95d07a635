"""This module kills live runs, starts them again, and says at which step each kill fell.

A run is a driver in a session of its own, with Java and the workers. All of them tell the killer of each step before
they do it, and wait until it has heard them; so a kill falls exactly where it was planned, however fast the machine is.
Kills at a random moment fall some time after a step instead: what was under way then is the last step that was told.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

from ephemera.spark.live.fault_points import MARKS
from tests.spark.live_shop import BATCHES
from tests.spark.machine import PATIENCE, SOURCES

Victim: TypeAlias = Literal["worker", "driver", "machine"]
"""A machine is the driver with all that it has started; if only the driver is killed, the others have to find out."""
VICTIMS: tuple[Victim, ...] = ("worker", "driver", "machine")
Told: TypeAlias = tuple[str, bool, str]
"""A kill that was done: at which step it fell, whether that was planned, and who was killed."""
_PUT = ("write", "sync", "rename", "folder sync")
IN_WORKERS = (
    "read",
    "engines",
    *("segment write", "segment sync", "segment rename", "folder sync", "remove"),
    "gather",
    *(f"answers {step}" for step in _PUT),
    *(f"letters {step}" for step in _PUT),
)
"""The steps of a batch that workers do, in their order. What is removed are segments that nothing needs any more."""
IN_DRIVER = (
    *("batch begins", "open", "plan", "settle"),
    *(f"ledger {step}" for step in _PUT),
    *("ledger tidy", "batch done"),
)
"""The steps that the driver does; it opens and settles folders with the first batch of a start.

Where answers go to a table, `table write` comes before the ledger.
"""
STEPS = tuple(dict.fromkeys([*IN_DRIVER[:3], *IN_WORKERS, *IN_DRIVER[3:]]))
AT_START = frozenset({"open", "settle"})
"""The steps that only the first batch of a start has."""
SPAN = BATCHES - 4
"""Kills begin in so many batches."""
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A Java that is soon killed does not gain from what it compiles at length."""
PATIENT = 3
"""A run whose driver has ended so often without being killed never gets there."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Who is killed, and when: as the n-th one comes to a step, or to any step, or some seconds after that."""

    victim: Victim
    step: str | None
    count: int = 1
    delay: float = 0.0
    batch: int = 0
    """It is not counted before so many batches are done."""

    @property
    def is_planned(self) -> bool:
        return self.step is not None and not self.delay


@dataclass(frozen=True, slots=True)
class Fallen:
    """A kill that was done, and the step at which it fell."""

    kill: Kill
    step: str

    @property
    def told(self) -> Told:
        return self.step, self.kill.is_planned, self.kill.victim


# ---- processes ---------------------------------------------------------------------------------------------


def members(session: int) -> list[int]:
    """The processes of a session that are alive."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, own = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(own) == session and state != "Z":
                found.append(int(entry.name))
    return found


def kill_all(session: int) -> None:
    """Ends all processes of a session that we started, until none is left."""
    while processes := members(session):
        for process in processes:
            kill_one(process)
        time.sleep(0.01)


def kill_one(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


# ---- listening ---------------------------------------------------------------------------------------------


class Killer:
    """Listens to the steps of a run, and carries out its kills one after the other."""

    def __init__(self, kills: Sequence[Kill]) -> None:
        self._left = list(kills)
        self.fallen: list[Fallen] = []
        self.missed: list[Kill] = []
        """Kills by chance for which it was too late."""
        self.steps: Counter[str] = Counter()
        """How often each step was told of."""
        self._count = 0
        self._last: dict[int, str] = {}
        self._latest = ""
        self._driver = 0
        self._lock = threading.Lock()
        self._timers: list[threading.Timer] = []

    @property
    def left(self) -> list[Kill]:
        """The kills that were not carried out."""
        return list(self._left)

    def watch(self, driver: int) -> None:
        """A driver has been started, which is the first of its session."""
        with self._lock:
            self._driver, self._last, self._latest, self._count = driver, {}, "", 0

    def hear(self, process: int, step: str) -> None:
        """A process is about to do a step; it waits until this returns."""
        with self._lock:
            self.steps[step] += 1
            if not self._driver or not _is_of(process, self._driver):
                return
            self._last[process] = self._latest = step
            if not self._left or not self._is_asked_for(self._left[0], process, step):
                return
            self._count += 1
            if self._count >= self._left[0].count:
                self._begin(self._left.pop(0), process)

    def _is_asked_for(self, kill: Kill, process: int, step: str) -> bool:
        if self.steps[IN_DRIVER[-1]] < kill.batch or (kill.victim == "worker" and process == self._driver):
            return False
        return kill.step in (None, step)

    def _begin(self, kill: Kill, process: int) -> None:
        self._count = 0
        if not kill.delay:
            self._kill(kill, process)
            return
        timer = threading.Timer(kill.delay, self._kill_later, [kill, process, self._driver])
        self._timers.append(timer)
        timer.start()

    def _kill_later(self, kill: Kill, process: int, driver: int) -> None:
        with self._lock:
            victim = process if kill.victim == "worker" else driver
            if driver == self._driver and _is_of(victim, driver):
                self._kill(kill, process)
            else:
                self.missed.append(kill)

    def _kill(self, kill: Kill, process: int) -> None:
        step = self._last[process] if kill.victim == "worker" else self._latest
        self.fallen.append(Fallen(kill, step))
        match kill.victim:
            case "worker":
                kill_one(process)
                return
            case "driver":
                kill_one(self._driver)
            case "machine":
                kill_all(self._driver)
        self._driver = 0

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
            timer.join()


def _is_of(process: int, session: int) -> bool:
    try:
        return os.getsid(process) == session
    except ProcessLookupError:
        return False


def _listen(door: socket.socket, hear: Callable[[int, str], None]) -> None:
    """Hears one after the other, until the door is closed."""
    while True:
        try:
            line, _ = door.accept()
        except OSError:
            return
        with line:
            told = line.makefile().readline()
            if told.endswith("\n"):
                process, step = told.rstrip("\n").split(" ", 1)
                hear(int(process), step)


# ---- running -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Ran:
    """How a run went that was killed and started again until it ended by itself."""

    starts: int = 0
    gave_up: list[str] = field(default_factory=list)
    """What drivers said that ended without being killed before all was done."""
    fallen: list[Fallen] = field(default_factory=list)
    left: list[Kill] = field(default_factory=list)
    """Kills whose step did not come."""
    missed: list[Kill] = field(default_factory=list)
    steps: Counter[str] = field(default_factory=Counter)


def run(arguments: Callable[[int], Sequence[str]], kills: Sequence[Kill], log: Path) -> Ran:
    """Runs a driver until it ends by itself, `python -m` with arguments for each start; it is killed on its way."""
    killer = Killer(kills)
    ran = Ran()
    with TemporaryDirectory(prefix="marks-") as folder, socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{folder}/door")
        door.listen(64)
        listener = threading.Thread(target=_listen, args=[door, killer.hear])
        listener.start()
        sessions: list[int] = []
        try:
            while not _ended(ran, _start(arguments(ran.starts), f"{folder}/door", killer, sessions, log), log):
                assert len(ran.gave_up) < PATIENT, "\n".join(ran.gave_up)
        finally:
            killer.close()
            for session in sessions:
                kill_all(session)
            door.shutdown(socket.SHUT_RDWR)
            listener.join()
    ran.fallen, ran.left, ran.missed, ran.steps = killer.fallen, killer.left, killer.missed, killer.steps
    return ran


def _start(arguments: Sequence[str], door: str, killer: Killer, sessions: list[int], log: Path) -> int:
    """Runs the driver once; says how it ended."""
    paths = f"{SOURCES}{os.pathsep}{SOURCES.parent}"
    environment = {"JDK_JAVA_OPTIONS": SHORT_LIVED, **os.environ, "PYTHONPATH": paths, MARKS: door}
    command = [sys.executable, "-m", *arguments]
    with log.open("w") as told:
        driver = subprocess.Popen(command, env=environment, stdout=told, stderr=told, start_new_session=True)
        sessions.append(driver.pid)
        killer.watch(driver.pid)
        return driver.wait(timeout=10 * PATIENCE)


def _ended(ran: Ran, code: int, log: Path) -> bool:
    ran.starts += 1
    if code not in (0, -signal.SIGKILL):
        ran.gave_up.append(log.read_text())
    return code == 0


# ---- plans and tables --------------------------------------------------------------------------------------


def plans(runs: int, seed: int) -> list[list[Kill]]:
    """For each run some kills, so that together they hit every step: whoever does it, and the whole machine in it."""
    dice = Random(seed)
    kills = [_planned(dice, ("machine", "driver")[number % 2], step) for number, step in enumerate(IN_DRIVER)]
    kills += [_planned(dice, "worker", step) for step in IN_WORKERS]
    kills += [_planned(dice, "machine", step) for step in dice.sample(IN_WORKERS, runs)]
    kills += [_by_chance(dice, "worker") for _ in range(runs)]
    dice.shuffle(kills)
    kills.sort(key=lambda kill: kill.victim == "worker")  # restarts take time, so each run has its share of them
    return [over_time(dice, kills[number::runs]) for number in range(runs)]


def any_kills(dice: Random, count: int) -> list[Kill]:
    """Some kills of a run, anywhere: every second one by chance."""
    found: list[Kill] = []
    for _ in range(count):
        victim = dice.choice(["worker", *VICTIMS])
        steps = IN_WORKERS if victim == "worker" else STEPS
        found.append(_by_chance(dice, victim) if dice.random() < 0.5 else _planned(dice, victim, dice.choice(steps)))
    return over_time(dice, found)


def _planned(dice: Random, victim: Victim, step: str) -> Kill:
    return Kill(victim, step, 1 if step in AT_START | {"remove"} else dice.randint(1, 2))


def _by_chance(dice: Random, victim: Victim) -> Kill:
    return Kill(victim, None, dice.randint(1, 40), dice.choice([0.0, 0.2]) * dice.random())


def over_time(dice: Random, kills: Sequence[Kill]) -> list[Kill]:
    """The kills of a run, over all its batches; folders are opened in the first, and segments removed in the last."""

    def order(kill: Kill) -> tuple[int, float]:
        return 0 if kill.step in AT_START else 2 if kill.step == "remove" else 1, dice.random()

    ordered = sorted(kills, key=order)
    return [replace(kill, batch=SPAN * number // len(kills)) for number, kill in enumerate(ordered)]


def table(fallen: Iterable[Told]) -> str:
    """How many kills fell at each step."""
    counts = Counter((step, is_planned, victim) for step, is_planned, victim in fallen)
    columns = [(is_planned, victim) for is_planned in (True, False) for victim in VICTIMS]
    lines = ["| step | " + " | ".join(f"{v}, {'planned' if p else 'by chance'}" for p, v in columns) + " | all |"]
    lines.append("|---|" + "--:|" * (len(columns) + 1))
    for step in STEPS:
        row = [counts[step, *column] for column in columns]
        lines.append(f"| {step} | " + " | ".join(str(n or "") for n in [*row, sum(row)]) + " |")
    sums = [sum(n for (_, *of), n in counts.items() if of == list(column)) for column in columns]
    lines.append("| all | " + " | ".join(map(str, [*sums, sum(sums)])) + " |")
    return "\n".join(lines)
