"""This module says for each use of a program what it is if something would be kept forever."""

from __future__ import annotations

from typing import Literal

from ephemera.base.diagnostic import Report, Severity
from ephemera.base.errors import ProgramError, warn

Use = Literal["check", "live", "explain", "batch", "oracle"]
"""What a program is about to be used for."""


def unbounded_in(use: Use, *, allowed: bool) -> Severity | None:
    """What it is if something would be kept forever: wrong, worth a warning, or (None) all right.

    A history ends, so a run over it may need much memory but comes to an end; the oracle keeps everything anyway.

    >>> unbounded_in("live", allowed=False), unbounded_in("batch", allowed=False), unbounded_in("live", allowed=True)
    ('error', 'warning', None)
    """
    if allowed or use == "oracle":
        return None
    return "error" if use in ("check", "live") else "warning"


def judge(found: Report, severity: Severity, stacklevel: int) -> None:
    """Refuses in Python what would be kept forever, or warns of it; `stacklevel` says as for `warn` where."""
    if not found.diagnostics:
        return
    if severity == "error":
        error = ProgramError(found)
        error.add_note("in Python, `allow_unbounded=True` accepts it")
        raise error
    told = "; ".join(dict.fromkeys(d.message for d in found.diagnostics))
    text = f"{told} (`ephemera check` says why and what would help; `allow_unbounded=True` accepts it)"
    warn([text], stacklevel)
