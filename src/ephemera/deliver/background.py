"""This module drives a sender by the clock of this machine: a thread that sees what is due, and some that send.

An attempt may never end, since functions and transports of others have no limit of time. It keeps its address, its
thread and one of the places of its server, and nothing else: whoever stops the sender does not wait for it for long,
and what comes of it later is passed over, as others may have the outbox by then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from ephemera.deliver.message import Outgoing
from ephemera.deliver.sender import DeliveryStats, Sender
from ephemera.deliver.turns import EACH, Turns
from ephemera.terms.addresses import Address

LAST_ATTEMPTS = 30.0
"""Seconds for which the attempts that are under way are waited for in the end."""


class BackgroundSender:
    """A sender at work. What goes wrong with the outbox itself ends it, and is raised to whoever asks next."""

    def __init__(
        self,
        sender: Sender,
        *,
        clock: Callable[[], float] = time.monotonic,
        workers: int = EACH,
        patience: float = LAST_ATTEMPTS,
    ) -> None:
        self._sender = sender
        self._clock = clock
        self._turns: Turns[tuple[Address, Outgoing]] = Turns(workers)
        self._patience = patience
        self._until: int | None = None
        self._is_stopping = False
        self._has_ended = False
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self._tasks: SimpleQueue[tuple[Address, Outgoing] | None] = SimpleQueue()
        self._under_way = 0
        """Addresses that are being served, or are about to be."""
        self._at_work = 0
        """Those that threads have."""
        self._workers: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._run, name="ephemera-deliver", daemon=True)

    def start(self, until: int | None = None) -> BackgroundSender:
        """Begins to send; what was put behind segment `until` is not committed yet."""
        self._until = until
        self._thread.start()
        return self

    def committed(self, until: int | None = None) -> None:
        """There may be more to send: all segments up to that one, or all there are."""
        with self._changed:
            self._until = until
            self._changed.notify_all()
        self.check()

    def check(self) -> None:
        """Raises what has ended it, if something has."""
        if self._failure is not None:
            raise self._failure

    def drain(self, timeout: float | None = None) -> bool:
        """Waits until all has been delivered or buried; whether that was so in time."""
        with self._changed:
            self._changed.notify_all()

            def done() -> bool:
                if self._failure is not None or not self._thread.is_alive():
                    return True
                self._sender.refresh(self._clock(), self._until)
                return self._sender.is_done

            is_done = self._changed.wait_for(done, timeout)
        self.check()
        return is_done

    def stop(self) -> None:
        """Ends it when the attempts under way have ended, or have had time to; the rest waits in the outbox."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()
        for _ in self._workers:
            self._tasks.put(None)
        with self._changed:
            self._under_way -= self._turns.clear()
            is_quiet = self._changed.wait_for(lambda: not self._under_way, self._patience)
            self._has_ended = True
            if self._failure is None:
                self._sender.close()
        for worker in self._workers if is_quiet else ():
            worker.join()

    def stats(self) -> DeliveryStats:
        """What became of messages so far."""
        with self._changed:
            return self._sender.stats(self._clock())

    # ---- its threads ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        with self._changed:
            while not self._is_stopping and self._failure is None:
                try:
                    now = self._clock()
                    self._sender.refresh(now, self._until)
                    for address in self._sender.due(now):
                        self._give(address)
                    self._begin()
                    due = self._sender.next_due()
                except BaseException as error:  # noqa: BLE001 - told to whoever asks next
                    self._fail(error)
                    return
                self._changed.wait(None if due is None else max(0.0, due - self._clock()))

    def _give(self, address: Address) -> None:
        """An address to whoever serves it when it is its turn."""
        has_failed = self._sender.line(address).failures > 0
        self._turns.add(self._sender.server(address), (address, self._sender.begin(address)), has_failed=has_failed)
        self._under_way += 1

    def _begin(self) -> None:
        """Has those served whose turn it is, in threads of their own if no other is free."""
        for task in self._turns.ready() if not self._is_stopping else ():
            self._tasks.put(task)
            self._at_work += 1
            if len(self._workers) < self._at_work:
                # Those of a pool would be waited for when the process ends, however long an attempt takes.
                worker = threading.Thread(target=self._work, name=f"ephemera-send-{len(self._workers)}", daemon=True)
                worker.start()
                self._workers.append(worker)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                self._serve(*task)
            except BaseException as error:  # noqa: BLE001 - told to whoever asks next
                with self._changed:
                    self._fail(error)
            with self._changed:
                self._under_way -= 1
                self._at_work -= 1
                self._turns.done(self._sender.server(task[0]))
                self._begin()
                self._changed.notify_all()

    def _serve(self, address: Address, message: Outgoing) -> None:
        """Sends to an address as long as it takes what it gets."""
        while not self._is_stopping:
            failure = self._sender.attempt(message)
            with self._changed:
                if self._has_ended:
                    return
                now = self._clock()
                self._sender.end(address, failure, now)
                if not self._sender.is_due(address, now):
                    return
                message = self._sender.begin(address)

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._changed.notify_all()
