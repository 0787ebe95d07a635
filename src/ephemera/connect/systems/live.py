"""This module says what a live run needs of a system: what comes from it in pieces, and what it takes in commits.

A system that is read has partitions, each in an order of its own: Kafka's, or just one. What it gives comes with the
partition, since time passes in each by itself. Its position is what JSON can hold; a checkpoint keeps it.

A system that is written takes the answers of a commit as bytes that it has encoded itself. These are kept in the
checkpoint before they are put, so that what a crash left undone is put again. Commits are numbered: a system that
remembers the last number, in the same transaction as the answers, takes each exactly once. It tells that number when it
is opened: one that the checkpoint cannot have given means that an older copy of the checkpoint was brought back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ephemera.base.errors import EphemeraError
from ephemera.formats.answers import AnswerBatch
from ephemera.formats.decode import Batch


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came in one partition."""

    partition: str
    batch: Batch
    place: Callable[[int], str] | None = None
    """Where a row of it stands, as people find it."""


class OpenLive(Protocol):
    """A system that is being read as things come."""

    def poll(self, seconds: float) -> list[Arrived]:
        """What has come; waits so long for the first of it."""

    @property
    def position(self) -> Any:
        """How far it has been read, with all that was given: what `open_live` takes to go on from there."""

    @property
    def behind(self) -> set[str]:
        """The partitions that held something when they were opened, as long as that has not all been given."""

    def confirm(self) -> None:
        """All that was given is safe in a checkpoint."""

    def close(self) -> None:
        """Nobody reads any more."""


@runtime_checkable
class MayBeAway(Protocol):
    """A source that waits for a while where its system does not answer in mid-run."""

    @property
    def trouble(self) -> str | None:
        """What to tell people while it waits."""


@runtime_checkable
class LiveSource(Protocol):
    """Where a live run reads."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def only(self) -> str | None:
        """The type of all events that do not name theirs."""

    def open_live(self, position: Any = None) -> OpenLive:
        """Begins to read, where its address says or where another stopped."""


class OpenTarget(Protocol):
    """A system that is being written."""

    def encode(self, answers: AnswerBatch) -> bytes:
        """Some answers, as this system takes them."""

    def put(self, load: bytes, number: int) -> None:
        """The answers of a commit; comes back when they are safe there. A number that it has had counts once."""

    @property
    def position(self) -> Any:
        """Where the next answers go, if what was written behind it can be taken back: what `open_target` takes."""

    def close(self) -> None:
        """Nobody writes any more."""


@runtime_checkable
class Target(Protocol):
    """Where a live run writes."""

    @property
    def name(self) -> str:
        """What people call it."""

    def open_target(self, identity: str, position: Any = None) -> OpenTarget:
        """Begins to write for a run, which is known again by its identity, or goes on where it was."""


@runtime_checkable
class Remembering(Protocol):
    """A target that remembers the number of the last commit, with its answers."""

    @property
    def last(self) -> int:
        """That number; 0 if there was none."""


class OlderCopy(EphemeraError):
    """A checkpoint that a target has left behind."""


def check_last(name: str, opened: OpenTarget, most: int, checkpoint: str) -> None:
    """Raises if a target has had commits that the checkpoint cannot have put: the next would be taken for those.

    Commits are cut by the clock, so one of the same number would hold other answers.
    """
    if isinstance(opened, Remembering) and opened.last > most:
        raise OlderCopy(
            f"`{name}` has had commit {opened.last} of this run, and the checkpoint `{checkpoint}` is at commit "
            f"{most}, so it is an older copy: what is put now would be taken for what is there already; bring back a "
            "copy that is as new, or name another place to write to, which gets all answers since the copy was made, "
            "or begin anew with another checkpoint and another place"
        )
