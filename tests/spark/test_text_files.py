from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ephemera as eph
from ephemera.formats.decode import Cells, Lines
from ephemera.spark.read import text_files
from ephemera.spark.read.text_files import FromText, TextFiles

RULES = "EVENT a(n: int); b(n) <- a(n);"


def read(spark: SparkSession, path: Path, form: text_files.TextFormat) -> list[tuple[int, Lines | Cells]]:
    """What the slices of a file give, with how many lines come before each."""
    files = text_files.text_files(spark, [str(path)], form, None, 1)
    assert files is not None
    task = FromText((), {}, form, {p: names for p, (names, _) in files.headers.items()})
    numbers = text_files._LineNumbers()
    found = [(numbers.before(*one[:2]), batch) for one in files.slices() for batch in task.read(*one)]
    return [(before, batch) for before, batch in found if isinstance(batch, Lines | Cells)]


@pytest.mark.parametrize("size", [1, 2, 7, 30, 1000])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_each_line_is_in_one_slice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, end: str
) -> None:
    monkeypatch.setattr(text_files, "_SLICE", size)
    monkeypatch.setattr(text_files, "_BLOCK", max(1, size // 3))
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join("x" * n for n in (1, 0, 12, 3, 1, 40, 2)) + end)
    blocks = [block.data for _, block in read(spark, path, "json")]
    assert b"".join(blocks) == path.read_bytes()
    assert all(block.endswith(b"\n") for block in blocks[:-1])


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_lines_of_csv_know_their_numbers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(text_files, "_SLICE", size)
    monkeypatch.setattr(text_files, "_BLOCK", size)
    path = tmp_path / "events.csv"
    path.write_text("\n\nevent,time,n\n" + "\n".join(f"a,{n},{n}" for n in range(4, 9)))
    numbers = [
        before + block.first + k
        for before, block in read(spark, path, "csv")
        if isinstance(block, Cells)
        for k, line in enumerate(block.data.split(b"\n"))
        if line and int(line.split(b",")[1]) == before + block.first + k
    ]
    assert numbers == [4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("lines", "counts"),
    [
        ('{"event": "a", "time": 1, "data": [1]}\n{"event": "a", "time": "1970-01-01T00:00:02Z", "data": [2]}\n', True),
        ('nonsense\n{"event": "a", "time": "1970-01-01T00:00:02Z", "data": [2]}\n', False),
        ('{"event": "a", "time": "never", "data": [1]}\n{"event": "a", "time": 2, "data": [2]}\n', True),
        ("", True),
    ],
)
def test_the_first_good_line_says_how_times_are_written(tmp_path: Path, lines: str, counts: bool) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(lines)
    assert TextFiles((str(path),), "json", {}).counts(eph.compile(RULES)._compiled) == counts


def test_files_for_many_programs_and_what_is_no_file_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.touch()
    assert text_files.text_files(spark, [str(path)], "json", None, 4) is not None
    assert text_files.text_files(spark, [str(path)], "json", None, 5) is None
    assert text_files.text_files(spark, [str(tmp_path)], "json", None, 1) is None
