"""This module finds the files that a name stands for: itself, all files of a folder, or those that fit a pattern.

Names that begin with `_` or `.` are marks, as they are for Spark: folders and patterns leave them out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from glob import glob
from pathlib import Path

from ephemera.base.suggest import suggestion

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One path or several."""
GZIP, ZSTANDARD = ".gz", ".zst"


def found_files(name: str) -> list[str] | None:
    """The files that a name stands for, sorted; None if nothing is there."""
    names = [name] if Path(name).exists() else sorted(glob(name, recursive=True))  # noqa: PTH207 - of any folder
    return [file for one in names for file in _files(Path(one))] if names else None


def literal(path: str) -> str:
    """A path as it is, where Spark would see a pattern."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(Path(path).absolute()))


def only_fitting(path: str) -> str:
    """A pattern that only one file fits: as a stream, Spark reads folders and patterns, and no file.

    >>> only_fitting("/shop/2026-03.jsonl")
    '/shop/[2]026-03.jsonl'
    """
    folder, name = os.path.split(literal(path))
    return f"{folder}/{re.sub('[A-Za-z0-9]', lambda found: f'[{found[0]}]', name, count=1)}"


def _files(path: Path) -> list[str]:
    if not path.is_dir():
        return [str(path)]
    every = (p for p in sorted(path.rglob("*")) if p.is_file())
    return [str(p) for p in every if not any(part.startswith(("_", ".")) for part in p.relative_to(path).parts)]


def names_of(given: Paths, who: str) -> tuple[str, ...]:
    """Paths as texts; `who` wants them."""
    several = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(several, Iterable):
        raise TypeError(f"{who} takes a path or a list of paths, and this is a {type(given).__name__}")
    return tuple(name_of(one, who) for one in several)


def name_of(given: object, who: str) -> str:
    """One path as a text."""
    name = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"{who} takes paths, and this is a {type(given).__name__}")
    if not name:
        raise ValueError(f"{who} takes paths, and this one is empty")
    return name


def is_packed(name: str) -> bool:
    """Whether a file is compressed, by its name."""
    return name.lower().endswith((GZIP, ZSTANDARD))


def check_format(form: object, known: Iterable[str]) -> None:
    """Raises a `ValueError` for a format that there is not."""
    names = list(known)
    if form not in names:
        meant = suggestion(str(form), names)
        guess = f"did you mean `{meant}`? " if meant is not None else ""
        raise ValueError(f"there is no format `{form}`; {guess}there are {', '.join(names)}")
