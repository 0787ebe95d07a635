"""This module prints what people should know of a run though it did not fail."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from ephemera.cli.files import WRONG_PROGRAM, tell


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
