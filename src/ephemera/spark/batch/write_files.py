"""This module writes the answers of a batch run: as a folder of JSON lines, Parquet or CSV, or as one file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame

from ephemera.connect import atomic_files

LINE = "line"


def write_file(texts: Iterable[str], target: Path) -> None:
    """Texts, one behind the other, as one file."""
    atomic_files.write_file((text.encode("utf-8", "backslashreplace") for text in texts), target)


def write_folder(answers: DataFrame, target: Path, form: Literal["json", "parquet", "csv"]) -> None:
    """Answers as a folder of part files, in no order; for JSON they have a column `line`, else one for each value."""
    with atomic_files.whole_folder(target) as folder:
        place = str(folder.absolute())
        match form:
            case "json":
                answers.select(LINE).write.text(place, lineSep="\n")
            case "parquet":
                answers.write.parquet(place)
            case "csv":
                answers.write.csv(place, header=True, escape='"', timestampFormat="yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
