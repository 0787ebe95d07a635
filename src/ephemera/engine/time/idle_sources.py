"""This module watches by a clock which sources are silent, and tells how far their bounds move for it.

A source that was silent for its declared idle time moves on as the clock does, from where it stands, until it is heard
again. The clock is an argument: whoever calls says what time it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class IdleSources:
    """The sources with an idle time, and from when on each moves by the clock."""

    def __init__(self, idle: Mapping[str, int], now: int) -> None:
        self._idle = idle
        self._from = {name: now + wait for name, wait in idle.items()}

    def heard(self, names: Iterable[str], now: int) -> None:
        """Something came from these sources."""
        self._from.update({name: now + self._idle[name] for name in names if name in self._idle})

    def passed(self, now: int) -> dict[str, int]:
        """The sources that are silent, and how much time has passed for each since this was asked last."""
        found = {name: now - since for name, since in self._from.items() if now > since}
        self._from.update(dict.fromkeys(found, now))
        return found
