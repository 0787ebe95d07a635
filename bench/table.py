"""This module lays out what the engine's benchmark found, one line for each query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WIDTHS = (28, 11, 9, 8, 9, 8, 9, 8, 8, 10, 10, 9)
TITLES = (
    "query",
    "answers",
    "CPU s",
    "M/s",
    "DuckDB s",
    "ratio",
    "peak MB",
    "first µs",
    "last µs",
    "stored",
    "bound",
    "pending",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A query: DuckDB's variants with their seconds, and the engine's measurements if it came to an end."""

    name: str
    answers: int
    sql: dict[str, float]
    engine: dict[str, Any] | None
    limit: int

    @property
    def best(self) -> float:
        return min(self.sql.values())

    @property
    def ratio(self) -> float | None:
        return None if self.engine is None else float(self.engine["seconds"]) / self.best

    @property
    def costs(self) -> list[float]:
        """Microseconds per event for each batch."""
        return [] if self.engine is None else [1e6 * cpu / events for events, cpu in self.engine["batches"]]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "answers": self.answers, "duckdb": self.sql, "engine": self.engine}


def _joined(cells: tuple[str, ...]) -> str:
    name, *others = cells
    return name.ljust(WIDTHS[0]) + "".join(f" {c:>{w}}" for c, w in zip(others, WIDTHS[1:], strict=True))


def header() -> str:
    """The titles."""
    return _joined(TITLES)


def line(row: Row) -> str:
    """One query; under it which way of asking DuckDB won and which lost."""
    ways = "; ".join(f"{name} {seconds:.3f}" for name, seconds in sorted(row.sql.items(), key=lambda item: item[1]))
    found = row.engine
    if found is None:
        cells: tuple[str, ...] = (row.name, f"{row.answers:,}", f"over {row.limit}", "", f"{row.best:.3f}", "-")
        cells += ("",) * (len(TITLES) - len(cells))
    else:
        batches = found["batches"]
        quarter = max(1, len(batches) // 4)
        cells = (
            row.name,
            f"{row.answers:,}",
            f"{found['seconds']:.3f}",
            f"{sum(n for n, _ in batches) / found['seconds'] / 1e6:.2f}",
            f"{row.best:.3f}",
            f"{row.ratio:.1f}",
            f"{found['peak']:.0f}",
            f"{_cost(batches[:quarter]):.2f}",
            f"{_cost(batches[-quarter:]):.2f}",
            f"{found['stored']:,}",
            f"{found['bound']:,.0f}",
            f"{found['pending']:,}",
        )
    return f"{_joined(cells)}\n    DuckDB: {ways}"


def _cost(batches: list[tuple[int, float]]) -> float:
    """Microseconds per event."""
    return 1e6 * sum(cpu for _, cpu in batches) / sum(n for n, _ in batches)


def latencies(measured: dict[str, Any] | None = None) -> str:
    """One line about one event at a time, or the titles."""
    titles = ("constant in", "rules", "compile s", "start s", "median µs", "99 % µs", "ratio")
    if measured is None:
        return "".join(f"{title:>12}" for title in titles)
    m = measured
    cells = (m["form"], f"{m['rules']:,}", f"{m['compile']:.2f}", f"{m['start']:.2f}", f"{m['median']:,.0f}")
    return "".join(f"{cell:>12}" for cell in (*cells, f"{m['high']:,.0f}", f"{m['ratio']:,.1f}"))
