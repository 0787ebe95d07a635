"""Messages go to real brokers, and are there in their order with their keys."""

from __future__ import annotations

import json
import queue
from importlib import import_module
from typing import Any

from ephemera.deliver.transports.kafka import Kafka
from ephemera.deliver.transports.mqtt import Mqtt
from tests.deliver.crashing import message


def test_kafka_has_the_messages_of_a_recipient_in_one_partition_in_order(kafka: str, fresh: str) -> None:
    confluent_kafka: Any = import_module("confluent_kafka")
    servers = kafka.rsplit("//", maxsplit=1)[-1].split("/", maxsplit=1)[0]
    sender = Kafka({"servers": servers, "timeout": 20.0, "topic": fresh})
    sent = [message(k, to) for k in range(10) for to in ("north", "south")]
    for one in sent:
        sender.send(one)
    sender.close()
    reader = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": fresh, "auto.offset.reset": "earliest"}
    )
    reader.subscribe([fresh])
    got: list[Any] = []
    while len(got) < len(sent):
        record = reader.poll(30)
        assert record is not None
        assert record.error() is None, record.error()
        got.append(record)
    reader.close()
    for to in ("north", "south"):
        own = [r for r in got if r.key() == to.encode()]
        assert len({r.partition() for r in own}) == 1
        keys = [f"{to}-{k:04d}" for k in range(10)]
        assert [dict(r.headers())["Idempotency-Key"].decode() for r in own] == keys
        assert [json.loads(r.value())["key"] for r in own] == keys


def test_a_broker_of_mqtt_hands_messages_on_in_order_with_their_keys(mqtt: str, fresh: str) -> None:
    paho: Any = import_module("paho.mqtt.client")
    host, _, port = mqtt.rsplit("//", maxsplit=1)[-1].split("/", maxsplit=1)[0].partition(":")
    got: queue.Queue[tuple[str, str]] = queue.Queue()
    ready: queue.Queue[None] = queue.Queue()
    reader = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    reader.on_message = lambda _c, _d, m: got.put(
        (json.loads(m.payload)["key"], dict(m.properties.UserProperty)["Idempotency-Key"])
    )
    reader.on_subscribe = lambda *_: ready.put(None)
    reader.connect(host, int(port))
    reader.subscribe(f"{fresh}/#", 1)
    reader.loop_start()
    ready.get(timeout=30)
    sender = Mqtt({"host": host, "port": int(port), "timeout": 20.0})
    for k in range(10):
        sender.send(message(k, f"{fresh}/desk"))
    sender.close()
    keys = [f"{fresh}/desk-{k:04d}" for k in range(10)]
    assert [got.get(timeout=30) for _ in keys] == [(key, key) for key in keys]
    reader.disconnect()
    reader.loop_stop()
