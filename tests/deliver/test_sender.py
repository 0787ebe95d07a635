"""Messages reach their recipients: in order, at least once, whatever fails or is killed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ephemera.deliver.message import Outgoing
from ephemera.deliver.pace import Pace
from ephemera.deliver.sender import SHOWN, Sender
from ephemera.deliver.transport import Refused, TryLater, Way
from ephemera.terms.addresses import Address
from tests.deliver.crashing import World, message, outbox_at, run, sent_with_kills

HOUR = 3600.0


def sender_of(folder: Path, world: World, *given: Outgoing) -> Sender:
    outbox = outbox_at(folder)
    outbox.put(given)
    return Sender(outbox, world.way, Random(1))


def keys(messages: list[Outgoing]) -> list[str]:
    return [one.key for one in messages]


def test_messages_arrive_in_the_order_of_their_ends_once_each(tmp_path: Path) -> None:
    world = World()
    given = [message(k, end=9 - k) for k in range(10)]
    run(sender_of(tmp_path, world, *given, given[3]), world)
    assert keys(world.got["desk", "http"]) == keys(given[::-1])
    assert outbox_at(tmp_path).segments() == []


def test_what_was_sent_is_not_sent_again_by_the_next_process(tmp_path: Path) -> None:
    world = World()
    run(sender_of(tmp_path, world, message(1)), world)
    run(sender_of(tmp_path, world, message(2)), world)
    assert keys(world.got["desk", "http"]) == ["desk-0001", "desk-0002"]


def test_a_recipient_that_is_down_for_an_hour_gets_everything_in_order_and_holds_nobody_up(tmp_path: Path) -> None:
    tried: list[float] = []
    ends: dict[str, float] = {}

    def answer(one: Outgoing, now: float) -> None:
        if one.recipient == "desk" and now < HOUR:
            tried.append(now)
            raise TryLater("nobody answers", is_down=True)
        ends[one.key] = now

    world = World(answer)
    given = [message(k, to) for k in range(20) for to in ("desk", "other")]
    run(sender_of(tmp_path, world, *given), world)
    assert all(ends[f"other-{k:04d}"] == 0.0 for k in range(20))
    assert keys(world.got["desk", "http"]) == [f"desk-{k:04d}" for k in range(20)]
    assert min(now for key, now in ends.items() if key.startswith("desk")) <= HOUR + 300
    waits = [b - a for a, b in pairwise(tried)]
    assert max(waits) <= 300
    assert waits[0] < 1
    assert len(tried) < 40
    assert outbox_at(tmp_path).dead() == []


def test_a_recipient_that_asks_for_time_gets_it(tmp_path: Path) -> None:
    tried: list[float] = []

    def answer(_one: Outgoing, now: float) -> None:
        tried.append(now)
        if now < 100:
            raise TryLater("answer 429", after=120.0, is_down=True)

    world = World(answer)
    run(sender_of(tmp_path, world, message(1)), world)
    assert tried == [0.0, 120.0]


def test_a_message_that_is_never_taken_is_buried_after_its_attempts_and_the_next_one_is_sent(tmp_path: Path) -> None:
    def answer(one: Outgoing, _now: float) -> None:
        if one.end == 1:
            raise TryLater("answer 500: cannot read it")

    world = World(answer)
    run(sender_of(tmp_path, world, message(1), message(2)), world)
    (dead,) = outbox_at(tmp_path).dead()
    assert (dead.message, dead.reason, dead.attempts) == (message(1), "answer 500: cannot read it", 4)
    assert keys(world.got["desk", "http"]) == ["desk-0002"]


def test_a_refused_message_is_buried_at_once_and_can_be_sent_again(tmp_path: Path) -> None:
    gone = True

    def answer(_one: Outgoing, _now: float) -> None:
        if gone:
            raise Refused("answer 410")

    world = World(answer)
    run(sender_of(tmp_path, world, message(1), message(2)), world)
    outbox = outbox_at(tmp_path)
    assert [(d.message.key, d.attempts) for d in outbox.dead()] == [("desk-0001", 1), ("desk-0002", 1)]
    again = outbox.revive()
    run(Sender(again, world.way, Random(2)), world)
    again.give_back(outbox)
    assert [d.reason for d in outbox.dead()] == ["answer 410"] * 2
    gone = False
    run(Sender(outbox.revive(), world.way, Random(3)), world)
    assert outbox.dead() == []
    assert keys(world.got["desk", "http"]) == ["desk-0001", "desk-0002"]


def test_a_transport_that_raises_anything_at_all_counts_as_failing(tmp_path: Path) -> None:
    def answer(_one: Outgoing, _now: float) -> None:
        raise ZeroDivisionError("division by zero")

    world = World(answer)
    run(sender_of(tmp_path, world, message(1)), world)
    assert [d.reason for d in outbox_at(tmp_path).dead()] == ["ZeroDivisionError: division by zero"]


@pytest.mark.parametrize("error", [KeyError("PORT"), SystemExit(2), RuntimeError("no client")])
def test_a_way_that_cannot_be_made_costs_the_messages_of_its_address_and_no_others(
    tmp_path: Path, error: BaseException
) -> None:
    world = World()

    def way(address: Address) -> Way:
        if address[0] == "desk":
            raise error
        return world.way(address)

    outbox = outbox_at(tmp_path)
    outbox.put([message(1), message(2), message(1, "other")])
    sender = Sender(outbox, way, Random(1))
    run(sender, world)
    assert sender.is_done
    assert [d.reason for d in outbox.dead()] == [f"{type(error).__name__}: {error}"] * 2
    assert keys(world.got["other", "http"]) == ["other-0001"]


def test_a_way_that_may_be_there_later_is_waited_for_and_no_message_is_given_up(tmp_path: Path) -> None:
    world = World()

    def way(address: Address) -> Way:
        if world.now < HOUR:
            raise TryLater("nobody answers", is_down=True)
        return world.way(address)

    outbox = outbox_at(tmp_path)
    outbox.put([message(1)])
    run(Sender(outbox, way, Random(1)), world)
    assert keys(world.got["desk", "http"]) == ["desk-0001"]


def test_a_transport_may_ask_for_time_in_any_words(tmp_path: Path) -> None:
    tried: list[float] = []
    asked: list[Any] = ["soon", float("-inf"), float("inf")]

    def answer(_one: Outgoing, now: float) -> None:
        tried.append(now)
        if asked:
            raise TryLater("busy", after=asked.pop(0), is_down=True)

    world = World(answer)
    run(sender_of(tmp_path, world, message(1)), world)
    assert tried[2] < 2
    assert tried[3] == tried[2] + 24 * HOUR


def test_a_reason_is_cut_behind_its_secrets(tmp_path: Path) -> None:
    def answer(_one: Outgoing, _now: float) -> None:
        raise Refused("x" * (SHOWN - 5) + "swordfish" + "x" * SHOWN)

    world = World(answer)
    outbox = outbox_at(tmp_path)
    outbox.put([message(1)])
    run(Sender(outbox, lambda _: Way(world, secrets=("swordfish",)), Random(1)), world)
    (letter,) = outbox.dead()
    assert "sword" not in letter.reason
    assert len(letter.reason) == SHOWN + 1


def test_what_is_not_wanted_waits_for_a_run_that_wants_it(tmp_path: Path) -> None:
    world = World()
    sender = sender_of(tmp_path, world, message(1, "audit"), message(1, "desk"))
    sender.only = {"audit"}
    run(sender, world)
    assert list(world.got) == [("audit", "http")]
    assert sender.stats(5.0).waiting == 0
    run(Sender(outbox_at(tmp_path), world.way, Random(1)), world)
    assert keys(world.got["audit", "http"]) == ["audit-0001"]
    assert keys(world.got["desk", "http"]) == ["desk-0001"]


def test_what_waits_for_others_takes_no_room_where_only_some_are_sent(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path, limit=1)
    outbox.put([message(1, "audit"), message(1, "desk")])
    outbox.put([message(2, "desk")])
    assert not outbox.has_room()
    world = World()
    run(Sender(outbox, world.way, Random(1), only={"audit"}), world)
    assert outbox.has_room()
    assert outbox.segments() == [0, 1]
    assert not outbox_at(tmp_path, limit=1).has_room()


def test_a_full_outbox_has_no_room_until_something_was_delivered(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path, limit=100)
    outbox.put([message(k) for k in range(5)])
    assert not outbox.has_room()
    assert not outbox.wait_for_room(0.0)
    world = World()
    run(Sender(outbox, world.way, Random(1)), world)
    assert outbox.wait_for_room(0.0)
    assert len(world.got["desk", "http"]) == 5


def test_figures_tell_what_waits_since_when_and_who_is_down(tmp_path: Path) -> None:
    def answer(one: Outgoing, _now: float) -> None:
        if one.recipient == "desk":
            raise TryLater("nobody answers", is_down=True)

    world = World(answer)
    sender = sender_of(tmp_path, world, message(1), message(2), message(1, "other"))
    run(sender, world, until=60.0)
    told = sender.stats(60.0)
    assert (told.waiting, told.sent, told.failed, told.oldest) == (2, 1, 0, 60.0)
    assert told.down == ((("desk", "http"), "nobody answers"),)


def test_waits_grow_have_a_limit_and_differ() -> None:
    waits = [[Pace().wait(k, Random(seed)) for k in range(1, 20)] for seed in range(50)]
    assert all(0.25 <= own[0] <= 0.5 and 150 <= own[-1] <= 300 for own in waits)
    assert len({own[3] for own in waits}) == 50


@pytest.mark.parametrize("seed", range(20))
def test_a_sender_that_is_killed_at_any_step_leaves_no_message_out_and_keeps_their_order(
    tmp_path: Path, seed: int
) -> None:
    done = sent_with_kills(tmp_path, seed)
    assert done.killed
    assert done.complaint() is None
    assert {letter.message.recipient for letter in done.outbox.dead()} >= {"void"}
    assert ("void", "http") not in done.world.got
