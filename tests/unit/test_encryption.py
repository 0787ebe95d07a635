"""No secret leaves this machine in the clear unless that is said, and why a broker does not answer is told at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ephemera.connect.systems import kafka_client
from ephemera.connect.systems.address import NoAnswer, WrongAddress, address
from ephemera.connect.systems.kafka_client import Heard, partitions_of, settings
from ephemera.connect.systems.registry import source_at, target_at
from ephemera.deliver.transport import Refused
from ephemera.deliver.transports.kafka import Kafka
from ephemera.deliver.transports.mqtt import Mqtt
from ephemera.deliver.transports.smtp import Smtp


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EPHEMERA_KAFKA_PASSWORD", "EPHEMERA_MQTT_PASSWORD"):
        monkeypatch.setenv(name, "hunter2")


# ---- addresses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "kafka://me@broker.example.org/t",
        "kafka://me@127.0.0.1,10.0.0.1/t",
        "kafka://me@localhost.example.org/t",
        "mqtt://me@broker.example.org/t",
    ],
)
@pytest.mark.parametrize("make", [source_at, target_at])
def test_an_address_that_would_send_a_password_in_the_clear_is_refused(text: str, make: Any) -> None:
    with pytest.raises(WrongAddress, match="would send a password in the clear: add tls=yes, or tls=no"):
        make(text)
    for options in ("?tls=yes", "?tls=no"):
        make(text + options)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3:9", "[::1]:9", "a.localhost"])
def test_what_stays_on_this_machine_may_be_in_the_clear(host: str) -> None:
    source_at(f"kafka://me@{host}/t")
    source_at(f"mqtt://me@{host}/t")


def test_who_sends_no_secret_may_send_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    source_at("kafka://broker.example.org/t")
    source_at("mqtt://broker.example.org/t")
    monkeypatch.delenv("EPHEMERA_MQTT_PASSWORD")
    source_at("mqtt://me@broker.example.org/t")


@pytest.mark.parametrize("scheme", ["kafka", "mqtt"])
def test_an_authority_is_a_file_and_for_encrypted_connections(scheme: str, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    with pytest.raises(WrongAddress, match="there is no file"):
        source_at(f"{scheme}://host/t?tls=yes&ca={ca}")
    ca.touch()
    with pytest.raises(WrongAddress, match="add tls=yes"):
        source_at(f"{scheme}://host/t?ca={ca}")
    assert source_at(f"{scheme}://host/t?tls=yes&ca={ca}").name == f"{scheme}://host/t"


def test_an_authority_is_told_to_the_client_of_kafka(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    found = settings(address(f"kafka://me@host/t?tls=yes&sasl=SCRAM-SHA-512&ca={tmp_path}/ca.pem"))
    assert found["ssl.ca.location"] == f"{tmp_path}/ca.pem"
    assert (found["security.protocol"], found["sasl.mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")


# ---- what a client of Kafka says -------------------------------------------------------------------------------


class FakeClient:
    """A client that gets no answer, and says why where it is polled."""

    def __init__(self, heard: Heard, said: Sequence[int], answers_after: int | None = None) -> None:
        self.heard, self.said, self.answers_after = heard, list(said), answers_after
        self.asked = 0

    def list_topics(self, topic: str, timeout: float) -> Any:
        assert timeout < kafka_client.PATIENCE
        self.asked += 1
        if self.answers_after is not None and self.asked > self.answers_after:
            return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "Failed to get metadata"))

    def poll(self, seconds: float) -> None:
        assert seconds == 0
        if self.said:
            self.heard(KafkaError(self.said.pop(0), "what it said"))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time that passes as it is looked at."""
    now = [0.0]

    def monotonic() -> float:
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(kafka_client, "time", SimpleNamespace(monotonic=monotonic))
    return now


@pytest.mark.parametrize(
    ("code", "way_out"), [(KafkaError._SSL, "ca=PATH"), (KafkaError._AUTHENTICATION, "EPHEMERA_KAFKA_PASSWORD")]
)
def test_why_a_broker_lets_nobody_in_is_told_at_once(code: int, way_out: str) -> None:
    heard = Heard()
    client = FakeClient(heard, [KafkaError._TRANSPORT, code])
    with pytest.raises(NoAnswer, match=f"what it said; .*{way_out}"):
        partitions_of(client, address("kafka://127.0.0.1/t"), heard)
    assert client.asked == 2


def test_a_broker_that_is_not_there_yet_is_waited_for() -> None:
    heard = Heard()
    client = FakeClient(heard, [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN], answers_after=5)
    assert partitions_of(client, address("kafka://127.0.0.1/t"), heard) == [0]


def test_a_broker_that_does_not_come_is_told_with_what_the_client_said_last(clock: list[float]) -> None:
    heard = Heard()
    client = FakeClient(heard, [KafkaError._RESOLVE, KafkaError._ALL_BROKERS_DOWN])
    with pytest.raises(NoAnswer, match="what it said"):
        partitions_of(client, address("kafka://127.0.0.1/t"), heard)
    assert kafka_client.PATIENCE < clock[0] < kafka_client.PATIENCE + 5


# ---- transports ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Smtp, Mqtt])
def test_a_transport_sends_no_secret_in_the_clear_unasked(make: Any) -> None:
    given = {"host": "host.example.org", "user": "me", "secret": "hunter2"}
    with pytest.raises(Refused, match="would send its secret in the clear: add tls=true, or tls=false") as told:
        make(given)
    assert "hunter2" not in str(told.value)
    for more in ({"tls": True}, {"tls": False}, {"host": "localhost"}):
        make(given | more)
    make({"host": "host.example.org"})


@pytest.mark.parametrize("make", [Smtp, Mqtt, Kafka])
def test_an_authority_of_a_transport_is_a_file_that_holds_one(make: Any, tmp_path: Path) -> None:
    given = {"host": "h", "servers": "h", "tls": True, "ca": str(tmp_path / "ca.pem")}
    with pytest.raises(Refused, match="there is no file"):
        make(given)
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(Refused, match=r"holds no certificate|does not take these settings"):
        make(given)
    with pytest.raises(Refused, match="add tls=true"):
        make(given | {"tls": False})


def test_kafka_logs_in_as_it_is_told() -> None:
    given = {"servers": "127.0.0.1:9", "user": "me", "secret": "hunter2"}
    encrypted, scram = Kafka(given), Kafka(given | {"sasl": "SCRAM-SHA-256", "tls": False})
    assert (encrypted._options["security.protocol"], encrypted._options["sasl.mechanism"]) == ("SASL_SSL", "PLAIN")
    assert (scram._options["security.protocol"], scram._options["sasl.mechanism"]) == (
        "SASL_PLAINTEXT",
        "SCRAM-SHA-256",
    )
    assert Kafka({"servers": "127.0.0.1:9", "tls": True})._options["security.protocol"] == "SSL"
    with pytest.raises(Refused, match="`sasl` of `kafka` is PLAIN or"):
        Kafka(given | {"sasl": "GSSAPI"})


# ---- other systems ---------------------------------------------------------------------------------------------


def test_a_user_in_an_address_of_http_is_refused_with_the_way_out() -> None:
    with pytest.raises(WrongAddress, match=r"put `Basic …`.*into EPHEMERA_HTTP_AUTHORIZATION"):
        target_at("http://me@host/answers")


@pytest.mark.parametrize(
    ("option", "variable"), [("sslmode", "PGSSLMODE"), ("sslrootcert", "PGSSLROOTCERT"), ("options", "PGOPTIONS")]
)
@pytest.mark.parametrize("make", [source_at, target_at])
def test_what_the_client_of_postgresql_is_told_stands_in_the_environment(make: Any, option: str, variable: str) -> None:
    with pytest.raises(WrongAddress, match=f"set {variable} instead"):
        make(f"postgresql://host/shop?table=orders&{option}=require")
