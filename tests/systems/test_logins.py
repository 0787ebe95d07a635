"""Who has to log in does, by a password or encrypted, and what is wrong with that is told at once."""

from __future__ import annotations

import gc
import json
from importlib import import_module
from typing import Any

import psycopg
import pytest

import ephemera
from ephemera import sources
from ephemera.connect.systems.address import NoAnswer
from ephemera.connect.systems.mqtt import MqttSource
from ephemera.connect.systems.registry import source_at, target_at
from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import Settings, TryLater
from ephemera.deliver.transports.kafka import Kafka
from ephemera.deliver.transports.mqtt import Mqtt
from tests.services import SCRIPT
from tests.systems.brokers import make_topic

CERTIFICATE = SCRIPT.parent.parent / "build" / "services" / "tls" / "cert.pem"
USER, PASSWORD = "login", "for-tests"
SEEN = "EVENT order(id: string); seen(id) <- o: order(id);"
ORDER = {"event": "order", "time": 1, "data": ["a"]}


def door(address: str, up: int) -> tuple[str, int]:
    """Another port of a server."""
    host, _, port = address.rpartition("://")[2].partition("/")[0].rpartition(":")
    return host, int(port) + up


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EPHEMERA_KAFKA_PASSWORD", "EPHEMERA_MQTT_PASSWORD", "PGPASSWORD"):
        monkeypatch.setenv(name, PASSWORD)


# ---- Kafka -----------------------------------------------------------------------------------------------------


def scram(kafka: str) -> None:
    """Lets the user log in by SCRAM, too."""
    admin: Any = import_module("confluent_kafka.admin")
    how = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_256, 4096)
    client = admin.AdminClient({"bootstrap.servers": kafka.rpartition("/")[2]})
    made = admin.UserScramCredentialUpsertion(USER, how, PASSWORD.encode())
    for told in client.alter_user_scram_credentials([made]).values():
        told.result()


@pytest.mark.parametrize(
    ("up", "options"),
    [
        (2, ""),
        (2, "?tls=no&sasl=PLAIN"),
        (3, "?tls=yes&ca={ca}"),
        (3, "?tls=yes&ca={ca}&sasl=SCRAM-SHA-256"),
    ],
)
def test_a_topic_is_written_and_read_by_who_has_logged_in(kafka: str, fresh: str, up: int, options: str) -> None:
    host, port = door(kafka, up)
    make_topic(kafka, fresh, partitions=1)
    if "SCRAM" in options:
        scram(kafka)
    where = f"kafka://{USER}@{host}:{port}/{fresh}{options.format(ca=CERTIFICATE)}"
    opened = target_at(where).open_target("run")
    opened.put(json.dumps(ORDER).encode(), 1)
    opened.close()
    assert ephemera.compile(SEEN).run(sources.at(where)) == [{"event": "seen", "time": 1, "data": ["a"]}]


@pytest.mark.parametrize(
    ("up", "options", "word", "told"),
    [
        (2, "", "wrong", "see to the user, to EPHEMERA_KAFKA_PASSWORD"),
        (3, "?tls=yes&ca={ca}", "wrong", "see to the user, to EPHEMERA_KAFKA_PASSWORD"),
        (3, "?tls=yes&ca={ca}&sasl=SCRAM-SHA-512", PASSWORD, "SCRAM-SHA-512"),
        (
            3,
            "?tls=yes",
            PASSWORD,
            "certificate verify failed.*; name the certificate of an authority of your own by ca=",
        ),
    ],
)
@pytest.mark.parametrize("way", ["read", "written"])
def test_why_a_broker_lets_nobody_in_is_told_at_once(  # noqa: PLR0913, PLR0917 - what is tried
    kafka: str, monkeypatch: pytest.MonkeyPatch, way: str, up: int, options: str, word: str, told: str
) -> None:
    monkeypatch.setenv("EPHEMERA_KAFKA_PASSWORD", word)
    monkeypatch.setattr("ephemera.connect.systems.kafka_client.PATIENCE", 1e6)  # nobody waits for so long
    host, port = door(kafka, up)
    where = f"kafka://{USER}@{host}:{port}/t{options.format(ca=CERTIFICATE)}"
    with pytest.raises(NoAnswer, match=told):
        source_at(where).open() if way == "read" else target_at(where).open_target("run")  # type: ignore[union-attr]


def test_messages_are_delivered_by_who_has_logged_in(kafka: str, fresh: str) -> None:
    host, port = door(kafka, 3)
    make_topic(kafka, fresh, partitions=1)
    given: dict[str, Any] = {"servers": f"{host}:{port}", "topic": fresh, "user": USER, "ca": str(CERTIFICATE)}
    transport = Kafka(given | {"secret": PASSWORD})
    transport.send(Outgoing("k", 0, 1, "desk", "kafka", ORDER))
    transport.close()
    wrong = Kafka(given | {"secret": "wrong", "timeout": 1})
    with pytest.raises(TryLater, match="uthentication"):
        wrong.send(Outgoing("k", 0, 1, "desk", "kafka", ORDER))
    wrong.close()
    assert ephemera.compile(SEEN).run(sources.at(f"{kafka}/{fresh}")) == [{"event": "seen", "time": 1, "data": ["a"]}]


# ---- MQTT ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("up", "options"), [(1, ""), (2, "?tls=yes&ca={ca}")])
def test_a_topic_of_mqtt_is_written_and_read_by_who_has_logged_in(mqtt: str, fresh: str, up: int, options: str) -> None:
    host, port = door(mqtt, up)
    where = f"mqtt://{USER}@{host}:{port}/{fresh}{options.format(ca=CERTIFICATE)}"
    source = source_at(where)
    assert isinstance(source, MqttSource)
    reader = source.open_live()
    written = target_at(where).open_target("run")
    written.put(b'{"n": 1}', 1)
    written.close()
    settings: Settings = {"host": host, "port": port, "topic": fresh, "user": USER, "secret": PASSWORD}
    transport = Mqtt(settings | ({"tls": True, "ca": str(CERTIFICATE)} if options else {}))  # type: ignore[operator]
    transport.send(Outgoing("k", 0, 1, "desk", "mqtt", ORDER))
    transport.close()
    found = b""
    while found.count(b"{") < 2:
        found += b"".join(one.batch.data for one in reader.poll(10))  # type: ignore[union-attr]
    reader.confirm()
    reader.close()
    assert found.startswith(b'{"n": 1}')


@pytest.mark.parametrize(
    ("up", "options", "word", "told"),
    [
        (1, "", "wrong", "Not authorized; see to the user and EPHEMERA_MQTT_PASSWORD"),
        (2, "?tls=yes&ca={ca}", "wrong", "Not authorized; see to the user and EPHEMERA_MQTT_PASSWORD"),
        (2, "?tls=yes", PASSWORD, "certificate verify failed.*ca=PATH"),
    ],
)
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_why_a_broker_of_mqtt_lets_nobody_in_is_told(  # noqa: PLR0913, PLR0917 - what is tried
    mqtt: str, monkeypatch: pytest.MonkeyPatch, up: int, options: str, word: str, told: str
) -> None:
    monkeypatch.setenv("EPHEMERA_MQTT_PASSWORD", word)
    host, port = door(mqtt, up)
    where = f"mqtt://{USER}@{host}:{port}/t{options.format(ca=CERTIFICATE)}"
    with pytest.raises(NoAnswer, match=told):
        target_at(where).open_target("run")
    given: dict[str, Any] = {"host": host, "port": port, "user": USER, "secret": word, "timeout": 1}
    if options:
        given |= {"tls": True} | ({"ca": str(CERTIFICATE)} if "ca=" in options else {})
    with pytest.raises(TryLater, match=r"Not authorized|certificate verify failed"):
        Mqtt(given).send(Outgoing("k", 0, 1, "desk", "mqtt", ORDER))
    gc.collect()  # the client does not close the connection of a handshake that has failed


# ---- PostgreSQL ------------------------------------------------------------------------------------------------


def test_a_table_is_written_and_read_by_who_has_logged_in(
    postgres: str, monkeypatch: pytest.MonkeyPatch, fresh: str
) -> None:
    with psycopg.connect(postgres, autocommit=True) as owner:
        if owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [USER]).fetchone() is None:
            owner.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        owner.execute(f"CREATE SCHEMA {fresh} AUTHORIZATION {USER}")
        owner.execute(f"CREATE TABLE {fresh}.given (id text, time bigint)")
        owner.execute(f"INSERT INTO {fresh}.given VALUES ('a', 1)")
        owner.execute(f"GRANT SELECT ON {fresh}.given TO {USER}")
    where = f"{postgres.replace('ephemera@', f'{USER}@')}?table={fresh}.given"
    assert ephemera.compile(SEEN).run(sources.at(where, "order")) == [{"event": "seen", "time": 1, "data": ["a"]}]
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(NoAnswer, match='password authentication failed for user "login"'):
        sources.at(where, "order").open()
