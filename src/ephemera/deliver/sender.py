"""This module sends what waits in an outbox: to each address in order, at least once, and to each at its own pace.

It has no thread and no clock: whoever drives it says what time it is, and asks what is due. An address has one message
under way. Its position moves on when a message was taken or buried, so after a crash a message may be sent again, with
the same key, and none is left out. An address that fails is tried later and later, whatever its messages are; others do
not notice. While it is down no message is given up; one that it does not take though it is there is given up after so
many attempts.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from operator import itemgetter
from random import Random

from ephemera.base.errors import EphemeraError
from ephemera.deliver.message import Outgoing
from ephemera.deliver.outbox import DeadMessage, Outbox, Place
from ephemera.deliver.pace import Pace
from ephemera.deliver.transport import RETRIES, Refused, TryLater, Way
from ephemera.terms.addresses import Address

SYNC_EVERY = 64
"""A position is stored after so many messages, or when an address has nothing left; so many may be sent again."""
BROKEN_AFTER = 5
"""After so many failures in a row an address is told of as down."""
SHOWN = 500
"""So much of a reason is kept."""


@dataclass(slots=True)
class Line:
    """What waits for one address."""

    address: Address
    done: Place
    """Up to where its messages have been dealt with."""
    waiting: deque[tuple[Place, Outgoing, float]] = field(default_factory=deque)
    """Messages with the places behind them, and when they were first seen."""
    due: float = 0.0
    attempts: int = 0
    """At the first of them, as far as they count."""
    retries: int = RETRIES
    """So many attempts after the first one are made at each, as far as is known."""
    failures: int = 0
    """In a row, whatever of."""
    unsynced: int = 0
    is_busy: bool = False
    reason: str | None = None
    """Why the last attempt failed."""

    @property
    def is_down(self) -> bool:
        return self.failures >= BROKEN_AFTER


@dataclass(frozen=True, slots=True)
class DeliveryStats:
    """What became of messages since the start."""

    waiting: int
    sent: int
    failed: int
    """Those that could not be delivered, and were buried."""
    oldest: float
    """Seconds that the oldest of those that wait has been waiting, as far as this process knows."""
    down: tuple[tuple[Address, str], ...] = ()
    """Addresses that do not answer, and what they said last."""


@dataclass(slots=True)
class Sender:
    """Sends what waits in an outbox."""

    outbox: Outbox
    route: Callable[[Address], Way]
    """Raises an `EphemeraError` where there is no way."""
    random: Random
    pace: Pace = field(default_factory=Pace)
    only: Collection[str] | None = None
    """The recipients or transports to which messages go, if that is not all; what is for others stays in the outbox."""
    server: Callable[[Address], Hashable] = itemgetter(1)
    """What serves an address, and may hang for all that it serves: its transport, unless more is known."""
    sync_every: int = SYNC_EVERY
    lines: dict[Address, Line] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    _needed: dict[int, dict[Address, Place]] = field(default_factory=dict)
    """For each segment that was read the last place of each address in it."""

    def refresh(self, now: float, until: int | None = None) -> None:
        """Takes note of segments that were committed; those behind `until` were not yet."""
        for number in self.outbox.segments(until):
            if number in self._needed:
                continue
            last: dict[Address, Place] = {}
            for place, message in self.outbox.read(number):
                line = self.line(message.address)
                last[message.address] = place
                if place > line.done and self.is_wanted(message.address):
                    line.waiting.append((place, message, now))
            self._needed[number] = last
            self._tidy([number])

    def line(self, address: Address) -> Line:
        """What waits for an address."""
        if address not in self.lines:
            self.lines[address] = Line(address, self.outbox.position(address))
        return self.lines[address]

    # ---- what is due ---------------------------------------------------------------------------------------

    def due(self, now: float) -> list[Address]:
        """The addresses to which something can be sent now."""
        return [a for a, line in self.lines.items() if self._is_ready(line) and line.due <= now]

    def is_due(self, address: Address, now: float) -> bool:
        """Whether something can be sent to an address now."""
        line = self.lines[address]
        return self._is_ready(line) and line.due <= now

    def next_due(self) -> float | None:
        """When the next attempt is due, if something waits that nobody is sending."""
        return min((line.due for line in self.lines.values() if self._is_ready(line)), default=None)

    def _is_ready(self, line: Line) -> bool:
        return bool(line.waiting) and not line.is_busy

    def is_wanted(self, address: Address) -> bool:
        """Whether messages go there at all."""
        return is_wanted(address, self.only)

    # ---- one attempt ---------------------------------------------------------------------------------------

    def begin(self, address: Address) -> Outgoing:
        """The message that an address is to get next; nothing else is sent there until `end`."""
        line = self.lines[address]
        line.is_busy = True
        return line.waiting[0][1]

    def attempt(self, message: Outgoing) -> Refused | TryLater | None:
        """Sends a message; may be called in any thread. Returns why it was not taken."""
        self.outbox.mark("send")
        try:
            way = self.route(message.address)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as below; what it says has no secrets by now
            return _failure(error, refused=EphemeraError)
        self.lines[message.address].retries = way.retries
        try:
            way.transport.send(message)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - transports are other people's, as what they load is
            return _failure(error, way.hide)
        return None

    def end(self, address: Address, failure: EphemeraError | None, now: float) -> None:
        """Takes note of what came of the attempt that was begun."""
        line = self.lines[address]
        line.is_busy = False
        self.outbox.mark("sent")
        if failure is None:
            self._succeeded(line, now)
        elif isinstance(failure, TryLater):
            self._failed(line, failure, now)
        else:
            line.attempts += 1
            self._bury(line, str(failure), now)

    def step(self, address: Address, now: float) -> None:
        """One attempt at the next message of an address."""
        self.end(address, self.attempt(self.begin(address)), now)

    def _succeeded(self, line: Line, now: float) -> None:
        self.counts["sent"] += 1
        line.failures, line.reason = 0, None
        self._move_on(line, now)

    def _failed(self, line: Line, failure: TryLater, now: float) -> None:
        line.failures += 1
        line.reason = str(failure)
        line.attempts += 0 if failure.is_down else 1
        line.due = now + self.pace.wait(line.failures, self.random, failure.after)
        if not failure.is_down and line.attempts > line.retries:
            due = line.due
            self._bury(line, str(failure), now)
            line.due = due  # the next message waits, too: it goes to the same place

    def _bury(self, line: Line, reason: str, now: float) -> None:
        self.outbox.bury(DeadMessage(line.waiting[0][1], reason, line.attempts))
        self.counts["failed"] += 1
        self._move_on(line, now, must_sync=True)

    def _move_on(self, line: Line, now: float, *, must_sync: bool = False) -> None:
        line.done = line.waiting.popleft()[0]
        line.attempts, line.due = 0, now
        line.unsynced += 1
        if must_sync or not line.waiting or line.unsynced >= self.sync_every:
            self._sync(line)

    def _sync(self, line: Line) -> None:
        if line.unsynced:
            self.outbox.advance(line.address, line.done)
            line.unsynced = 0
            self._tidy([number for number, last in self._needed.items() if line.address in last])

    def _tidy(self, numbers: Collection[int]) -> None:
        """Removes segments that all of their addresses are durably behind; leaves those that nobody is sent."""
        for number in numbers:
            last = self._needed[number]
            waiting = [a for a, place in last.items() if self.lines[a].done < place or self.lines[a].unsynced]
            if not waiting:
                self.outbox.remove(number)
                del self._needed[number]
            elif not any(map(self.is_wanted, waiting)):
                self.outbox.leave(number)

    def close(self) -> None:
        """Stores all positions."""
        for line in self.lines.values():
            self._sync(line)

    # ---- what is known -------------------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """Whether nothing waits that is wanted anywhere."""
        return not any(line.waiting or line.is_busy for line in self.lines.values())

    def stats(self, now: float) -> DeliveryStats:
        """What became of messages so far."""
        lines = list(self.lines.values())
        seen = [line.waiting[0][2] for line in lines if line.waiting]
        down = tuple((line.address, line.reason or "") for line in lines if line.is_down)
        waiting = sum(len(line.waiting) for line in lines)
        return DeliveryStats(
            waiting, self.counts["sent"], self.counts["failed"], now - min(seen) if seen else 0.0, down
        )


def is_wanted(address: Address, only: Collection[str] | None) -> bool:
    """Whether messages go to an address, where they go only to some recipients or transports."""
    return only is None or any(part in only for part in address)


def _as_it_is(text: str) -> str:
    return text


def _failure(
    error: BaseException,
    hide: Callable[[str], str] = _as_it_is,
    refused: type[EphemeraError] = Refused,
) -> Refused | TryLater:
    """What an attempt comes to that has raised something; what is no word of ours may pass, and counts."""
    is_ours = isinstance(error, refused | TryLater)
    reason = hide(str(error) if is_ours else f"{type(error).__name__}: {error}")
    # Behind what is hidden: a secret that was cut in two would be found no more.
    reason = reason if len(reason) <= SHOWN else f"{reason[:SHOWN]}…"
    if isinstance(error, TryLater):
        after = error.after if isinstance(error.after, int | float) else None
        return TryLater(reason, after=after, is_down=bool(error.is_down))
    return Refused(reason) if is_ours else TryLater(reason)
