"""This module is the table of relative timers: each stamp of a timer is a stamp of its anchor, moved (figure 9.2)."""

from __future__ import annotations

from ephemera.algebra.attributes import begin, end

Moved = tuple[str, int]
"""A stamp, and by how much it is moved."""

_TABLE = {
    "extend": (("s", 0), ("e", 1)),
    "shorten": (("s", 0), ("e", -1)),
    "extend-begin": (("s", -1), ("e", 0)),
    "shorten-begin": (("s", 1), ("e", 0)),
    "shift-forward": (("s", 1), ("e", 1)),
    "shift-backward": (("s", -1), ("e", -1)),
    "from-end": (("e", 0), ("e", 1)),
    "from-end-backward": (("e", -1), ("e", 0)),
    "from-start": (("s", 0), ("s", 1)),
    "from-start-backward": (("s", -1), ("s", 0)),
}


def offsets(kind: str, anchor: str, length: int) -> tuple[Moved, Moved]:
    """Where a timer begins and ends."""
    (first, forward), (last, onward) = _TABLE[kind]
    stamp = {"s": begin(anchor), "e": end(anchor)}
    return (stamp[first], forward * length), (stamp[last], onward * length)
