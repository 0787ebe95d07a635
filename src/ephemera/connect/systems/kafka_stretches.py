"""This module reads a topic of Kafka in stretches: between two offsets of a partition, on whatever machine.

Where to go on is asked of Kafka anew each time, so partitions that are added are read from their first message on. A
process that has read a stretch keeps its consumer for the next one, if it stands just where that begins.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass

from ephemera.connect.systems.kafka_source import KafkaSource
from ephemera.connect.systems.kafka_topic import SILENCE, Messages, Topic, silent
from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.stretches import Position, Reached, Stretch

_AT_ONCE = 20_000
_LONG = 50_000
"""Messages that are worth a stretch of their own."""
_HELD = 4_096
"""Kilobytes that a consumer fetches ahead: those that are kept for the next stretch go on with it."""
_MOST_KEPT = 64
_CONSUMERS: dict[tuple[str, str], tuple[int, Topic]] = {}
"""The consumers of this process, by topic and partition, each with the offset at which it stands."""


@dataclass(frozen=True, slots=True)
class KafkaStretches:
    """A topic of Kafka."""

    source: KafkaSource

    def begin(self) -> dict[str, int]:
        topic = Topic(self.source.address)
        try:
            return _named(topic.begins(topic.bounds(), None))
        finally:
            topic.close()

    def reached(self, since: Position, most: int | None = None) -> Reached:
        topic = _taken(str(self.source.address), "") or Topic(self.source.address)
        bounds = topic.bounds()
        begins = topic.begins(bounds, {name: int(place) for name, place in since.items()})
        _keep(str(self.source.address), "", 0, topic)
        left = {p: high - begins[p] for p, (_, high) in bounds.items()}
        total = sum(left.values())
        if most is not None and total > most:
            left = {p: min(count, max(1, count * most // total)) for p, count in left.items()}
        ends = {p: begins[p] + count for p, count in left.items()}
        return Reached(_named(ends), frozenset(str(p) for p, end in ends.items() if end < bounds[p][1]))

    def between(self, first: Position, last: Position) -> list[Stretch]:
        return [
            Stretch(name, at, min(at + _LONG, int(end)))
            for name, end in last.items()
            for at in range(int(first.get(name, 0)), int(end), _LONG)
        ]

    def history(self) -> list[Stretch]:
        begin = self.begin()
        return self.between(begin, self.reached(begin).position)

    def read(self, stretch: Stretch) -> Iterator[Arrived]:
        name, partition, at = str(self.source.address), int(stretch.partition), int(stretch.first)
        messages = Messages(self.source.address, self.source.extra)
        topic = _taken(name, stretch.partition, at)
        if topic is None:
            topic = Topic(self.source.address, _HELD)
            topic.assign({partition: at})
        try:
            at = yield from self._between(topic, messages, partition, at, int(stretch.last))
        except BaseException:  # also if nobody asks for the rest
            topic.close()
            raise
        if at == stretch.last:
            _keep(name, stretch.partition, at, topic)
        else:  # what it gave of the next stretch it does not give again
            topic.close()

    def _between(
        self, topic: Topic, messages: Messages, partition: int, at: int, last: int
    ) -> Generator[Arrived, None, int]:
        """What lies there; returns the offset at which the consumer stands, which may be behind the last one."""
        heard = time.monotonic()
        while at < last:
            found, ended = topic.consume(min(_AT_ONCE, last - at), 1.0)
            own = found.get(partition, [])
            if own or partition in ended:
                heard = time.monotonic()
            elif time.monotonic() > heard + SILENCE:
                raise silent(self.source.address, str(partition), at)
            at = max([at, ended.get(partition, 0), *(one.offset() + 1 for one in own[-1:])])
            inside = own if at <= last else [one for one in own if one.offset() < last]
            arrived = messages.arrived(partition, inside) if inside else None
            if arrived is not None:
                yield arrived
        return at


def _named(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(p): offset for p, offset in offsets.items()}


def _taken(name: str, partition: str, at: int = 0) -> Topic | None:
    """A consumer of this process that stands at an offset; one that stands elsewhere is closed."""
    found = _CONSUMERS.pop((name, partition), None)
    if found is None or found[0] == at:
        return None if found is None else found[1]
    found[1].close()
    return None


def _keep(name: str, partition: str, at: int, topic: Topic) -> None:
    _CONSUMERS[name, partition] = at, topic
    while len(_CONSUMERS) > _MOST_KEPT:
        _CONSUMERS.pop(next(iter(_CONSUMERS)))[1].close()
