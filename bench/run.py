"""This module runs the benchmark: how checking grows with the number of rules, as a table and as ratios in one run.

scripts/bench [--rules 1000] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time

from bench.programs import program
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.rules.findings import Findings
from ephemera.rules.normalize import normalize
from ephemera.rules.resolve import resolve
from ephemera.rules.stratify import stratify
from ephemera.syntax.format import format
from ephemera.syntax.parser import parse


def measure(rules: int) -> dict[str, float]:
    """Seconds of CPU for each stage; the program must pass."""
    text = program(rules)
    marks = [time.process_time()]
    parsed = parse(Source("bench.eq", text))
    marks.append(time.process_time())
    findings = Findings()
    resolved = resolve(parsed.program, findings)
    marks.append(time.process_time())
    stratify(resolved, findings)
    marks.append(time.process_time())
    normalize(resolved)
    marks.append(time.process_time())
    format(parsed.program, parsed.comments, text)
    marks.append(time.process_time())
    if findings.diagnostics or parsed.report.diagnostics:
        raise SystemExit(f"the benchmark's program does not pass: {findings.diagnostics[0]}")
    stages = ("parse", "resolve", "stratify", "normalize", "format")
    return {stage: b - a for stage, a, b in zip(stages, marks, marks[1:], strict=False)}


def main() -> None:
    """Measures a quarter, a half and the whole number of rules."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rules", type=int, default=1000)
    options.add_argument("--profile", action="store_true", help="where the time of the largest goes")
    chosen = options.parse_args()
    measure(50)
    sizes = [chosen.rules // 4, chosen.rules // 2, chosen.rules]
    results = [measure(size) for size in sizes]
    print(f"{'rules':>8} {'characters':>11}" + "".join(f"{stage:>11}" for stage in results[0]) + f"{'check':>11}")
    totals = []
    for size, result in zip(sizes, results, strict=True):
        totals.append(sum(seconds for stage, seconds in result.items() if stage != "format"))
        cells = "".join(f"{seconds:>10.3f}s" for seconds in (*result.values(), totals[-1]))
        print(f"{size:>8} {len(program(size)):>11}{cells}")
    growth = totals[1] / totals[0], totals[2] / totals[1]
    print(f"twice the rules take {growth[0]:.2f} and {growth[1]:.2f} times as long to check")
    if chosen.profile:
        with cProfile.Profile() as profile:
            check(Source("bench.eq", program(chosen.rules)))
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
