"""MQTT is read and written at least once; a server of HTTP gets every commit, though it fails at times."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import paho.mqtt.client as paho
import pytest
from click.testing import CliRunner
from paho.mqtt.enums import CallbackAPIVersion

from ephemera.cli.main import app
from ephemera.connect.systems.address import NoAnswer, WrongAddress, address
from ephemera.connect.systems.http_sink import HttpTarget
from ephemera.connect.systems.mqtt import MqttSource
from ephemera.connect.systems.registry import target_at
from ephemera.formats.decode import Lines


def client(where: str) -> paho.Client:
    made = paho.Client(CallbackAPIVersion.VERSION2)
    host, _, port = where.partition("://")[2].partition(":")
    made.connect(host, int(port))
    made.loop_start()
    return made


def test_what_was_not_confirmed_comes_again(mqtt: str, fresh: str) -> None:
    source = MqttSource(address(f"{mqtt}/{fresh}/+"))
    opened = source.open_live()
    sender = client(mqtt)
    sender.publish(f"{fresh}/a", b'{"n": 1}', qos=1).wait_for_publish(10)
    (first,) = opened.poll(10)
    assert first.batch == Lines(b'{"n": 1}')
    opened.confirm()
    sender.publish(f"{fresh}/a", b'{"n": 2}', qos=1).wait_for_publish(10)
    assert opened.poll(10)[0].batch == Lines(b'{"n": 2}')
    opened.close()  # as a crash would leave it: taken, and not confirmed
    again = source.open_live(opened.position)
    assert again.poll(10)[0].batch == Lines(b'{"n": 2}')
    again.confirm()
    again.close()
    sender.disconnect()
    sender.loop_stop()


def test_more_messages_come_before_a_commit_than_brokers_let_wait_by_themselves(mqtt: str, fresh: str) -> None:
    opened = MqttSource(address(f"{mqtt}/{fresh}")).open_live()
    sender = client(mqtt)
    for n in range(100):
        sender.publish(fresh, b'{"n": %d}' % n, qos=1).wait_for_publish(10)
    found: list[bytes] = []
    while len(found) < 100:
        (one,) = opened.poll(10)
        assert isinstance(one.batch, Lines)
        found += one.batch.data.splitlines()
    assert found == [b'{"n": %d}' % n for n in range(100)]
    opened.confirm()
    opened.close()
    sender.disconnect()
    sender.loop_stop()


def test_a_run_of_what_is_there_reads_what_its_session_has_kept(mqtt: str, fresh: str, tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text("EVENT a(x: int); STREAM s CARRIES a; b(x) <- i: a(x);")
    given: list[object] = ["run", tmp_path / "p.eq", "--mode", "stream", "--engine", "local", "--trigger", "once"]
    given += ["--input", f"{mqtt}/{fresh}", "--checkpoint", tmp_path / "state"]
    assert CliRunner().invoke(app, [str(one) for one in given]).exit_code == 0
    sender = client(mqtt)
    for n in range(3):
        event = {"event": "a", "time": n, "data": [n]}
        sender.publish(fresh, json.dumps(event).encode(), qos=1).wait_for_publish(10)
    sender.disconnect()
    sender.loop_stop()
    done = CliRunner().invoke(app, [str(one) for one in given])
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["data"] for line in done.stdout.splitlines()] == [[0], [1]]


def test_answers_are_published_one_a_message(mqtt: str, fresh: str) -> None:
    listener = client(mqtt)
    came: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    subscribed: queue.SimpleQueue[bool] = queue.SimpleQueue()
    listener.on_message = lambda _c, _d, message: came.put(bytes(message.payload))
    listener.on_subscribe = lambda *_given: subscribed.put(True)
    listener.subscribe(fresh, qos=1)
    assert subscribed.get(timeout=10)
    opened = target_at(f"{mqtt}/{fresh}").open_target("run")
    opened.put(b'{"n": 1}\n{"n": 2}\n', 1)
    assert [came.get(timeout=10), came.get(timeout=10)] == [b'{"n": 1}', b'{"n": 2}']
    opened.close()
    listener.disconnect()
    listener.loop_stop()


def test_answers_go_to_one_topic_and_not_to_a_filter() -> None:
    with pytest.raises(WrongAddress, match="one topic"):
        target_at("mqtt://127.0.0.1/a/+")


# ---- HTTP --------------------------------------------------------------------------------------------------------


@contextmanager
def server(*codes: int, location: str | None = None) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server that answers with some codes (0 is no HTTP), and then 200; its address, and what it got."""
    got: list[tuple[str, bytes]] = []
    left = list(codes)

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            code = left.pop(0) if left else 200
            if code == 200:
                got.append((self.headers["Idempotency-Key"], body))
            if code == 0:
                self.wfile.write(b"no answer\n")
                return
            self.send_response(code)
            if location is not None:
                self.send_header("Location", location)
            if code == 429:
                self.send_header("Retry-After", "7")
            if code == 425:
                self.send_header("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")
            self.end_headers()

        def log_message(self, *_given: object) -> None:
            """Tests are quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/answers", got
        finally:
            listening.shutdown()
            thread.join()


def test_what_may_pass_is_tried_again_later_and_later() -> None:
    pauses: list[float] = []
    with server(500, 503, 429, 425) as (where, got):
        HttpTarget(address(where), pauses.append).open_target("run").put(b"{}\n", 3)
    assert got == [("run-3", b"{}\n")]
    assert pauses == [0.5, 1.0, 7.0, 0.0]  # the last is a date, which has passed


def test_what_will_not_pass_is_told() -> None:
    with server(400) as (where, got), pytest.raises(NoAnswer, match="400 Bad Request"):
        HttpTarget(address(where), lambda _pause: None).open_target("run").put(b"{}\n", 1)
    assert got == []


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirection_is_a_refusal_and_gets_neither_answers_nor_the_secret(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setenv("EPHEMERA_HTTP_AUTHORIZATION", "Bearer swordfish")
    with server() as (other, taken), server(code, location=other) as (where, got):
        with pytest.raises(NoAnswer, match=f"refuses answers: {code} .*, they should go to `{other}`; if so, write"):
            HttpTarget(address(where), lambda _pause: None).open_target("run").put(b"{}\n", 1)
        assert (got, taken) == ([], [])


def test_a_redirection_that_says_nowhere_is_a_refusal() -> None:
    with server(302) as (where, _), pytest.raises(NoAnswer, match=r"refuses answers: 302 Found$"):
        HttpTarget(address(where), lambda _pause: None).open_target("run").put(b"{}\n", 1)


def test_a_secret_that_no_header_can_hold_is_told_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPHEMERA_HTTP_AUTHORIZATION", "Bearer sword\nfish")
    with server() as (where, _), pytest.raises(NoAnswer, match="EPHEMERA_HTTP_AUTHORIZATION holds") as told:
        HttpTarget(address(where), lambda _pause: None).open_target("run").put(b"{}\n", 1)
    assert "sword" not in str(told.value)


def test_an_answer_that_is_no_http_is_tried_again() -> None:
    with server(0) as (where, got):
        HttpTarget(address(where), lambda _pause: None).open_target("run").put(b"{}\n", 1)
    assert got == [("run-1", b"{}\n")]


def test_a_run_over_a_history_posts_its_answers(tmp_path: Path) -> None:
    (tmp_path / "p.eq").write_text("EVENT a(x: int); b(x) <- i: a(x);")
    (tmp_path / "events.jsonl").write_text('{"event": "a", "time": 1, "data": [5]}\n')
    with server() as (where, got):
        given: list[object] = [
            "run",
            tmp_path / "p.eq",
            "--engine",
            "local",
            "--input",
            tmp_path / "events.jsonl",
            "--output",
            where,
        ]
        done = CliRunner().invoke(app, [str(one) for one in given])
    assert done.exit_code == 0, done.output
    assert [json.loads(body) for _, body in got] == [{"event": "b", "time": 1, "data": [5]}]
