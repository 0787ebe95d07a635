"""This module is the delivery of one run: what it finds goes to an outbox, and from there to where it belongs.

Messages get their keys here, from what their rules mean (`formats/answer_keys`), so that they are the same whichever
host found them. A host that has a number for each of its commits gives it; others put one segment after the other. What
a run is told to send only to some recipients is kept for these alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from ephemera.base.errors import warn
from ephemera.base.scratch import scratch
from ephemera.deliver.background import BackgroundSender
from ephemera.deliver.directory import Directory, directory_of
from ephemera.deliver.message import Outgoing
from ephemera.deliver.outbox import LIMIT, DeadMessage, Outbox
from ephemera.deliver.outbox_owner import hold_outbox
from ephemera.deliver.sender import DeliveryStats, Sender, is_wanted
from ephemera.deliver.ways import keep_ways
from ephemera.formats.addresses import addresses
from ephemera.formats.answer_keys import RulePrints, key_of
from ephemera.formats.answer_order import AnswerPart
from ephemera.formats.encode_json import lines
from ephemera.kernels.event_columns import Events
from ephemera.physical.plan import Compiled
from ephemera.syntax.nodes import Raise
from ephemera.terms.addresses import Address

Functions = Mapping[str, Callable[[dict[str, Any]], object]]
PATIENCE = 30.0
"""Seconds for which the end of a run waits for what has not been taken yet."""
GRACE = 3.0
"""The same where the outbox stays."""
_PAUSE = 0.2
"""Seconds after which whoever waits for room sees whether it is to stop."""
_TOLD_AFTER = 50
"""After so many of these it is told what is waited for."""


@dataclass(frozen=True, slots=True)
class ProgramMessenger:
    """The delivery of one of several programs that run together; who made it closes it."""

    delivery: Delivery
    program: int

    def take(self, parts: Sequence[AnswerPart], *, as_numbers: bool) -> None:
        self.delivery.take(parts, as_numbers=as_numbers, program=self.program)

    def close(self) -> None:
        """The others may go on."""


def _never() -> bool:
    return False


def _warn(note: str) -> None:
    warn([note], stacklevel=4)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be delivered, and how."""

    functions: Functions = field(default_factory=dict)
    """Functions that take messages, by recipient or transport."""
    folder: str | None = None
    """Where messages wait; without one, in a folder that is gone when the run ends."""
    only: Collection[str] | None = None
    """The recipients or transports to which messages go; those for others are not kept."""
    allow_command: bool = False
    limit: int = LIMIT
    is_stopping: Callable[[], bool] = _never
    """Whether the run is to end: then nobody waits for room any more."""
    tell: Callable[[str], object] = _warn
    """Is told what the run waits for."""

    @classmethod
    def of(cls, deliver: bool | Functions, outbox: str | None = None, **more: Any) -> Wanted:
        """What somebody asks for in Python: `True`, or functions by name."""
        return cls({} if isinstance(deliver, bool) else deliver, outbox, **more)


def sends(compiled: Compiled) -> bool:
    """Whether a program sends messages at all."""
    return any(isinstance(rule.head, Raise) for rule in compiled.rules.resolved.rules)


class Delivery:
    """Takes messages, and delivers them in the background once they are committed."""

    def __init__(self, programs: Sequence[Compiled], wanted: Wanted, *, random: Random | None = None) -> None:
        self._programs = programs
        self._wanted = wanted
        self._prints = [RulePrints(one.physical) for one in programs]
        self.is_passing = wanted.folder is None
        rules = [one.rules for one in programs]
        more: dict[str, Any] = {"allow_command": wanted.allow_command, "only": wanted.only}
        self._directory = directory_of(rules, wanted.functions, **more)
        self._has_started = self._has_ended = self._is_told = False
        self._said: list[str] | None = None
        """What was to be said when it ended."""
        with ExitStack() as stack:
            if wanted.folder is not None:
                folder = wanted.folder
                stack.enter_context(hold_outbox(folder, by_run=True))
            else:
                folder = str(stack.enter_context(scratch("outbox")))
            self.outbox = Outbox(folder, wanted.limit)
            keep_ways(folder, self._directory)
            self._stack = stack.pop_all()
        sender = Sender(
            self.outbox, self._directory, random or Random(), only=wanted.only, server=self._directory.server
        )
        self._sender = BackgroundSender(sender)

    @property
    def directory(self) -> Directory:
        """The ways to all addresses."""
        return self._directory

    def start(self, until: int | None = None) -> Delivery:
        """Begins to send what is in the outbox, and what comes, if nothing is lacking for that."""
        try:
            self._directory.check()
        except BaseException:
            self.close()
            raise
        self._sender.start(until)
        self._has_started = True
        return self

    def outgoing(
        self, events: Events, to: Address | None, *, program: int = 0, as_numbers: bool = True
    ) -> Iterator[Outgoing]:
        """Messages by columns, one by one, with their keys."""
        compiled = self._programs[program]
        catalogue = compiled.rules.resolved.catalogue
        more = None if to is None else {"recipient": to[0], "transport": to[1]}
        written = lines(events, catalogue, as_numbers=as_numbers, more=more).to_pylist()
        for event, line, where in zip(events.events(), written, addresses(events, to), strict=True):
            if where is not None:
                key = key_of(self._prints[program].of(event.term.label, where), where, event)
                yield Outgoing(key, event.time.begin, event.time.end, *where, json.loads(line))

    def take(self, parts: Iterable[AnswerPart], *, as_numbers: bool, program: int = 0) -> None:
        """Messages that have become certain, from a host that counts no commits."""
        more: dict[str, Any] = {"as_numbers": as_numbers, "program": program}
        self.put([m for p in parts for m in self.outgoing(p.events, p.message, **more)])

    def put(self, messages: Sequence[Outgoing], number: int | None = None) -> None:
        """Messages of a commit, durably when this returns. A full outbox holds up whoever finds more."""
        self._sender.check()
        messages = [message for message in messages if is_wanted(message.address, self._wanted.only)]
        if messages and number is None:
            self.wait_for_room()
        self.outbox.put(messages, number)
        if messages and number is None:
            self._sender.committed()

    def committed(self, number: int) -> None:
        """What was put up to this commit counts."""
        self._sender.committed(number)

    def wait_for_room(self, is_stopping: Callable[[], bool] = _never) -> None:
        """Holds up whoever finds messages as long as the outbox is full, unless the run is to end."""
        for waited in count(1):
            if self.outbox.wait_for_room(_PAUSE):
                self._is_told = self._is_told and waited > 1  # for as long as it goes on like that, once is enough
                return
            self._sender.check()
            if self._has_ended or is_stopping() or self._wanted.is_stopping():
                return
            if waited >= _TOLD_AFTER and not self._is_told:
                self._is_told = True
                self._wanted.tell(self._full())

    def _full(self) -> str:
        """What to say of an outbox that is full."""
        told = self.stats()
        who = f", the first for {told.down[0][0][0]}: {told.down[0][1]}" if told.down else ""
        rest = "they are lost then; `--outbox` keeps them" if self.is_passing else "they stay in the outbox"
        return (
            f"the outbox is full, and nothing is read until messages are taken: {told.waiting:,} wait{who}; "
            f"see to who is to take them, or stop the run: {rest}, and `--deliver-only` leaves recipients out"
        )

    def check(self) -> None:
        """Raises what keeps messages from being delivered at all, such as a disk that is full."""
        self._sender.check()

    def stats(self) -> DeliveryStats:
        """What became of messages so far."""
        return self._sender.stats()

    def dead(self) -> list[DeadMessage]:
        """What could not be delivered."""
        return self.outbox.dead()

    def drain(self, timeout: float | None = PATIENCE) -> bool:
        """Waits until all has been delivered or buried."""
        return self._sender.drain(timeout)

    def settle(self, patience: float = PATIENCE) -> list[str]:
        """Waits as long as messages are taken, or some seconds longer; what to say of those that were not."""
        done = -1
        while not self.drain(patience):
            told = self.stats()
            if told.sent + told.failed == done:
                break
            done = told.sent + told.failed
        return self.complaints()

    def complaints(self) -> list[str]:
        """What to say of messages that were not delivered."""
        if self._said is not None:
            return self._said
        told, dead = self.stats(), self.dead()
        kept = "" if self.is_passing else f"; `ephemera redeliver {self.outbox.folder}` sends them again"
        lines = []
        if dead:
            what = "message was not taken" if len(dead) == 1 else "messages were not taken"
            lines.append(f"{len(dead):,} {what}, the first by {dead[0].message.recipient}: {dead[0].reason}{kept}")
        if told.waiting:
            why = f", the first for {told.down[0][0][0]}: {told.down[0][1]}" if told.down else ""
            lines.append(
                f"{told.waiting:,} {'message waits' if told.waiting == 1 else 'messages wait'} still{why}{kept}"
            )
        return lines

    def close(self, patience: float = PATIENCE) -> None:
        """Ends delivery; waits for what is left, and less where the outbox stays, for another start or `redeliver`."""
        if self._has_ended:
            return
        self._has_ended = True
        with self._stack:  # whatever fails here, others get the outbox
            try:
                if self._has_started:
                    self.drain(patience if self.is_passing else min(patience, GRACE))
            finally:
                try:
                    if self._has_started:
                        self._sender.stop()
                finally:
                    self._directory.close()
            self._said = self.complaints()
