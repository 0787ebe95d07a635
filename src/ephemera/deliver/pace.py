"""This module says when a recipient is tried again: later and later, never two of them in step, and as it asks for."""

from __future__ import annotations

from random import Random

from ephemera.base.lazy_dataclass import dataclass

FIRST = 0.5
"""Seconds after the first failure, on average three quarters of that."""
LONGEST = 300.0
"""Seconds after which a recipient that is down is tried again at the latest, unless it asks for more."""
MOST_ASKED = 24 * 3600.0
"""A recipient that asks to be left alone for longer is tried again then."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long is waited after failures."""

    first: float = FIRST
    longest: float = LONGEST

    def wait(self, failures: int, random: Random, asked: float | None = None) -> float:
        """Seconds after so many failures in a row; `asked` is what the recipient said."""
        limit = min(self.longest, self.first * 2.0 ** min(failures - 1, 32))
        own = limit * (0.5 + random.random() / 2)
        return own if asked is None else max(own, min(asked, MOST_ASKED))
