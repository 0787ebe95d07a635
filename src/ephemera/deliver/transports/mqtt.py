"""This module publishes messages by MQTT with quality of service 1: the broker says of each that it has it."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from ephemera.base.installed import need
from ephemera.deliver.encryption import authority_of, check_secret
from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import TIMEOUT, Refused, Settings, TryLater

_PORT, _ENCRYPTED_PORT = 1883, 8883
_FULL = "Quota exceeded"
_LATER = (_FULL, "Unspecified error", "Implementation specific error")
"""What a broker says that may take the message another time; whatever else it says, it will say again."""


class Mqtt:
    """A client of a broker; the recipient is the topic, unless the declaration names one."""

    def __init__(self, settings: Settings) -> None:
        need("paho", "the transport `mqtt`", "pip install paho-mqtt")
        paho: Any = import_module("paho.mqtt.client")
        tls = bool(settings.get("tls", False))
        self._host = str(settings.get("host", "localhost"))
        self._port = int(settings.get("port", _ENCRYPTED_PORT if tls else _PORT))
        check_secret("mqtt", settings, [self._host], tls=tls)
        authority = authority_of("mqtt", settings, tls=tls)
        self._topic = settings.get("topic")
        self._timeout = float(settings.get("timeout", TIMEOUT))
        self._connected = threading.Event()
        self._reason: str | None = None
        """Why the broker does not let us in, if it said so."""
        self._refused: dict[int, str] = {}
        """What the broker has said of messages that it has not taken, by their numbers."""
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        self._properties = paho.Properties
        self._is_publish = paho.PacketTypes.PUBLISH
        if settings.get("user") is not None:
            self._client.username_pw_set(settings["user"], settings.get("secret"))
        if tls:
            try:
                self._client.tls_set(authority)
            except OSError as error:
                raise Refused(f"{authority} holds no certificate of an authority: {error}") from None
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = lambda *_: self._connected.clear()
        self._client.on_publish = self._on_publish
        self._is_running = False
        self._starting = threading.Lock()

    def _on_connect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._reason = str(reason) if reason.is_failure else None
        if not reason.is_failure:
            self._connected.set()

    def _on_publish(self, _client: Any, _data: Any, number: int, reason: Any, _properties: Any) -> None:
        if reason.is_failure:  # the client counts what was answered as published, whatever the answer
            self._refused[number] = str(reason)

    def send(self, message: Outgoing) -> None:
        topic = str(self._topic or message.recipient)
        if not topic or any(sign in topic for sign in "+#\0"):
            raise Refused(f"`{topic}` is no topic that can be published to")
        try:
            with self._starting:
                if not self._is_running:
                    self._client.connect(self._host, self._port)
                    self._client.loop_start()
                    self._is_running = True
        except OSError as error:
            raise TryLater(f"the broker does not answer: {error}", is_down=True) from None
        if not self._connected.wait(self._timeout):
            why = f": {self._reason}" if self._reason is not None else f", in {self._timeout:g} seconds"
            raise TryLater(f"the broker does not let us in{why}", is_down=True)
        properties = self._properties(self._is_publish)
        properties.UserProperty = ("Idempotency-Key", message.key)
        body = message.text().encode("utf-8", "backslashreplace")
        try:
            told = self._client.publish(topic, body, qos=1, properties=properties)
        except ValueError as error:  # too large, or no topic
            raise Refused(f"the message cannot be sent by MQTT: {error}") from None
        try:
            told.wait_for_publish(self._timeout)
        except (ValueError, RuntimeError) as error:
            raise TryLater(f"the broker did not take it: {error}", is_down=True) from None
        if not told.is_published():
            raise TryLater(f"the broker has not answered in {self._timeout:g} seconds", is_down=True)
        refused = self._refused.pop(told.mid, None)
        if refused in _LATER:
            raise TryLater(f"the broker did not take it: {refused}", is_down=refused == _FULL)
        if refused is not None:
            raise Refused(f"the broker refuses it: {refused}")

    def close(self) -> None:
        if self._is_running:
            self._client.disconnect()
            self._client.loop_stop()
            self._is_running = False
