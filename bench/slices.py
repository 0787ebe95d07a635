"""This module measures what is cut along time on Spark: two cores against one, over history and live.

Two processes with a session each, bound to one core and to two, take turns, so that whatever else the machine does
meets both, and both are warm: the first turns of each case do not count. Of the others each has its median, and the
ratio is that of these. Beside seconds on the clock stand the seconds that processors were busy, in engines and
altogether, which a busy machine changes less. All answers are compared with those of the local engine, by their number
and by sums. MB are those of the largest worker: over history of the smaller and of the larger peak of two, live after
the first batch that counts and after the last.

PYTHONPATH=. python -m bench.slices [--events 1000000] [--batches 4] [--size 250000] [--ways batch live]
    [--cases chain pairs hour hot during] [--warm 2] [--repeat 3] [--json FILE]
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
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.slice_cases import CASES, stream
from bench.slice_runs import COLD, Run, Sums, local

ROWS = 62_500
"""Rows of a group in files, so that several tasks can read one."""
HEAD = (
    "| | | answers | slices | one core s | two cores s | **ratio** | engines' CPU, one | two | all CPU, one | two "
    "| MB, one | two |\n|---|---|" + "--:|" * 11
)


@dataclass(frozen=True, slots=True)
class Figures:
    """How a case went on one core and on two, over history or live."""

    way: str
    case: str
    one: tuple[Run, ...]
    two: tuple[Run, ...]

    @property
    def ratio(self) -> float:
        """How many times as fast two cores are."""
        return _median(self.one) / _median(self.two)

    def line(self) -> str:
        """A row of the table."""
        last = self.two[-1]
        seconds = f"{_median(self.one):.2f} | {_median(self.two):.2f} | **{self.ratio:.2f}**"
        busy = " | ".join(f"{statistics.median(r.engines for r in runs):.2f}" for runs in (self.one, self.two))
        cpu = " | ".join(f"{statistics.median(r.cpu for r in runs):.2f}" for runs in (self.one, self.two))
        memory = " | ".join(f"{runs[-1].memory[0]:.0f} to {runs[-1].memory[1]:.0f}" for runs in (self.one, self.two))
        what = CASES[self.case].what
        return f"| {self.way} | {what} | {last.sums.count:,} | {last.slices} | {seconds} | {busy} | {cpu} | {memory} |"


def _median(runs: Sequence[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


class Cores:
    """A process that has so many cores."""

    def __init__(self, count: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.slice_runs", str(count)],
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
    way: str, name: str, path: Path, right: Sums, cores: Mapping[int, Cores], *, warm: int, repeat: int
) -> Figures:
    """The runs of a case, in turn; the first ones warm up."""
    runs: dict[int, list[Run]] = {count: [] for count in cores}
    for number in range(warm + repeat):
        for count, process in cores.items():
            run = process.run(way, name, path)
            if not run.sums.agree(right):
                raise SystemExit(f"wrong answers of {name}, {way}, on {count}: {run.sums}, not {right}")
            if number >= warm:
                runs[count].append(run)
    return Figures(way, name, tuple(runs[1]), tuple(runs[2]))


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
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    rows: list[Figures] = []
    cores = {count: Cores(count) for count in (1, 2)}
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
    for process in cores.values():
        process.close()
    if chosen.json is not None:
        told = {"events": chosen.events, "batches": chosen.batches, "figures": [asdict(row) for row in rows]}
        chosen.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
