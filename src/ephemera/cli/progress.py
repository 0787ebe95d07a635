"""This module tells people of a run on standard error: what they should know, and how far it has come.

Progress and summaries are shown only on a terminal, or where they are asked for.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ephemera.base.time import describe
from ephemera.cli.files import WRONG_PROGRAM, tell

if TYPE_CHECKING:
    from rich.progress import Progress

    from ephemera.spark.batch.job_progress import Sight
    from ephemera.spark.batch.run_output import RunSummary

_HISTORIES = 12
"""So many histories are told of, the largest."""


def counted(count: int, what: str) -> str:
    """So many of something, in words.

    >>> counted(1, "batch"), counted(1200, "batch"), counted(0, "event")
    ('1 batch', '1,200 batches', '0 events')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}{'es' if what.endswith('ch') else 's'}"


def tell_unused(count: int, first: Mapping[str, Any]) -> None:
    """How many dead letters there are that nobody keeps, and what is wrong with the first."""
    rule = f"rule {first['rule']}: " if "rule" in first else ""
    tell(f"{counted(count, 'event')} could not be used, the first: {rule}{first['reason']}")
    tell("`--dead-letter PATH` keeps them")


def letters_line(events: int, bad: int, late: int, undefined: int, *, kept: bool) -> str:
    """What became of the events of a live run that could not be used."""
    hint = "" if kept or not (bad or late or undefined) else "; `--dead-letter PATH` keeps them"
    return f"{counted(events, 'event')}, {bad:,} bad, {late:,} late, {undefined:,} without a value{hint}"


def tell_notes(notes: Iterable[str]) -> None:
    """What is to be said of the input, each once."""
    for note in dict.fromkeys(notes):
        tell(f"note: {note}")


def tell_warnings(notes: Iterable[str], *, strict: bool) -> None:
    """What is likely wrong with the input, each once; if that is strict, the command ends as one with wrong input."""
    told = list(dict.fromkeys(notes))
    for note in told:
        tell(f"warning: {note}")
    if told and strict:
        raise click.exceptions.Exit(WRONG_PROGRAM)


# ---- how far it has come -----------------------------------------------------------------------------------


def is_shown(*, wanted: bool) -> bool:
    """Whether progress and a summary are shown: on a terminal, or if they are asked for."""
    return wanted or (sys.stderr is not None and sys.stderr.isatty())


def note_lines(notes: Sequence[Sequence[str]], names: Sequence[dict[str, str]]) -> list[str]:
    """What people should know of each program of a run, such as what it lacked."""
    return [
        f"note: {note}{f' (in {program})' if program else ''}"
        for own, program in zip(notes, (name.get("program") for name in names), strict=True)
        for note in own
    ]


@contextmanager
def shown_progress(what: str, *, wanted: bool) -> Iterator[Callable[[float], None]]:
    """Something to tell the part that is done to, from 0 to 1."""
    if not is_shown(wanted=wanted):
        yield lambda _part: None
        return
    with _bar("{task.percentage:>3.0f}%", wanted=wanted) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)


def _bar(part: str, *, wanted: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(part), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=not wanted)


@contextmanager
def shown_stages(*, wanted: bool) -> Iterator[Shown]:
    """Something to tell how far Spark has come, and at the end what came of it."""
    if not is_shown(wanted=wanted):
        yield Shown(None)
        return
    with _bar("{task.fields[counts]}", wanted=wanted) as bar:
        shown = Shown(bar)
        yield shown
    for line in shown.told:
        click.echo(line, err=True)


class Shown:
    """A bar that shows how far Spark has come, or nothing."""

    def __init__(self, bar: Progress | None) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task("", total=None, counts="")
        self._began = time.monotonic()
        self.told: Sequence[str] = ()

    def say(self, what: str) -> None:
        """What goes on where no part of it can be told."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=what)
            self._began = time.monotonic()

    def see(self, sight: Sight) -> None:
        """What was seen of Spark."""
        if self._bar is None or self._task is None:
            return
        rate = sight.read / max(time.monotonic() - self._began, 0.1)
        counts = f"{sight.read:,} events ({rate:,.0f}/s)"
        counts += f", {sight.written:,} answers" if sight.written else ""
        self._bar.update(self._task, description=sight.stage, completed=sight.done, total=1.0, counts=counts)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While answers are printed on a terminal, the bar is not in their way."""
        if self._bar is None or sys.stdout is None or not sys.stdout.isatty():
            yield
            return
        self._bar.stop()
        yield

    def end(self, told: Sequence[str]) -> None:
        """The run is over: what there is to tell of it."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description="done", completed=1.0, total=1.0)
            self.told = told


def count_lines(read: int, answers: Counter[str], letters: int, seconds: float) -> list[str]:
    """How many events were read, and what came of them."""
    given, left = counted(answers.total(), "answer"), counted(letters, "dead letter")
    first = f"{counted(read, 'event')} read, {given}, {left} in {seconds:.1f} s"
    return [first, *(f"  {label}: {count:,}" for label, count in sorted(answers.items()))]


def summary_lines(summary: RunSummary, names: Sequence[dict[str, str]], seconds: float) -> list[str]:
    """What there is to tell of a run: events, answers, dead letters, and what was kept at most."""
    by_label: Counter[str] = Counter()
    for (_, label), count in summary.answers.items():
        by_label[label] += count
    lines = count_lines(max(summary.read.values(), default=0), by_label, summary.bad + summary.dead, seconds)
    largest = sorted(summary.histories, key=lambda h: (-h.peak, h.program, h.name))
    kept = [h for h in largest if h.peak]
    if kept:
        where = f", in one of {summary.busy} busy places" if summary.busy > 1 else ""
        lines.append(f"kept at most{where}:")
    for history in kept[:_HISTORIES]:
        bound = "forever" if history.reach is None else f"until {describe(max(history.reach, 0))} after its end"
        program = names[history.program].get("program")
        lines.append(f"  {history.name}{f' of {program}' if program else ''}: {history.peak:,}, each {bound}")
    if len(kept) > _HISTORIES:
        lines.append(f"  and {len(kept) - _HISTORIES} smaller ones")
    return lines
