"""This module runs the benchmark from file to answer: whole commands, each a process of its own, on the same files.

Ours are `ephemera run` on the local engine and on Spark; beside them DuckDB on one thread and hand-written PySpark do
the same: read, join, sort and write. All must write the right answers. Their CPU counts with their start; for Spark
the time that passes does, of which that of a bare session with one small job is its start.

PYTHONPATH=. python -m bench.command [--events 1000000,5000000] [--queries Q1,Q2,Q3,Q4] [--formats jsonl,csv,parquet]
    [--engines local,duckdb,spark,pyspark,frame] [--keys 1000] [--shuffled] [--objects] [--output-format same|jsonl]
    [--memory] [--repeat 1] [--limit 900] [--folder FOLDER] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import answer_files, duckdb_files, spark_files, worker
from bench.command_table import Comparison, frames_header, frames_line, grown, header, line
from bench.files import FORMATS, File, Format
from bench.frames import Frames
from bench.queries import Case
from bench.reference import Answers
from bench.usage import Failed, Usage, used

QUERIES = ("Q1", "Q2", "Q3", "Q4")
ALL_QUERIES = (*QUERIES, "Q1w")
"""Q1w has as many answers as there are events."""
ENGINES = ("local", "duckdb", "spark", "pyspark", "frame")
ON_SPARK = ("spark", "pyspark")
SIZES = (1_000_000, 5_000_000, 50_000_000)
"""On which memory is compared."""


@dataclass(frozen=True, slots=True)
class Work:
    """A query on a file that is there, with the right answers."""

    file: File
    path: Path
    right: Answers
    scratch: Path
    output_format: Format

    def command(self, engine: str, output: Path) -> list[str]:
        """What an engine is started with."""
        query = self.file.case.query
        match engine:
            case "local" | "spark":
                program = self.scratch / f"{query}.eq"
                program.write_text(self.file.case.program)
                paths = ["--input", str(self.path), "--output", str(output)]
                return [
                    sys.executable,
                    "-m",
                    "ephemera",
                    "run",
                    str(program),
                    "--engine",
                    engine,
                    "--emit",
                    query,
                    *paths,
                ]
            case "duckdb":
                statements = duckdb_files.statements(self.file, self.path, output, self.output_format)
                return [sys.executable, "-m", "bench.command_duckdb", *statements]
            case "pyspark":
                job = spark_files.job(self.file, self.path, output, self.output_format)
                return [sys.executable, "-m", "bench.command_pyspark", json.dumps(job)]
            case _:
                return [sys.executable, "-m", "bench.command_pyspark"]

    def run(self, engine: str, limit: float) -> tuple[Usage, int | None]:
        """What an engine took, and the checksum of its answers, which must be right; the bare start has none."""
        output = self.scratch / f"answers-{engine}.{self.output_format}"
        remove(output)
        more = spark_files.environment() if engine in {"bare", "pyspark"} else {}
        usage = used(self.command(engine, output), self.scratch, limit=limit, more=more)
        if engine == "bare":
            return usage, None
        query = self.file.case.query
        written = answer_files.read(output, self.output_format, self.file.case)
        if not self.right.agree(written.answers):
            raise SystemExit(f"{engine} answers {query} on {self.path.name} with {written.answers}, not {self.right}")
        if not written.is_sorted and (engine not in ON_SPARK or self.output_format == "jsonl"):
            raise SystemExit(f"the answers of {engine} to {query} on {self.path.name} are not sorted")
        remove(output)
        return usage, written.checksum


def remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def compared(work: Work, engines: list[str], repeat: int, limit: float) -> Comparison:
    """All engines, one after the other in each round; of each the fastest run counts."""
    usages: dict[str, Usage] = {}
    checksums: dict[str, int] = {}
    for _ in range(repeat):
        for engine in engines:
            try:
                usage, checksum = work.run(engine, limit)
            except Failed as failure:
                print(f"{engine} failed: {failure}", file=sys.stderr, flush=True)
                continue
            if engine not in usages or _cost(engine, usage) < _cost(engine, usages[engine]):
                usages[engine] = usage
            if checksum is not None:
                checksums[engine] = checksum
    if len({*checksums.values()}) > 1:
        raise SystemExit(f"the answers to {work.file.case.query} on {work.path.name} differ: {checksums}")
    checksum = next(iter(checksums.values()), None)
    file = work.file
    return Comparison(file.case.query, file.format, file.events, work.right.count, checksum, usages)


def _cost(engine: str, usage: Usage) -> float:
    return usage.cpu if engine in {"local", "duckdb"} else usage.wall


def prepared(chosen: argparse.Namespace, events: int, folder: Path, scratch: Path) -> Iterator[Work]:
    """All queries on all files of one size; the stream is gone from memory when the first is run."""
    cases = [Case(query, chosen.keys) for query in chosen.queries]
    stream = cases[0].stream(events)
    files = {form: File(cases[0], events, form, chosen.shuffled, chosen.objects) for form in chosen.formats}
    paths = {form: file.write(stream, folder) for form, file in files.items()}
    rights = [case.answers(stream) for case in cases]
    del stream
    for case, right in zip(cases, rights, strict=True):
        for form, path in paths.items():
            file = File(case, events, form, chosen.shuffled, chosen.objects)
            output: Format = "jsonl" if chosen.output_format == "jsonl" else form
            yield Work(file, path, right, scratch, output)


def frames(chosen: argparse.Namespace, events: int, scratch: Path) -> Iterator[tuple[str, int, Frames]]:
    """All queries of one size from frame to frame: the query, how many answers it has, and what that took."""
    cases = [Case(query, chosen.keys) for query in chosen.queries]
    stream = cases[0].stream(events)
    rights = [case.answers(stream) for case in cases]
    saved = scratch / f"{cases[0].stream_name}-{events}"
    stream.save(saved)
    del stream
    for case, right in zip(cases, rights, strict=True):
        task = worker.Task("frame", case, saved, repeat=chosen.repeat, right=right)
        yield case.query, right.count, Frames(**worker.apart(task))
    shutil.rmtree(saved)


def main() -> None:
    """Measures, prints tables, and writes the figures where they are asked for; 1 if a command failed."""
    chosen = _options().parse_args()
    engines = ["local"] if chosen.memory else [engine for engine in chosen.engines if engine != "frame"]
    if {*engines} & {*ON_SPARK}:
        engines.insert(0, "bare")
    rows: list[Comparison] = []
    framed: list[dict[str, Any]] = []
    with _folders(chosen.folder) as (folder, scratch):
        if engines:
            print(header(engines), flush=True)
            for events in chosen.events or (SIZES if chosen.memory else SIZES[:1]):
                for work in prepared(chosen, events, folder, scratch):
                    rows.append(compared(work, engines, chosen.repeat, chosen.limit))
                    print(line(rows[-1], engines), flush=True)
            if chosen.memory:
                print("\n".join(["", *grown(rows)]), flush=True)
        if "frame" in chosen.engines and not chosen.memory:
            print(("\n" if rows else "") + frames_header(), flush=True)
            for events in chosen.events or SIZES[:1]:
                for query, answers, found in frames(chosen, events, scratch):
                    print(frames_line(query, events, answers, found), flush=True)
                    framed.append({"query": query, "events": events, "answers": answers, **asdict(found)})
    if chosen.json is not None:
        figures = {"keys": chosen.keys, "commands": [row.as_json() for row in rows], "frames": framed}
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")
    if any({*engines} - {*row.usages} for row in rows):
        sys.exit(1)


@contextmanager
def _folders(kept: Path | None) -> Iterator[tuple[Path, Path]]:
    """Where the events lie, which are kept if a folder is named, and one for all else."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if kept is None else kept
        folder.mkdir(parents=True, exist_ok=True)
        yield folder, Path(scratch)


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--events", type=_sizes, default=(), help="how many; several sizes are run one after the other"
    )
    options.add_argument("--queries", type=_SomeOf(ALL_QUERIES), default=list(QUERIES))
    options.add_argument("--formats", type=_SomeOf(FORMATS), default=list(FORMATS))
    options.add_argument("--engines", type=_SomeOf(ENGINES), default=["local", "duckdb"])
    options.add_argument("--keys", type=int, default=1_000)
    options.add_argument("--shuffled", action="store_true", help="events in no order, always the same")
    options.add_argument("--objects", action="store_true", help="data of JSON lines by name")
    options.add_argument(
        "--output-format",
        choices=["same", "jsonl"],
        default="same",
        help="answers as the events are, or as JSON lines",
    )
    options.add_argument("--memory", action="store_true", help="only the local engine, on 1, 5 and 50 M events")
    options.add_argument("--repeat", type=int, default=1, help="of so many runs the fastest counts")
    options.add_argument("--limit", type=float, default=900.0, help="no command may take more seconds")
    options.add_argument("--folder", type=Path, help="where the events are kept for another run")
    options.add_argument("--json", type=Path, help="a file for the figures")
    return options


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


class _SomeOf:
    """Names out of a list, with commas between them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def __call__(self, text: str) -> list[str]:
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in self._names]
        if unknown:
            raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}; there are {', '.join(self._names)}")
        return chosen


if __name__ == "__main__":
    main()
