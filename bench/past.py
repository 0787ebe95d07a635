"""This module runs the benchmark of history, then live: on Spark, a past and what follows it beside one run over all.

A stream is cut at random places, always the same. What is before a cut is the past; what is read live begins some
events earlier, so that the two overlap. Both are Parquet files. The answers must be those over the whole stream.

Of each cut it is told how long a run over history took for the whole stream, and for the past alone, and how long the
run took that reads the past and then the rest; and of that how much passed until the past was read, without the start
of Spark.

PYTHONPATH=. python -m bench.past [--events 5000000] [--queries Q1,Q3] [--keys 1000] [--cuts 3] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import HOUR
from bench.files import ROWS, tables
from bench.queries import Case
from bench.usage import Usage, used

_BATCH = re.compile(r"batch 0: [\d,]+ events in ([\d.,]+) (ms|s)")
_LATER = 10 * HOUR
"""So long after all others there is one more event of each type, so that all answers are certain."""


class Bench:
    """One query on one stream."""

    def __init__(self, query: str, keys: int, events: int, folder: Path) -> None:
        self.query = query
        case = Case(query, keys)
        self.folder = folder
        self.program = folder / f"{query}.eq"
        self.program.write_text(case.program)
        self.table = pa.concat_tables(tables(case.stream(events)))

    def files(self, name: str, table: pa.Table) -> Path:
        """A table as Parquet files in a folder."""
        folder = self.folder / f"{name}.parquet"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, first in enumerate(range(0, len(table), ROWS)):
            pq.write_table(table.slice(first, ROWS), folder / f"{number:04d}.parquet")
        return folder

    def run(self, *options: str) -> tuple[Usage, list[str], str]:
        """A run on Spark: what it took, its answers, and what it said."""
        output = self.folder / "answers"
        shutil.rmtree(output, ignore_errors=True)
        said = self.folder / "said"
        command = [
            sys.executable,
            "-m",
            "ephemera",
            "run",
            str(self.program),
            "--engine",
            "spark",
            "--emit",
            self.query,
        ]
        whole = [*command, *options, "--output", str(output)]
        told = ["sh", "-c", f'exec "$@" 2> {said}', "sh", *whole]
        usage = used(told, self.folder, limit=1_800)
        lines = [line for file in output.glob("part-*") for line in file.read_text().splitlines()]
        return usage, sorted(lines), said.read_text()

    def last(self) -> pa.Table:
        """Events that are long after all others."""
        (end,) = self.table.column("time").slice(len(self.table) - 1).to_pylist()
        rows = [{"event": letter, "time": end + _LATER, "id": -1, "x": -1, "v": 0} for letter in "ABDE"]
        return pa.Table.from_pylist(rows, schema=self.table.schema)

    def at(self, cut: int, overlap: int, whole: list[str]) -> tuple[Usage, Usage, float]:
        """What the past alone takes, and history then live; and how long the past took in that."""
        past = self.files("past", self.table.slice(0, cut))
        live = self.files("live", pa.concat_tables([self.table.slice(cut - overlap), self.last()]))
        alone, _, _ = self.run("--input", str(past))
        checkpoint = self.folder / "checkpoint"
        shutil.rmtree(checkpoint, ignore_errors=True)
        both, answers, said = self.run(
            *("--input", str(past), "--then", str(live), "--checkpoint", str(checkpoint)),
            *("--trigger", "once", "--progress"),
        )
        if answers != whole:
            raise SystemExit(f"{self.query}, cut at {cut:,}: {len(answers):,} answers, and {len(whole):,} over all")
        found = _BATCH.search(said)
        seconds = float(found[1].replace(",", "")) / (1_000 if found[2] == "ms" else 1) if found is not None else 0.0
        return alone, both, seconds


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=5_000_000)
    options.add_argument("--queries", default="Q1,Q3")
    options.add_argument("--keys", type=int, default=1_000)
    options.add_argument("--cuts", type=int, default=3)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--json", type=Path, help="a file for the figures")
    chosen = options.parse_args()
    dice = Random(chosen.seed)
    figures = []
    print("query        cut  overlap  over all  past alone  then live  of all  the past in it", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for query in chosen.queries.split(","):
            bench = Bench(query, chosen.keys, chosen.events, Path(scratch))
            every, answers, _ = bench.run("--input", str(bench.files("all", bench.table)))
            for _ in range(chosen.cuts):
                cut = dice.randrange(chosen.events // 10, chosen.events)
                overlap = dice.randrange(min(cut, chosen.events // 10))
                alone, both, seconds = bench.at(cut, overlap, answers)
                ratio = both.wall / every.wall
                print(
                    f"{query:5} {cut:10,} {overlap:8,} {every.wall:7.1f} s {alone.wall:9.1f} s {both.wall:8.1f} s "
                    f"{ratio:7.2f} {seconds:13.1f} s",
                    flush=True,
                )
                figures.append(
                    {
                        "query": query,
                        "cut": cut,
                        "overlap": overlap,
                        "all": every.wall,
                        "past": alone.wall,
                        "both": both.wall,
                    }
                )
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
