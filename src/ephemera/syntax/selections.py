"""This module reads selections: `next b(x) after i`, `last b(x) before i`, `first b(x) in w` and `last b(x) in w`."""

from __future__ import annotations

from typing import Literal, cast

from ephemera.base.diagnostic import Help
from ephemera.syntax.conditions import continues_expression, identifier
from ephemera.syntax.cursor import Cursor
from ephemera.syntax.expressions import duration
from ephemera.syntax.nodes import Event, Selection
from ephemera.syntax.terms import at_label, atom, label, pattern
from ephemera.terms.nodes import AnyEvent, Name, Pattern

RELATIONS = {"next": ("after",), "last": ("before", "in"), "first": ("in",)}
"""Where each looks for its event."""
_FORMS = tuple((which, relation) for which, relations in RELATIONS.items() for relation in relations)


def selection_follows(c: Cursor) -> bool:
    """Whether `next`, `first` or `last` stands here before a pattern, and is no name itself."""
    if c.token.kind != "name" or c.token.text not in RELATIONS or not c.look(1).is_name:
        return False
    if not continues_expression(c.look(1)):
        return True
    # A word such as `before` or `mod` goes on with a condition, unless it is the label of what is looked for.
    is_bracket = c.look(2).kind == "op" and c.look(2).text in ("(", "{", "[")
    return c.look(2).text == ":" or (is_bracket and c.after_bracket(2).text in ("after", "before", "in"))


def selection(c: Cursor, name: Name | None, start: int) -> Selection:
    which = c.advance().text
    inner = c.token.start
    event = Event(name, pattern(c), span=c.span_from(inner))
    if not c.is_at(*RELATIONS[which]):
        for relation in RELATIONS[which]:
            c.wants(f"`{relation}`")
        raise c.fault(None, *_forms(c))
    found = cast(Literal["after", "before", "in"], c.advance().text)
    anchor = identifier(c)
    length = duration(c) if c.accept("within") else None
    without = _without(c) if c.accept("without") else ()
    kind = cast(Literal["next", "first", "last"], which)
    return Selection(kind, event, found, anchor, length, without, span=c.span_from(start))


def _without(c: Cursor) -> tuple[Pattern, ...]:
    """``{ c, d(x), e {{ }} }``: a bare label is every event that carries it."""
    c.expect("{")
    patterns: list[Pattern] = []
    while not patterns or not c.at("}"):
        patterns.append(_kept_out(c))
        c.accept(",")
    c.advance()
    return tuple(patterns)


def _kept_out(c: Cursor) -> Pattern:
    if at_label(c):
        return pattern(c)
    name = label(c, "an event")
    return atom(c, name) if c.is_at("(") else AnyEvent(name, span=name.span)


def _forms(c: Cursor) -> tuple[Help, ...]:
    """What there is: with the word that stands here, or in all."""
    fitting = [(which, relation) for which, relation in _FORMS if c.is_at(relation)]
    written = [f"`{which} … {relation} {'w' if relation == 'in' else 'i'}`" for which, relation in fitting or _FORMS]
    return (Help(f"write {', '.join(written[:-1])}{' or ' if len(written) > 1 else ''}{written[-1]}"),)
