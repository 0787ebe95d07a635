"""This module prints what people should know of a run though it did not fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import typer

from ephemera.cli.files import WRONG_PROGRAM, tell


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
        raise typer.Exit(WRONG_PROGRAM)
