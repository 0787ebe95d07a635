"""This module asks a query of NEXMark as a program of ours and as SQL, and gives the answers of both as rows.

A row is when an answer begins and ends, in microseconds, and its values. Doubles are compared to twelve figures.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

import ephemera

FOLDER = Path(__file__).parents[2] / "examples" / "nexmark"
QUERIES = sorted((path.stem for path in FOLDER.glob("q*.eq")), key=lambda name: int(name[1:]))
DAILY = {"q14", "q15", "q16", "q17", "q18", "q19"}
"""Those for which a stream of ten minutes is too short."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row: TypeAlias = tuple[Any, ...]


def program(query: str) -> ephemera.Program:
    """A query as a program of ours."""
    return ephemera.load(FOLDER / f"{query}.eq")


def options(query: str) -> dict[str, Any]:
    """What the program runs on besides events: tables, and time until the last windows are over."""
    more = {"tables": {"side": side()}} if query == "q13" else {}
    last, rest = events(query)[-1]["time"], timedelta(days=1) if query in DAILY else timedelta(seconds=20)
    return {**more, "until": (datetime.fromisoformat(last) + rest).isoformat(), "emit": [answer(query)]}


def answer(query: str) -> str:
    """What the last rule of a query derives, which is its answer."""
    return str(list(program(query).catalogue.derived)[-1])


@cache
def events(query: str) -> list[dict[str, Any]]:
    """The stream over which a query is asked: 3,000 events in ten minutes, or in a day and a half."""
    return stream(timedelta(seconds=40) if query in DAILY else timedelta(milliseconds=200))


@cache
def stream(every: timedelta, count: int = 3000) -> list[dict[str, Any]]:
    """What the generator of the example makes up."""
    return list(generator().events(count, every))


@cache
def generator() -> ModuleType:
    """The generator of the example, which is no module of ours."""
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def side() -> list[dict[str, Any]]:
    """The rows of the table that a query joins."""
    return list(generator().side())


def rows(answers: Iterable[dict[str, Any]]) -> set[Row]:
    """Answers of ours as rows."""
    found: list[Row] = []
    for one in answers:
        time = one["time"] if isinstance(one["time"], list) else [one["time"]] * 2
        found.append((*map(_microseconds, time), *map(_plain, one["data"])))
    assert len(set(found)) == len(found)
    return set(found)


def asked_in_sql(query: str) -> set[Row]:
    """The answers of DuckDB."""
    with duckdb.connect() as connection:
        for name in ("person", "auction", "bid"):
            own = [_row(event) for event in events(query) if event["event"] == name]
            connection.register(name, pa.Table.from_pylist(own))
        connection.register("side", pa.Table.from_pylist(side()))
        found = connection.execute((FOLDER / f"{query}.sql").read_text(encoding="utf-8")).fetchall()
    distinct = {tuple(map(_plain, row)) for row in found}
    assert len(distinct) == len(found)
    return distinct


def _row(event: dict[str, Any]) -> dict[str, Any]:
    until = {"expires": _microseconds(event["expires"])} if "expires" in event else {}
    return {**event["data"], "t": _microseconds(event["time"]), **until}


def _microseconds(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def _plain(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value
