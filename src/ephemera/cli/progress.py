"""This module shows how far a run has come, on standard error, and only on a terminal or where it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def shown_progress(what: str, *, wanted: bool) -> Iterator[Callable[[float], None]]:
    """Something to tell the part that is done to, from 0 to 1."""
    if not wanted and not sys.stderr.isatty():
        yield lambda _part: None
        return
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=not wanted) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)
