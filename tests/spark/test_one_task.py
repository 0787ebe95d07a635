from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ephemera as eph
from ephemera.connect.file_source import Files
from ephemera.formats.check_columns import WrongColumns
from ephemera.spark.batch import one_task
from ephemera.spark.batch.job import Job
from ephemera.spark.batch.one_task import SmallRun, is_small

RULES = "EVENT a(n: int, m: int); b(n) <- a(n, m); c(n / m) <- a(n, m);"


def files(tmp_path: Path, name: str, text: str) -> Files:
    (tmp_path / name).write_text(text)
    return Files((str(tmp_path / name),), "csv" if name.endswith(".csv") else "json")


def test_what_counts_is_the_size_of_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_task, "_TEXT", 20)
    monkeypatch.setattr(one_task, "_PACKED", 5)
    ten = files(tmp_path, "a.jsonl", "1234567890")
    assert is_small([ten, ten])
    assert not is_small([ten, ten, files(tmp_path, "b.csv", "1")])
    assert not is_small([files(tmp_path, "c.jsonl.gz", "1234567890")])
    assert not is_small([Files((str(tmp_path),), "json")])
    assert is_small([])


def test_one_task_gives_answers_letters_and_what_is_to_be_told(spark: SparkSession, tmp_path: Path) -> None:
    lines = ['{"event": "a", "time": 2, "data": [3, 0]}', '{"event": "a", "time": 1, "data": [4, 2]}', "nonsense"]
    given = files(tmp_path, "a.jsonl", "\n".join(lines))
    job = Job(eph.compile(RULES)._compiled)
    (tmp_path / "run").mkdir()
    run = SmallRun(spark, [job, job], [(given, None), (given, {1: None})], tmp_path / "run", lenient=False)
    written = b"".join(run.lines_in_order()).decode().splitlines()
    assert written == [
        '{"event": "b", "time": 1, "data": [4]}',
        '{"event": "b", "time": 1, "data": [4]}',
        '{"event": "c", "time": 1, "data": [2.0]}',
        '{"event": "c", "time": 1, "data": [2.0]}',
        '{"event": "b", "time": 2, "data": [3]}',
        '{"event": "b", "time": 2, "data": [3]}',
    ]
    letters = [(program, letter.get("event"), letter.get("rule")) for program, letter in run.letters()]
    assert sorted(letters[:3]) == [(0, "nonsense", None), (1, "nonsense", None), (1, "nonsense", None)]
    assert letters[3:] == [(0, None, 2), (1, None, 2)]
    summary = run.summary
    assert summary.read == {0: 3, 1: 6}
    assert summary.answers == {(0, "b"): 2, (0, "c"): 1, (1, "b"): 2, (1, "c"): 1}
    assert (summary.bad, summary.dead, summary.busy) == (3, 2, 1)
    assert run.never(0).came == ()


def test_wrong_input_is_refused_as_it_would_be_here(spark: SparkSession, tmp_path: Path) -> None:
    given = files(tmp_path, "a.csv", "event,time,n\na,1,1\n")
    job = Job(eph.compile(RULES)._compiled)
    with pytest.raises(WrongColumns, match="m"):
        SmallRun(spark, [job], [(given, None)], tmp_path, lenient=False)
    assert SmallRun(spark, [job], [(given, None)], tmp_path, lenient=True).summary.read == {0: 1}
