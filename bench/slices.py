"""This module measures what is cut along time on Spark: two cores against one, over history and live.

Two processes with a session each, bound to one core and to two, take turns, so that whatever else the machine does
meets both, and both are warm: the first turns of each case do not count. Of the others each has its median, and the
ratio is that of these. Beside seconds on the clock stand the seconds that processors were busy, in engines and
altogether, which a busy machine changes less. All answers are compared with those of the local engine, by their number
and by sums. MB are those of the largest worker: over history of the smaller and of the larger peak of two, live after
the first batch that counts and after the last.

`--control` says what two cores of this machine can do at best, since they share caches, memory and neighbours: two
processes with one core each do the same work at once. If each then takes as long as one alone, two cores are two.

PYTHONPATH=. python -m bench.slices [--events 1000000] [--batches 4] [--size 250000] [--ways batch live]
    [--cases chain pairs hour hot during] [--warm 2] [--repeat 3] [--control] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.slice_cases import CASES, stream
from bench.slice_runs import COLD, Run, Sums, local

ROWS = 62_500
"""Rows of a group in files, so that several tasks can read one."""
HEAD = (
    "| | | answers | slices | one core s | two cores s | **ratio** | at best | engines' CPU, one | two | all CPU, one "
    "| two | MB, one | two |\n|---|---|" + "--:|" * 12
)


@dataclass(frozen=True, slots=True)
class Figures:
    """How a case went on one core and on two, over history or live."""

    way: str
    case: str
    one: tuple[Run, ...]
    two: tuple[Run, ...]
    beside: tuple[Run, ...] = ()
    """The same on one core each, two at once."""

    @property
    def ratio(self) -> float:
        """How many times as fast two cores are."""
        return _median(self.one) / _median(self.two)

    @property
    def at_best(self) -> float | None:
        """How many times as much two cores of this machine do at once, if that was looked at."""
        return 2 * _median(self.one) / _median(self.beside) if self.beside else None

    def line(self) -> str:
        """A row of the table."""
        last = self.two[-1]
        at_best = "" if self.at_best is None else f"{self.at_best:.2f}"
        seconds = f"{_median(self.one):.2f} | {_median(self.two):.2f} | **{self.ratio:.2f}** | {at_best}"
        busy = " | ".join(f"{statistics.median(r.engines for r in runs):.2f}" for runs in (self.one, self.two))
        cpu = " | ".join(f"{statistics.median(r.cpu for r in runs):.2f}" for runs in (self.one, self.two))
        memory = " | ".join(f"{runs[-1].memory[0]:.0f} to {runs[-1].memory[1]:.0f}" for runs in (self.one, self.two))
        what = CASES[self.case].what
        return f"| {self.way} | {what} | {last.sums.count:,} | {last.slices} | {seconds} | {busy} | {cpu} | {memory} |"


def _median(runs: Sequence[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


class Cores:
    """A process that has so many cores, from the first or from another one on."""

    def __init__(self, count: int, first: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.slice_runs", str(count), str(first)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, way: str, name: str, path: Path) -> Run:
        """Runs a case."""
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise SystemExit("a process without pipes")
        process.stdin.write(json.dumps({"way": way, "name": name, "path": str(path)}) + "\n")
        process.stdin.flush()
        told = json.loads(process.stdout.readline() or "null")
        if told is None:
            raise SystemExit(f"{name}, {way}: the run has failed")
        return Run(**{**told, "sums": Sums(**told["sums"]), "memory": tuple(told["memory"])})

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


def compared(  # noqa: PLR0913 - what is run, on what, and how often
    way: str, name: str, path: Path, right: Sums, cores: Mapping[str, Sequence[Cores]], *, warm: int, repeat: int
) -> Figures:
    """The runs of a case, in turn; the first ones warm up. Of processes that run at once the slowest counts."""
    runs: dict[str, list[Run]] = {which: [] for which in cores}
    for number in range(warm + repeat):
        for which, processes in cores.items():
            with ThreadPoolExecutor(len(processes)) as threads:
                at_once = list(threads.map(lambda process: process.run(way, name, path), processes))
            for run in at_once:
                if not run.sums.agree(right):
                    raise SystemExit(f"wrong answers of {name}, {way}, on {which}: {run.sums}, not {right}")
            if number >= warm:
                runs[which].append(max(at_once, key=lambda run: run.seconds))
    return Figures(way, name, *(tuple(several) for several in runs.values()))


def in_batches(events: pa.Table, folder: Path, size: int) -> None:
    """A file for each batch, and one for the event that ends all; they are read in this order."""
    folder.mkdir()
    for number, first in enumerate(range(0, len(events), size)):
        path = folder / f"{number:06d}.parquet"
        pq.write_table(events.slice(first, size), path, row_group_size=ROWS)
        os.utime(path, (1e9 + number, 1e9 + number))


def main() -> None:
    """Measures, and prints a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=1_000_000, help="of runs over history")
    options.add_argument("--batches", type=int, default=4, help="live batches that count")
    options.add_argument("--size", type=int, default=250_000, help="events in a live batch")
    options.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES), help="only these")
    options.add_argument("--ways", nargs="+", default=["batch", "live"], choices=["batch", "live"])
    options.add_argument("--warm", type=int, default=2, help="runs that do not count")
    options.add_argument("--repeat", type=int, default=3, help="runs that count")
    options.add_argument("--control", action="store_true", help="also the same work twice at once, a core for each")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    rows: list[Figures] = []
    cores = {"one core": [Cores(1)], "two cores": [Cores(2)]}
    if chosen.control:
        cores["one core each"] = [*cores["one core"], Cores(1, first=1)]
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for way in chosen.ways:
            for name in chosen.cases:
                live_events = (COLD + chosen.batches) * chosen.size
                events = stream(CASES[name], chosen.events if way == "batch" else live_events)
                path = Path(scratch) / f"{way}-{name}.parquet"
                if way == "batch":
                    pq.write_table(events, path, row_group_size=ROWS)
                else:
                    in_batches(events, path, chosen.size)
                found = compared(way, name, path, local(name, events), cores, warm=chosen.warm, repeat=chosen.repeat)
                rows.append(found)
                print(found.line(), flush=True)
    for process in {process for several in cores.values() for process in several}:
        process.close()
    if chosen.json is not None:
        told = {"events": chosen.events, "batches": chosen.batches, "figures": [asdict(row) for row in rows]}
        chosen.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
