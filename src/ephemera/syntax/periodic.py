"""This module reads periodic timers and windows: ``every 10 sec``, ``window 10 min every 1 min offset 30 sec``.

The words are names elsewhere: a number has to follow, which no event pattern begins with.
"""

from __future__ import annotations

from ephemera.base.diagnostic import Edit, Help
from ephemera.base.span import Span
from ephemera.base.time import SPELLINGS
from ephemera.syntax.cursor import Cursor, SyntaxFault
from ephemera.syntax.expressions import duration
from ephemera.terms.nodes import Periodic


def periodic_follows(c: Cursor, ahead: int = 0) -> bool:
    """Whether a periodic timer stands there, or what was meant as one: ``every minute``, ``window(10 min)``."""
    word, following = c.look(ahead), c.look(ahead + 1)
    if word.kind != "name" or word.text not in ("every", "window"):
        return False
    return following.kind in ("number", "duration") or (not ahead and (_is_bare_unit(c) or _is_in_brackets(c)))


def periodic(c: Cursor) -> Periodic:
    start, word = c.token.start, c.token.text
    if _is_bare_unit(c):
        unit = c.look(1)
        advice = Help(f"write `{word} 1 {unit.text}`", (Edit(Span(unit.start, unit.start), "1 "),))
        raise c.fault(f"`{word} {unit.text}` does not say how many", advice)
    if _is_in_brackets(c):
        c.advance()
        opener, closer, inside = c.token.span, c.partner(), c.inside_bracket(0)
        edits = (Edit(Span(opener.start, inside[0].start), " "), Edit(closer.span, "")) if closer is not None else ()
        raise c.fault(f"a duration stands behind `{word}` without brackets", Help("leave the brackets out", edits))
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


def unnamed_window(c: Cursor) -> SyntaxFault:
    """For ``while window 10 min:``, at the word behind `while`."""
    word = c.look(1).text
    c.advance()
    advice = Help(f"name it before, as in `w: {word} …, while w: …`")
    return c.fault(f"`while` takes the name of a window, and this is `{word} …` itself", advice)


def _is_in_brackets(c: Cursor) -> bool:
    """Whether a duration with a unit stands in brackets, which no argument of an event is."""
    inside = c.inside_bracket(1) if c.look(1).text == "(" and c.look(1).kind == "op" else []
    if not inside or inside[0].kind not in ("number", "duration"):
        return False
    return inside[0].kind == "duration" or (len(inside) > 1 and inside[1].text in SPELLINGS)


def _is_bare_unit(c: Cursor) -> bool:
    """Whether a unit stands where its number is missing, and nothing behind it makes it something else."""
    unit, behind = c.look(1), c.look(2)
    return unit.kind == "name" and unit.text in SPELLINGS and behind.text not in ("(", ":", "{", "[")
