"""This module lays out what the benchmark of commands found, one line for each query, format and size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.frames import Frames
from bench.usage import Usage

NONE = "-"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A query on a file: what each engine took that came to an end."""

    query: str
    format: str
    events: int
    answers: int
    checksum: int | None
    """Of all answers, the same for all engines; nothing if no engine came to an end."""
    usages: Mapping[str, Usage]

    @property
    def to_duckdb(self) -> float | None:
        """Our CPU in multiples of DuckDB's."""
        return _ratio(self._cpu("local"), self._cpu("duckdb"))

    @property
    def to_pyspark(self) -> float | None:
        """Our time beyond the bare start of Spark in multiples of that of hand-written PySpark."""
        return _ratio(self._wall_beyond("spark"), self._wall_beyond("pyspark"))

    @property
    def to_pyspark_in_cpu(self) -> float | None:
        """The same for the CPU of all processes, which other work on the machine disturbs less."""
        return _ratio(self._cpu_beyond("spark"), self._cpu_beyond("pyspark"))

    def _cpu(self, engine: str) -> float | None:
        return self.usages[engine].cpu if engine in self.usages else None

    def _wall_beyond(self, engine: str) -> float | None:
        if engine not in self.usages or "bare" not in self.usages:
            return None
        return self.usages[engine].wall - self.usages["bare"].wall

    def _cpu_beyond(self, engine: str) -> float | None:
        if engine not in self.usages or "bare" not in self.usages:
            return None
        return self.usages[engine].cpu - self.usages["bare"].cpu

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None or theirs <= 0 else ours / theirs


def header(engines: Collection[str]) -> str:
    """The titles."""
    return _joined([(title, width, title) for title, width, _ in _cells(None, engines)])


def line(row: Comparison, engines: Collection[str]) -> str:
    """One query."""
    return _joined(_cells(row, engines))


def grown(rows: Iterable[Comparison]) -> list[str]:
    """For each query and format a line that says how much more memory the local engine took on the most events."""
    by_file: dict[tuple[str, str], list[Comparison]] = {}
    for row in rows:
        if "local" in row.usages:
            by_file.setdefault((row.query, row.format), []).append(row)
    lines: list[str] = []
    for (query, form), found in by_file.items():
        least, most = min(found, key=lambda row: row.events), max(found, key=lambda row: row.events)
        ratio = most.usages["local"].peak / least.usages["local"].peak
        lines.append(
            f"{query} {form}: {ratio:.2f} times the memory for {most.events / least.events:g} times the events"
        )
    return lines


def _joined(cells: list[tuple[str, int, str]]) -> str:
    return " ".join(f"{text:<{width}}" if k < 2 else f"{text:>{width}}" for k, (_, width, text) in enumerate(cells))


def _cells(row: Comparison | None, engines: Collection[str]) -> list[tuple[str, int, str]]:
    """Title, width and text of each cell that these engines have; without a row only the titles matter."""
    usages: Mapping[str, Usage] = row.usages if row is not None else {}
    cells = [("query", 5, ""), ("format", 8, ""), ("events", 10, ""), ("answers", 10, ""), ("checksum", 16, "")]
    if row is not None:
        checksum = NONE if row.checksum is None else f"{row.checksum:016x}"
        texts = (row.query, row.format, f"{row.events:,}", f"{row.answers:,}", checksum)
        cells = [(title, width, text) for (title, width, _), text in zip(cells, texts, strict=True)]
    for engine, name in (("local", "local"), ("duckdb", "DuckDB")):
        if engine in engines:
            usage = usages.get(engine)
            cells.append((f"{name} CPU s", 12, NONE if usage is None else f"{usage.cpu:.2f}"))
            cells.append(("wall s", 7, NONE if usage is None else f"{usage.wall:.2f}"))
            cells.append(("MB", 6, NONE if usage is None else f"{usage.peak:.0f}"))
    if {"local", "duckdb"} <= {*engines}:
        cells.append(("local/DuckDB", 12, _times(row.to_duckdb if row is not None else None)))
    for engine, title in (("bare", "bare s"), ("spark", "Spark s"), ("pyspark", "PySpark s")):
        if engine in engines:
            usage = usages.get(engine)
            cells.append((title, 9, NONE if usage is None else f"{usage.wall:.1f}"))
            cells.append(("CPU s", 6, NONE if usage is None else f"{usage.cpu:.1f}"))
    if {"spark", "pyspark"} <= {*engines}:
        cells.append(("beyond start", 12, _times(row.to_pyspark if row is not None else None)))
        cells.append(("in CPU", 6, _times(row.to_pyspark_in_cpu if row is not None else None)))
    return cells


def _times(ratio: float | None) -> str:
    return NONE if ratio is None else f"{ratio:.1f}"


def frames_header() -> str:
    """The titles of what is measured from frame to frame."""
    titles = f"{'query':<8}{'events':>11}{'answers':>11}{'run CPU s':>11}{'engine':>9}{'DuckDB':>9}"
    return f"{titles}{'run/engine':>12}{'run/DuckDB':>12}"


def frames_line(query: str, events: int, answers: int, found: Frames) -> str:
    """One query from frame to frame."""
    ratios = f"{_times(_ratio(found.run, found.engine)):>12}{_times(_ratio(found.run, found.duckdb)):>12}"
    seconds = f"{found.run:>11.3f}{found.engine:>9.3f}{found.duckdb:>9.3f}"
    return f"{query:<8}{events:>11,}{answers:>11,}{seconds}{ratios}"
