"""This module prints what people should know of a run though it did not fail."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from ephemera.cli.files import WRONG_PROGRAM


def tell_notes(notes: Iterable[str], *, strict: bool) -> None:
    """Notes on standard error, each once; if that is strict, the command ends as one with wrong input does."""
    told = list(dict.fromkeys(notes))
    for note in told:
        typer.echo(f"warning: {note}", err=True)
    if told and strict:
        raise typer.Exit(WRONG_PROGRAM)
