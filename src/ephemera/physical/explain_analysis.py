"""This module puts what was seen in a run beside what was expected of it (`explain --analyze`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import SECOND, describe
from ephemera.physical.expectation import expect
from ephemera.physical.plan import PhysicalPlan

Plain: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen in a run in one process."""

    events: Mapping[str, int]
    """How many came, by type."""
    span: int
    """From the first end to the last, in microseconds."""
    answers: int
    by_rule: Mapping[str, int]
    """How many answers each rule gave, and each stored join tuples."""
    kept: Mapping[str, tuple[int, int]]
    """For each history the most tuples that it has held after a step, and their bytes."""
    examined: Mapping[str, int]
    """For each rule how many pairs were looked at."""
    cpu: float
    """Seconds of processor time, reading and writing included."""


def as_json(plan: PhysicalPlan, seen: Seen) -> Plain:
    """Types, histories and rules, each with what was expected and what was seen; per second of the events' time."""
    expected = expect(plan)
    seconds = seen.span / SECOND
    return {
        "events": sum(seen.events.values()),
        "span": seen.span,
        "answers": seen.answers,
        "cpu": round(seen.cpu, 3),
        "types": [
            {"label": label, "expected": rate, "known": known, "seen": _per(seen.events.get(label, 0), seconds)}
            for label, (rate, known) in expected.rates.items()
        ],
        "histories": [
            {
                "history": name,
                "expected": None if one.tuples is None else {"tuples": one.tuples, "bytes": one.bytes},
                "seen": {"tuples": seen.kept.get(name, (0, 0))[0], "bytes": seen.kept.get(name, (0, 0))[1]},
            }
            for name, one in expected.histories.items()
        ],
        "rules": [
            {
                "rule": name,
                "expected": {"pairs": one.pairs, "answers": one.answers},
                "seen": {
                    "pairs": _per(seen.examined.get(name, 0), seconds),
                    "answers": _per(sum(seen.by_rule.get(m.name, 0) for m in plan.rewritten.members(name)), seconds),
                },
            }
            for name, one in expected.rules.items()
        ],
    }


def _per(count: int, seconds: float) -> float | None:
    return count / seconds if seconds > 0 else None


def as_text(plan: PhysicalPlan, seen: Seen) -> str:
    """The same as tables."""
    plain = as_json(plan, seen)
    head = f"ran {plain['events']:,} events of {describe(plain['span'])}, {plain['answers']:,} answers"
    lines = [f"{head}, {plain['cpu']:.2f} s of CPU", ""]
    rows = [["events a second", "expected", "", "seen"]]
    rows += [[t["label"], number(t["expected"]), t["known"], number(t["seen"])] for t in plain["types"]]
    lines += [*_table(rows), ""]
    rows = [["kept at most", "expected", "seen", "bytes expected", "seen"]]
    for one in plain["histories"]:
        told = one["expected"] or {"tuples": None, "bytes": None}
        now = one["seen"]
        sizes = [number(n) for n in (told["tuples"], now["tuples"], told["bytes"], now["bytes"])]
        rows.append([one["history"], *sizes])
    lines += [*_table(rows), ""]
    rows = [["in a second", "pairs expected", "seen", "answers expected", "seen"]]
    for one in plain["rules"]:
        told, now = one["expected"], one["seen"]
        rows.append([one["rule"], *map(number, (told["pairs"], now["pairs"], told["answers"], now["answers"]))])
    return "\n".join([*lines, *_table(rows)])


def _table(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for first, *rest in rows:
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()


def number(value: float | None) -> str:
    """A number with three digits that count; `?` is unknown."""
    if value is None:
        return "?"
    if value >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.3g}"
