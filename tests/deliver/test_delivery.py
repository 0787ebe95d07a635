"""Messages from a program to whoever takes them, as runs deliver them; and no secret anywhere on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera.cli import deliver as of_commands
from ephemera.cli.main import app
from ephemera.deliver import delivery as of_a_run
from ephemera.deliver.delivery import Delivery, Wanted
from ephemera.deliver.message import Outgoing
from ephemera.deliver.outbox import DeadMessage, Outbox
from ephemera.deliver.outbox_owner import last_committed
from ephemera.deliver.redeliver import redeliver
from ephemera.deliver.target import MessageTarget
from ephemera.deliver.transport import NotDelivered
from ephemera.engine.state.checkpoint_lock import hold
from ephemera.transports import Refused, TryLater
from tests.deliver.crashing import message
from tests.deliver.servers import web

SECRET = "swordfish-4711"
RULES = """
EVENT late(id: int, desk: string);
RAISE to(recipient="audit", transport="http") { bell { id { var I } } } ON event l: late(var I, var D) END
RAISE to(recipient=var D, transport="tell") { bell { id { var I } } } ON event l: late(var I, var D) END
"""
EVENTS = [{"event": "late", "time": k, "data": [k, f"desk{k % 2}"]} for k in range(1, 7)]


def program_of(url: str, told: Path) -> str:
    return (
        f'TRANSPORT audit IS http(url="{url}", timeout=2 sec, retries=1, secret=env("AUDIT_TOKEN"));\n'
        f'TRANSPORT tell IS file(path="{told}");\n{RULES}'
    )


def ephemera_(*arguments: str | Path, **environment: str) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env=environment)


def found_in(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_run_delivers_what_it_found_and_no_secret_is_in_any_file_or_line(tmp_path: Path) -> None:
    """The server repeats in its answers whatever it is told, refuses some, and is sent those again."""
    with web((200, {}), (400, {}), (500, {}), (500, {}), (200, {})) as server:
        (tmp_path / "shop.eq").write_text(program_of(server.url, tmp_path / "told.jsonl"))
        (tmp_path / "in.jsonl").write_text("".join(json.dumps(e) + "\n" for e in EVENTS))
        command: list[str | Path] = ["run", tmp_path / "shop.eq", "--engine", "local", "--input", tmp_path / "in.jsonl"]
        silent = ephemera_(*command)
        assert silent.exit_code == 0
        assert not server.got
        first = ephemera_(*command, "--deliver", "--outbox", tmp_path / "outbox", AUDIT_TOKEN=SECRET)
        assert "2 messages were not taken, the first by audit: answer 400: you said Bearer ***" in first.stderr
        assert first.exit_code == 3
        dead = [p.read_text() for p in (tmp_path / "outbox" / "dead").iterdir()]
        assert len(dead) == 2
        again = ephemera_("redeliver", tmp_path / "outbox", AUDIT_TOKEN=SECRET)
        assert (again.exit_code, again.stderr) == (0, "2 sent, 0 not taken, 0 waiting\n")
        shown = ephemera_("explain", tmp_path / "shop.eq")
    assert sorted(one["data"]["id"] for one in server.got) == [1, 2, 3, 4, 5, 6]
    assert [h["Authorization"] for h in server.headers] == [f"Bearer {SECRET}"] * len(server.headers)
    told = [json.loads(line) for line in (tmp_path / "told.jsonl").read_text().splitlines()]
    assert [one["data"]["id"] for one in told if one["recipient"] == "desk1"] == [1, 3, 5]
    assert first.stdout == silent.stdout
    outputs = [text for one in (first, again, shown) for text in (one.stdout, one.stderr)]
    assert not [text for text in outputs if SECRET in text]
    assert found_in(tmp_path, SECRET) == []
    assert found_in(tmp_path, "AUDIT_TOKEN") != []


def test_a_run_that_lacks_a_secret_or_leave_to_run_commands_does_not_begin(tmp_path: Path) -> None:
    (tmp_path / "shop.eq").write_text(program_of("http://127.0.0.1:9/", tmp_path / "told.jsonl"))
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(e) + "\n" for e in EVENTS))
    command: list[str | Path] = ["run", tmp_path / "shop.eq", "--input", tmp_path / "in.jsonl"]
    live = ephemera_(*command, "--mode", "stream")
    assert live.exit_code == 2
    assert live.output == (
        "`audit` needs the variable AUDIT_TOKEN of the environment, and it is not set; "
        "with --no-deliver nothing is sent\n"
    )
    assert ephemera_(*command, "--mode", "stream", "--no-deliver").exit_code == 0
    assert not (tmp_path / "told.jsonl").exists()
    text = 'TRANSPORT sh IS command(argv=["sh"]);\n' + RULES.replace(
        '"audit", transport="http"', '"sh", transport="command"'
    )
    with pytest.raises(ephemera.EphemeraError, match="`sh` runs a command, which this run does not allow"):
        ephemera.compile(text.replace('"tell"', '"console"')).run(EVENTS, deliver=True)


def test_only_what_is_wanted_is_sent(tmp_path: Path) -> None:
    taken: list[dict[str, Any]] = []
    program = ephemera.compile(RULES.replace('"tell"', '"python"').replace('"http"', '"python"'))
    wanted = Wanted({"python": taken.append}, str(tmp_path), only={"audit"})
    delivery = Delivery([program._compiled], wanted).start()
    with program._engine((), program._world(), messenger=delivery) as engine:
        engine.send_many(EVENTS)
        engine.finish()
    assert {one["recipient"] for one in taken} == {"audit"}
    assert delivery.stats().waiting == 0
    assert delivery.complaints() == []
    assert delivery.outbox.segments() == []


def test_messages_that_a_function_refuses_are_told_of_and_kept(tmp_path: Path) -> None:
    def take(message: dict[str, Any]) -> None:
        if message["data"]["id"] == 2:
            raise Refused("no such desk")

    program = ephemera.compile(RULES.replace('"tell"', '"python"').replace('"http"', '"python"'))
    with pytest.warns(ephemera.EphemeraWarning, match="2 messages were not taken, the first by .*: no such desk"):
        program.run_all(EVENTS, deliver={"python": take}, outbox=str(tmp_path))
    assert len(list((tmp_path / "dead").iterdir())) == 2


def test_an_outbox_that_is_full_holds_up_whoever_finds_messages(tmp_path: Path) -> None:
    """The recipient is closed until it has been asked often enough; all the same every message arrives, in order."""
    taken: list[int] = []
    closed = [3]

    def take(message: dict[str, Any]) -> None:
        if closed[0]:
            closed[0] -= 1
            raise TryLater("closed", is_down=True)
        taken.append(message["data"]["id"])

    program = ephemera.compile(
        'EVENT late(id: int); RAISE to(recipient="d", transport="python") { m { id { var I } } } ON late(var I) END'
    )
    delivery = Delivery([program._compiled], Wanted({"d": take}, str(tmp_path), limit=1)).start()
    with program._engine((), program._world(), messenger=delivery) as engine:
        for k in range(6):
            engine.send({"event": "late", "time": k, "data": [k]})
            assert delivery.stats().waiting <= 1
        engine.finish()
    assert taken == list(range(6))


def test_a_transport_of_another_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pigeons.py").write_text(
        "SENT = []\n\n\nclass Pigeon:\n"
        "    def __init__(self, settings):\n        self.loft = settings['loft']\n\n"
        "    def send(self, message):\n        SENT.append((self.loft, message.recipient, message.key))\n\n"
        "    def close(self):\n        SENT.append('closed')\n"
    )
    about = tmp_path / "pigeons-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeons\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[ephemera.transports]\npigeon = pigeons:Pigeon\n")
    text = 'TRANSPORT post IS pigeon(loft="roof");\n' + RULES.replace('"tell"', '"post"').replace('"http"', '"console"')
    with pytest.raises(ephemera.ProgramError, match="there is no transport `pigeon`"):
        ephemera.compile(text)
    monkeypatch.syspath_prepend(tmp_path)
    ephemera.compile(text).run(EVENTS[:1], deliver=True)
    import pigeons  # type: ignore[import-not-found]  # noqa: PLC0415 - it was not there before

    assert [one[:2] for one in pigeons.SENT[:-1]] == [("roof", "desk1")]
    assert pigeons.SENT[-1] == "closed"


def test_a_folder_that_is_no_outbox_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(ephemera.EphemeraError, match="is no outbox"):
        redeliver(str(tmp_path))


# ---- an outbox that is full --------------------------------------------------------------------------------------

SENDING = 'EVENT late(id: int); RAISE to(recipient="d", transport="python") { m { id { var I } } } ON late(var I) END'


def down(_message: dict[str, Any]) -> None:
    raise TryLater("closed", is_down=True)


def test_a_live_run_that_is_to_stop_waits_for_no_room_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is in the midst of it: it is finished, and what it waited for is told once."""
    monkeypatch.setattr(of_a_run, "_PAUSE", 0.0)
    monkeypatch.setattr(of_a_run, "_TOLD_AFTER", 3)
    told: list[str] = []
    asked: list[None] = []

    def is_stopping() -> bool:
        asked.append(None)
        return len(asked) > 10

    wanted = Wanted({"python": down}, str(tmp_path), limit=1, is_stopping=is_stopping, tell=told.append)
    delivery = Delivery([ephemera.compile(SENDING)._compiled], wanted).start()
    target = MessageTarget(delivery).open_target("run")
    for number in range(2):
        target.put(message(number, "d", "python").line(), number)
    delivery.close(0.0)
    assert len(asked) == 11
    (line,) = told
    assert line.startswith("the outbox is full, and nothing is read until messages are taken: ")
    assert "they stay in the outbox" in line
    assert delivery.complaints()[-1].startswith("2 messages wait still")


def test_a_run_that_a_signal_has_ended_says_which_messages_wait(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(of_commands, "was_stopped", lambda: True)
    monkeypatch.setattr(of_commands, "GRACE", 0.0)
    text = f'TRANSPORT desk IS http(url="http://127.0.0.1:9/");\n{SENDING.replace("python", "desk")}'

    def stopped() -> None:
        wanted = of_commands.DeliverWanted(is_wanted=True)
        with of_commands.delivering([ephemera.compile(text)._compiled], wanted) as delivery:
            assert delivery is not None
            delivery.put([message(1, "d", "desk")])
            raise click.exceptions.Exit(0)

    with pytest.raises(click.exceptions.Exit):
        stopped()
    assert capsys.readouterr().err.startswith("1 message waits still")


def test_a_delivery_that_has_ended_holds_nobody_up(tmp_path: Path) -> None:
    wanted = Wanted({"python": down}, str(tmp_path), limit=1)
    delivery = Delivery([ephemera.compile(SENDING)._compiled], wanted).start()
    delivery.put([message(1, "d", "python")])
    delivery.close(0.0)
    delivery.wait_for_room()


def test_what_is_for_others_is_neither_kept_nor_waited_for_where_only_some_are_sent(tmp_path: Path) -> None:
    (tmp_path / "shop.eq").write_text(program_of("http://127.0.0.1:9/", tmp_path / "told.jsonl"))
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(e) + "\n" for e in EVENTS))
    command: list[str | Path] = ["run", tmp_path / "shop.eq", "--engine", "local", "--input", tmp_path / "in.jsonl"]
    result = ephemera_(*command, "--deliver-only", "tell", "--outbox", tmp_path / "outbox")
    assert (result.exit_code, result.stderr) == (0, "")  # nor is the token of the others missed
    assert len((tmp_path / "told.jsonl").read_text().splitlines()) == 6
    assert list((tmp_path / "outbox").glob("*.messages")) == []


# ---- what is sent again ------------------------------------------------------------------------------------------


def left_behind(folder: Path, *batches: list[Outgoing]) -> Path:
    """An outbox that a run has left, whose messages go to a file."""
    told = folder.parent / "told.jsonl"
    text = f'TRANSPORT log IS file(path="{told}");\n{SENDING.replace("python", "log")}'
    delivery = Delivery([ephemera.compile(text)._compiled], Wanted(folder=str(folder)))
    for number, batch in enumerate(batches):
        delivery.outbox.put(batch, number)
    delivery.close(0.0)
    return told


def keys_in(told: Path) -> list[str]:
    return [json.loads(line)["key"] for line in told.read_text().splitlines()] if told.exists() else []


def test_of_a_checkpoint_that_a_run_has_nothing_is_sent_and_then_no_batch_that_was_not_committed(
    tmp_path: Path,
) -> None:
    told = left_behind(tmp_path / "state" / "outbox", [message(0, "d", "log")], [message(1, "d", "log")])
    (tmp_path / "state" / "query.json").write_text("")
    (tmp_path / "state" / "progress").mkdir()
    (tmp_path / "state" / "progress" / "0.json").write_text("")
    outbox = str(tmp_path / "state" / "outbox")
    with hold(str(tmp_path / "state")):
        with pytest.raises(NotDelivered, match=r"nothing is sent from the outbox .* while a run has it: .*process \d+"):
            redeliver(outbox)
        refused = ephemera_("redeliver", outbox)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert keys_in(told) == []
    stats = redeliver(outbox)
    assert (stats.sent, stats.waiting) == (1, 0)
    assert keys_in(told) == ["d-0000"]
    assert [path.name for path in Path(outbox).glob("*.messages")] == ["000000000001.messages"]


def test_the_last_batch_of_a_query_on_spark_is_known_as_its_ledger_knows_it(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from ephemera.spark.live.checkpoint import QUERY, Checkpoint  # noqa: PLC0415 - it needs Spark

    assert last_committed(str(tmp_path / "outbox")) is None
    (tmp_path / QUERY).write_text("")
    for batches in ([], [2, 10]):
        for batch in batches:
            (tmp_path / "progress").mkdir(exist_ok=True)
            (tmp_path / "progress" / f"{batch}.json").write_text("")
        assert last_committed(str(tmp_path / "outbox")) == Checkpoint(str(tmp_path)).last == max(batches, default=-1)


def test_an_outbox_is_had_by_one_at_a_time(tmp_path: Path) -> None:
    wanted = Wanted({"python": down}, str(tmp_path / "outbox"))
    programs = [ephemera.compile(SENDING)._compiled]
    delivery = Delivery(programs, wanted).start()
    others: list[Callable[[], object]] = [lambda: redeliver(str(wanted.folder)), lambda: Delivery(programs, wanted)]
    for another in others:
        with pytest.raises(NotDelivered, match="while a run has it"):
            another()
    delivery.close(0.0)
    Delivery(programs, wanted).close(0.0)


def test_dead_messages_of_others_stay_dead_where_only_some_are_sent_again(tmp_path: Path) -> None:
    outbox = tmp_path / "outbox"
    told = left_behind(outbox)
    dead = Outbox(str(outbox))
    for to in ("desk", "audit"):
        dead.bury(DeadMessage(message(1, to, "log"), "gone", 1))
    stats = redeliver(str(outbox), only={"desk"})
    assert (stats.sent, stats.waiting, stats.failed) == (1, 0, 0)
    assert keys_in(told) == ["desk-0001"]
    assert [letter.message.recipient for letter in Outbox(str(outbox)).dead()] == ["audit"]
