"""This module writes to and reads from real servers for tests, with their own clients and none of ours."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

SHOP = """
    EVENT order(id: string, qty: int);
    EVENT shipped(id: string);
    STREAM shop CARRIES order, shipped WATERMARK 5 sec;
    overdue(id) <- o: order(id, q), w: extend(o, 6), while w: not shipped(id);
"""


def server(address: str) -> str:
    """The host and port of a broker."""
    return address.partition("://")[2]


def make_topic(address: str, topic: str, partitions: int = 2) -> str:
    """A new topic; its whole address."""
    admin = AdminClient({"bootstrap.servers": server(address)})  # which must outlive what it is asked
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    return f"{address}/{topic}"


def remove_topics(address: str, topics: Iterable[str]) -> None:
    """Removes topics, if they are there, and waits until they are gone."""
    admin = AdminClient({"bootstrap.servers": server(address)})
    there = [topic for topic in topics if topic in admin.list_topics(timeout=10).topics]
    for done in admin.delete_topics(there).values() if there else ():
        done.result()
    while any(topic in admin.list_topics(timeout=10).topics for topic in there):
        time.sleep(0.05)


def send(address: str, topic: str, events: Iterable[Any], partition: int = -1, **more: Any) -> None:
    """Events to a topic, as JSON unless they are bytes."""
    producer = Producer({"bootstrap.servers": server(address), "linger.ms": 0})
    for event in events:
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        producer.produce(topic, data, partition=partition, **more)
    producer.flush()


def committed(address: str, topic: str) -> list[dict[str, Any]]:
    """All committed messages of a topic, whose partitions are read to the end that they have now."""
    consumer = Consumer(
        {
            "bootstrap.servers": server(address),
            "group.id": "tests",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    partitions = sorted(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    found: list[dict[str, Any]] = []
    left = set(partitions)
    while left:
        message = consumer.poll(10)
        assert message is not None, f"the broker says nothing of {topic}"
        if message.error() is not None:
            left.discard(message.partition())
            continue
        key = message.key()
        found.append({**json.loads(message.value() or b"{}"), "key": None if key is None else key.decode()})
    consumer.close()
    return found


def order(number: int, time: int) -> Mapping[str, Any]:
    return {"event": "order", "time": time, "data": [f"o{number}", 1]}


def program_file(folder: Path, text: str = SHOP) -> Path:
    """A program in a file."""
    path = folder / "shop.eq"
    path.write_text(text)
    return path
