"""This module runs the benchmark of the local engine: queries against DuckDB, and one event at a time.

Each query runs in a process of its own, for the engine and for DuckDB, on the same stream, and both must give the right
answers. Everything is CPU seconds; run it on one core (`taskset -c 1`) and look at the ratios.

PYTHONPATH=. python -m bench.engine [--events 1000000] [--keys 1000 100000] [--hot 0.2] [--queries Q1 Q3]
    [--batch 100000] [--repeat 3] [--limit 120] [--rules 1000] [--plots FOLDER] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from bench import svg, worker
from bench.latency import Form
from bench.queries import Case, cases
from bench.reference import Answers
from bench.table import Row, header, latencies, line

AIM = 5.0
"""At most so many times the CPU of DuckDB."""
FORMS: tuple[Form, ...] = ("pattern", "condition")


def main() -> None:
    """Measures, prints a table, and writes the figures and plots."""
    chosen = _options().parse_args()
    figures: dict[str, Any] = {"events": chosen.events, "batch": chosen.batch, "queries": [], "latency": []}
    if not chosen.latency_only:
        rows = queries(chosen)
        figures["queries"] = [row.as_json() for row in rows]
        if chosen.plots is not None:
            _plot(rows, chosen.plots)
    if chosen.rules:
        figures["latency"] = one_by_one(chosen.rules)
    chosen.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"\nthe figures are in {chosen.json}")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--keys", type=int, nargs="+", default=[1_000, 100_000])
    options.add_argument("--hot", type=float, default=0.2, help="the share of one key; 0 leaves out its queries")
    options.add_argument("--queries", nargs="+", default=[], help="only these")
    options.add_argument("--batch", type=int, default=100_000, help="events at a time")
    options.add_argument("--repeat", type=int, default=3, help="of so many runs the fastest counts")
    options.add_argument("--limit", type=int, default=120, help="no run may take more seconds")
    options.add_argument("--rules", type=int, default=1_000, help="for one event at a time; 0 leaves it out")
    options.add_argument("--latency-only", action="store_true")
    options.add_argument("--plots", type=Path, help="a folder for two SVG plots")
    options.add_argument("--json", type=Path, default=Path("bench/figures.json"))
    return options


def queries(chosen: argparse.Namespace) -> list[Row]:
    """All queries on all streams."""
    rows: list[Row] = []
    print(header())
    with tempfile.TemporaryDirectory() as scratch:
        saved: dict[str, Path] = {}
        for case in cases(chosen.keys, chosen.hot, chosen.queries):
            folder = saved.get(case.stream_name)
            if folder is None:
                folder = saved[case.stream_name] = Path(scratch) / case.stream_name
                case.stream(chosen.events).save(folder)
            row = _row(case, folder, chosen)
            print(line(row), flush=True)
            rows.append(row)
    return rows


def _row(case: Case, folder: Path, chosen: argparse.Namespace) -> Row:
    right = Answers(**worker.apart(worker.Task("reference", case, folder)))
    sql: dict[str, float] = worker.apart(worker.Task("duckdb", case, folder, repeat=chosen.repeat, right=right))
    best: dict[str, Any] | None = None
    for _ in range(chosen.repeat):
        found = worker.apart(
            worker.Task("engine", case, folder, batch=chosen.batch, limit=chosen.limit, right=right), may_fail=True
        )
        if found is None:
            break
        if best is None or found["seconds"] < best["seconds"]:
            best = found
    return Row(case.name, right.count, sql, best, chosen.limit)


def one_by_one(rules: int) -> list[dict[str, Any]]:
    """One event at a time, with one rule and with many."""
    print("\n" + latencies())
    found: list[dict[str, Any]] = []
    for form in FORMS:
        one = worker.apart(worker.Task("latency", form=form, rules=1, events=5_000))
        many = worker.apart(worker.Task("latency", form=form, rules=rules, events=100))
        for measured in (one, many):
            print(latencies({**measured, "ratio": measured["median"] / one["median"]}), flush=True)
            found.append(measured)
    return found


def _plot(rows: list[Row], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ratios = {row.name: row.ratio for row in rows if row.ratio is not None}
    costs = {row.name: row.costs for row in rows if row.costs}
    bars = svg.bars("CPU of the engine in multiples of DuckDB's", ratios, AIM)
    (folder / "ratios.svg").write_text(bars)
    (folder / "costs.svg").write_text(svg.lines("CPU per event along the stream", costs, "microseconds"))


if __name__ == "__main__":
    main()
