"""This module lets commands deliver messages, and holds the command that sends them again: `redeliver`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import click

from ephemera.base.errors import EphemeraError
from ephemera.cli.files import FAILED, WRONG_COMMAND, tell
from ephemera.cli.signals import was_stopped
from ephemera.deliver.delivery import GRACE, PATIENCE, Delivery, ProgramMessenger, Wanted, sends
from ephemera.deliver.redeliver import redeliver
from ephemera.deliver.transport import NotDelivered
from ephemera.physical.plan import Compiled

__all__ = ["NOT_DELIVERED", "DeliverWanted", "Delivery", "ProgramMessenger", "delivering", "redeliver_command"]


@dataclass(frozen=True, slots=True)
class DeliverWanted:
    """What a command says about messages."""

    is_wanted: bool
    only: Sequence[str] = ()
    outbox: str | None = None
    allow_command: bool = False

    def wanted(self, folder: str | None = None) -> Wanted:
        """The same for a delivery; `folder` is where messages wait if the command does not say."""
        only = frozenset(self.only) if self.only else None
        return Wanted(
            folder=self.outbox or folder,
            only=only,
            allow_command=self.allow_command,
            is_stopping=was_stopped,
            tell=tell,
        )


NOT_DELIVERED = DeliverWanted(is_wanted=False)


@contextmanager
def delivering(
    programs: Sequence[Compiled], wanted: DeliverWanted, folder: str | None = None
) -> Iterator[Delivery | None]:
    """The delivery of a run in this process, which waits for it in the end; the command fails if messages are left.

    `folder` is where those of a live run wait if the command does not say: what is left is for another start.
    """
    if not wanted.is_wanted or not any(map(sends, programs)):
        yield None
        return
    try:
        delivery = Delivery(programs, wanted.wanted(folder)).start()
    except NotDelivered as error:
        tell(str(error))
        raise click.exceptions.Exit(WRONG_COMMAND) from None
    try:
        yield delivery
        complaints = delivery.settle(PATIENCE if folder is None else GRACE)
    except click.exceptions.Exit:
        if was_stopped():  # a live run in good order, and what it found just now is on its way
            delivery.drain(GRACE)
            for line in delivery.complaints():
                tell(line)
        raise
    finally:
        delivery.close(0.0)
    for line in complaints:
        tell(line)
    if complaints and folder is None:
        raise click.exceptions.Exit(FAILED)


def redeliver_command(outbox: str, only: Sequence[str], *, allow_command: bool) -> None:
    """Sends messages again."""
    try:
        wanted = frozenset(only) if only else None
        stats = redeliver(outbox, allow_command=allow_command, only=wanted, timeout=PATIENCE)
    except NotDelivered as error:
        tell(str(error))
        raise click.exceptions.Exit(WRONG_COMMAND) from None
    except EphemeraError as error:
        tell(str(error))
        raise click.exceptions.Exit(FAILED) from None
    tell(f"{stats.sent:,} sent, {stats.failed:,} not taken, {stats.waiting:,} waiting")
    if stats.failed or stats.waiting:
        raise click.exceptions.Exit(FAILED)
