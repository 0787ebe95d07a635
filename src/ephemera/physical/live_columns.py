"""This module says which columns a rule still needs, so that joins carry no others.

Only rules whose head shows variables and constants are looked at: any other head may have no value, and then says all
that was bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ephemera.algebra.attributes import begin, end, event_of, is_reference, is_stamp, occurrence, reference
from ephemera.algebra.nodes import Gap, Group, Imbed, RelativeTimer
from ephemera.algebra.scalar import Distance, Every, Formula, Some
from ephemera.base.tree import walk
from ephemera.physical.needs import needs
from ephemera.physical.nodes import Leaf, Probe
from ephemera.syntax.nodes import Derive
from ephemera.terms.nodes import Bool, Number, Text, Var

SIDES = (begin, end, reference, occurrence)


def columns_of(f: Formula) -> frozenset[str]:
    """What a formula may look at; one that is not only about distances may look at all of an event."""
    named = needs(f)
    if all(isinstance(part, Distance | Every | Some) for part in walk(f)):
        return named
    events = {event_of(name) for name in named if is_stamp(name) or is_reference(name)}
    return named | {side(event) for event in events for side in SIDES}


def in_the_end(  # noqa: PLR0913
    head: Group | Imbed,
    *,
    sure: frozenset[str],
    covers: Iterable[str],
    ends: Iterable[str],
    timers: Iterable[RelativeTimer | Gap],
    variables: Iterable[str],
    conditions: Iterable[Formula],
) -> frozenset[str] | None:
    """What is needed when all positive events are joined; None is everything.

    `variables` and `conditions` are those of timers, tables, windows and absences.
    """
    if not isinstance(head, Imbed) or not isinstance(head.head, Derive):
        return None
    shown: set[str] = set()
    for argument in head.head.arguments:
        match argument:
            case Var(name) if name in sure:
                shown.add(name)
            case Number() | Text() | Bool():
                continue
            case _:
                return None
    shown |= {side(name) for name in covers for side in (begin, end)} | set(ends)
    for timer in timers:
        anchors = (timer.anchor,) if isinstance(timer, RelativeTimer) else (timer.first, timer.last)
        shown |= {side(name) for name in anchors for side in (begin, end)}
    return frozenset(shown).union(variables, *(columns_of(c) for c in conditions))


def along(probes: Sequence[Probe], leaves: Sequence[Leaf], final: frozenset[str] | None) -> list[frozenset[str] | None]:
    """What is needed after each probe, and first of all before them."""
    if final is None:
        return [None] * (len(probes) + 1)
    needed = final
    found: list[frozenset[str] | None] = []
    for probe in reversed(probes):
        kept = needed.union(*(columns_of(f) for f in probe.tests))
        found.append(kept)
        needed = kept | leaves[probe.leaf].variables | frozenset(r.known for r in probe.ranges)
    return [needed, *reversed(found)]
