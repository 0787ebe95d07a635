"""Senders that are killed at any step, with a clock and a recipient of their own: no time passes, no thread runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from ephemera.deliver.message import Outgoing, in_order
from ephemera.deliver.outbox import Outbox
from ephemera.deliver.sender import Sender
from ephemera.deliver.transport import Refused, Transport, TryLater, Way
from ephemera.engine.state.durable_files import Posix
from ephemera.terms.addresses import Address


class Unsynced(Posix):
    """Files that are in no hurry to the disk: here a process is killed, and not the machine."""

    def sync(self, path: str) -> None:
        del path

    def sync_folder(self, folder: str) -> None:
        del folder


def outbox_at(folder: Path, **more: Any) -> Outbox:
    return Outbox(str(folder), files=Unsynced(), **more)


class Crash(BaseException):
    """The process is gone, as far as this is told."""


class World:
    """Recipients that remember what they got, in their order; what happens to a message is for `answer` to say."""

    def __init__(self, answer: Callable[[Outgoing, float], None] = lambda _message, _now: None) -> None:
        self.now = 0.0
        self.got: dict[Address, list[Outgoing]] = {}
        self._answer = answer

    def send(self, message: Outgoing) -> None:
        self._answer(message, self.now)
        self.got.setdefault(message.address, []).append(message)

    def close(self) -> None:
        """It stays."""

    def way(self, address: Address) -> Way:
        del address
        transport: Transport = self
        return Way(transport, retries=3)


def message(k: int, recipient: str = "desk", transport: str = "http", *, end: int | None = None) -> Outgoing:
    return Outgoing(
        f"{recipient}-{k:04d}", 0, k if end is None else end, recipient, transport, {"event": "m", "data": k}
    )


def run(sender: Sender, world: World, until: float = 1e9) -> None:
    """Sends all that waits; time passes as far as it is waited for."""
    sender.refresh(world.now)
    while (due := sender.next_due()) is not None and due <= until:
        world.now = max(world.now, due)
        for address in sender.due(world.now):
            sender.step(address, world.now)
    sender.close()


class Killer:
    """Ends the process at one of its next steps."""

    def __init__(self, random: Random, within: int) -> None:
        self.left = random.randrange(within)

    def __call__(self, step: str) -> None:
        del step
        if self.left == 0:
            raise Crash
        self.left -= 1


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of messages whose senders were killed."""

    world: World
    given: list[Outgoing]
    outbox: Outbox
    killed: int

    def complaint(self) -> str | None:
        """What is wrong: a message that is neither taken nor buried, or that was first taken out of order."""
        for address in sorted({one.address for one in self.given}):
            wanted = [m.key for m in in_order(one for one in self.given if one.address == address)]
            dead = {letter.message.key for letter in self.outbox.dead() if letter.message.address == address}
            got = list(dict.fromkeys(one.key for one in self.world.got.get(address, [])))
            if set(got) | dead != set(wanted):
                return f"{address}: {sorted(set(wanted) - set(got) - dead)} are missing"
            if got != [key for key in wanted if key in got]:
                return f"{address}: taken in the order {got}"
        return None


def sent_with_kills(folder: Path, seed: int, *, kills: int = 6, messages: int = 30) -> Sent:
    """What recipients got of messages that were found and sent by processes that were killed again and again."""
    random = Random(seed)
    recipients = ["north", "south", "west"]
    given = [message(k, random.choice(recipients), end=k // 3) for k in range(messages)]
    given += [message(k, "void", end=k // 3) for k in range(3)]
    batches = [given[k : k + 5] for k in range(0, len(given), 5)]

    def answer(one: Outgoing, _now: float) -> None:
        if one.recipient == "void":
            raise Refused("answer 410: gone")
        if random.random() < 0.2:
            raise TryLater("busy", is_down=random.random() < 0.9, after=random.choice([None, 7.0]))

    world = World(answer)
    killed = done = 0
    """Batches that the host has committed: it begins again with the first that is not."""
    for life in range(kills + 1):
        mark = Killer(random, 40) if life < kills else lambda _step: None
        try:
            outbox = outbox_at(folder, mark=mark)
            outbox.discard_after(done - 1)
            sender = Sender(outbox, world.way, random, sync_every=random.choice([1, 4, 64]))
            sender.refresh(world.now, done - 1)
            while done < len(batches):
                outbox.put(batches[done], done)
                done += 1
                sender.refresh(world.now, done - 1)
                if random.random() < 0.5:
                    run(sender, world)
            run(sender, world)
        except Crash:
            killed += 1
    return Sent(world, given, outbox_at(folder), killed)
