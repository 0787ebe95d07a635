"""This module reads event queries: events, timers, windows, tables, `and`, `or`, `where`."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ephemera.base.diagnostic import Edit, Help
from ephemera.base.span import Span
from ephemera.base.suggest import suggestion
from ephemera.syntax.algebra import algebra, algebra_follows
from ephemera.syntax.conditions import braced_conditions, condition, continues_expression, ends_in, identifier
from ephemera.syntax.cursor import Cursor
from ephemera.syntax.lengths import has_limit, length
from ephemera.syntax.nodes import (
    Absent,
    Accumulation,
    And,
    At,
    Between,
    Condition,
    Event,
    Or,
    Query,
    Selection,
    Timer,
    Where,
    While,
    Window,
)
from ephemera.syntax.periodic import periodic, periodic_follows, unnamed_window
from ephemera.syntax.selections import selection, selection_follows
from ephemera.syntax.terms import at_label, pattern
from ephemera.terms.nodes import Name

TIMER_KINDS = (
    "extend",
    "shorten",
    "extend-begin",
    "extend-backward",
    "shorten-begin",
    "shift-forward",
    "shift-backward",
    "from-end",
    "from-end-backward",
    "from-start",
    "from-start-backward",
)
TIMER_PREFIXES = ("timer", "datetime")

Mode = Literal["not", "collect", "collect optional"]


def item(c: Cursor) -> Query | Condition:
    """One member of a conjunction: a query or a condition."""
    return condition(c) if _condition_begins(c) else query(c)


def _condition_begins(c: Cursor) -> bool:
    token, following = c.token, c.look(1)
    if token.kind in ("number", "duration", "text") or c.is_at("{", "(", "-"):
        return True
    if not token.is_name or (following.text == ":" and following.kind == "op"):
        return False
    if c.is_at("not") and following.text in ("(", "{"):
        return True
    if periodic_follows(c):
        return False
    if c.is_at("while") and _boundaries_follow(c):
        return False
    if following.kind == "op" and following.text in ("(", "{", "["):
        return following.text == "(" and continues_expression(c.after_bracket(1))
    match token.text if token.kind == "name" else "":
        case "var":
            return following.is_name and continues_expression(c.look(2)) and c.look(2).text != "<-"
        case "not":
            return not _pattern_begins(c, 1)
        case "while" | "event" | "at":
            return not following.is_name or (continues_expression(following) and c.look(2).text != ":")
        case "desc":
            return continues_expression(following) and following.text != "-" and not at_label(c, 1)
        case "from":
            return not (following.is_name and c.look(2).text == "until")
        case "next" | "first" | "last":
            return not selection_follows(c)
        case "algebra":
            return following.text not in ("restricted", "unrestricted")
        case _:
            return True


def _pattern_begins(c: Cursor, ahead: int) -> bool:
    """Whether a label and a bracket stand there that are an event pattern and not a call in a condition."""
    if at_label(c, ahead):
        return True
    if not c.look(ahead).is_name or (c.look(ahead).text == "not" and c.look(ahead + 1).text != ":"):
        return False
    if c.look(ahead + 1).text == ":" and c.look(ahead + 2).is_name:
        ahead += 2
    return c.look(ahead + 1).text == "(" and not continues_expression(c.after_bracket(ahead + 1))


def query(c: Cursor) -> Query:
    start = c.token.start
    found = _simple(c)
    conditions: list[Condition] = []
    while c.is_at("where") and c.look(1).text == "{":
        c.advance()
        conditions.extend(braced_conditions(c))
    if c.is_at("where") and c.look(1).text != ":" and (unopened := c.unopened_fault(c.token)):
        raise unopened
    if not conditions:
        return found
    span = c.span_from(start)
    if isinstance(found, Accumulation | Selection):
        return replace(found, conditions=tuple(conditions), span=span)
    return Where(found, tuple(conditions), span=span)


def _simple(c: Cursor) -> Query:
    start, following = c.token.start, c.look(1)
    if c.is_at("and") and following.text == "{":
        c.advance()
        return And(_braced_items(c), span=c.span_from(start))
    if c.is_at("or") and following.text == "{":
        c.advance()
        return Or(_braced_queries(c), span=c.span_from(start))
    if following.text != ":" or following.kind != "op":
        if c.is_at("while") and periodic_follows(c, 1):
            raise unnamed_window(c)
        if c.is_at("while") and (following.is_name or _boundaries_follow(c)):
            return _accumulation(c, _while(c), start)
        if c.is_at("from") and following.is_name:
            return _accumulation(c, _between(c), start)
        if c.is_at("at") and following.is_name:
            return _at(c)
        if c.is_at("not") and _pattern_begins(c, 1):
            c.advance()
            _no_connective(c, "not")
            return Absent(pattern(c), span=c.span_from(start))
    return _named(c)


def _braced_items(c: Cursor) -> tuple[Query | Condition, ...]:
    opener = c.position
    c.expect("{")
    found: list[Query | Condition] = []
    while not found or not c.at("}"):
        ends_in(c, opener)
        found.append(item(c))
        c.accept(",")
    c.advance()
    return tuple(found)


def _braced_queries(c: Cursor) -> tuple[Query, ...]:
    opener = c.position
    c.expect("{")
    found: list[Query] = []
    while not found or not c.at("}"):
        ends_in(c, opener)
        found.append(query(c))
        c.accept(",")
    c.advance()
    return tuple(found)


def _boundaries_follow(c: Cursor) -> bool:
    return c.look(1).text == "(" and c.look(2).text in ("incl", "excl") and c.after_bracket(1).is_name


def _while(c: Cursor) -> While:
    start = c.expect("while").start
    begin = end = True
    if c.accept("("):
        begin = _included(c)
        c.expect(",")
        end = _included(c)
        c.expect(")")
    return While(identifier(c), begin, end, span=c.span_from(start))


def _included(c: Cursor) -> bool:
    if c.accept("incl"):
        return True
    c.expect("excl")
    return False


def _between(c: Cursor) -> Between:
    start = c.expect("from").start
    first = identifier(c)
    c.expect("until")
    return Between(first, identifier(c), span=c.span_from(start))


def _accumulation(c: Cursor, window: Window, start: int) -> Accumulation:
    c.expect(":")
    mode: Mode
    if c.accept("not"):
        mode = "not"
    elif c.accept("collect"):
        mode = "collect"
        if c.is_at("optional") and c.look(1).text not in ("(", "{", "[", ":"):
            c.advance()
            mode = "collect optional"
    else:
        here = Span(c.token.start, c.token.start)
        raise c.fault(
            None,
            Help("write `collect` to gather such events", (Edit(here, "collect "),)),
            Help("write `not` to ask that there is none", (Edit(here, "not "),)),
        )
    _no_connective(c, mode)
    return Accumulation(window, mode, event(c), span=c.span_from(start))


def _no_connective(c: Cursor, mode: Mode) -> None:
    """Says so where several queries are to be absent or collected at once; an element of that name has quotes."""
    if not c.is_at("and", "or") or c.look(1).text != "{" or c.look(2).text == "{":
        return
    word = c.token.text
    match mode, word:
        case "not", "or":
            advice = "ask of each of them, with a `not` of its own, that there is none"
        case "not", _:
            advice = "derive an event from the combination by a rule of its own, and ask that there is none of these"
        case _, "or":
            advice = "derive one event from each of them by rules of their own, and collect that"
        case _:
            advice = "derive an event from the combination by a rule of its own, and collect that"
    quoted = Help(f"for an event called `{word}`, write it between backquotes", (Edit(c.token.span, f"`{word}`"),))
    raise c.fault(f"`{mode}` takes one query, and not `{word} {{ … }}`", Help(advice), quoted)


def event(c: Cursor) -> Event:
    start = c.token.start
    name = _identification(c)
    return Event(name, pattern(c), span=c.span_from(start))


def _at(c: Cursor) -> At:
    start = c.advance().start
    moment = identifier(c)
    c.expect(":")
    negated = c.is_at("not") and c.look(1).is_name
    if negated:
        c.advance()
        _no_connective(c, "not")
    return At(moment, pattern(c), negated, span=c.span_from(start))


def _identification(c: Cursor) -> Name | None:
    """The identifier before an event, if there is one: ``event o:``, ``o:``; ``_:`` names nothing."""
    if c.is_at("event") and c.look(1).is_name and not at_label(c):
        c.advance()
        name = c.name("an event identifier")
        c.expect(":")
    elif c.token.is_name and c.look(1).text == ":" and c.look(1).kind == "op":
        if _namespace_begins(c):
            return None
        name = c.advance()
        c.advance()
    else:
        return None
    return None if name.text == "_" and name.kind == "name" else Name(name.text, span=name.span)


def _namespace_begins(c: Cursor) -> bool:
    """Whether the colon after the current name joins a namespace to a label rather than name an event."""
    if c.token.kind == "name" and c.token.text in TIMER_PREFIXES:
        return True
    return c.in_block and c.token.end == c.look(1).start and c.look(1).end == c.look(2).start


def _named(c: Cursor) -> Query:
    start = c.token.start
    name = _identification(c)
    _check_timer_kind(c)
    if periodic_follows(c):
        return Event(name, periodic(c), span=c.span_from(start))
    if _timer_follows(c):
        return _timer(c, name, start)
    if c.is_at("algebra") and algebra_follows(c):
        return algebra(c, name, start)
    if selection_follows(c):
        return selection(c, name, start)
    return Event(name, pattern(c), span=c.span_from(start))


def _check_timer_kind(c: Cursor) -> None:
    """Says so where ``timer:`` is followed by no timer that there is."""
    if not (c.is_at("timer") and c.look(1).text == ":" and c.look(2).is_name):
        return
    kind = c.look(2)
    if kind.text in TIMER_KINDS or kind.text == "datetime":
        return
    c.advance()
    c.advance()
    close = suggestion(kind.text, (*TIMER_KINDS, "datetime"))
    if close:
        raise c.fault(f"there is no timer `{kind.text}`", Help(f"write `{close}`", (Edit(kind.span, close),)))
    raise c.fault(f"there is no timer `{kind.text}`", Help(f"the timers are datetime, {', '.join(TIMER_KINDS)}"))


def _timer_follows(c: Cursor) -> bool:
    ahead = 0
    if c.token.kind == "name" and c.token.text in TIMER_PREFIXES and c.look(1).text == ":":
        ahead = 2
    kind, bracket = c.look(ahead), c.look(ahead + 1)
    if kind.kind != "name" or kind.text not in TIMER_KINDS or bracket.text not in ("(", "["):
        return False
    if ahead or bracket.text == "[":
        return True
    if not (c.look(ahead + 2).is_name and c.look(ahead + 3).text == ","):
        return False
    return c.look(ahead + 4).kind in ("number", "duration") or has_limit(c, ahead + 1)


def _timer(c: Cursor, name: Name | None, start: int) -> Timer:
    if c.token.text in TIMER_PREFIXES:
        c.advance()
        c.advance()
    kind = c.advance().text
    is_limited = has_limit(c, 0)
    closer = ")" if c.advance().text == "(" else "]"
    if c.is_at("event") and c.look(1).is_name:
        c.advance()
    anchor = identifier(c)
    c.expect(",")
    lasts = length(c, is_limited=is_limited)
    c.expect(closer)
    return Timer(name, kind, anchor, lasts, span=c.span_from(start))


def comma_help(c: Cursor) -> tuple[Help, ...]:
    """For a body in which two items stand side by side."""
    where = c.previous().end
    if c.token.is_name:
        return (Help("write `,` between the two", (Edit(Span(where, where), ","),)),)
    return ()
