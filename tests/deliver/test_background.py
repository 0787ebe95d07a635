"""Threads that send: none of them keeps an address or the end of a run for itself, whatever a transport does."""

from __future__ import annotations

import threading
from pathlib import Path
from random import Random

import pytest

from ephemera.deliver.background import BackgroundSender
from ephemera.deliver.directory import Directory
from ephemera.deliver.message import Outgoing
from ephemera.deliver.sender import Sender
from ephemera.deliver.turns import Turns
from ephemera.rules.nodes import EnvironmentVariable, SettingValue, TransportSettings
from ephemera.terms.addresses import Address
from tests.deliver.crashing import Crash, World, message, outbox_at


def test_messages_to_more_recipients_than_threads_all_arrive(tmp_path: Path) -> None:
    world, outbox = World(), outbox_at(tmp_path)
    outbox.put([message(k, f"desk{n}") for n in range(20) for k in range(3)])
    sender = BackgroundSender(Sender(outbox, world.way, Random(1)), workers=2).start()
    assert sender.drain()
    sender.stop()
    assert {address[0]: [one.end for one in got] for address, got in world.got.items()} == {
        f"desk{n}": [0, 1, 2] for n in range(20)
    }


def test_what_no_attempt_should_raise_is_told_to_whoever_asks_next(tmp_path: Path) -> None:
    def answer(_one: Outgoing, _now: float) -> None:
        raise Crash

    outbox = outbox_at(tmp_path)
    outbox.put([message(1)])
    sender = BackgroundSender(Sender(outbox, World(answer).way, Random(1))).start()
    with pytest.raises(Crash):
        sender.drain()
    sender.stop()
    assert outbox_at(tmp_path).segments() == [0]


def test_an_attempt_that_never_ends_holds_up_neither_others_nor_the_end_and_changes_nothing_later(
    tmp_path: Path,
) -> None:
    begun, over = threading.Event(), threading.Event()

    def answer(one: Outgoing, _now: float) -> None:
        if one.recipient == "desk":
            begun.set()
            over.wait()

    world, outbox = World(answer), outbox_at(tmp_path)
    outbox.put([message(1, "desk"), message(1, "other")])
    before = set(threading.enumerate())
    sender = BackgroundSender(Sender(outbox, world.way, Random(1)), patience=0.0).start()
    begun.wait()
    while not sender.stats().sent:
        assert not sender.drain(0.01)
    sender.stop()
    over.set()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert world.got["desk", "http"] == [message(1)]
    again = outbox_at(tmp_path)
    assert again.segments() == [0]
    assert again.position(("desk", "http")) == (-1, 0)
    assert again.position(("other", "http")) == (0, 2)


def test_a_server_that_hangs_holds_nobody_up_but_its_own_recipients(tmp_path: Path) -> None:
    over, taken = threading.Event(), threading.Event()

    def answer(one: Outgoing, _now: float) -> None:
        if one.transport == "slow":
            over.wait()
        elif one.recipient == "desk2":
            taken.set()

    world, outbox = World(answer), outbox_at(tmp_path)
    outbox.put([message(k, f"desk{n}", "slow") for n in range(160) for k in range(2)])
    outbox.put([message(k, f"desk{n}", "quick") for n in range(3) for k in range(2)])
    sender = BackgroundSender(Sender(outbox, world.way, Random(1))).start()
    assert taken.wait(60.0), "as long as the others hang, it gets nothing"
    assert ("desk0", "slow") not in world.got
    over.set()
    assert sender.drain()
    sender.stop()
    assert all([one.end for one in got] == [0, 1] for got in world.got.values())
    assert len(world.got) == 163


def test_many_servers_that_hang_hold_up_none_that_has_nothing_under_way() -> None:
    turns = Turns[str](each=16, most=128)
    for server in range(20):
        for n in range(50):
            turns.add(server, f"{server}-{n}")
    begun = turns.ready()
    assert len(begun) == 128
    assert {task.partition("-")[0] for task in begun} == {str(server) for server in range(20)}
    turns.add("other", "now")
    assert turns.ready() == ["now"]


def test_of_one_server_those_come_first_that_have_not_failed() -> None:
    turns = Turns[str](each=1)
    turns.add("a", "down", has_failed=True)
    turns.add("a", "up")
    assert turns.ready() == ["up"]
    turns.done("a")
    assert turns.ready() == ["down"]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (("x", "here"), ("y", "here"), True),
        (("x", "here"), ("here", "http"), True),
        (("x", "here"), ("http://here:80/c", "http"), True),
        (("x", "here"), ("x", "there"), False),
        (("x", "tenants"), ("y", "tenants"), False),
        (("x", "hidden"), ("y", "hidden"), True),
        (("x", "f"), ("y", "f"), True),
        (("a@b", "mail"), ("c@d", "smtp"), True),
        (("a:b", "python"), ("c:d", "python"), False),
    ],
)
def test_recipients_share_a_server_as_far_as_that_is_known(one: Address, other: Address, is_same: bool) -> None:
    urls: dict[str, SettingValue] = {
        "here": "http://HERE:80/a",
        "there": "http://there/a",
        "tenants": "https://{recipient}.example.org/",
        "hidden": EnvironmentVariable("URL"),
    }
    declared = {name: TransportSettings(name, "http", {"url": url}) for name, url in urls.items()}
    directory = Directory(declared, (), {"f": print})
    assert (directory.server(one) == directory.server(other)) == is_same
