"""This module reads periodic timers and windows: ``every 10 sec``, ``window 10 min every 1 min offset 30 sec``.

The words are names elsewhere: a number has to follow, which no event pattern begins with.
"""

from __future__ import annotations

from ephemera.base.diagnostic import Edit, Help
from ephemera.base.span import Span
from ephemera.base.time import SPELLINGS
from ephemera.syntax.cursor import Cursor
from ephemera.syntax.expressions import duration
from ephemera.terms.nodes import Periodic


def periodic_follows(c: Cursor) -> bool:
    """Whether a periodic timer stands here, or what was meant as one: ``every minute``."""
    if not c.is_at("every", "window"):
        return False
    following = c.look(1)
    return following.kind in ("number", "duration") or _is_bare_unit(c)


def periodic(c: Cursor) -> Periodic:
    start = c.token.start
    if _is_bare_unit(c):
        word, unit = c.token.text, c.look(1)
        advice = Help(f"write `{word} 1 {unit.text}`", (Edit(Span(unit.start, unit.start), "1 "),))
        raise c.fault(f"`{word} {unit.text}` does not say how many", advice)
    length = period = None
    if c.accept("window"):
        length = duration(c)
        if c.accept("every"):
            period = duration(c)
    else:
        c.expect("every")
        period = duration(c)
    offset = duration(c) if c.accept("offset") else None
    return Periodic(length, period, offset, span=c.span_from(start))


def _is_bare_unit(c: Cursor) -> bool:
    """Whether a unit stands where its number is missing, and nothing behind it makes it something else."""
    unit, behind = c.look(1), c.look(2)
    return unit.kind == "name" and unit.text in SPELLINGS and behind.text not in ("(", ":", "{", "[")
