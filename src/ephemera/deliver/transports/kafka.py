"""This module produces messages to topics of Kafka, and waits until the broker has each.

The key of a record is the recipient, so that all of a recipient's messages are in one partition, in their order. The
key of the message is in the headers, and in what is sent.

What is wrong with a message, such as its size, is found by the client before anything is sent, or by the broker; either
way the code of the error tells it from a broker that is down.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from ephemera.base.installed import need
from ephemera.connect.systems.kafka_client import SASL, Heard
from ephemera.deliver.encryption import authority_of
from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import TIMEOUT, Refused, Settings, TryLater

_REFUSING = (
    "MSG_SIZE_TOO_LARGE",
    "INVALID_MSG",
    "INVALID_MSG_SIZE",
    "INVALID_RECORD",
    "RECORD_LIST_TOO_LARGE",
    "TOPIC_EXCEPTION",
    "_INVALID_ARG",
)
"""Errors that are a message's fault, or its topic's name's."""
_PAUSE = 0.01
"""Seconds after which it is seen that another thread was told of our message."""


class Kafka:
    """A producer; the recipient is the topic, unless the declaration names one."""

    def __init__(self, settings: Settings) -> None:
        if not settings.get("servers"):
            raise Refused('`kafka` needs its servers: TRANSPORT … IS kafka(servers="host:9092");')
        need("confluent_kafka", "the transport `kafka`", "pip install confluent-kafka")
        self._kafka: Any = import_module("confluent_kafka")
        self._refusing = {getattr(self._kafka.KafkaError, name, None) for name in _REFUSING}
        self._topic = settings.get("topic")
        self._timeout = float(settings.get("timeout", TIMEOUT))
        self._options: dict[str, Any] = {
            "bootstrap.servers": settings["servers"],
            "enable.idempotence": True,
            "linger.ms": 0,  # an address has one message under way: there is nothing to wait for
            "log_level": 3,  # errors: what fails is told with the message anyway
            "message.timeout.ms": max(1, int(self._timeout * 1000)),  # 0 is for ever
        }
        self._heard = self._options["error_cb"] = Heard()
        self._options |= _security(settings)
        try:
            self._producer = self._kafka.Producer(self._options)
        except self._kafka.KafkaException as error:
            raise Refused(f"Kafka's client does not take these settings: {error}") from None

    def send(self, message: Outgoing) -> None:
        told: list[Any] = []
        producer = self._producer
        try:
            producer.produce(
                str(self._topic or message.recipient),
                message.text().encode("utf-8", "backslashreplace"),
                key=message.recipient.encode("utf-8", "backslashreplace"),
                headers={"Idempotency-Key": message.key.encode()},
                on_delivery=lambda error, _: told.append(error),
            )
            # Not `flush`, which waits for the messages of all other recipients, too.
            last = time.monotonic() + self._timeout + 1
            while not told and time.monotonic() < last:
                producer.poll(_PAUSE)
        except BufferError as error:
            raise TryLater(f"Kafka does not take it: {error}", is_down=True) from None
        except self._kafka.KafkaException as error:
            raise self._judged(error.args[0]) from None
        except ValueError as error:  # a topic that is no text to Kafka
            raise Refused(f"Kafka refuses it: {error}") from None
        if not told:
            raise TryLater(f"Kafka has not answered in {self._timeout:g} seconds{self._said()}", is_down=True)
        if told[0] is not None:
            raise self._judged(told[0])

    def _judged(self, error: Any) -> Refused | TryLater:
        if error.code() in self._refusing:
            return Refused(f"Kafka refuses it: {error.str()}")
        if error.fatal():  # it will never send anything again, and another can
            self._producer = self._kafka.Producer(self._options)
        return TryLater(f"Kafka: {error.str()}{self._said()}", is_down=True)

    def _said(self) -> str:
        """What the client has said of its connections lately, which tells why a message was not sent in time."""
        heard, self._heard.last = self._heard.last, None
        return "" if heard is None else f"; {heard.str()}"

    def close(self) -> None:
        self._producer.flush(self._timeout)


def _security(settings: Settings) -> dict[str, Any]:
    """How the client logs in and whether it encrypts; who logs in does unless `tls=false` stands there."""
    user = settings.get("user")
    tls = bool(settings.get("tls", user is not None))
    if settings.get("sasl", SASL[0]) not in SASL:
        raise Refused(f"`sasl` of `kafka` is {' or '.join(SASL)}, and this is `{settings['sasl']}`")
    authority = authority_of("kafka", settings, tls=tls)
    found = {} if authority is None else {"ssl.ca.location": authority}
    if user is None:
        return found | ({"security.protocol": "SSL"} if tls else {})
    return found | {
        "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        "sasl.mechanism": settings.get("sasl", SASL[0]),
        "sasl.username": user,
        "sasl.password": settings.get("secret", ""),
    }
