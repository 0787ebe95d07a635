"""This module opens a topic of Kafka to be read: a consumer, where its partitions begin and end, what messages hold.

Offsets are kept by whoever reads, in a checkpoint, and never in Kafka. Transactions that were not committed are not
read, and the end of a partition lies before the first that is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ephemera.connect.systems.address import Address, NoAnswer, WrongAddress
from ephemera.connect.systems.kafka_client import (
    PATIENCE,
    Heard,
    metadata_of,
    no_answer,
    partitions_of,
    settings,
)
from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.message_formats import MessageFormat, message_format

COLUMNS = "kafka_"
"""How the names of columns begin that a message has besides its value."""
HEADER = "kafka_header_"
KNOWN = ("key", "timestamp", "partition", "offset", "topic")
SILENCE = 120.0
"""Seconds for which a broker may be away while a history is read."""
_NO_TIME = 0
"""What Kafka calls `TIMESTAMP_NOT_AVAILABLE`."""


class Topic:
    """A topic that is being read."""

    def __init__(self, address: Address, held: int | None = None) -> None:
        """`held` are the kilobytes that it fetches ahead at most, if that is less than the client does."""
        from confluent_kafka import Consumer  # noqa: PLC0415 - only who uses Kafka

        self.address = address
        more: dict[str, Any] = {
            "group.id": "ephemera",  # asked for, and not used
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
        }
        if held is not None:
            more["queued.max.messages.kbytes"] = held
        self.trouble: str | None = None
        """What the client has said of brokers that are gone; whoever reads forgets it when they answer again."""
        own = settings(address)
        self._heard: Heard = own["error_cb"]
        self.client = Consumer(own | more | {"error_cb": self._noted})

    def _noted(self, error: Any) -> None:
        """The client says here, and nowhere else, that a broker is gone; it tries by itself to find it again."""
        self._heard(error)
        self.trouble = error.str()

    def answers(self, partitions: Iterable[int], seconds: float) -> bool:
        """Whether these partitions answer now; waits so long for each, and for none behind one that does not."""
        from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415 - only who uses Kafka

        try:
            for p in partitions:
                self.client.get_watermark_offsets(TopicPartition(self.address.path, p), timeout=seconds, cached=False)
        except KafkaException as error:
            self.trouble = self.trouble or error.args[0].str()
            return False
        self.trouble = None
        return True

    def identity(self) -> str | None:
        """The topic by its cluster, whichever broker was asked; None if that has no name."""
        cluster = metadata_of(self.client, self.address, self._heard).cluster_id
        return None if cluster is None else f"{cluster}/{self.address.path}"

    def bounds(self) -> dict[int, tuple[int, int]]:
        """For each partition the offset of its first message, and that behind its last."""
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - only who uses Kafka

        return {
            p: self._asked(self.client.get_watermark_offsets, TopicPartition(self.address.path, p))
            for p in partitions_of(self.client, self.address, self._heard)
        }

    def begins(self, bounds: Mapping[int, tuple[int, int]], position: Mapping[str, int] | None) -> dict[int, int]:
        """Where to begin in each partition; one that came after the checkpoint is read from its beginning."""
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - only who uses Kafka

        if position is not None:
            begins = {p: int(position.get(str(p), low)) for p, (low, _) in bounds.items()}
            lost = next((p for p, (low, high) in bounds.items() if not low <= begins[p] <= high), None)
            if lost is not None:
                low, high = bounds[lost]
                raise NoAnswer(
                    f"partition {lost} of `{self.address.path}` holds the offsets {low} to {high}, and the checkpoint "
                    f"goes on at {begins[lost]}: what lies between is gone; begin anew with another checkpoint"
                )
            return begins
        start = start_of(self.address)
        if isinstance(start, datetime):
            asked = [TopicPartition(self.address.path, p, int(start.timestamp() * 1000)) for p in bounds]
            found = self._asked(self.client.offsets_for_times, asked)
            return {one.partition: one.offset if one.offset >= 0 else bounds[one.partition][1] for one in found}
        return {p: bounds[p][0 if start == "earliest" else 1] for p in bounds}

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Reads these partitions from now on, from these offsets on."""
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - only who uses Kafka

        self.client.assign([TopicPartition(self.address.path, p, offset) for p, offset in offsets.items()])

    def consume(self, most: int, seconds: float) -> tuple[dict[int, list[Any]], dict[int, int]]:
        """So many messages at most by their partitions, and where their ends were met; waits so long for the first."""
        from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415 - only who uses Kafka

        messages: dict[int, list[Any]] = {}
        ended: dict[int, int] = {}
        try:
            found: list[Any] = self.client.consume(most, 0)
            if not found:
                first = self.client.poll(seconds)
                found = [] if first is None else [first]
                if found and most > 1:
                    found += self.client.consume(most - 1, 0)
        except KafkaException as error:
            raise no_answer(self.address, error) from None
        for message in found:
            wrong = message.error()
            if wrong is None:
                messages.setdefault(message.partition(), []).append(message)
            elif wrong.code() == KafkaError._PARTITION_EOF:
                ended[message.partition()] = message.offset()
            elif not _may_pass(wrong):
                raise no_answer(self.address, KafkaException(wrong))
            else:
                self.trouble = wrong.str()
        return messages, ended

    def close(self) -> None:
        """Nobody reads any more."""
        self.client.close()

    def _asked(self, question: Any, *given: Any) -> Any:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - only who uses Kafka

        try:
            return question(*given, timeout=PATIENCE)
        except KafkaException as error:
            raise no_answer(self.address, error) from None


class Messages:
    """What messages of a topic hold, with as much of what they have besides their values as is asked for."""

    def __init__(self, address: Address, extra: Sequence[str]) -> None:
        self._topic = address.path
        self._extra = tuple(extra)
        self._format: MessageFormat = message_format(address, self._extra)

    def arrived(self, partition: int, messages: Sequence[Any]) -> Arrived | None:
        """The events of some messages of a partition, in their order; None if there are none."""
        batch, rows = self._format.batch(messages, self._beside if self._extra else None)
        if batch is None:
            return None

        def place(row: int) -> str:
            offset = messages[rows[row] if rows is not None else row].offset()
            return f"{self._topic}, partition {partition}, offset {offset}"

        return Arrived(str(partition), batch, place)

    def _beside(self, message: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self._extra:
            match name.removeprefix(COLUMNS):
                case "key":
                    found[name] = _text(message.key())
                case "timestamp":
                    found[name] = _iso(*message.timestamp())
                case "partition":
                    found[name] = message.partition()
                case "offset":
                    found[name] = message.offset()
                case "topic":
                    found[name] = message.topic()
                case _:
                    headers: Iterable[tuple[str, bytes]] = message.headers() or ()
                    found[name] = _text(dict(headers).get(name.removeprefix(HEADER)))
        return found


def silent(address: Address, partition: str, offset: int) -> NoAnswer:
    """What to raise if a partition says nothing any more, and there is something to be read."""
    return NoAnswer(
        f"Kafka at {address.servers}, topic `{address.path}`: partition {partition} has said nothing for "
        f"{SILENCE:.0f} seconds, and offset {offset} is to be read"
    )


def start_of(address: Address) -> datetime | str:
    """Where to begin without a checkpoint: at an end of the topic, or at a time."""
    given = address.options.get("start", "earliest")
    if given in ("earliest", "latest"):
        return given
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise WrongAddress(
            f"`{address}`: `start` is earliest, latest, or a time such as 2026-03-01T09:00:00Z, and this is `{given}`"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _may_pass(error: Any) -> bool:
    """Whether the client goes on by itself, as when a broker is restarted."""
    from confluent_kafka import KafkaError  # noqa: PLC0415 - only who uses Kafka

    passing = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE)
    return bool(error.retriable()) or error.code() in passing


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _iso(kind: int, milliseconds: int) -> str | None:
    """When a message was made; None if it does not say, or a time that no calendar has, as in microseconds."""
    if kind == _NO_TIME or milliseconds < 0:
        return None
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
