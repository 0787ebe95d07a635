"""What transports do with a message, and what they make of answers."""

from __future__ import annotations

import json
import os
import ssl
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ephemera
from ephemera.deliver.directory import Directory, directory_of
from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import NotDelivered, Refused, TryLater, Way
from ephemera.deliver.transports.command import Command
from ephemera.deliver.transports.console import Console
from ephemera.deliver.transports.file import AppendedFile
from ephemera.deliver.transports.http import Http
from ephemera.deliver.transports.kafka import Kafka
from ephemera.deliver.transports.mqtt import Mqtt
from ephemera.deliver.transports.python import Imported
from ephemera.deliver.transports.smtp import Smtp
from ephemera.rules.nodes import EnvironmentVariable, TransportSettings
from tests.deliver.crashing import message
from tests.deliver.servers import mail, web

TAKEN: list[dict[str, Any]] = []


def take(one: dict[str, Any]) -> None:
    TAKEN.append(one)


# ---- http ------------------------------------------------------------------------------------------------------


def test_a_posted_message_has_its_key_and_its_secret_in_the_headers() -> None:
    with web() as server:
        Http({"url": server.url, "secret": "swordfish"}).send(message(1))
    assert server.got == [{"event": "m", "data": 1, "key": "desk-0001"}]
    assert server.headers[0]["Idempotency-Key"] == "desk-0001"
    assert server.headers[0]["Authorization"] == "Bearer swordfish"


def test_the_recipient_in_a_url_is_one_part_of_its_path() -> None:
    with web() as server:
        Http({"url": server.url + "/{recipient}"}).send(message(1, "../a b?c=d#e"))
    assert server.paths == ["/take/..%2Fa%20b%3Fc%3Dd%23e"]


def failure(*answers: tuple[int, dict[str, str]] | str, timeout: float = 5.0) -> Refused | TryLater:
    with web(*answers) as server, pytest.raises((Refused, TryLater)) as caught:
        Http({"url": server.url, "timeout": timeout}).send(message(1))
    found = caught.value
    assert isinstance(found, Refused | TryLater)
    return found


def test_a_receiver_that_has_the_message_already_has_taken_it() -> None:
    with web((409, {})) as server:
        Http({"url": server.url}).send(message(1))


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 422, 301])
def test_an_answer_that_will_not_change_refuses_the_message(code: int) -> None:
    assert isinstance(failure((code, {"Location": "http://127.0.0.1:9/"})), Refused)


@pytest.mark.parametrize(("code", "is_down"), [(408, False), (500, False), (502, False), (429, True), (503, True)])
def test_an_answer_that_may_change_lets_it_be_tried_again(code: int, is_down: bool) -> None:
    found = failure((code, {}))
    assert isinstance(found, TryLater)
    assert (found.is_down, found.after) == (is_down, None)


def test_a_receiver_says_when_in_seconds_or_by_a_date() -> None:
    soon = failure((429, {"Retry-After": "120"}))
    assert isinstance(soon, TryLater)
    assert soon.after == 120.0
    date = format_datetime(datetime.now(UTC) + timedelta(hours=10), usegmt=True)
    later = failure((503, {"Retry-After": date}))
    assert isinstance(later, TryLater)
    assert later.after is not None
    assert 30_000 < later.after <= 36_000
    assert getattr(failure((429, {"Retry-After": "soon"})), "after", 0.0) is None


def test_a_receiver_that_hangs_or_hangs_up_may_dislike_the_message_and_one_that_is_not_there_does_not() -> None:
    for way in ("hang", "cut"):
        found = failure(way, timeout=0.05)
        assert isinstance(found, TryLater)
        assert not found.is_down
    with web() as server:
        pass
    with pytest.raises(TryLater) as caught:
        Http({"url": server.url}).send(message(1))
    assert caught.value.is_down


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "ftp://host/x", "https://", "desk"])
def test_only_http_is_posted_to(url: str) -> None:
    with pytest.raises(Refused, match="needs a URL"):
        Http({"url": url})


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("-5", None),
        ("", None),
        ("1e9", None),
        ("²", None),
        ("Mon, 40 Foo 2020 99:00:00 GMT", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("9" * 400, float("inf")),
    ],
)
def test_a_receiver_that_asks_for_no_time_that_there_is_is_only_busy(text: str, after: float | None) -> None:
    found = failure((429, {"Retry-After": text}))
    assert isinstance(found, TryLater)
    assert (found.is_down, found.after) == (True, after)


def test_an_answer_counts_as_soon_as_its_code_is_there_and_what_it_says_is_not_waited_for() -> None:
    with web((200, {"Endless": "yes"})) as server:
        Http({"url": server.url, "timeout": 0.05}).send(message(1))
    refused = failure((410, {"Endless": "yes"}), timeout=0.05)
    assert (type(refused), str(refused)) == (Refused, "answer 410")
    busy = failure((503, {"Endless": "yes", "Retry-After": "7"}), timeout=0.05)
    assert isinstance(busy, TryLater)
    assert (busy.is_down, busy.after) == (True, 7.0)


def test_a_host_that_is_off_is_down_and_a_connection_that_breaks_as_it_is_sent_a_message_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def off(*_: Any, **__: Any) -> None:
        raise TimeoutError("timed out")

    def full(*_: Any, **__: Any) -> None:
        raise BrokenPipeError("Broken pipe")

    with web() as server:
        with monkeypatch.context() as patch:
            patch.setattr("socket.create_connection", off)
            with pytest.raises(TryLater, match="nobody answers: timed out") as nobody:
                Http({"url": server.url}).send(message(1))
        monkeypatch.setattr("http.client.HTTPConnection.send", full)
        with pytest.raises(TryLater, match="the connection broke: Broken pipe") as broken:
            Http({"url": server.url}).send(message(1))
    assert (nobody.value.is_down, broken.value.is_down) == (True, False)


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "https://ops:swordfish@localhost/"},
        {"url": "https://localhost:swordfish/"},
        {"url": "https://localhost/swordfish\n"},
        {"url": "https://localhost/", "secret": "swordfish\n"},
        {"url": "https://localhost/", "secret": "€swordfish"},
        {"url": "https://localhost/", "header": "X-Key\r\nHost"},
    ],
)
def test_a_url_or_secret_that_cannot_be_sent_is_refused_before_and_not_repeated(settings: dict[str, str]) -> None:
    with pytest.raises(Refused) as caught:
        Http(settings)
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize("recipient", [".", ".."])
def test_a_recipient_leads_to_no_other_folder_of_a_url(recipient: str) -> None:
    with pytest.raises(Refused, match="leads elsewhere"):
        Http({"url": "http://127.0.0.1:9/desks/{recipient}"}).send(message(1, recipient))


# ---- file, python, smtp ----------------------------------------------------------------------------------------


def test_a_file_gets_a_line_for_each_message_whole_even_behind_one_that_was_cut(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text('{"cut')
    file = AppendedFile({"path": str(target)})
    file.send(message(1))
    file.send(message(2))
    file.close()
    assert [json.loads(line)["key"] for line in target.read_text().splitlines()[1:]] == ["desk-0001", "desk-0002"]


def test_a_file_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(TryLater, match="No such file"):
        AppendedFile({"path": str(tmp_path / "no" / "out.jsonl")}).send(message(1))


def test_what_only_looks_like_a_file_is_written_to_once() -> None:
    AppendedFile({"path": "/dev/null"}).send(message(1))


def test_a_terminal_shows_a_message_in_one_line_and_obeys_none(capsys: pytest.CaptureFixture[str]) -> None:
    text = "a\nb\x1b[2J\x9b2J\u2028\u0085é"
    Console({}).send(Outgoing("k", 0, 1, text, "console", {"event": text}))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert line.endswith('é", "key": "k"}')
    assert json.loads(line.split(": ", 1)[1]) == {"event": text, "key": "k"}


def test_a_function_is_called_with_the_message() -> None:
    TAKEN.clear()
    Imported({"function": f"{__name__}:take"}).send(message(3))
    assert TAKEN == [{"event": "m", "data": 3, "key": "desk-0003"}]
    for wrong in ("", "tests", "tests.deliver:nothing", "no.module:take"):
        with pytest.raises(Refused):
            Imported({"function": wrong})


def test_a_mail_has_the_key_and_the_message() -> None:
    with mail() as (port, mails):
        Smtp({"host": "127.0.0.1", "port": port}).send(message(1, "ops@example.org"))
    assert "Idempotency-Key: ops@example.org-0001" in mails[0]
    assert "To: ops@example.org" in mails[0]
    assert '"data": 1' in mails[0]


def test_a_mail_server_says_later_or_never() -> None:
    with mail("450 busy", "550 nobody here") as (port, _):
        smtp = Smtp({"host": "127.0.0.1", "port": port})
        with pytest.raises(TryLater, match="450"):
            smtp.send(message(1, "a@example.org"))
        with pytest.raises(Refused, match="550"):
            smtp.send(message(1, "a@example.org"))
        with pytest.raises(Refused, match="no address"):
            smtp.send(message(1, "a@example.org\r\nBcc: all@example.org"))
    with pytest.raises(TryLater) as caught:
        smtp.send(message(1, "a@example.org"))
    assert caught.value.is_down


def test_kafka_and_mqtt_that_are_not_there_are_down_or_say_what_to_install() -> None:
    with pytest.raises(ephemera.EphemeraError, match=r"install|Kafka"):
        Kafka({"servers": "127.0.0.1:9", "timeout": 0.1}).send(message(1))
    with pytest.raises(ephemera.EphemeraError, match=r"install|broker"):
        Mqtt({"host": "127.0.0.1", "port": 9, "timeout": 0.1}).send(message(1))


def test_a_mail_that_was_taken_is_not_sent_again_whatever_the_server_says_then() -> None:
    with mail(goodbye="500 what?") as (port, mails):
        Smtp({"host": "127.0.0.1", "port": port}).send(message(1, "ops@example.org"))
    assert len(mails) == 1


@pytest.mark.parametrize("recipient", ["", "a@example.org, all@example.org", "team: a@example.org, b@example.org;"])
def test_a_computed_recipient_is_one_address_and_adds_no_others(recipient: str) -> None:
    with mail() as (port, mails), pytest.raises(Refused, match="no address of mail"):
        Smtp({"host": "127.0.0.1", "port": port}).send(message(1, recipient))
    assert mails == []


def test_a_mail_may_hold_half_a_character() -> None:
    with mail() as (port, mails):
        one = Outgoing("k", 0, 1, "ops@example.org", "smtp", {"event": "m", "data": "\ud800"})
        Smtp({"host": "127.0.0.1", "port": port}).send(one)
    assert len(mails) == 1


def test_a_mail_server_shows_a_certificate_for_its_name_before_it_gets_a_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    class Server:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def starttls(self, context: Any = None) -> None:
            seen.append(context)
            raise ssl.SSLCertVerificationError("self-signed certificate")

        def login(self, *_: Any) -> None:
            seen.append("password")

        def close(self) -> None: ...

    monkeypatch.setattr("smtplib.SMTP", Server)
    with pytest.raises(TryLater, match="self-signed") as caught:
        Smtp({"tls": True, "user": "ops", "secret": "swordfish"}).send(message(1, "ops@example.org"))
    (context,) = seen
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert caught.value.is_down


# ---- kafka, mqtt -----------------------------------------------------------------------------------------------


def test_a_message_that_is_too_large_for_kafka_is_refused_and_blocks_nobody() -> None:
    pytest.importorskip("confluent_kafka")
    large = Outgoing("k", 0, 1, "desk", "kafka", {"event": "m", "data": "x" * (2 << 20)})
    with pytest.raises(Refused, match="too large"):
        Kafka({"servers": "127.0.0.1:9"}).send(large)


def test_settings_that_the_client_of_kafka_does_not_take_are_refused() -> None:
    pytest.importorskip("confluent_kafka")
    with pytest.raises(Refused, match="does not take these settings"):
        Kafka({"servers": "127.0.0.1:9", "timeout": 1e9})


class KafkaClient:
    """The part of Kafka's client that is used; each message ends as it is told."""

    class KafkaException(Exception):
        pass

    KafkaError = SimpleNamespace(MSG_SIZE_TOO_LARGE=10)

    def __init__(self, *errors: tuple[int, bool] | None) -> None:
        self.errors = list(errors)
        self.made = 0

    def Producer(self, _options: dict[str, Any]) -> KafkaClient:  # noqa: N802 - it is called like the class
        self.made += 1
        return self

    def produce(self, *_: Any, on_delivery: Callable[[Any, Any], None], **__: Any) -> None:
        self.told = on_delivery

    def poll(self, _timeout: float) -> None:
        error = self.errors.pop(0)
        if error is None:
            self.told(None, None)
            return
        code, is_fatal = error
        self.told(SimpleNamespace(code=lambda: code, fatal=lambda: is_fatal, str=lambda: f"error {code}"), None)


def test_a_client_of_kafka_that_is_broken_for_good_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    client = KafkaClient((10, False), (-195, False), (-150, True), None)
    monkeypatch.setattr("ephemera.deliver.transports.kafka.need", lambda *_: None)
    monkeypatch.setattr("ephemera.deliver.transports.kafka.import_module", lambda _: client)
    kafka = Kafka({"servers": "localhost:9092"})
    with pytest.raises(Refused, match="error 10"):
        kafka.send(message(1))
    for made in (1, 2):
        with pytest.raises(TryLater) as caught:
            kafka.send(message(1))
        assert caught.value.is_down
        assert client.made == made
    kafka.send(message(1))


@pytest.mark.parametrize(
    ("said", "failing"),
    [
        ("Not authorized", Refused),
        ("Payload format invalid", Refused),
        ("Quota exceeded", TryLater),
        ("Unspecified error", TryLater),
    ],
)
def test_a_message_that_a_broker_of_mqtt_answers_but_does_not_take_is_not_delivered(
    said: str, failing: type[Exception]
) -> None:
    reasons = pytest.importorskip("paho.mqtt.reasoncodes")
    mqtt = Mqtt({})

    class Client:
        def publish(self, *_: Any, **__: Any) -> Any:
            reason = reasons.ReasonCode(reasons.PacketTypes.PUBACK, said)
            mqtt._on_publish(self, None, 7, reason, None)
            return SimpleNamespace(mid=7, wait_for_publish=lambda _: None, is_published=lambda: True)

    mqtt._client, mqtt._is_running = Client(), True
    mqtt._connected.set()
    with pytest.raises(failing, match=said):
        mqtt.send(message(1))


# ---- command ---------------------------------------------------------------------------------------------------

NASTY = "$(touch {0}); `touch {0}` | touch {0} & \n touch {0} ' \" \\ --help"


def test_nothing_of_a_message_is_ever_an_argument_or_read_by_a_shell(tmp_path: Path) -> None:
    code = "import sys, json; open(sys.argv[1], 'a').write(json.dumps([sys.argv[2:], sys.stdin.read()]))"
    told, trap = tmp_path / "told", tmp_path / "trap"
    text = NASTY.format(trap)
    one = Outgoing("k", 0, 1, text, text, {"event": text, "data": {text: text}})
    Command({"argv": (sys.executable, "-c", code, str(told), "$HOME")}).send(one)
    arguments, given = json.loads(told.read_text())
    assert arguments == ["$HOME"]
    assert json.loads(given) == {"event": text, "data": {text: text}, "key": "k"}
    assert not trap.exists()


def test_a_command_that_fails_is_tried_again_and_one_that_is_not_there_is_not() -> None:
    def failing(code: str) -> TryLater:
        with pytest.raises(TryLater) as caught:
            Command({"argv": (sys.executable, "-c", code), "timeout": 20.0}).send(message(1))
        return caught.value

    broken = failing("import sys; sys.stderr.write('no room'); sys.exit(2)")
    assert "ended with 2: no room" in str(broken)
    assert not broken.is_down
    assert failing("import sys; sys.exit(75)").is_down
    with pytest.raises(TryLater, match="did not end"):
        Command({"argv": (sys.executable, "-c", "import time; time.sleep(60)"), "timeout": 0.05}).send(message(1))
    with pytest.raises(Refused, match="cannot be run"):
        Command({"argv": ("/no/such/command",)}).send(message(1))


def test_what_a_command_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    """It holds all that it got from the command, until somebody writes to its pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    Command({"argv": ("sh", "-c", 'cat "$0" &', str(pipe)), "timeout": 60.0}).send(message(1))
    pipe.write_text("")


# ---- ways ------------------------------------------------------------------------------------------------------

DECLARED = """
TRANSPORT audit IS http(url="https://localhost/audit", timeout=5 sec, retries=2, secret=env("AUDIT_TOKEN"));
TRANSPORT notify IS command(argv=["notify", "--urgent"]);
RAISE to(recipient="audit", transport="http") { m { var X } } ON event a: a(var X) END
RAISE to(recipient="https://localhost/hook", transport="http") { m { var X } } ON event a: a(var X) END
RAISE to(recipient=var X, transport="http") { m { var X } } ON event a: a(var X) END
"""


def ways(**more: Any) -> Directory:
    found = directory_of([ephemera.compile(DECLARED)._rules], **more)
    found.environment = {"AUDIT_TOKEN": "swordfish"}
    return found


def test_a_way_is_a_declared_transport_a_declared_recipient_or_what_stands_in_the_program() -> None:
    found = ways()
    assert found(("audit", "http")) is found(("anybody", "audit"))
    assert found(("audit", "http")).retries == 2
    assert found(("https://localhost/hook", "http")).retries == 8
    soap = "http://www.w3.org/2003/05/soap/bindings/HTTP/"
    assert found(("audit", soap)) is found(("audit", "http"))


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (("https://evil.example/", "http"), "data does not decide"),
        (("/etc/passwd", "file"), "data does not decide"),
        (("os:system", "python"), "data does not decide"),
        (("rm", "command"), "is no declared command"),
        (("x", "htpp"), "did you mean `http`"),
        (("notify", "command"), "--allow-command"),
        (("x", "notify"), "--allow-command"),
        (("audit", "smtpp"), "there is no transport"),
    ],
)
def test_data_decides_neither_what_is_opened_nor_what_is_run(address: tuple[str, str], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        ways()(address)


def test_a_command_runs_where_that_is_allowed() -> None:
    assert isinstance(ways(allow_command=True)(("x", "notify")).transport, Command)


def test_a_function_that_is_given_comes_before_all_declarations() -> None:
    TAKEN.clear()
    ways(functions={"audit": take})(("audit", "http")).transport.send(message(4))
    assert TAKEN[0]["key"] == "desk-0004"


def test_a_secret_that_is_not_set_is_missed_by_its_name() -> None:
    found = ways()
    found.environment = {}
    with pytest.raises(Refused, match="AUDIT_TOKEN of the environment"):
        found(("audit", "http"))


def test_settings_of_one_transport_make_one_connection() -> None:
    settings = TransportSettings("a", "file", {"path": EnvironmentVariable("P")})
    found = Directory({"a": settings}, (), environment={"P": "out.jsonl"})
    assert found(("x", "a")) is found(("y", "a"))
    assert found(("x", "a")).hide("cannot write out.jsonl") == "cannot write ***"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def take(", "SyntaxError"),
        ("{}['PORT']", "KeyError: 'PORT'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import no_module_of_this_name", "is not there: No module named"),
    ],
)
def test_whatever_a_module_raises_is_the_reason_why_it_has_no_transport(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "audits", raising=False)
    (tmp_path / "audits.py").write_text(text)
    found = Directory({"a": TransportSettings("a", "python", {"function": "audits:take"})}, ())
    with pytest.raises(Refused, match=reason):
        found(("x", "a"))


def test_a_transport_whose_system_is_not_there_yet_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "not_yet.py").write_text("raise ConnectionRefusedError('nobody listens')")
    found = Directory({"a": TransportSettings("a", "python", {"function": "not_yet:take"})}, (), named=[(None, "a")])
    found.check()
    with pytest.raises(TryLater, match="nobody listens") as caught:
        found(("x", "a"))
    assert caught.value.is_down


@pytest.mark.parametrize("secret", ["swordfish", "sword\nfish", "sword'fish\n"])
def test_a_setting_from_the_environment_that_is_wrong_is_not_shown(secret: str) -> None:
    settings = TransportSettings("a", "smtp", {"port": EnvironmentVariable("PORT")})
    with pytest.raises(Refused, match="ValueError") as caught:
        Directory({"a": settings}, (), environment={"PORT": secret})(("x", "a"))
    assert "***" in str(caught.value)
    assert "sword" not in str(caught.value)


COMPUTED = """
TRANSPORT post IS python(function="no_module_of_this_name:take");
TRANSPORT unused IS http(url="https://localhost/", secret=env("NEVER_SET"));
RAISE to(recipient={}, transport={}) {{ m {{ var X }} }} ON event a: a(var X) END
"""


@pytest.mark.parametrize(
    ("recipient", "transport", "is_lacking"),
    [
        ("var X", '"post"', True),
        ('"desk"', '"post"', True),
        ("var X", '"python"', True),
        ("var X", "var X", True),
        ('"post"', '"python"', True),
        ('"other"', '"python"', False),
        ("var X", '"console"', False),
    ],
)
def test_the_declared_transports_that_messages_may_take_are_there_before_a_run_begins(
    recipient: str, transport: str, is_lacking: bool
) -> None:
    rules = [ephemera.compile(COMPUTED.format(recipient, transport))._rules]
    found = directory_of(rules)
    found.environment = {"NEVER_SET": "x"}
    if not is_lacking:
        found.environment = {}
        found.check()
        return
    with pytest.raises(NotDelivered, match=r"is not there: No module named .*; with --no-deliver"):
        found.check()
    directory_of(rules, {"post": take, "python": take, "unused": take}).check()


def test_a_transport_to_which_nothing_is_sent_may_lack_what_it_needs() -> None:
    rules = [ephemera.compile(COMPUTED.format('"desk"', '"post"'))._rules]
    directory_of(rules, only={"audit"}).check()
    with pytest.raises(NotDelivered):
        directory_of(rules, only={"desk"}).check()


def test_a_transport_that_cannot_be_closed_keeps_no_other_open() -> None:
    closed: list[str] = []

    class Stuck:
        def __init__(self, name: str) -> None:
            self.name = name

        def send(self, one: Outgoing) -> None: ...

        def close(self) -> None:
            closed.append(self.name)
            raise RuntimeError("stuck")

    found = Directory({}, ())
    found._ways.update({(name, "x"): Way(Stuck(name)) for name in ("a", "b")})
    found.close()
    assert closed == ["a", "b"]
