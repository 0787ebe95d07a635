"""MQTT is written though the broker is away for a while, however much there is, and `once` reads what it has kept."""

from __future__ import annotations

import queue
from dataclasses import dataclass, field
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from ephemera.connect.systems import mqtt
from ephemera.connect.systems.address import NoAnswer, address
from ephemera.connect.systems.mqtt import MqttSource, MqttTarget, OpenMqtt, OpenMqttTarget

WHERE = "mqtt://127.0.0.1:9/t"
ACKNOWLEDGED = ReasonCode(PacketTypes.PUBACK), Properties(PacketTypes.PUBACK)  # type: ignore[no-untyped-call]


class Away(paho.Client):
    """The client itself, without a connection, which notes how many messages wait at most."""

    most = 0

    def publish(self, *given: Any, **more: Any) -> paho.MQTTMessageInfo:
        found = super().publish(*given, **more)
        self.most = max(self.most, len(self._out_messages))
        return found


@dataclass
class Acknowledgements:
    """What the broker acknowledges comes when somebody waits for it, the last message first."""

    client: Away
    came: queue.SimpleQueue[int] = field(default_factory=queue.SimpleQueue)
    is_silent: bool = False

    def put(self, number: int) -> None:
        self.came.put(number)

    def get(self, timeout: float) -> int:
        del timeout
        if not self.is_silent and self.came.empty():
            for number in reversed(self.client._out_messages.copy()):
                self.client._do_on_publish(number, *ACKNOWLEDGED)
        return self.came.get_nowait()


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> OpenMqttTarget:
    """A target whose broker is away when it is written to."""
    monkeypatch.setattr(mqtt, "_client", lambda *_given: Away(CallbackAPIVersion.VERSION2))
    monkeypatch.setattr(mqtt, "_connect", lambda *_given: None)
    made = MqttTarget(address(WHERE)).open_target("run")
    made._taken = Acknowledgements(made._client)  # type: ignore[arg-type, assignment]
    return made


def test_answers_that_are_published_while_the_broker_is_away_get_there_when_it_is_back(target: OpenMqttTarget) -> None:
    target.put(b'{"n": 1}\n{"n": 2}\n', 1)
    assert not target._client._out_messages


def test_more_answers_than_messages_have_numbers_are_published(
    monkeypatch: pytest.MonkeyPatch, target: OpenMqttTarget
) -> None:
    monkeypatch.setattr(mqtt, "_SENT", 10)
    target.put(b"{}\n" * 70_000, 1)
    target.put(b"{}\n" * 3, 2)
    assert not target._client._out_messages
    assert target._client.most == mqtt._SENT  # type: ignore[attr-defined]


def test_a_broker_that_acknowledges_nothing_is_told(target: OpenMqttTarget) -> None:
    target._taken.is_silent = True  # type: ignore[attr-defined]
    with pytest.raises(NoAnswer, match="has acknowledged nothing for 600 seconds"):
        target.put(b"{}\n", 1)


# ---- reading ---------------------------------------------------------------------------------------------------


@dataclass
class Clock:
    now: float = 1.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Kept:
    """A broker that has kept messages, and how long each lets wait for it; a client that is connected to it."""

    clock: Clock
    pauses: list[float]
    acknowledged: list[int] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    refuses: str | None = None

    def get(self, timeout: float) -> paho.MQTTMessage:
        if not self.pauses or self.pauses[0] > timeout:
            self.pauses[:1] = [one - timeout for one in self.pauses[:1]]
            self.clock.now += timeout
            raise queue.Empty
        self.clock.now += self.pauses.pop(0)
        found = paho.MQTTMessage(mid=len(self.pauses) + 1, topic=b"t")
        found.payload, found.qos = b"{}", 1
        return found

    def get_nowait(self) -> paho.MQTTMessage:
        return self.get(0.0)

    def ack(self, number: int, _quality: int) -> None:
        self.acknowledged.append(number)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    clock = Clock()
    made = Kept(clock, [])

    def connect(_client: object, _address: object, _joined: object, *, version: int) -> None:
        made.versions.append(version)
        if made.refuses is not None and version == 5:
            raise mqtt._OldBroker(made.refuses)

    monkeypatch.setattr(mqtt, "time", clock)
    monkeypatch.setattr(mqtt, "_client", lambda *_given, **_more: made)
    monkeypatch.setattr(mqtt, "_connect", connect)
    return made


def opened(kept: Kept) -> OpenMqtt:
    made = MqttSource(address(WHERE)).open_live("session")
    made._came = kept  # type: ignore[assignment]
    return made


def read(source: OpenMqtt) -> int:
    """How many messages come of polls of half a second, as long as it is behind."""
    rounds = 0
    while source.behind:
        source.poll(0.5)
        rounds += 1
        assert rounds < 1_000
    return len(source._unconfirmed)


def test_what_a_broker_has_kept_is_read_until_it_is_silent_for_a_second(kept: Kept) -> None:
    kept.pauses = [0.2, 0.0, 0.0, 0.4, 0.9, 2.0, 0.0]
    source = opened(kept)
    assert read(source) == 5
    source.confirm()
    assert len(kept.acknowledged) == 5


def test_a_broker_that_has_kept_nothing_is_waited_for_a_second(kept: Kept) -> None:
    assert read(opened(kept)) == 0
    assert kept.clock.now == 2.0


def test_a_broker_that_is_never_silent_has_sent_what_it_kept_after_a_minute(kept: Kept) -> None:
    kept.pauses = [0.4] * 1_000
    assert 140 <= read(opened(kept)) <= 160


def test_a_broker_of_an_older_version_is_read_by_that(kept: Kept) -> None:
    kept.refuses = "Unsupported protocol version"
    opened(kept)
    assert kept.versions == [5, 4]


def test_a_broker_is_told_how_many_messages_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(paho.Client, "connect", lambda _client, *_given, **more: asked.update(more))
    monkeypatch.setattr(paho.Client, "loop_start", lambda _client: None)
    joined: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    joined.put(None)
    where = address(WHERE)
    mqtt._connect(mqtt._client(where, "session", keeps=True, version=5), where, joined, version=5)
    assert (asked["clean_start"], asked["properties"].ReceiveMaximum) == (False, mqtt._UNCONFIRMED)
    assert asked["properties"].SessionExpiryInterval == 0xFFFF_FFFF
