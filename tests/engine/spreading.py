"""This module runs a program spread over places of one process: a host that only carries shipments about."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Sequence
from typing import TypeVar

from ephemera.algebra.nodes import Plan
from ephemera.analysis.nodes import Facts
from ephemera.engine.cluster.cut_along_time import cut_at
from ephemera.engine.cluster.message import Answers, EventsFor, ScatteredAnswers, Shipment, UndefinedHead, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.hosts.batch import span
from ephemera.formats.addresses import addresses, fixed_address
from ephemera.kernels.event_columns import of_events
from ephemera.physical.plan import Compiled, prepare
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import DeadLetter, Message, Outcome, World
from ephemera.terms.events import Event

S = TypeVar("S", EventsFor, ScatteredAnswers)
PART = 7
"""Events are routed so many at a time."""


def spread_over(  # noqa: PLR0913, PLR0917 - what a run needs
    rules: Ruleset,
    plan: Plan,
    facts: Facts,
    events: Sequence[Event],
    world: World,
    places: int,
    emit: frozenset[str] = frozenset(),
    limits: Sequence[int] = (),
) -> tuple[Outcome, set[int]]:
    """What a program derives in several places, and the places in which its engines had something to do.

    Groups that can be cut along time are cut at the limits, fewer than there are places.
    """
    return run_spread(prepare(rules, plan, facts, world.calendars, emit), events, world, places, limits)


def run_spread(
    compiled: Compiled, events: Sequence[Event], world: World, places: int, limits: Sequence[int] = ()
) -> tuple[Outcome, set[int]]:
    """The same for a program that is planned already."""
    times = span([e.time.end for e in events], world)
    rules, plan = compiled.rules, compiled.plan
    spread = DistributedProgram(compiled, world, 0, places, *times)
    spread = pickle.loads(pickle.dumps(cut_at(spread, limits)))
    attributes = plan.catalogue.attributes
    carried: list[Shipment] = []
    for k in range(0, len(events), PART):
        carried += spread.route(of_events(events[k : k + PART], attributes))
    busy: set[int] = set()
    for level in range(spread.stages.levels):
        for number, group in enumerate(spread.stages.groups):
            if group.level != level:
                continue
            for place in range(places):
                here = [s for s in carried if isinstance(s, EventsFor) and (s.group, s.place) == (number, place)]
                busy |= {place} if here else set()
                is_alone = spread.needs_no_events(number) and place == spread.pinned(number)
                for home in sorted({s.home for s in here} | ({place} if is_alone else set())):
                    carried += list(spread.run(number, home, place, _by_time(s for s in here if s.home == home)))
    for place in range(places):
        scattered = _by_time(s for s in carried if isinstance(s, ScatteredAnswers) and s.place == place)
        carried += list(spread.gather(place, scattered))
    return outcome_of(rules, plan, carried), busy


def _by_time(shipments: Iterable[S]) -> list[S]:
    return sorted(shipments, key=lambda s: s.events.first)


def outcome_of(rules: Ruleset, plan: Plan, carried: Iterable[Shipment]) -> Outcome:
    """What was given of all that was carried."""
    found = Outcome()
    for shipment in carried:
        if isinstance(shipment, UndefinedHead):
            found.dead_letters.append(DeadLetter(**json.loads(shipment.first)))
        if not isinstance(shipment, Answers):
            continue
        part = unpack(shipment.events, plan.catalogue)
        if shipment.rule:
            sent = addresses(part, fixed_address(rules.resolved.rules[shipment.rule - 1].head))
            found.messages += [Message(e, *to) for e, to in zip(part.events(), sent, strict=True) if to is not None]
        else:
            found.events += part.events()
    return found
