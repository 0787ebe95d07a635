"""This module makes up a day of events: orders that are sent and delivered, and sensors of cold rooms.

The same seed gives the same day. Most of it goes well; now and then a parcel is late or lost, a door stays open and its
room gets warm, or a sensor falls silent for a while.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

ROOMS = tuple(f"cold-{n:02}" for n in range(1, 13))
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
_DAY = 86_400
_SEED = 20260302


@dataclass(frozen=True, slots=True)
class _Spell:
    """Some time in seconds of the day in which something is not as it should be."""

    begin: int
    end: int

    def holds(self, second: int) -> bool:
        return self.begin <= second <= self.end


def events(orders: int = 16_000, seed: int = _SEED) -> Iterator[dict[str, Any]]:
    """The events of a day as objects of JSON lines, source by source."""
    random = Random(seed)
    for number in range(orders):
        yield from _order(f"o{number:05}", random)
    for room in ROOMS:
        yield from _room(room, random)


def _order(order: str, random: Random) -> Iterator[dict[str, Any]]:
    ordered = _at_work(random)
    yield _event("order", ordered, order, random.choice(ROOMS), random.randint(1, 12))
    if random.random() < 0.002:
        return
    late = random.random() < 0.01
    sent = ordered + (random.randint(14_500, 30_000) if late else random.randint(600, 12_000))
    parcel = order.replace("o", "p")
    yield _event("sent", sent, order, parcel)
    if random.random() > 0.005:
        yield _event("delivered", sent + random.randint(3_600, 36_000), parcel)


def _at_work(random: Random) -> int:
    """A second of the day; more are ordered around noon and in the evening than at night."""
    while True:
        second = random.randrange(_DAY)
        hour = second / 3_600
        busy = 0.15 + 0.85 * max(math.exp(-((hour - 12) ** 2) / 6), math.exp(-((hour - 19) ** 2) / 8))
        if random.random() < busy:
            return second


def _room(room: str, random: Random) -> Iterator[dict[str, Any]]:
    doors = [_Spell(begin, begin + random.randint(20, 240)) for begin in range(18_000, 72_000, 1_800)]
    if random.random() < 0.5:
        begin = random.randrange(30_000, 60_000)
        doors.append(_Spell(begin, begin + random.randint(2_400, 3_500)))
    silences = [_Spell(b, b + random.randint(300, 1_500)) for b in random.sample(range(3_600, 80_000), 2)]
    degrees = 4.0
    for second in range(random.randrange(60), _DAY, 60):
        is_open = any(door.holds(second) for door in doors)
        degrees += 0.18 if is_open else (4.0 - degrees) * 0.08
        if not any(silence.holds(second) for silence in silences):
            yield _event("temperature", second, room, round(degrees + random.uniform(-0.3, 0.3), 1))
    for door in doors:
        yield _event("door", [door.begin, door.end], room)


def _event(label: str, when: int | list[int], *data: object) -> dict[str, Any]:
    time = _moment(when) if isinstance(when, int) else [_moment(second) for second in when]
    return {"event": label, "time": time, "data": list(data)}


def _moment(second: int) -> str:
    return (MIDNIGHT + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")
