"""This module lets one run at a time have a checkpoint.

On files of this machine, or of a disk that it shares, that is a lock of the system on the file `lock`: another run is
refused before it touches anything, and a run that is killed gives the lock back by dying. The file says who has it.

Object stores have no locks. There whoever comes last has the checkpoint: it leaves its name, and a run that finds
another name than its own when it begins a batch ends before it has read or written anything of that batch.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from ephemera.base.errors import EphemeraError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.state.durable_files import Broken, Files, Posix, files_of, seal, unseal

LOCK = "lock"
RUN = "run.json"
FORMAT = 1
_HAS_LOCKS = find_spec("fcntl") is not None
_NO_LOCKS = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS}
"""What file systems say that have no locks."""


class CheckpointHeld(EphemeraError):
    """A checkpoint that another run has."""


@dataclass(slots=True)
class CheckpointLock:
    """A checkpoint that is ours until `release`."""

    checkpoint: str
    check: Callable[[], None]
    """Raises `CheckpointHeld` if it is not ours any more."""
    _let_go: Callable[[], None]
    is_over: Callable[[], bool] = lambda: False
    """Whether whoever has it in this process is done with it, though nobody said so."""
    _is_ours: bool = True

    def release(self) -> None:
        """Lets others have it."""
        if self._is_ours:
            self._is_ours = False
            self._let_go()

    def __enter__(self) -> CheckpointLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def hold(checkpoint: str) -> CheckpointLock:
    """Takes a checkpoint; raises `CheckpointHeld` if another run has it."""
    files, folder = files_of(checkpoint)
    if not isinstance(files, Posix) or not _HAS_LOCKS:
        return _by_name(files, folder, checkpoint)
    files.make(folder)
    path = f"{folder}/{LOCK}"
    while True:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock(number)
        except BlockingIOError:
            teller = _holder(number)
            os.close(number)
            if _given_back(path):
                continue
            raise CheckpointHeld(
                f"the checkpoint `{checkpoint}` is in use by another run: {teller}; "
                "stop that run first, or take another checkpoint"
            ) from None
        except OSError as error:
            os.close(number)
            if error.errno in _NO_LOCKS:
                return _by_name(files, folder, checkpoint)
            raise
        if _is_at(path, number):  # else somebody has removed it meanwhile, and others find another file
            return _held(checkpoint, path, number)
        os.close(number)


# ---- by a lock of the system -------------------------------------------------------------------------------

_HERE: dict[str, tuple[int, CheckpointLock]] = {}
"""What this process has, by the paths of the locks; each goes when it is released. Locks are those of a process."""


def _lock(number: int) -> None:
    import fcntl  # noqa: PLC0415 - not on every system

    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlock(number: int) -> None:
    import fcntl  # noqa: PLC0415 - not on every system

    fcntl.flock(number, fcntl.LOCK_UN)


def _held(checkpoint: str, path: str, number: int) -> CheckpointLock:
    os.ftruncate(number, 0)
    os.pwrite(number, json.dumps(_ourselves()).encode(), 0)

    def check() -> None:
        if not _is_at(path, number):
            raise CheckpointHeld(
                f"the checkpoint `{checkpoint}` is not ours any more: somebody has removed {path}, "
                "so that another run could begin; see that there is one, and start again"
            )

    def let_go() -> None:
        _HERE.pop(path, None)
        os.ftruncate(number, 0)
        _unlock(number)  # a process that was forked just now may still have it open
        os.close(number)

    taken = CheckpointLock(checkpoint, check, let_go)
    _HERE[path] = number, taken
    return taken


def _is_at(path: str, number: int) -> bool:
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(number))
    except FileNotFoundError:
        return False


def _given_back(path: str) -> bool:
    """Whether a query of this process has it that has ended: then it is free now."""
    _, own = _HERE.get(path, (0, None))
    if own is None or not own.is_over():
        return False
    own.release()
    return True


def _holder(number: int) -> str:
    try:
        told = json.loads(os.pread(number, 4096, 0))
        return f"process {told['pid']} on {told['host']}, since {told['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "one that has not said yet who it is"


def _ourselves() -> dict[str, object]:
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}


def _leave_to_parent() -> None:
    """A process that was forked has the open file, too, and would keep the lock longer than its parent lives."""
    for number, _ in _HERE.values():
        os.close(number)
    _HERE.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


# ---- by a name ---------------------------------------------------------------------------------------------


def _by_name(files: Files, folder: str, checkpoint: str) -> CheckpointLock:
    files.make(folder)
    path, name = f"{folder}/{RUN}", uuid.uuid4().hex
    files.put(path, [seal("run", FORMAT, {"name": name, **_ourselves()})], lambda _: None)

    def check() -> None:
        try:
            told = unseal(bytes(files.read(path)), "run", FORMAT, path)
        except (Broken, FileNotFoundError):
            told = {}
        if told.get("name") != name:
            who = f"process {told['pid']} on {told['host']}, since {told['since']}" if told else "nobody knows who"
            raise CheckpointHeld(f"another run has taken the checkpoint `{checkpoint}` over: {who}; this one ends")

    return CheckpointLock(checkpoint, check, lambda: None)
