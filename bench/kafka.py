"""This module measures live runs from Kafka to Kafka, in one process or on Spark, with the broker on the same machine.

Two figures. Throughput: a topic is filled with orders and shipments, and a run takes all that is there; what is told is
events a second from its start to its last commit, without that of Python, and the processor time that it used.

Latency: events come at a steady pace while a run goes on, and each answer is compared with the event that
completes it, by the times at which the broker appended the two; there is a commit every 20 ms.

On Spark, throughput is that of all batches but the first, which waits for Java to load its classes, and latency is told
with the seconds that batches took.

Kafka Streams runs the same two programs, in two threads and exactly once; its throughput is told from its first commit
on, so that neither Java's start nor the wait for its partitions counts.

    scripts/bench kafka [--events 1000000] [--pace 2000] [--seconds 20] [--spark | --streams]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import ephemera
from ephemera import sinks, sources
from ephemera.connect.live.reads import Read
from ephemera.connect.live.run import PACE, LiveProgram, LiveRun
from ephemera.connect.systems.address import address
from ephemera.connect.systems.kafka_source import KafkaSource
from ephemera.connect.systems.registry import target_at
from ephemera.connect.written_places import Written

OVERDUE = """
TIME UNIT 1 ms;
EVENT order(id: int, qty: int);
EVENT shipped(id: int);
STREAM shop CARRIES order, shipped WATERMARK 1 sec;
overdue(id) <- o: order(id, q), w: extend(o, 60 sec), while w: not shipped(id), q < 10;
"""
SEEN = """
TIME UNIT 1 us;
EVENT order(id: int, qty: int);
STREAM shop CARRIES order WATERMARK 0 sec;
pair(i) <- a: order(i, 1), b: order(i, 2), {a, b} within 10 sec;
"""


_STARTING = 8.0
"""Seconds in which Kafka Streams has been given its partitions."""
BATCHES = 8
"""On Spark, what is there is taken in so many batches."""


def started() -> str:
    """The address of the broker."""
    done = subprocess.run(["scripts/services", "start", "kafka"], capture_output=True, text=True, check=True)
    return done.stdout.split()[1]


def topic(server: str, name: str, partitions: int) -> str:
    """A new topic, whose messages bear the time at which they were appended."""
    admin = AdminClient({"bootstrap.servers": server})
    config = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result()
    return f"kafka://{server}/{name}"


def filled(server: str, name: str, events: int) -> None:
    """Orders, of which most are shipped in time, a thousand a second of their time, in two partitions."""
    producer = Producer({"bootstrap.servers": server, "queue.buffering.max.messages": 2_000_000, "linger.ms": 50})
    for n in range(events // 2):
        line = b'{"event": "order", "time": %d, "data": [%d, %d]}' % (n, n, n % 12)
        producer.produce(name, line, b"%d" % n, partition=n % 2)
        other = n - 30_000
        if other >= 0 and other % 50:
            line = b'{"event": "shipped", "time": %d, "data": [%d]}' % (n, other)
            producer.produce(name, line, b"%d" % other, partition=n % 2)
        if n % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def to_take(server: str, events: int) -> tuple[str, str, int]:
    """A filled topic and an empty one, by their addresses, and how many events there are."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    where, out = topic(server, name, 2), topic(server, f"{name}-out", 1)
    filled(server, name, events)
    asked = Consumer({"bootstrap.servers": server, "group.id": "bench"})
    count = sum(asked.get_watermark_offsets(TopicPartition(name, p))[1] for p in (0, 1))
    asked.close()
    return where, out, count


def run_of(text: str, where: str, out: str, folder: str, pace: float = PACE) -> LiveRun:
    """A run in one process with a checkpoint."""
    program = ephemera.compile(text)
    own = LiveProgram(program.engine(), program._world())
    return LiveRun([own], [Read(KafkaSource(address(where)))], [Written(target_at(out))], folder, pace=pace)


def throughput(server: str, events: int) -> None:
    """Takes all that is there, with a checkpoint."""
    where, out, count = to_take(server, events)
    with tempfile.TemporaryDirectory() as folder:
        run = run_of(OVERDUE, where, out, folder)
        began, used = time.perf_counter(), time.process_time()
        totals = run.run(lambda: False, once=True)
        took, used = time.perf_counter() - began, time.process_time() - used
    print(f"{count:,} events, {totals.answers:,} answers, {totals.commits} commits")
    print(f"{count / took:,.0f} events/s in {took:.1f} s; this process used {used:.1f} s of a processor")


def latency(server: str, pace: int, seconds: int) -> None:
    """The times between the append of an event and that of its answer."""
    where, out = empty(server)
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        run = run_of(SEEN, where, out, folder, pace=0.02)
        going = threading.Thread(target=lambda: run.run(stop.is_set))
        going.start()
        sent(where, pace, seconds)
        stop.set()
        going.join()
    tell_lags(server, where, out, f"{pace:,} events/s for {seconds} s")


def on_spark(server: str, events: int, pace: int, seconds: int) -> None:
    """The same on Spark."""
    from ephemera.spark.live.report import BatchReport  # noqa: PLC0415 - only who asks for Spark needs it
    from ephemera.spark.runtime.session import session  # noqa: PLC0415

    spark = session()
    reports: list[BatchReport] = []
    where, out, _ = to_take(server, events)
    first, second = ephemera.compile(OVERDUE), ephemera.compile(SEEN)
    with tempfile.TemporaryDirectory() as folder:
        streaming = first.stream(spark, sources.at(where), sinks.at(out), checkpoint=f"{folder}/first")
        query = replace(streaming, most=max(1, events // BATCHES)).start(reports.append)
        query.drain()
        query.stop()
        warm = [one for one in reports[1:] if one.events]
        count, took = sum(one.events for one in warm), sum(one.seconds for one in warm)
        print(
            f"Spark: {count:,} events in {len(warm)} batches behind the first, {count / max(took, 1e-9):,.0f} events/s"
        )
        reports.clear()
        where, out = empty(server)
        query = second.stream(spark, sources.at(where), sinks.at(out), checkpoint=f"{folder}/second").start(
            reports.append
        )
        sent(where, pace, seconds)
        query.stop()
    tell_lags(server, where, out, f"Spark, {pace:,} events/s for {seconds} s")
    lengths = [one.seconds for one in reports[1:]] or [0.0]
    print(f"{len(reports)} batches, {np.median(lengths) * 1000:.0f} ms in the median behind the first")


def by_streams(server: str, events: int, pace: int, seconds: int) -> None:
    """The same by Kafka Streams, exactly once, in two threads: from its first commit to its last."""
    where, out, count = to_take(server, events)
    with streams("overdue", server, (where, out), 100) as running:
        name = address(where).path
        asked = Consumer({"bootstrap.servers": server, "group.id": f"streams-{name}", "enable.auto.commit": False})
        parts = [TopicPartition(name, p) for p in (0, 1)]
        seen: list[tuple[float, int]] = []
        while not seen or seen[-1][1] < count:
            if running.poll() is not None:
                raise SystemExit("Kafka Streams has ended")
            done = sum(max(one.offset, 0) for one in asked.committed(parts, timeout=10))
            if done and (not seen or done > seen[-1][1]):
                seen.append((time.perf_counter(), done))
            time.sleep(0.02)
        asked.close()
        took = max(seen[-1][0] - seen[0][0], 1e-9)
        ticks = sum(map(int, Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        used = ticks / os.sysconf("SC_CLK_TCK")
        told = f"{count - seen[0][1]:,} events behind its first commit"
        print(f"Kafka Streams: {(count - seen[0][1]) / took:,.0f} events/s, {told}; {used:.1f} s of processors in all")
        time.sleep(2)
    print(f"{len(appended(server, address(out).path)):,} answers")
    where, out = empty(server)
    with streams("pairs", server, (where, out), 20):
        time.sleep(_STARTING)
        sent(where, pace, seconds)
    tell_lags(server, where, out, f"Kafka Streams, {pace:,} events/s for {seconds} s")


@contextmanager
def streams(what: str, server: str, topics: tuple[str, str], pace: int) -> Iterator[subprocess.Popen[bytes]]:
    """Kafka Streams at work; its jars come by Maven, and it is compiled once."""
    built = Path("build/streams")
    if not (built / "classes").is_dir():
        copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        maven = ["mvn", "-B", "-q", "-f", "bench/streams/pom.xml", copy, f"-DoutputDirectory={built.absolute()}/jars"]
        subprocess.run(maven, check=True)
        java = ["javac", "-cp", f"{built}/jars/*", "-d", f"{built}/classes", "bench/streams/Streams.java"]
        subprocess.run(java, check=True)
    command = ["java", "-Xmx1g", "-cp", f"{built}/classes:{built}/jars/*", "Streams", what, server]
    command += [address(topic).path for topic in topics]
    with tempfile.TemporaryDirectory() as folder:
        running = subprocess.Popen([*command, folder, str(pace)], stderr=subprocess.DEVNULL)
        try:
            yield running
        finally:
            running.terminate()
            running.wait()


def empty(server: str) -> tuple[str, str]:
    """Two new topics of one partition."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    return topic(server, name, 1), topic(server, f"{name}-out", 1)


def sent(where: str, pace: int, seconds: int) -> None:
    """Has another process send events, and waits until they have been taken."""
    subprocess.run([sys.executable, "-m", "bench.kafka", "--send", where, str(pace), str(seconds)], check=True)
    time.sleep(2)


def tell_lags(server: str, where: str, out: str, what: str) -> None:
    """From append to append; the first half does not count, in which Python and Java warm up."""
    events, answers = appended(server, address(where).path), appended(server, address(out).path)
    known = {e["data"][0]: at for at, e in events if e["data"][1] == 2}
    lags = [at - known[a["data"][0]] for at, a in answers]
    p50, p99 = np.percentile(lags[len(lags) // 2 :], [50, 99]) if lags else (0.0, 0.0)
    print(f"{what}: {len(lags):,} answers, p50 {p50:.0f} ms, p99 {p99:.0f} ms from append to append")


def send(where: str, pace: int, seconds: int) -> None:
    """Events at a steady pace: of two with one number the second makes an answer certain, with the one behind it."""
    found = address(where)
    producer = Producer({"bootstrap.servers": found.servers, "linger.ms": 1})
    began = time.time()
    for n in range(pace * seconds):
        wait = began + n / pace - time.time()
        if wait > 0.001:
            time.sleep(wait)
        when = int((began + n / pace) * 1e6)
        line = b'{"event": "order", "time": %d, "data": [%d, %d]}' % (when, n // 2, n % 2 + 1)
        producer.produce(found.path, line, b"%d" % (n // 2))
        producer.poll(0)
    producer.flush()


def appended(server: str, name: str) -> list[tuple[int, Any]]:
    """All messages of a topic of one partition with the times at which they were appended, in milliseconds."""
    consumer = Consumer({"bootstrap.servers": server, "group.id": "bench", "enable.partition.eof": True})
    consumer.assign([TopicPartition(name, 0, 0)])
    found: list[tuple[int, Any]] = []
    while True:
        message = consumer.poll(10)
        if message is None or message.error() is not None:
            consumer.close()
            return found
        found.append((message.timestamp()[1], json.loads(message.value() or b"null")))


def main() -> None:
    """Measures both."""
    if sys.argv[1:2] == ["--send"]:
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--pace", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--spark", action="store_true", help="on Spark instead")
    parser.add_argument(
        "--streams", action="store_true", help="by Kafka Streams, for which Maven and a JDK must be here"
    )
    given = parser.parse_args()
    if not Path("scripts/services").is_file():
        parser.error("run it from the root of the repository")
    server = started().partition("://")[2]
    if given.spark or given.streams:
        other = on_spark if given.spark else by_streams
        other(server, given.events, given.pace, given.seconds)
        return
    throughput(server, given.events)
    latency(server, given.pace, given.seconds)


if __name__ == "__main__":
    main()
