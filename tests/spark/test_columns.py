"""This module gives programs on Spark input without columns or keys that they declare, stored and as it comes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ephemera
from ephemera.formats.check_columns import WrongColumns
from ephemera.spark.batch.job import Job, start
from ephemera.spark.batch.job_output import Computed
from ephemera.spark.read.scan import Input

PROGRAM = "EVENT order(id: string, qty: int); EVENT pay(id: string, sum: float); got(i, q) <- o: order(i, q);"


def test_a_missing_column_is_told_and_null_if_that_is_lenient(spark: SparkSession, tmp_path: Path) -> None:
    program = ephemera.compile(PROGRAM)
    frame = spark.createDataFrame([("order", 1, "a", 3)], "event string, time bigint, id string, quantity int")
    with pytest.raises(WrongColumns, match=r"no column `qty` in the data frame; did you mean `quantity`\?"):
        program.run(frame)
    assert [row.q for row in program.run(frame, lenient=True).collect()] == [None]
    (tmp_path / "a.csv").write_text("event,time,id\norder,1,a\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("event,qty,id,time\norder,5,b,2\n", encoding="utf-8")
    job = Job(program._compiled)
    with pytest.raises(WrongColumns, match=r"no column `qty` in a.csv"):
        start(spark, [job], [Input(str(tmp_path / "a.csv"))])
    computed = Computed(start(spark, [job], [Input(str(tmp_path / "*.csv"), "csv")], 2))
    both = [json.loads(line)["data"] for line in b"".join(computed.lines_in_order()).splitlines()]
    computed.close()
    assert both == [["a", None], ["b", 5]]


def test_keys_that_were_never_there_are_noted(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f'{{"event": "order", "time": {t}, "data": {{"id": "a", "quantity": {t}}}}}' for t in range(3)]
    lines += ['{"event": "pay", "time": 1, "data": {"id": "a", "sum": 1.5}}', '{"event": "pay", "time": 1, "data": {}}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    computed = Computed(
        start(spark, [Job(ephemera.compile(PROGRAM)._compiled)], [Input(str(tmp_path / "in.jsonl"))], 2)
    )
    computed.close()
    told = "order: `qty` was missing in all 3 events; did you mean `quantity`, which they have?"
    assert computed.summary.warnings == (told,)
    assert computed.summary.read == {0: 5}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_that_come_later_with_other_columns_are_dead_letters(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    program = ephemera.compile(PROGRAM)
    folder = tmp_path / f"in.{form}"
    folder.mkdir()
    good: dict[str, list[Any]] = {"event": ["order"], "time": [1], "id": ["a"], "qty": [3]}
    wrong: dict[str, list[Any]] = {"event": ["order"], "time": [2], "id": ["b"], "quantity": [3]}
    write(folder / f"wrong.{form}", wrong)
    with pytest.raises(WrongColumns, match=r"no column `qty` in wrong.\w+; did you mean `quantity`\?"):
        program.stream(spark, str(folder), checkpoint=str(tmp_path / "c0"), sink=ephemera.sinks.Callback(print)).start()
    (folder / f"wrong.{form}").unlink()
    write(folder / f"good.{form}", good)
    answers: list[dict[str, Any]] = []
    more = {
        "checkpoint": str(tmp_path / "c"),
        "dead_letters": str(tmp_path / "dead"),
        "sink": ephemera.sinks.Callback(answers.append),
    }
    query = program.stream(spark, str(folder), **more).start()  # type: ignore[arg-type]
    try:
        query.drain()
        write(folder / f"wrong.{form}", wrong)
        write(folder / f"timeless.{form}", {"event": ["order"], "when": [2], "id": ["c"], "qty": [3]})
        (folder / f"broken.{form}").write_bytes(b"\xff\xfe\x00")
        write(folder / f"more.{form}", {"qty": [4], "id": ["d"], "time": [9], "event": ["order"]})
        query.drain()
    finally:
        query.stop()
    files = [file.read_text(encoding="utf-8") for file in (tmp_path / "dead").glob("*.json*")]
    letters = [json.loads(line) for text in files for line in text.splitlines()]
    reasons = sorted(letter["reason"] for letter in letters if "reason" in letter)
    assert len(reasons) == 3
    assert any("cannot read broken" in reason for reason in reasons)
    assert any("no column `qty` in wrong" in reason for reason in reasons)
    assert any("does not say when events happen" in reason for reason in reasons)
    assert {answer["data"][0] for answer in answers} >= {"a"}


def write(path: Path, columns: dict[str, list[Any]]) -> None:
    hidden = path.with_name("_" + path.name)
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), hidden)
    else:
        rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        hidden.write_text("\n".join([",".join(columns), *rows]) + "\n", encoding="utf-8")
    hidden.rename(path)
