"""This module writes and reads tables of Delta Lake for tests, with Delta's own client and none of ours."""

from __future__ import annotations

import json
import string
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner, Result
from deltalake import DeltaTable, TableFeatures, write_deltalake

from ephemera.cli.main import app
from ephemera.connect.systems.delta_source import DeltaSource
from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.registry import source_at
from ephemera.formats.decode import Batch, Rows

ORDERS = """
    EVENT order(id: string, qty: int);
    STREAM s CARRIES order WATERMARK 1 sec;
    big(id, qty) <- o: order(id, qty), qty > 2;
"""


def run(*given: object) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, given)])


def orders(*numbers: int) -> pa.Table:
    """An order an hour, of so many pieces."""
    times = [datetime(2026, 3, 1, n, tzinfo=UTC) for n in numbers]
    columns = {"time": pa.array(times, pa.timestamp("us", tz="UTC")), "id": pa.array([f"o{n}" for n in numbers], "str")}
    return pa.table({**columns, "qty": pa.array(numbers, pa.int64())})


def add(folder: Path, *numbers: int, **more: Any) -> str:
    """A version with some orders; the address of the table."""
    write_deltalake(folder / "orders", orders(*numbers), mode="append", **more)
    return f"delta:{folder}/orders"


def run_live(folder: Path, where: str, text: str = ORDERS, **more: object) -> Result:
    """A live run that takes what is there."""
    (folder / "p.eq").write_text(text)
    told = {"input": where, "checkpoint": folder / "state", "output": f"delta:{folder}/out"} | more
    words = [word for name, value in told.items() for word in (f"--{name}", value)]
    return run(folder / "p.eq", "--mode", "stream", "--trigger", "once", *words)


def rows(place: Path) -> list[dict[str, Any]]:
    """What a table of answers holds, in the order of time."""
    found: list[dict[str, Any]] = pa.table(DeltaTable(place).scan()).to_pylist()
    return sorted(found, key=lambda row: (row["end"], row["begin"], row["event"], row.get("id") or ""))


def kinds(place: Path) -> dict[str, str]:
    """The columns of a table, and their types."""
    return {field.name: str(field.type) for field in pa.schema(DeltaTable(place).schema().to_arrow())}


def source(where: str) -> DeltaSource:
    found = source_at(where)
    assert isinstance(found, DeltaSource)
    return found


def table_of(given: Arrived | Batch | None) -> pa.Table:
    """The rows of what was read."""
    batch = given.batch if isinstance(given, Arrived) else given
    assert isinstance(batch, Rows)
    return batch.table


def mark_deleted(place: Path, version: int, rows: Sequence[int]) -> None:
    """A version that marks rows of the file of another as deleted, as Spark does, and writes no new file.

    The marks are a bitmap in the log: https://github.com/delta-io/delta/blob/master/PROTOCOL.md has its format.
    """
    table = DeltaTable(place)
    table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    log = place / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{version:020}.json").read_text().splitlines()]
    file = next(action["add"] for action in actions if "add" in action)
    values = struct.pack(f"<{len(rows)}H", *rows)
    bitmap = struct.pack("<IQIIIHHI", 1_681_511_377, 1, 0, 12_346, 1, 0, len(rows) - 1, 16) + values
    data = bitmap + b"\0" * (-len(bitmap) % 4)
    marks = {"storageType": "i", "pathOrInlineDv": _z85(data), "sizeInBytes": len(bitmap), "cardinality": len(rows)}
    removed = {"path": file["path"], "dataChange": True, "deletionTimestamp": 1, "partitionValues": {}}
    lines = [{"remove": removed}, {"add": {**file, "deletionVector": marks}}, {"commitInfo": {"operation": "DELETE"}}]
    (log / f"{table.version() + 1:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _z85(data: bytes) -> str:
    """Bytes as text: five signs for each four."""
    signs = "".join((string.digits, string.ascii_lowercase, string.ascii_uppercase, ".-:+=^!/*?&<>()[]{}@%$#"))
    words = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(signs[word // 85**k % 85] for word in words for k in (4, 3, 2, 1, 0))
