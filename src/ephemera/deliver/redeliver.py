"""This module sends again what a run has left in its outbox: what waits there, and what nobody took.

The run has to have ended. Of a live query on Spark nothing is sent that was put for a batch that was never committed:
another start runs that batch again, and what it finds then counts.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from random import Random

from ephemera.deliver.background import BackgroundSender
from ephemera.deliver.outbox import Outbox
from ephemera.deliver.outbox_owner import hold_outbox, last_committed
from ephemera.deliver.sender import DeliveryStats, Sender, is_wanted
from ephemera.deliver.ways import kept_ways


def redeliver(
    folder: str, *, allow_command: bool = False, only: Collection[str] | None = None, timeout: float | None = None
) -> DeliveryStats:
    """Sends what waits in an outbox that no run has, and what was dead; what fails again is dead again."""
    directory = kept_ways(folder, allow_command=allow_command)
    with ExitStack() as stack:
        stack.enter_context(hold_outbox(folder))
        stack.callback(directory.close)
        outbox = Outbox(folder)
        dead = outbox.revive(lambda address: is_wanted(address, only))
        stack.callback(dead.give_back, outbox)
        both = [
            BackgroundSender(Sender(one, directory, Random(), only=only, server=directory.server))
            for one in (outbox, dead)
        ]
        for sender, until in zip(both, (last_committed(folder), None), strict=True):
            stack.callback(sender.stop)
            sender.start(until)
        for sender in both:
            sender.drain(timeout)
    waiting, again = (sender.stats() for sender in both)
    return DeliveryStats(
        waiting.waiting + again.waiting,
        waiting.sent + again.sent,
        waiting.failed + again.failed,
        max(waiting.oldest, again.oldest),
        waiting.down + again.down,
    )
