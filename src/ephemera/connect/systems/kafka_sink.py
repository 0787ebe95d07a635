"""This module writes answers to a topic of Kafka, exactly once: each commit of a run is one transaction.

The number of the commit goes with the transaction, as the offset of a consumer group that has the name of the run. So
after a crash it is known which commit was the last: the one before is put again, or not. Readers that ask for committed
messages (`isolation.level=read_committed`) see each answer once, and none before its commit. Kafka forgets offsets of
groups that nobody has used for a week unless it is told otherwise: who starts again later may see one commit twice.

A broker may be away for a while in mid-run, and a large commit may take its time, as long as some of it gets there.
What a broker will never take is told at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from ephemera.base.errors import warn
from ephemera.base.suggest import suggestion
from ephemera.connect.systems.address import Address, NoAnswer
from ephemera.connect.systems.kafka_client import (
    PATIENCE,
    SECURITY,
    NoTopic,
    awaited_partitions,
    check_client,
    no_answer,
    settings,
)
from ephemera.connect.systems.named_answers import names_by_shape
from ephemera.formats.answers import AnswerBatch

_PAUSE = 0.5
_LONGEST = 600.0
"""Seconds for which a broker may be away in mid-run."""
_STALLED = PATIENCE / 2
"""Seconds after which a client of which nothing is heard, and nothing gets there, is given up for a new one."""
_SMALL = 16 << 20
"""Bytes of a commit that get there in a short transaction."""
_SHORT, _LONG = 60.0, 900.0
"""Seconds after which the broker ends a transaction of a small and of a large commit: the most that it allows unless it
is told otherwise. Where a run is killed, readers wait so long for what it began, unless it is started again."""
_LARGEST_MESSAGE = 64_000_000
"""Bytes of a message that the client hands on; the broker says what is too large."""
_MORE = "let the topic take larger messages (`max.message.bytes`), or let answers hold less"
_LOGIN = "see to the user of the address and to EPHEMERA_KAFKA_PASSWORD"
_ALONE = "another run writes under the same checkpoint; let there be one"
_WAYS_OUT = {
    "MSG_SIZE_TOO_LARGE": _MORE,
    "RECORD_LIST_TOO_LARGE": _MORE,
    "INVALID_RECORD": "a topic that is compacted takes messages with a key only; add ?key=NAME",
    "TOPIC_AUTHORIZATION_FAILED": "let the user write to the topic (an ACL for `Write`)",
    "GROUP_AUTHORIZATION_FAILED": "let the user read groups that begin with `ephemera-` (an ACL for `Read`)",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "let the user write under transactional ids that begin with `ephemera-`",
    "CLUSTER_AUTHORIZATION_FAILED": "let the user write to the cluster (an ACL for `IdempotentWrite`)",
    "SASL_AUTHENTICATION_FAILED": _LOGIN,
    "_AUTHENTICATION": _LOGIN,
    "INVALID_TRANSACTION_TIMEOUT": f"let `transaction.max.timeout.ms` of the broker be {_SHORT * 1000:.0f} or more",
    "UNSUPPORTED_VERSION": "the broker has no transactions; they came with Kafka 0.11",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": "the topic has an old format of messages, without transactions; make it anew",
    "POLICY_VIOLATION": "ask whoever runs the broker for a policy that lets answers pass",
    "PRODUCER_FENCED": _ALONE,
    "_FENCED": _ALONE,
}
"""What to do about what a broker refuses for good."""


class _Refused(NoAnswer):
    """What will be refused however often it is tried."""


class _Stuck(Exception):
    """The client has not come back, though its time is over."""


def _within(seconds: float, call: Callable[[float], object]) -> None:
    """Waits for a call of the client; some heed no time limit while a broker is away, and are left to themselves."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            call(seconds)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True, name="ephemera-kafka")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _Stuck
    if raised:
        raise raised[0]


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """A topic of Kafka; `key=NAME` in its address says which argument of answers is their key."""

    address: Address

    def __post_init__(self) -> None:
        check_client(self.address)
        self.address.check_options(("key", *SECURITY))

    @property
    def name(self) -> str:
        return str(self.address)

    def open_target(self, identity: str, position: Any = None) -> OpenKafkaTarget:
        del position  # Kafka knows the last commit
        return OpenKafkaTarget(self.address, identity)


class OpenKafkaTarget:
    """A topic that is being written."""

    position: Any = None

    def __init__(self, address: Address, identity: str) -> None:
        self._address = address
        self._group = f"ephemera-{identity}"
        self._key = address.options.get("key")
        self._has_told = False
        self._producer: Any = None
        self._last = 0
        self._seconds, self._most_seconds = _SHORT, _LONG
        """How long a transaction may take now, and at most."""
        self._begin()

    def _begin(self) -> None:
        """Makes a producer: what another of this run left open is aborted, or done; then its last commit is known."""
        from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition  # noqa: PLC0415

        own = settings(self._address)
        self._heard = own["error_cb"]
        more: dict[str, Any] = {
            "transactional.id": self._group,
            "transaction.timeout.ms": int(self._seconds * 1000),
            "linger.ms": 2,
            "queue.buffering.max.messages": 1_000_000,
            "message.max.bytes": _LARGEST_MESSAGE,
            "delivery.report.only.error": True,
            "on_delivery": self._not_delivered,
            "error_cb": self._lost,
        }
        self._reader = Consumer(own | {"group.id": self._group, "enable.auto.commit": False})
        self._has_lost = False
        self._undelivered: Any = None
        self._producer = Producer(own | more)
        partition = awaited_partitions(self._producer, self._address, self._heard)[0]
        try:
            self._producer.init_transactions(PATIENCE)
            (found,) = self._reader.committed([TopicPartition(self._address.path, partition)], timeout=PATIENCE)
        except KafkaException as error:
            if error.args[0].name() == "INVALID_TRANSACTION_TIMEOUT" and self._seconds > _SHORT:
                self._seconds = self._most_seconds = _SHORT
                self._reader.close()
                self._begin()
                return
            raise self._told(error) from None
        self._marker = partition
        self._last = max(found.offset, 0)

    @property
    def last(self) -> int:
        """The number of the last commit of this run."""
        return self._last

    def _lost(self, error: Any) -> None:
        from confluent_kafka import KafkaError  # noqa: PLC0415

        self._heard(error)
        self._has_lost = self._has_lost or error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT)

    def _not_delivered(self, error: Any, _message: Any) -> None:
        self._undelivered = self._undelivered or error

    def encode(self, answers: AnswerBatch) -> bytes:
        """A line each; before it, if it has a key, the key as a text of JSON."""
        if self._key is None:
            return answers.lines()
        names = names_by_shape(answers)
        lines = _lines(answers.lines())
        keys = [_key(self._key, names, line) for line in lines]
        if lines and keys.count(None) == len(keys):
            self._tell_of_key(answers)
        return b"".join(
            line + b"\n" if key is None else msgspec.json.encode(key) + b"\n" + line + b"\n"
            for key, line in zip(keys, lines, strict=True)
        )

    def _tell_of_key(self, answers: AnswerBatch) -> None:
        """Says once that the key is none, if no answers have such an argument."""
        key, known = str(self._key), {name for one in answers.form.layouts for name in one.columns}
        if self._has_told or key in known:
            return
        self._has_told = True
        meant = suggestion(key, known)
        guess = f"; did you mean `{meant}`?" if meant is not None else ""
        warn([f"`{self._address}`: no answers have an argument `{key}`, so their messages have no key{guess}"], 3)

    def put(self, load: bytes, number: int) -> None:
        """Goes on until it is done, or the broker has been away for too long."""
        from confluent_kafka import KafkaException  # noqa: PLC0415

        is_longer = len(load) > _SMALL and self._seconds < self._most_seconds
        if is_longer:
            self._seconds = self._most_seconds
        patience = max(_LONGEST, self._seconds)
        until = time.monotonic() + patience
        self._producer.poll(0)
        if self._has_lost or is_longer:  # a producer may wait forever for a broker that was restarted
            self._begin_again(until)
        while number > self._last:
            try:
                self._transaction(load, number, until)
            except _Stuck:
                if time.monotonic() > until:
                    self._give_up()
                    raise self._too_slow(len(load), patience) from None
                self._begin_again(until)
            except KafkaException as error:
                told = self._told(error)
                if isinstance(told, _Refused) or time.monotonic() > until:
                    self._give_up()
                    raise told from None
                self._begin_again(until)
            else:
                self._last = number

    def _transaction(self, load: bytes, number: int, until: float) -> None:
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        producer, topic = self._producer, self._address.path
        until = min(until, time.monotonic() + 0.9 * self._seconds)  # before the broker ends it
        producer.begin_transaction()
        for count, (key, line) in enumerate(_messages(load)):
            while True:
                try:
                    producer.produce(topic, line, key)
                    break
                except BufferError:
                    self._await_sent(len(producer) // 2, until)
            if count % 10_000 == 0:
                producer.poll(0)
        self._await_sent(0, until)
        marker = TopicPartition(topic, self._marker, number)
        group = self._reader.consumer_group_metadata()
        _within(_left(until), lambda seconds: producer.send_offsets_to_transaction([marker], group, seconds))
        _within(_left(until), producer.commit_transaction)

    def _await_sent(self, most: int, until: float) -> None:
        """Waits until no more than so many messages are left to be sent, as long as some get there."""
        from confluent_kafka import KafkaException  # noqa: PLC0415

        before, moved = len(self._producer), time.monotonic()
        while True:
            left, now = self._producer.flush(_PAUSE), time.monotonic()
            if self._undelivered is not None:
                raise KafkaException(self._undelivered)
            if left <= most:
                return
            if left < before:
                before, moved = left, now
            if now > min(until, moved + _STALLED):
                raise _Stuck

    def _begin_again(self, until: float) -> None:
        """A new producer as soon as the broker answers; whether the last commit was done is seen then."""
        gone: float | None = None
        while True:
            time.sleep(_PAUSE)
            self._reader.close()
            try:
                self._begin()
            except _Refused:
                raise
            except NoAnswer as error:
                now = time.monotonic()
                gone = (gone or now) if isinstance(error, NoTopic) else None
                if now > until or (gone is not None and now > gone + PATIENCE):
                    raise
            else:
                return

    def _give_up(self) -> None:
        """Ends a transaction that will not be done, so that readers need not wait until the broker does that."""
        from confluent_kafka import KafkaException  # noqa: PLC0415

        with suppress(_Stuck, KafkaException):
            _within(_STALLED, self._producer.abort_transaction)

    def _told(self, error: Exception) -> NoAnswer:
        """What Kafka said; if it will not pass, with what to do."""
        text, way_out = no_answer(self._address, error), _WAYS_OUT.get(error.args[0].name())
        return text if way_out is None else _Refused(f"{text}; {way_out}")

    def _too_slow(self, size: int, patience: float) -> NoAnswer:
        return NoAnswer(
            f"`{self._address}` has not taken the {size:,} bytes of a commit, which is one transaction, in "
            f"{patience:.0f} seconds; see to the broker, or read live, which commits step by step"
        )

    def close(self) -> None:
        self._reader.close()


def _left(until: float) -> float:
    return min(_STALLED, max(_PAUSE, until - time.monotonic()))


def _lines(load: bytes) -> list[bytes]:
    """Whole lines of JSON, in which a line feed is always escaped; other breaks end none."""
    return load.removesuffix(b"\n").split(b"\n") if load else []


def _messages(load: bytes) -> Iterator[tuple[bytes | None, bytes]]:
    """Each message with its key; what is no object is the key of the next."""
    key: bytes | None = None
    for line in _lines(load):
        if line.startswith(b"{"):
            yield key, line
            key = None
        else:
            key = msgspec.json.decode(line, type=str).encode()


def _key(key: str, names: Mapping[tuple[str, int], tuple[str, ...]], line: bytes) -> str | None:
    """The key of an answer: a text as it is, and anything else as JSON."""
    answer = msgspec.json.decode(line)
    data = answer.get("data")
    value: Any = answer.get(key) if key == "event" else None
    if isinstance(data, list):
        own = names.get((answer["event"], len(data)), ())
        value = data[own.index(key)] if key in own else value
    elif isinstance(data, dict):
        value = data.get(key, value)
    return value if isinstance(value, str) or value is None else msgspec.json.encode(value).decode()
