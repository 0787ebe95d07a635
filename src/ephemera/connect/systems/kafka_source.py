"""This module reads events from a topic of Kafka: over history to the end that it has now, or live.

Offsets are kept by whoever reads, in a checkpoint, and never in Kafka. Transactions that were not committed are not
read. What a message has besides its value can be attributes: a column `kafka_key`, `kafka_timestamp`,
`kafka_partition`, `kafka_offset`, `kafka_topic` or `kafka_header_NAME` that a program declares is filled in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ephemera.connect.systems.address import Address, NoAnswer, WrongAddress
from ephemera.connect.systems.kafka_client import SECURITY, check_client
from ephemera.connect.systems.kafka_topic import COLUMNS, HEADER, KNOWN, SILENCE, Messages, Topic, silent, start_of
from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.message_formats import message_format
from ephemera.formats.decode import Batch

_AT_ONCE = 20_000
_SHORTLY = 10.0
"""Seconds of trouble after which brokers are asked whether they are there, and people are told if not."""
_MOMENT = 2.0
"""Seconds that each partition has to answer then."""
_LONGEST = 600.0
"""Seconds for which a broker may be away in mid-run."""
_HOW = ("start", *SECURITY)
_OPTIONS = ("start", "format", "columns", "schema", "framed", *SECURITY)


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """A topic of Kafka.

    >>> from ephemera.connect.systems.address import address
    >>> KafkaSource(address("kafka://127.0.0.1:9092/orders?start=latest")).name
    'kafka://127.0.0.1:9092/orders'
    """

    address: Address
    only: str | None = None
    columns: frozenset[str] = field(default=frozenset())
    """The columns that programs declare, among them perhaps some of a message."""

    def __post_init__(self) -> None:
        check_client(self.address)
        self.address.check_options(_OPTIONS)
        start_of(self.address)
        message_format(self.address, self.extra)
        for name in self.extra:
            if not name.startswith(HEADER) and name.removeprefix(COLUMNS) not in KNOWN:
                known = ", ".join(f"{COLUMNS}{one}" for one in (*KNOWN, "header_…"))
                raise WrongAddress(f"`{self.address}`: no message has `{name}`; there are {known}")

    @property
    def extra(self) -> tuple[str, ...]:
        """What programs want to know of a message besides its value."""
        return tuple(sorted(name for name in self.columns if name.startswith(COLUMNS)))

    @property
    def name(self) -> str:
        """The address by what is read; where to begin and how may change between two runs that share a checkpoint."""
        return self.address.without(_HOW)

    def identity(self) -> str | None:
        """The topic by its cluster."""
        topic = Topic(self.address)
        try:
            return topic.identity()
        finally:
            topic.close()

    def every(self) -> float:
        """Seconds between two looks at the topic: as often as anybody likes."""
        return 0.0

    @property
    def can_reopen(self) -> bool:
        return True

    def open(self, position: Mapping[str, int] | None = None) -> _History:
        """All that is there now."""
        return _History(OpenKafka(self, position, ends=True))

    def open_live(self, position: Mapping[str, int] | None = None) -> OpenKafka:
        """What is there and what comes."""
        return OpenKafka(self, position)


class OpenKafka:
    """A topic that is being read."""

    def __init__(self, source: KafkaSource, position: Mapping[str, int] | None, *, ends: bool = False) -> None:
        self.address = source.address
        self._topic = Topic(source.address)
        self._messages = Messages(source.address, source.extra)
        bounds = self._topic.bounds()
        begins = self._topic.begins(bounds, position)
        self._offsets = {str(p): begins[p] for p in bounds}
        self._ends = {str(p): high for p, (_, high) in bounds.items()}
        self.behind = {name for name, end in self._ends.items() if self._offsets[name] < end}
        self._is_history = ends
        self._total = max(1, sum(self._ends[name] - self._offsets[name] for name in self.behind))
        self._topic.assign(begins)
        self._well = self._asked = time.monotonic()
        """When all was well for the last time, and when the brokers were last asked whether they are there."""
        self.trouble: str | None = None
        """What to tell people while brokers are away."""

    def identity(self) -> str | None:
        """The topic by its cluster."""
        return self._topic.identity()

    @property
    def position(self) -> dict[str, int]:
        """The offset of the next message of each partition."""
        return dict(self._offsets)

    @property
    def part(self) -> float:
        """How much of what was there has been read."""
        return 1.0 - sum(max(0, self._ends[name] - self._offsets[name]) for name in self.behind) / self._total

    def poll(self, seconds: float) -> list[Arrived]:
        messages, ended = self._topic.consume(_AT_ONCE, seconds)
        arrived = [one for p, own in messages.items() if (one := self._arrived(p, own)) is not None]
        if not self._is_history:
            self._look(bool(messages or ended))
        for partition, offset in ended.items():  # behind the messages, which may stand before it in the same breath
            name = str(partition)
            self._offsets[name] = max(self._offsets[name], offset)
            self.behind.discard(name)
        return arrived

    def _look(self, is_heard: bool) -> None:
        """Notices brokers that are away: the client only says that it has lost them, and looks for them for ever.

        Where nothing comes and nothing is wrong, nobody has written anything.
        """
        now = time.monotonic()
        if not (self._topic.trouble is not None or (self.behind and not is_heard)):
            self._well, self.trouble = now, None
            return
        if now < max(self._well + _SHORTLY, self._asked + _SHORTLY):
            return
        is_there = self._topic.answers(sorted(map(int, self._offsets)), _MOMENT)
        self._asked = time.monotonic()
        if is_there:
            self._well, self.trouble = self._asked, None
        elif self._asked > self._well + _LONGEST:
            raise NoAnswer(
                f"{self._said()}, for {_LONGEST:.0f} seconds; start again when it is there, which goes on from the "
                "checkpoint"
            )
        else:
            self.trouble = f"{self._said()}; it is waited for, {_LONGEST:.0f} seconds at most"

    def _said(self) -> str:
        return f"Kafka at {self.address.servers}, topic `{self.address.path}`: {self._topic.trouble}"

    def _arrived(self, partition: int, messages: list[Any]) -> Arrived | None:
        name = str(partition)
        last = messages[-1].offset()
        if last + 1 >= self._ends[name]:
            self.behind.discard(name)
            if self._is_history:
                messages = [one for one in messages if one.offset() < self._ends[name]]
        self._offsets[name] = last + 1
        return self._messages.arrived(partition, messages)

    def confirm(self) -> None:
        """The checkpoint has the offsets, and Kafka none of them."""

    def close(self) -> None:
        self._topic.close()


class _History:
    """A topic up to the end that it had when it was opened."""

    def __init__(self, live: OpenKafka) -> None:
        self._live = live
        self._waiting: list[Arrived] = []

    def read(self) -> Batch | None:
        heard, left = time.monotonic(), self._left()
        while not self._waiting:
            if not left:
                return None
            self._waiting = self._live.poll(1.0)
            before, left = left, self._left()
            if left != before:
                heard = time.monotonic()
            elif time.monotonic() > heard + SILENCE:
                raise silent(self._live.address, *next(iter(left.items())))
        return self._waiting.pop(0).batch

    def _left(self) -> dict[str, int]:
        """The partitions of which something is to be read, each from where."""
        return {p: offset for p, offset in self._live.position.items() if p in self._live.behind}

    @property
    def position(self) -> dict[str, int]:
        return self._live.position

    @property
    def part(self) -> float:
        return self._live.part

    def close(self) -> None:
        self._live.close()
