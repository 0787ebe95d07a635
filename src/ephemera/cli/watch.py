"""This module shows what a live query does: on a terminal as a view that stays in place, elsewhere line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Protocol, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ephemera.base.time import HOUR, MINUTE, SECOND, describe
from ephemera.cli.progress import counted

if TYPE_CHECKING:
    from ephemera.connect.live.report import SourceReport
    from ephemera.spark.live.report import BatchReport, Totals

_ROWS = 8
"""So many histories and rules are shown, the largest."""
_BARS = "▁▂▃▄▅▆▇█"
_SIZES = ("B", "kB", "MB", "GB", "TB")
_WIDTH = 16
"""First columns are at least so wide, so that tables stand alike."""
_UNNAMED = "(no stream)"


class Watch(Protocol):
    """Somebody who is told of each batch."""

    def __call__(self, report: BatchReport) -> None: ...


@contextmanager
def shown_batches(programs: Sequence[str] = (), out: TextIO | None = None) -> Iterator[Watch]:
    """Something to tell each report to; it is shown on standard error."""
    from ephemera.spark.live.report import Totals

    stream = out or sys.stderr
    totals = Totals()
    if stream is None:  # it is closed
        yield totals.add
        return
    if not stream.isatty():

        def tell(report: BatchReport) -> None:
            totals.add(report)
            stream.write(line(report) + "\n")
            stream.flush()

        yield tell
        return
    # What goes to standard output is shown above the view if that is the terminal; else it is none of its business.
    with Live(console=Console(file=stream), auto_refresh=False, redirect_stdout=sys.stdout.isatty()) as live:
        live.update(view(totals), refresh=True)

        def show(report: BatchReport) -> None:
            totals.add(report)
            live.update(view(totals, programs), refresh=True)

        yield show


def line(report: BatchReport) -> str:
    """A batch in one line."""
    letters = report.bad + report.late + report.dead
    events = counted(report.events, "event")
    parts = [
        f"batch {report.batch}: {events} in {_duration(report.seconds)} ({report.rate:,.0f}/s)",
        counted(report.given, "answer"),
        counted(letters, "dead letter") if letters else "",
        *(f"{source.name or _UNNAMED} {_lag(source)} behind" for source in report.sources if source.lag is not None),
        f"state {_size(report.state.live)}" if report.state.live else "",
    ]
    return ", ".join(part for part in parts if part)


def view(totals: Totals, programs: Sequence[str] = ()) -> RenderableType:
    """All that is known of a query, as a view."""
    last = totals.last
    if last is None:
        return Text("waiting for the first batch", style="dim")
    parts: list[RenderableType] = [_head(totals, last)]
    if last.sources:
        parts.append(_sources(last))
    if last.histories:
        parts.append(_histories(last, programs))
    if totals.answers:
        parts.append(_answers(totals, last, programs))
    parts.append(Group(_letters(totals), _durations(totals, last)))
    return Group(*(one for part in parts for one in (part, Text())))


def _head(totals: Totals, last: BatchReport) -> Text:
    kept = f"   state {_size(last.state.live)} in {last.state.segments:,} segments" if last.state.segments else ""
    ahead = f"   {last.waiting:,} waiting" if last.waiting else ""
    ahead += f"   {last.pending:,} pending" if last.pending else ""
    text = f"batch {last.batch}   {totals.events:,} events   {last.rate:,.0f}/s{kept}{ahead}"
    return Text(text, style="bold", no_wrap=True, overflow="ellipsis")


def _table(*columns: str) -> Table:
    """A table whose first column is text, and the others figures."""
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    for number, name in enumerate(columns):
        table.add_column(
            name,
            justify="right" if number else "left",
            min_width=_WIDTH if not number else None,
            no_wrap=True,
            overflow="ellipsis",
        )
    return table


def _sources(last: BatchReport) -> Table:
    from ephemera.spark.live.report import bound_text

    table = _table("source", "bound", "lag", "events/s", "")
    for source in last.sources:
        bound = bound_text(None if source.bound is None else source.bound // SECOND * SECOND) or "–"
        rate = source.events / last.seconds if last.seconds > 0 else 0.0
        table.add_row(
            Text(source.name or _UNNAMED), bound, _lag(source), f"{rate:,.0f}", "idle" if source.is_idle else ""
        )
    return table


def _histories(last: BatchReport, programs: Sequence[str]) -> Table:
    table = _table("history", "tuples", "size", "matters for")
    largest = sorted(last.histories, key=lambda h: (-h.tuples, h.program, h.name))
    for history in largest[:_ROWS]:
        name = _named(history.program, history.name, programs)
        reach = "ever" if history.reach is None else describe(max(history.reach, 0))
        table.add_row(Text(name), f"{history.tuples:,}", _size(history.bytes), reach)
    _more(table, len(largest))
    return table


def _answers(totals: Totals, last: BatchReport, programs: Sequence[str]) -> Table:
    table = _table("rule", "answers", "in this batch")
    most = sorted(totals.answers.items(), key=lambda pair: (-pair[1], pair[0]))
    for key, count in most[:_ROWS]:
        table.add_row(Text(_named(*key, programs)), f"{count:,}", f"{last.answers.get(key, 0):,}")
    _more(table, len(most))
    return table


def _more(table: Table, count: int) -> None:
    if count > _ROWS:
        table.add_row(Text(f"and {count - _ROWS:,} more", style="dim"))


def _named(program: int, name: str, programs: Sequence[str]) -> str:
    return f"{name} of {programs[program]}" if len(programs) > 1 and program < len(programs) else name


def _letters(totals: Totals) -> Text:
    kinds = (("bad", totals.bad), ("late", totals.late), ("undefined", totals.dead))
    told = ", ".join(f"{count:,} {kind}" for kind, count in kinds if count)
    return Text(f"dead letters: {told or 'none'}", style="yellow" if told else "dim")


def _durations(totals: Totals, last: BatchReport) -> Text:
    recent = list(totals.recent)
    top = max(recent)
    bars = "".join(_BARS[int(s / top * (len(_BARS) - 1))] if top > 0 else _BARS[0] for s in recent[-40:])
    parts = ", ".join(f"{name} {_duration(s)}" for name, s in last.parts.items())
    text = f"batches: {_duration(last.seconds)}, median {_duration(median(recent))}, most {_duration(top)}  {bars}"
    return Text(text + (f"\n         {parts}" if parts else ""))


def _lag(source: SourceReport) -> str:
    """A lag in its two largest units."""
    if source.lag is None:
        return "–"
    length = max(source.lag, 0)
    for unit, rest in ((24 * HOUR, HOUR), (HOUR, MINUTE), (MINUTE, SECOND)):
        if length >= unit:
            return describe(length // rest * rest)
    return f"{length / SECOND:.1f}s"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def _size(count: int) -> str:
    size = float(count)
    for unit in _SIZES[:-1]:
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "B" or size >= 100 else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} {_SIZES[-1]}"
