"""This module runs the benchmark: how compiling grows with the number of rules, as a table and as ratios in one run.

Two programs are compiled: one whose rules depend on each other in dense cycles, and one of independent rules on ten
event types. The time is that of the processor, from the text to the relevance of all that is kept.

scripts/bench compile [--rules 1000] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable

from bench.programs import flat, program
from ephemera.algebra.lower import lower
from ephemera.analysis.findings import tell
from ephemera.analysis.relevance import derive
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.rules.findings import Findings
from ephemera.rules.nodes import Ruleset
from ephemera.rules.normalize import normalize
from ephemera.rules.resolve import resolve
from ephemera.rules.stratify import stratify
from ephemera.syntax.parser import parse

PROGRAMS: dict[str, Callable[[int], str]] = {"dense cycles": program, "ten event types": flat}
STAGES = ("parse", "resolve", "stratify", "normalize", "lower", "derive")


def measure(text: str) -> dict[str, float]:
    """Seconds of CPU for each stage; the program must pass."""
    marks = [time.process_time()]

    def mark() -> None:
        marks.append(time.process_time())

    parsed = parse(Source("bench.eq", text))
    mark()
    findings = Findings()
    resolved = resolve(parsed.program, findings)
    mark()
    strata, dependencies = stratify(resolved, findings)
    mark()
    rules = Ruleset(resolved, strata, dependencies, normalize(resolved))
    mark()
    plan = lower(rules)
    mark()
    facts = derive(plan)
    tell(rules, plan, facts, findings, "error")
    mark()
    if findings.diagnostics or parsed.report.diagnostics:
        raise SystemExit(f"the benchmark's program does not pass: {findings.diagnostics[0]}")
    return {stage: b - a for stage, a, b in zip(STAGES, marks, marks[1:], strict=False)}


def main() -> None:
    """Measures a quarter, a half and the whole number of rules."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rules", type=int, default=1000)
    options.add_argument("--profile", action="store_true", help="where the time of the largest goes")
    chosen = options.parse_args()
    sizes = [chosen.rules // 4, chosen.rules // 2, chosen.rules]
    for name, make in PROGRAMS.items():
        measure(make(50))
        results = [measure(make(size)) for size in sizes]
        totals = [sum(result.values()) for result in results]
        print(f"{name}\n{'rules':>8}" + "".join(f"{stage:>11}" for stage in STAGES) + f"{'all':>11}")
        for size, result, total in zip(sizes, results, totals, strict=True):
            print(f"{size:>8}" + "".join(f"{seconds:>10.3f}s" for seconds in (*result.values(), total)))
        print(f"twice the rules take {totals[1] / totals[0]:.2f} and {totals[2] / totals[1]:.2f} times as long\n")
        if chosen.profile:
            with cProfile.Profile() as profile:
                check(Source("bench.eq", make(chosen.rules)))
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
