"""Kafka loses nothing where stretches follow one another, waits no longer than it may, and repeats no refusal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

import ephemera
from ephemera import sinks
from ephemera.base.errors import EphemeraWarning
from ephemera.connect.systems import kafka_sink, kafka_source, kafka_stretches
from ephemera.connect.systems.address import Address, NoAnswer, address
from ephemera.connect.systems.kafka_client import NoTopic
from ephemera.connect.systems.kafka_sink import KafkaTarget, OpenKafkaTarget
from ephemera.connect.systems.kafka_source import KafkaSource
from ephemera.connect.systems.kafka_stretches import KafkaStretches
from ephemera.connect.systems.live import OlderCopy, check_last
from ephemera.connect.systems.stretches import Stretch
from ephemera.formats.decode import Lines

WHERE = "kafka://127.0.0.1:9/t"


@dataclass
class Clock:
    """Time that passes only where somebody waits."""

    now: float = 1.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (kafka_sink, kafka_source, kafka_stretches):
        monkeypatch.setattr(module, "time", made)
    return made


# ---- reading ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Message:
    at: int

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes:
        return b"%d" % self.at


@dataclass
class Log:
    """A partition: the offsets of its messages, with gaps as transactions leave them, and where it ends."""

    offsets: Sequence[int]
    end: int
    opened: int = 0
    closed: int = 0


@dataclass
class FakeTopic:
    """A consumer that gives whatever it has fetched, as fast as it is asked, and nothing twice."""

    log: Log
    clock: Clock
    at: int = 0

    def assign(self, offsets: Mapping[int, int]) -> None:
        (self.at,) = offsets.values()

    def consume(self, most: int, seconds: float) -> tuple[dict[int, list[Message]], dict[int, int]]:
        found = [Message(one) for one in self.log.offsets if one >= self.at][:most]
        self.at = found[-1].at + 1 if found else self.at
        if found:
            return {0: found}, {}
        self.clock.sleep(seconds)
        is_new, self.at = self.at < self.log.end, max(self.at, self.log.end)
        return {}, {0: self.log.end} if is_new else {}

    def close(self) -> None:
        self.log.closed += 1


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Log]:
    """A partition of which more is there than one stretch holds."""
    made = Log([*range(10), *range(11, 25), 26, 27], 29)

    def opened(_address: Address, _held: int | None = None) -> FakeTopic:
        made.opened += 1
        return FakeTopic(made, clock)

    monkeypatch.setattr(kafka_stretches, "Topic", opened)
    monkeypatch.setattr(kafka_stretches, "_CONSUMERS", {})
    yield made
    assert made.opened - made.closed == len(kafka_stretches._CONSUMERS)


def offsets(first: int, last: int) -> list[int]:
    found = KafkaStretches(KafkaSource(address(WHERE))).read(Stretch("0", first, last))
    return [int(line) for one in found if isinstance(one.batch, Lines) for line in one.batch.data.split()]


@pytest.mark.parametrize("length", [1, 3, 5, 10, 11, 29])
def test_stretches_that_follow_one_another_in_a_process_give_each_message_once(log: Log, length: int) -> None:
    found = [one for first in range(0, log.end, length) for one in offsets(first, min(first + length, log.end))]
    assert found == list(log.offsets)


def test_a_consumer_is_kept_where_the_next_stretch_begins(log: Log) -> None:
    assert offsets(0, 5) + offsets(5, 10) == list(range(10))
    assert log.opened == 1


def test_a_stretch_that_nobody_reads_to_its_end_keeps_no_consumer(log: Log) -> None:
    found = KafkaStretches(KafkaSource(address(WHERE))).read(Stretch("0", 0, 20))
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert log.closed == 1
    assert offsets(20, 25) == [20, 21, 22, 23, 24]


def test_what_a_kept_consumer_fetches_ahead_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    class Asked(Exception):
        pass

    def consumer(settings: dict[str, Any]) -> None:
        asked.append(settings)
        raise Asked

    monkeypatch.setattr(confluent_kafka, "Consumer", consumer)
    with pytest.raises(Asked):
        list(KafkaStretches(KafkaSource(address(WHERE))).read(Stretch("0", 0, 20)))
    assert asked[0]["queued.max.messages.kbytes"] * kafka_stretches._MOST_KEPT <= 1 << 18


class Silent:
    """A topic of two partitions whose broker of one is gone; of the other messages come on and on."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.at = clock, 0

    def bounds(self) -> dict[int, tuple[int, int]]:
        return {0: (0, 1), 1: (0, 7)}

    def begins(self, _bounds: object, _position: object) -> dict[int, int]:
        return {0: 0, 1: 4}

    def assign(self, _offsets: object) -> None:
        pass

    def consume(self, _most: int, seconds: float) -> tuple[dict[int, list[Message]], dict[int, int]]:
        self.clock.sleep(seconds)
        self.at += 1
        return {0: [Message(self.at - 1)]}, {}


def test_a_history_ends_with_a_sentence_if_a_broker_is_away_for_good(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(kafka_source, "Topic", lambda _address: Silent(clock))
    opened = KafkaSource(address(WHERE)).open()
    assert opened.read() is not None
    with pytest.raises(NoAnswer, match="partition 1 has said nothing for 120 seconds, and offset 4 is to be read"):
        opened.read()


class Away:
    """A topic whose broker goes away, of which the client only says that it is gone."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.is_there, self.asked = clock, True, 0
        self.trouble: str | None = None

    def bounds(self) -> dict[int, tuple[int, int]]:
        return {0: (0, 1)}

    def begins(self, _bounds: object, _position: object) -> dict[int, int]:
        return {0: 0}

    def assign(self, _offsets: object) -> None:
        pass

    def consume(self, _most: int, seconds: float) -> tuple[dict[int, list[Message]], dict[int, int]]:
        self.clock.sleep(seconds)
        self.trouble = self.trouble if self.is_there else "1/1 brokers are down"
        return {}, {}

    def answers(self, partitions: Sequence[int], seconds: float) -> bool:
        assert list(partitions) == [0]
        self.asked += 1
        self.clock.sleep(0 if self.is_there else seconds)
        self.trouble = None if self.is_there else "Local: Broker transport failure"
        return self.is_there


@pytest.mark.parametrize("is_behind", [True, False])
def test_a_live_run_says_that_a_broker_is_away_and_ends_after_ten_minutes(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, *, is_behind: bool
) -> None:
    topic = Away(clock)
    monkeypatch.setattr(kafka_source, "Topic", lambda _address: topic)
    opened = KafkaSource(address(WHERE)).open_live()
    if not is_behind:
        opened.behind.clear()
    opened.poll(1.0)
    told: list[tuple[str, float]] = []
    topic.is_there, began = False, clock.now

    def watch() -> None:
        while True:
            opened.poll(1.0)
            if opened.trouble is not None and not told:
                told.append((opened.trouble, clock.now - began))

    with pytest.raises(NoAnswer, match=r"Broker transport failure, for 600 seconds; start again when it is there"):
        watch()
    ((what, after),) = told
    assert what.endswith("topic `t`: Local: Broker transport failure; it is waited for, 600 seconds at most")
    assert 10 <= after < 20
    assert 600 < clock.now - began < 640


def test_a_broker_that_answers_again_is_gone_on_with(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    topic = Away(clock)
    monkeypatch.setattr(kafka_source, "Topic", lambda _address: topic)
    opened = KafkaSource(address(WHERE)).open_live()
    for is_there in (False, True, False, True):
        topic.is_there = is_there
        for _ in range(500):
            opened.poll(1.0)
        assert (opened.trouble is None) == is_there
    assert topic.asked < 500


def test_a_topic_of_which_nothing_comes_is_not_asked(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    topic = Away(clock)
    monkeypatch.setattr(kafka_source, "Topic", lambda _address: topic)
    opened = KafkaSource(address(WHERE)).open_live()
    opened.behind.clear()
    for _ in range(2_000):
        opened.poll(1.0)
    assert (topic.asked, opened.trouble) == (0, None)


# ---- writing ---------------------------------------------------------------------------------------------------


def failure(code: int, **more: bool) -> KafkaException:
    return KafkaException(KafkaError(code, "as told", **more))


@dataclass
class Broker:
    """What a broker has, how fast it takes messages, and what it says to some calls, one after the other."""

    clock: Clock
    a_second: float = 1_000_000.0
    says: dict[str, list[Exception]] = field(default_factory=dict)
    refuses: int | None = None
    timeouts: list[int] = field(default_factory=list)
    committed: list[tuple[bytes | None, bytes]] = field(default_factory=list)
    marker: int = -1001
    begun: int = 0
    aborted: int = 0
    longest: int = 900_000

    def call(self, name: str) -> None:
        if self.says.get(name):
            raise self.says[name].pop(0)


class FakeProducer:
    def __init__(self, broker: Broker, settings: dict[str, Any]) -> None:
        self._broker, self._settings = broker, settings
        self._queue: list[tuple[bytes | None, bytes]] = []
        self._sent: list[tuple[bytes | None, bytes]] = []
        self._credit = 0.0
        broker.timeouts.append(settings["transaction.timeout.ms"])

    def __len__(self) -> int:
        return len(self._queue)

    def init_transactions(self, _seconds: float) -> None:
        if self._settings["transaction.timeout.ms"] > self._broker.longest:
            raise failure(KafkaError.INVALID_TRANSACTION_TIMEOUT, fatal=True)
        self._broker.call("init")

    def poll(self, _seconds: float) -> None:
        pass

    def begin_transaction(self) -> None:
        self._broker.begun += 1
        self._began = self._broker.clock.now

    def produce(self, _topic: str, line: bytes, key: bytes | None) -> None:
        self._broker.call("produce")
        if len(self._queue) >= 100:
            raise BufferError
        self._queue.append((key, line))

    def flush(self, seconds: float) -> int:
        self._broker.clock.sleep(seconds)
        if self._broker.refuses is not None:
            self._settings["on_delivery"](KafkaError(self._broker.refuses, "as told"), None)
        self._credit = min(self._credit + seconds * self._broker.a_second, 1_000.0)
        while self._queue and self._credit >= 1:
            self._sent.append(self._queue.pop(0))
            self._credit -= 1
        return len(self._queue)

    def send_offsets_to_transaction(self, markers: list[Any], _group: object, _seconds: float) -> None:
        (self._marker,) = (one.offset for one in markers)

    def commit_transaction(self, _seconds: float) -> None:
        self._broker.call("commit")
        if self._queue:  # the client would have to send them first, which takes longer than anybody waits
            self._broker.clock.sleep(_seconds)
            raise failure(KafkaError._TIMED_OUT, retriable=True)
        if self._broker.clock.now > self._began + self._settings["transaction.timeout.ms"] / 1000:
            raise failure(KafkaError.INVALID_PRODUCER_EPOCH, txn_requires_abort=True)
        self._broker.committed += self._sent
        self._sent = []
        self._broker.marker = self._marker

    def abort_transaction(self, _seconds: float) -> None:
        self._broker.aborted += 1


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Broker:
    made = Broker(clock)

    class Reader:
        def __init__(self, _settings: object) -> None:
            pass

        def committed(self, asked: list[Any], **_more: object) -> list[Any]:
            return [confluent_kafka.TopicPartition("t", asked[0].partition, made.marker)]

        def consumer_group_metadata(self) -> None:
            pass

        def close(self) -> None:
            pass

    def partitions(_producer: object, where: Address, _heard: object) -> list[int]:
        clock.sleep(5)
        made.call("partitions")
        return [0] if where.path == "t" else []

    monkeypatch.setattr(confluent_kafka, "Consumer", Reader)
    monkeypatch.setattr(confluent_kafka, "Producer", lambda settings: FakeProducer(made, settings))
    monkeypatch.setattr(kafka_sink, "awaited_partitions", partitions)
    return made


def opened(options: str = "") -> OpenKafkaTarget:
    return KafkaTarget(address(f"{WHERE}{options}")).open_target("run")


def lines(count: int) -> bytes:
    return b"".join(b'{"n":%d}\n' % n for n in range(count))


def test_a_commit_that_takes_longer_than_the_client_waits_gets_there_once(broker: Broker) -> None:
    broker.a_second = 20.0  # more than its queue holds, and more than 15 seconds of it
    opened().put(lines(800), 7)
    assert [line for _, line in broker.committed] == lines(800).splitlines()
    assert (broker.marker, broker.begun) == (7, 1)


def test_a_commit_that_a_broker_takes_too_slowly_ends_with_a_sentence(broker: Broker) -> None:
    broker.a_second = 1.0
    with pytest.raises(NoAnswer, match=r"the 13,\d\d\d bytes of a commit, which is one transaction, in 600 seconds"):
        opened().put(lines(1_300), 1)
    assert broker.committed == []
    assert broker.aborted == 1
    assert broker.begun > 1


def test_a_broker_that_takes_nothing_is_given_up_and_asked_again(broker: Broker) -> None:
    broker.a_second = 0.0
    started = broker.clock.now
    with pytest.raises(NoAnswer, match="in 600 seconds"):
        opened().put(lines(1), 1)
    assert 600 < broker.clock.now - started < 660


def test_a_large_commit_has_the_time_that_brokers_give(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> None:
    monkeypatch.setattr(kafka_sink, "_SMALL", 1_000)
    broker.a_second = 2.0
    target = opened()
    target.put(lines(10), 1)
    target.put(lines(1_200), 2)
    target.put(lines(10), 3)
    assert broker.timeouts == [60_000, 900_000]
    assert (len(broker.committed), broker.marker, broker.begun) == (1_220, 3, 3)


def test_a_broker_that_gives_less_time_gets_short_transactions(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> None:
    monkeypatch.setattr(kafka_sink, "_SMALL", 1_000)
    broker.longest = 60_000
    target = opened()
    target.put(lines(1_200), 1)
    target.put(lines(1_200), 2)
    assert broker.timeouts == [60_000, 900_000, 60_000]
    assert len(broker.committed) == 2_400


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, "`max.message.bytes`"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "ACL for `Write`"),
        (KafkaError.INVALID_RECORD, "compacted"),
    ],
)
@pytest.mark.parametrize("where", ["produce", "delivery", "commit"])
def test_what_is_refused_for_good_is_told_at_once(broker: Broker, code: int, way_out: str, where: str) -> None:
    target = opened()
    started = broker.clock.now
    if where == "delivery":
        broker.refuses = code
    else:
        broker.says[where] = [failure(code, txn_requires_abort=True)]
    with pytest.raises(NoAnswer, match=way_out):
        target.put(lines(3), 1)
    assert broker.clock.now - started < 5
    assert broker.aborted == 1


def test_a_refusal_while_the_broker_is_asked_again_is_told_at_once(broker: Broker) -> None:
    target = opened()
    broker.says["commit"] = [failure(KafkaError._TIMED_OUT, retriable=True)]
    broker.says["init"] = [failure(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)]
    with pytest.raises(NoAnswer, match="transactional ids that begin with `ephemera-`"):
        target.put(lines(3), 1)


def test_a_topic_that_is_gone_is_told_after_a_moment_and_not_after_ten_minutes(broker: Broker) -> None:
    target = opened()
    broker.says["commit"] = [failure(KafkaError.UNKNOWN_TOPIC_OR_PART)]
    broker.says["partitions"] = [NoTopic("cannot use the topic `t`") for _ in range(1_000)]
    started = broker.clock.now
    with pytest.raises(NoTopic):
        target.put(lines(3), 1)
    assert broker.clock.now - started < 60


def test_what_may_pass_is_tried_again_and_a_commit_that_was_done_is_not(broker: Broker) -> None:
    target = opened()
    broker.says["commit"] = [failure(KafkaError._TIMED_OUT, retriable=True), failure(KafkaError._FATAL, fatal=True)]
    target.put(lines(2), 1)
    assert (len(broker.committed), broker.begun) == (2, 3)
    broker.says["commit"] = [failure(KafkaError._TIMED_OUT, retriable=True)]
    broker.marker = 2  # it was done, though nobody heard of it
    target.put(lines(2), 2)
    assert len(broker.committed) == 2


def test_a_commit_that_the_checkpoint_cannot_have_put_is_refused(broker: Broker) -> None:
    broker.marker = 7
    check_last("t", opened(), 7, "state")
    with pytest.raises(OlderCopy, match="has had commit 7 of this run, and the checkpoint `state` is at commit 6"):
        check_last("t", opened(), 6, "state")


# ---- keys ------------------------------------------------------------------------------------------------------

KEYED = "EVENT a(id: any, n: int); b(id, n) <- e: a(id, n);"


def encoded(target: OpenKafkaTarget, program: str, *data: list[Any]) -> bytes:
    """Answers as a target encodes them."""

    class Kept:
        found = b""

        def open(self) -> Kept:
            return self

        def write(self, answers: Any) -> None:
            self.found += target.encode(answers)

        def commit(self) -> None:
            pass

        abort = commit

    kept = Kept()
    ephemera.compile(program).run([{"event": "a", "time": k, "data": one} for k, one in enumerate(data)], sink=kept)
    return kept.found


def test_keys_are_what_they_are_whatever_characters_they_have(broker: Broker) -> None:
    keys = ["a\rb", "a\nb", "\r\n", "a\x85b", "a\u2028b", "", "{", "null", '"']
    target = opened("?key=id")
    target.put(encoded(target, KEYED, *([key, n] for n, key in enumerate(keys))), 1)
    assert [key for key, _ in broker.committed] == [key.encode() for key in keys]
    assert [b'"data": [' in line and line.endswith(b", %d]}" % n) for n, (_, line) in enumerate(broker.committed)] == [
        True
    ] * len(keys)


def test_a_key_that_is_null_is_none_and_one_that_is_no_text_is_json(broker: Broker) -> None:
    target = opened("?key=id")
    target.put(encoded(target, KEYED, [None, 0], [5, 1], [True, 2], ["x", 3]), 1)
    assert [key for key, _ in broker.committed] == [None, b"5", b"true", b"x"]


def test_a_key_that_no_answer_has_is_told_once_and_is_none(broker: Broker) -> None:
    target = opened("?key=idd")
    with pytest.warns(EphemeraWarning, match="no answers have an argument `idd`.*did you mean `id`") as told:
        load = encoded(target, KEYED, ["x", 0], ["y", 1]) + encoded(target, KEYED, ["z", 2])
    assert len(told) == 1
    target.put(load, 1)
    assert [key for key, _ in broker.committed] == [None, None, None]


def test_types_without_the_key_are_written_beside_those_that_have_it(broker: Broker) -> None:
    target = opened("?key=id")
    target.put(encoded(target, f"{KEYED} c(n) <- e: a(_, n);", ["x", 0]), 1)
    assert {line.split(b'"')[3]: key for key, line in broker.committed} == {b"b": b"x", b"c": None}


def test_dead_letters_have_no_key(broker: Broker) -> None:
    opened("?key=id").put(b'{"reason":"none"}\n{"reason":"late"}\n', 1)
    assert broker.committed == [(None, b'{"reason":"none"}'), (None, b'{"reason":"late"}')]


def test_a_sink_of_the_address_writes_as_a_run_over_a_history_does(broker: Broker) -> None:
    program = ephemera.compile(KEYED)
    program.run([{"event": "a", "time": 1, "data": ["x", 0]}], sink=sinks.at(f"{WHERE}?key=event"))
    assert [key for key, _ in broker.committed] == [b"b"]
