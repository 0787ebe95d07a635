"""This module says which attributes a formula needs before it can be tested."""

from __future__ import annotations

from ephemera.algebra.attributes import begin, is_stamp, reference
from ephemera.algebra.scalar import Distance, Formula, Holds, InsideCalendar, Matches, SameEvent
from ephemera.base.tree import walk
from ephemera.rules.scope import event_names, variable_names


def needs(f: Formula) -> frozenset[str]:
    """The stamps, references and variables that a formula speaks of."""
    found: set[str] = set()
    for part in walk(f):
        match part:
            case Distance(later, earlier, _, _):
                found |= {s for s in (later, earlier) if is_stamp(s)}
            case SameEvent(left, right, _):
                found |= {begin(left), begin(right)}
            case Matches(event, _, known):
                found |= {reference(event), *known}
            case InsideCalendar(events, _):
                found |= {begin(e) for e in events}
            case Holds(condition):
                found |= {begin(n.name) for n in event_names(condition, frozenset())}
                found |= {n.name for n in variable_names(condition, frozenset())}
            case _:
                continue
    return frozenset(found)
