"""This module reads how long relative timers are: ``6 hours``, or ``2 * h AT MOST 30 days``, where events say `h`."""

from __future__ import annotations

from itertools import pairwise

from ephemera.base.diagnostic import Edit, Help
from ephemera.base.span import Span
from ephemera.syntax.cursor import Cursor
from ephemera.syntax.expressions import PRECEDENCE, duration, expression
from ephemera.syntax.nodes import AtMost
from ephemera.terms.nodes import Duration


def has_limit(c: Cursor, ahead: int) -> bool:
    """Whether ``AT MOST`` stands in the bracket that is so many tokens away."""
    words = [token.text.upper() for token in c.inside_bracket(ahead) if token.kind == "name"]
    return ("AT", "MOST") in pairwise(words)


def length(c: Cursor, *, is_limited: bool) -> Duration | AtMost:
    start = c.token.start
    if not is_limited and c.token.kind in ("number", "duration") and c.look(1).text not in PRECEDENCE:
        return duration(c)
    told = expression(c)
    if not is_limited:
        behind = Span(c.previous().end, c.previous().end)
        advice = Help("say how long it may be, such as `AT MOST 1 day`", (Edit(behind, " AT MOST 1 day"),))
        raise c.fault("a timer of which events say how long it is needs a limit", advice)
    for word in ("AT", "MOST"):
        if not c.accept(word.lower()):
            c.expect(word)
    return AtMost(told, duration(c), span=c.span_from(start))
