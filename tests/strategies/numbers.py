"""This module writes numbers of streams otherwise: integers as doubles that equal them, and small ones as huge ones.

The first changes no answer, but for the form of the numbers in it. The second takes one number of the tiny domain and
puts others in its place, at which doubles and integers of 64 bits part, in both forms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ephemera.terms.events import Event
from ephemera.terms.values import Term, Value

from .data import AT_THE_LIMITS
from .streams import NUMBERS, Dice

Write = Callable[[Value], Value]


def rewritten(dice: Dice, events: Sequence[Event]) -> list[Event]:
    """The events with some numbers in another form, some of them twice, and at times with huge numbers."""
    found = [replace(e, term=_term(e.term, _respelled(dice))) for e in events]
    found += [replace(e, term=_term(e.term, _respelled(dice))) for e in events if dice.chance(30)]
    if dice.chance(25):
        small, huge = dice.pick(NUMBERS), [dice.pick(AT_THE_LIMITS) for _ in range(2)]
        found = [replace(e, term=_term(e.term, lambda v: dice.pick(huge) if v == small else v)) for e in found]
    return found


def _respelled(dice: Dice) -> Write:
    return lambda value: float(value) if type(value) is int and dice.chance(40) else value


def _term(term: Term, write: Write) -> Term:
    children = tuple(_term(c, write) if isinstance(c, Term) else write(c) for c in term.children)
    attributes = tuple((n, _term(v, write) if isinstance(v, Term) else write(v)) for n, v in term.attributes)
    return Term(term.label, children, term.ordered, attributes)
