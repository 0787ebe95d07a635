"""This module reads from and writes to a broker of MQTT, at least once: quality of service 1 in both directions.

A run has a session of its own at the broker, which keeps messages for it while it is away. A message is acknowledged
when a checkpoint holds what came of it; after a crash, those that were not are sent again, and may be read twice. By
version 5 of MQTT the broker is told how many may wait for that, since many allow twenty of those that do not say; a
broker that has only 3.1.1 is read by that.

Nobody knows what a broker holds. So what was there when a run began counts as read when the broker has been silent.
"""

from __future__ import annotations

import queue
import ssl
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ephemera.base.installed import need
from ephemera.connect.systems.address import PASSWORDS, Address, NoAnswer, WrongAddress, secret_of
from ephemera.connect.systems.encryption import ENCRYPTION, is_encrypted
from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.message_formats import message_format
from ephemera.formats.answers import AnswerBatch

if TYPE_CHECKING:
    import paho.mqtt.client as paho

WITH_MQTT = "pip install 'ephemera-cep[mqtt]'"
PATIENCE = 10.0
TOPIC = "mqtt_topic"
_LONGEST = 600.0
"""Seconds for which a broker may be away in mid-run."""
_AT_ONCE = 20_000
_PARTITION = "0"
_UNCONFIRMED = 20_000
"""Messages that a broker may send before one of them is acknowledged: all that come between two commits."""
_SENT = 1_000
"""Messages that wait for the broker at most; their numbers have two bytes."""
_QUIET, _WHOLE = 1.0, 60.0
"""Seconds of silence after which a broker has sent what it kept, and after which that is so in any case."""
_OTHER_VERSION = "Unsupported protocol version"
_UNKNOWN_USER = ("Not authorized", "Bad user name or password")
_SILENT = "the broker does not answer"


class _OldBroker(NoAnswer):
    """A broker that does not know the version of MQTT, and said so or nothing."""


def _check(address: Address) -> None:
    need("paho", f"`{address.scheme}://`", WITH_MQTT)
    if len(address.hosts) != 1 or not address.path:
        raise WrongAddress(f"`{address}` names no topic of one broker; write such as mqtt://127.0.0.1/sensors/hall")
    is_encrypted(address, has_secret=address.user is not None and secret_of("mqtt") is not None)


def _client(address: Address, identity: str, *, keeps: bool = False, version: int = 4) -> paho.Client:
    """A client; with `keeps`, its session at the broker outlives the connection, and nothing is acknowledged for us."""
    import paho.mqtt.client as paho  # noqa: PLC0415 - only who uses MQTT needs its client
    from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion  # noqa: PLC0415 - only who uses MQTT

    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=identity,
        clean_session=not keeps if version < 5 else None,  # which is said anew with each connection
        protocol=MQTTProtocolVersion(version),
        manual_ack=keeps,
    )
    if address.user is not None:
        client.username_pw_set(address.user, secret_of("mqtt"))
    if is_encrypted(address, has_secret=address.user is not None and secret_of("mqtt") is not None):
        client.tls_set(address.options.get("ca"))
    client.reconnect_delay_set(1, 5)
    client.max_inflight_messages_set(_SENT)
    return client


def _connect(client: paho.Client, address: Address, joined: queue.SimpleQueue[str | None], *, version: int = 4) -> None:
    (host, port) = address.endpoints[0]
    more: dict[str, Any] = {}
    if version == 5:
        from paho.mqtt.packettypes import PacketTypes  # noqa: PLC0415 - only who uses MQTT needs its client
        from paho.mqtt.properties import Properties  # noqa: PLC0415 - only who uses MQTT needs its client

        asked = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        asked.ReceiveMaximum = _UNCONFIRMED
        asked.SessionExpiryInterval = 0xFFFF_FFFF  # as long as the broker likes
        more = {"clean_start": False, "properties": asked}
    try:
        client.connect(host.strip("[]"), port, keepalive=30, **more)
    except ssl.SSLError as error:
        raise NoAnswer(
            f"MQTT at {address.servers}: {error.strerror or error}; name the "
            "certificate of an authority of your own by ca=PATH, and see that the port is one for TLS"
        ) from None
    except OSError as error:
        raise NoAnswer(f"MQTT at {address.servers}: {error.strerror or error}") from None
    client.loop_start()
    try:
        refusal = joined.get(timeout=PATIENCE)
    except queue.Empty:
        refusal = _SILENT
    if refusal is not None:
        client.loop_stop()
        kind = _OldBroker if refusal in (_OTHER_VERSION, _SILENT) else NoAnswer
        raise kind(f"MQTT at {address.servers}: {refusal}{_way_out(refusal)}")


@dataclass(frozen=True, slots=True)
class MqttSource:
    """Messages of a topic, or of all that a filter such as `sensors/+/heat` names."""

    address: Address
    only: str | None = None
    columns: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        _check(self.address)
        self.address.check_options(("format", "columns", "schema", "framed", *ENCRYPTION))
        message_format(self.address, self.extra)

    @property
    def extra(self) -> tuple[str, ...]:
        return (TOPIC,) if TOPIC in self.columns else ()

    @property
    def name(self) -> str:
        return self.address.without(ENCRYPTION)

    def open_live(self, position: str | None = None) -> OpenMqtt:
        return OpenMqtt(self, position or f"ephemera-{uuid.uuid4().hex[:16]}")


@dataclass(frozen=True, slots=True)
class _Message:
    """A message as formats read it."""

    given: Any

    def value(self) -> bytes:
        return bytes(self.given.payload)


class OpenMqtt:
    """A topic that is being read; its position is the name of the session at the broker."""

    def __init__(self, source: MqttSource, position: str) -> None:
        self.position = position
        self._source = source
        self._format = message_format(source.address, source.extra)
        self._came: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._unconfirmed: list[Any] = []
        try:
            self._client = self._joined(5)
        except _OldBroker:
            self._client = self._joined(4)
        self.behind = {_PARTITION}
        self._began = self._heard = time.monotonic()

    def _joined(self, version: int) -> paho.Client:
        """A client that is connected, and subscribed, by a version of MQTT."""
        address = self._source.address
        joined: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        made = _client(address, self.position, keeps=True, version=version)

        def on_connect(client: paho.Client, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
            if reason.is_failure:
                joined.put(str(reason))
                return
            client.subscribe(address.path, qos=1)

        def on_subscribe(_client: Any, _data: Any, _mid: int, reasons: Sequence[Any], _properties: Any) -> None:
            joined.put(str(reasons[0]) if reasons[0].is_failure else None)

        made.on_connect = on_connect
        made.on_subscribe = on_subscribe
        made.on_message = lambda _client, _data, message: self._came.put(message)
        _connect(made, address, joined, version=version)
        return made

    def poll(self, seconds: float) -> list[Arrived]:
        found: list[Any] = []
        try:
            found.append(self._came.get(timeout=seconds))
            while len(found) < _AT_ONCE:
                found.append(self._came.get_nowait())
        except queue.Empty:
            pass
        now = time.monotonic()
        if found:
            self._heard = now
        if now >= min(self._heard + _QUIET, self._began + _WHOLE):
            self.behind.clear()
        self._unconfirmed += found
        if not found:
            return []
        extra = (lambda message: {TOPIC: _topic(message.given)}) if self._source.extra else None
        batch, _ = self._format.batch([_Message(one) for one in found], extra)
        return [] if batch is None else [Arrived(_PARTITION, batch)]

    def confirm(self) -> None:
        for message in self._unconfirmed:
            self._client.ack(message.mid, message.qos)
        self._unconfirmed.clear()

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@dataclass(frozen=True, slots=True)
class MqttTarget:
    """A topic to which answers are published, one a message."""

    address: Address

    def __post_init__(self) -> None:
        _check(self.address)
        self.address.check_options(ENCRYPTION)
        if set("+#") & set(self.address.path):
            raise WrongAddress(f"`{self.address}`: answers go to one topic, and this is a filter of several")

    @property
    def name(self) -> str:
        return self.address.without(ENCRYPTION)

    def open_target(self, identity: str, position: Any = None) -> OpenMqttTarget:
        del position
        return OpenMqttTarget(self.address, identity)


class OpenMqttTarget:
    """A topic that is being written, at least once."""

    position: Any = None

    def __init__(self, address: Address, identity: str) -> None:
        self._address = address
        self._taken: queue.SimpleQueue[int] = queue.SimpleQueue()
        joined: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._client = _client(address, f"ephemera-{identity}-out")
        self._client.on_connect = lambda _c, _d, _f, reason, _p: joined.put(str(reason) if reason.is_failure else None)
        self._client.on_publish = lambda _c, _d, number, _r, _p: self._taken.put(number)
        _connect(self._client, address, joined)

    def encode(self, answers: AnswerBatch) -> bytes:
        return answers.lines()

    def put(self, load: bytes, number: int) -> None:
        """Comes back when the broker has them all; if it is away, the client sends them by itself when it is back."""
        del number
        sent: set[int] = set()
        for line in load.splitlines():
            while len(sent) >= _SENT:
                self._await_one(sent)
            sent.add(self._client.publish(self._address.path, line, qos=1).mid)
        while sent:
            self._await_one(sent)

    def _await_one(self, sent: set[int]) -> None:
        """Waits until the broker has one more; a message has a number as long as it has not."""
        try:
            sent.discard(self._taken.get(timeout=_LONGEST))
        except queue.Empty:
            where = self._address.servers
            raise NoAnswer(f"MQTT at {where}: the broker has acknowledged nothing for {_LONGEST:.0f} seconds") from None

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def _way_out(refusal: str) -> str:
    """What to do where a broker does not let a user in."""
    return f"; see to the user and {PASSWORDS['mqtt']}" if refusal in _UNKNOWN_USER else ""


def _topic(message: Any) -> str | None:
    """The topic of a message; None if it is no UTF-8, which brokers should not let pass."""
    try:
        return str(message.topic)
    except UnicodeDecodeError:
        return None
