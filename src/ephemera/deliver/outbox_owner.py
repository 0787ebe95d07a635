"""This module lets one at a time have an outbox: a run, or whoever sends again what a run has left.

An outbox in a checkpoint is had by whoever has the checkpoint. Any other has a lock of its own, of the same kind. So
nobody removes what another still reads, and of a live query on Spark nothing is sent that was not committed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ephemera.deliver.transport import NotDelivered
from ephemera.engine.state.checkpoint_lock import CheckpointHeld, hold
from ephemera.engine.state.durable_files import Posix, files_of

ON_SPARK, HERE = "query.json", "commit.json"
"""The file by which a checkpoint is known: of a live query on Spark, and of a live run in one process."""
_PROGRESS = "progress"
"""The folder in which a live query on Spark has a file for each of its last batches, when it was committed."""


def hold_outbox(folder: str, *, by_run: bool = False) -> AbstractContextManager[object]:
    """Takes an outbox; raises `NotDelivered` if somebody has it. A run has taken its checkpoint before."""
    checkpoint = _checkpoint_of(folder)
    if by_run and checkpoint is not None:
        return nullcontext()
    try:
        return hold(checkpoint or folder)
    except CheckpointHeld as error:
        raise NotDelivered(f"nothing is sent from the outbox `{folder}` while a run has it: {error}") from None


def last_committed(folder: str) -> int | None:
    """Up to which segment an outbox may be sent; None if all of it may.

    On Spark a batch puts its messages before it is committed, and one that never was is run again by the next start.
    """
    checkpoint = _checkpoint_of(folder)
    if checkpoint is None:
        return None
    files, path = files_of(checkpoint)
    if ON_SPARK not in files.names(path):
        return None
    batches = [name.removesuffix(".json") for name in files.names(f"{path}/{_PROGRESS}")]
    return max((int(batch) for batch in batches if batch.isdigit()), default=-1)


def _checkpoint_of(folder: str) -> str | None:
    """The checkpoint in which an outbox is."""
    files, path = files_of(folder)
    above = str(Path(path).parent) if isinstance(files, Posix) else folder.rstrip("/").rpartition("/")[0]
    if not above:
        return None
    files, path = files_of(above)
    return above if {ON_SPARK, HERE} & set(files.names(path)) else None
