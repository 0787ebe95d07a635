"""This module writes answers: as a folder of JSON lines, Parquet or CSV, or as one file of JSON lines.

Everything is written under a hidden name beside the target, and gets its final name when it is complete. Whatever ends
the run before leaves nothing under that name, and what stood there stays as it was.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from uuid import uuid4

from pyspark.sql import DataFrame

from ephemera.base.errors import EphemeraError

Layout = Literal["file", "json", "parquet", "csv"]
LINE = "line"


class CannotWrite(EphemeraError):
    """Answers cannot go where they should."""


def layout(target: str) -> Layout:
    """How answers are written to a target: one file if it ends in .jsonl, else a folder, of JSON lines by default."""
    name = target.rstrip("/")
    if name.endswith(".jsonl") and not target.endswith("/"):
        return "file"
    if name.endswith(".parquet"):
        return "parquet"
    return "csv" if name.endswith(".csv") else "json"


def write_file(texts: Iterable[str], target: Path) -> None:
    """Texts, one behind the other, as one file."""
    with complete(target) as part, part.open("wb") as file:
        for text in texts:
            file.write(text.encode("utf-8", "backslashreplace"))
        file.flush()
        os.fsync(file.fileno())


def write_folder(answers: DataFrame, target: Path, form: Literal["json", "parquet", "csv"]) -> None:
    """Answers as a folder of part files, in no order; for JSON they have a column `line`, else one for each value."""
    with complete(target) as part:
        match form:
            case "json":
                answers.select(LINE).write.text(str(part), lineSep="\n")
            case "parquet":
                answers.write.parquet(str(part))
            case "csv":
                answers.write.csv(str(part), header=True, escape='"', timestampFormat="yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")


@contextmanager
def complete(target: Path) -> Iterator[Path]:
    """A hidden path beside a target, which takes the target's name if the block succeeds, and is gone otherwise."""
    if target.is_dir() and (not _is_output(target)):
        raise CannotWrite(f"`{target}` is a folder with other things in it; name a new one")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{uuid4().hex[:8]}.part")
    try:
        yield part
        _replace(part, target)
    finally:
        _remove(part)


def _is_output(folder: Path) -> bool:
    """Whether a folder is empty or what an earlier run wrote; nothing else is ever replaced."""
    names = [entry.name for entry in folder.iterdir()]
    return not names or "_SUCCESS" in names


def _replace(part: Path, target: Path) -> None:
    if not target.is_dir():
        part.replace(target)
        return
    old = part.with_suffix(".old")
    target.rename(old)
    try:
        part.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
