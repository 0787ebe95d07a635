"""This module holds the exceptions and warnings that leave Ephemera: a wrong program, our own mistakes, and notes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from ephemera.base.diagnostic import Report, render_text


class EphemeraError(Exception):
    """What everything raised on purpose derives from."""


class ProgramError(EphemeraError):
    """A program that does not pass its checks; `reports` says all that is wrong with it.

    >>> import ephemera
    >>> try:
    ...     ephemera.compile("late(id) <- o: order(i), o before p;")
    ... except ephemera.ProgramError as error:
    ...     [str(d.code) for r in error.reports for d in r.diagnostics]
    ['unbound-variable', 'unknown-identifier']
    """

    def __init__(self, *reports: Report) -> None:
        super().__init__(*reports)
        self.reports = reports

    def __str__(self) -> str:
        return "\n" + "".join(render_text(found) for found in self.reports)


class InternalError(EphemeraError):
    """A mistake of ours, not of the program; it names the stage in which it was noticed."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(f"{stage}: {message} (this is a bug in Ephemera, please report it with the program)")


class EphemeraWarning(UserWarning):
    """What is not wrong enough to stop: events that could not be used, or state without a bound."""


def warned(note: str) -> None:
    """Says one thing to whoever has not said how to be told."""
    warn([note], 3)


def warn(notes: Iterable[str], stacklevel: int) -> None:
    """Says what there is to say where only answers are returned; `stacklevel` is 2 for whoever calls this."""
    for note in notes:
        warnings.warn(note, EphemeraWarning, stacklevel=stacklevel)
