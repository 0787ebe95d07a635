"""This module holds what reading and writing Kafka share: how its client is set up, and what its errors mean."""

from __future__ import annotations

import time
from typing import Any

from ephemera.base.installed import need
from ephemera.connect.systems.address import Address, NoAnswer, WrongAddress, secret_of
from ephemera.connect.systems.encryption import ENCRYPTION, is_encrypted

WITH_KAFKA = "pip install 'ephemera-cep[kafka]'"
PATIENCE = 30.0
"""Seconds that a broker has to answer when a run begins."""
SECURITY = ("sasl", *ENCRYPTION)
_LOOK = 1.0
"""Seconds after which it is seen what the client has said, while a broker does not answer."""
_LOOKS, _MOMENT = 20, 0.25
_WITHOUT_ANSWER = ("_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN")
SASL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class NoTopic(NoAnswer):
    """A topic that a broker does not have, or not yet."""


class Heard:
    """What a client says of its connections, which it does not tell whoever waits for an answer."""

    def __init__(self) -> None:
        self.last: Any = None

    def __call__(self, error: Any) -> None:
        """To be called with what went wrong; that all brokers are down says less than why."""
        if self.last is None or error.name() != "_ALL_BROKERS_DOWN":
            self.last = error

    @property
    def refusal(self) -> str | None:
        """What is wrong for good, with a way out; None if it may pass."""
        way_out = None if self.last is None else _WAYS_OUT.get(self.last.name())
        return None if way_out is None else f"{self.last.str()}; {way_out}"


_WAYS_OUT = {
    "_SSL": "name the certificate of an authority of your own by ca=PATH, and see that the port is one for TLS",
    "_AUTHENTICATION": "see to the user, to EPHEMERA_KAFKA_PASSWORD, and to the mechanism, as in sasl=SCRAM-SHA-256",
}


def check_client(address: Address) -> None:
    """Raises what is missing, or wrong with the address."""
    need("confluent_kafka", f"`{address.scheme}://`", WITH_KAFKA)
    if not address.hosts:
        raise WrongAddress(f"`{address}` names no broker; write such as kafka://127.0.0.1:9092/orders")
    if not address.path or "/" in address.path:
        raise WrongAddress(f"`{address}` names no topic; write such as kafka://{address.servers}/orders")
    is_encrypted(address, has_secret=address.user is not None)


def settings(address: Address) -> dict[str, Any]:
    """What any client of a broker is told; under `error_cb` is a `Heard`."""
    tls = is_encrypted(address, has_secret=address.user is not None)
    found: dict[str, Any] = {
        "bootstrap.servers": address.servers,
        "client.id": "ephemera",
        "log_level": 0,  # what matters comes as an error
        "error_cb": Heard(),
        "reconnect.backoff.max.ms": 1000,
    }
    if address.user is not None:
        password = secret_of("kafka")
        if password is None:
            raise WrongAddress(f"`{address}` names a user, and EPHEMERA_KAFKA_PASSWORD is not set")
        mechanism = address.choice("sasl", SASL, "PLAIN")
        found |= {"sasl.mechanism": mechanism, "sasl.username": address.user, "sasl.password": password}
    protocol = ("SASL_SSL" if tls else "SASL_PLAINTEXT") if address.user is not None else "SSL" if tls else "PLAINTEXT"
    if "ca" in address.options:
        found["ssl.ca.location"] = address.options["ca"]
    return found | {"security.protocol": protocol}


def awaited_partitions(producer: Any, address: Address, heard: Heard) -> list[int]:
    """The same for a producer: brokers may make the topic when one asks for it, and that takes a moment."""
    for _ in range(_LOOKS):
        try:
            return partitions_of(producer, address, heard)
        except NoTopic:
            time.sleep(_MOMENT)
    return partitions_of(producer, address, heard)


def partitions_of(client: Any, address: Address, heard: Heard) -> list[int]:
    """The partitions of the topic, of which there must be some."""
    topic = metadata_of(client, address, heard).topics.get(address.path)
    if topic is None or topic.error is not None or not topic.partitions:
        why = topic.error.str() if topic is not None and topic.error is not None else "it has no partitions"
        raise NoTopic(f"cannot use the topic `{address.path}` at {address.servers}: {why}")
    return sorted(topic.partitions)


def metadata_of(client: Any, address: Address, heard: Heard) -> Any:
    """What a broker says of its cluster and the topic; raises what is wrong for good as soon as that is known."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - only who uses Kafka needs its client

    until = time.monotonic() + PATIENCE
    while True:
        try:
            return client.list_topics(address.path, timeout=_LOOK)
        except KafkaException as error:
            client.poll(0)  # which has the client say what it has to say
            if heard.refusal is not None:
                raise NoAnswer(f"Kafka at {address.servers}: {heard.refusal}") from None
            if error.args[0].name() not in _WITHOUT_ANSWER or time.monotonic() > until:
                raise no_answer(address, KafkaException(heard.last) if heard.last is not None else error) from None


def no_answer(address: Address, error: Exception) -> NoAnswer:
    """What the client said, as people read it."""
    told = error.args[0] if error.args else error
    text = told.str() if hasattr(told, "str") else str(told)
    return NoAnswer(f"Kafka at {address.servers}, topic `{address.path}`: {text}")
