"""This module makes temporary folders, and removes those that killed runs have left.

Whoever makes a folder holds a lock on a file in it as long as it lives. A crash frees the lock, so a folder whose lock
can be had belongs to nobody any more, and whoever makes the next folder of the kind removes it. Folders without such a
file, links, and what belongs to another user are never touched.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex

from ephemera.base.errors import EphemeraError

_HAS_LOCKS = find_spec("fcntl") is not None
"""Elsewhere nothing is known to be left over."""
if _HAS_LOCKS:
    import fcntl

PREFIX = "ephemera-"
"""How the names of all temporary folders of runs begin."""
LOCK = ".lock"


class NoScratch(EphemeraError):
    """There is no place for temporary files."""


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """A temporary folder, as long as the block lasts."""
    try:
        parent = Path(tempfile.gettempdir())
    except OSError as error:
        raise NoScratch(f"{error.strerror}; set TMPDIR to a folder that can be written") from None
    _remove_stale(parent, PREFIX, "", _nothing)
    with _locked(parent, lambda: Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-", dir=parent))) as folder:
        yield folder


def scratch_of_process(kind: str) -> Path:
    """A temporary folder, as long as the process lasts."""
    block = scratch(kind)
    folder = block.__enter__()
    atexit.register(block.__exit__, None, None, None)
    return folder


@contextmanager
def scratch_beside(target: Path, rescue: Callable[[Path], None]) -> Iterator[Path]:
    """A hidden folder beside a target, as long as the block lasts; before one that was left over goes, `rescue` looks.

    It is on the same disk as the target, so what is in it can take the target's name at once.
    """
    _remove_stale(target.parent, f".{target.name}.", ".part", rescue)
    with _locked(target.parent, lambda: _made(target.with_name(f".{target.name}.{token_hex(8)}.part"))) as folder:
        yield folder


def _made(folder: Path) -> Path:
    """A new folder, which others may use as far as they may use what is made here: workers can be of another user."""
    folder.mkdir()
    return folder


def _nothing(_folder: Path) -> None:
    """There is nothing to rescue."""


@contextmanager
def _locked(parent: Path, make: Callable[[], Path]) -> Iterator[Path]:
    try:
        folder = make()
        lock = _hold(folder)
    except OSError as error:
        raise NoScratch(f"cannot write a temporary folder in {parent}: {error.strerror}") from None
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(lock)


def _hold(folder: Path) -> int:
    """Makes the lock of a new folder and takes it; it is never seen without being held."""
    lock, name = tempfile.mkstemp(dir=folder)
    if _HAS_LOCKS:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
            Path(name).rename(folder / LOCK)
    return lock


def _remove_stale(parent: Path, prefix: str, suffix: str, rescue: Callable[[Path], None]) -> None:
    """Removes the folders of those who do not live any more."""
    if not _HAS_LOCKS:
        return
    with suppress(OSError):
        for entry in list(os.scandir(parent)):
            if entry.name.startswith(prefix) and entry.name.endswith(suffix) and _is_own_folder(entry):
                _remove_if_stale(Path(entry.path), rescue)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:  # it was removed meanwhile
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _remove_if_stale(folder: Path, rescue: Callable[[Path], None]) -> None:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        rescue(folder)
        _remove(folder)
    except OSError:  # somebody holds it
        return
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    """Removes a folder, the lock last: what cannot be removed yet, since Java still writes, is so by the next run."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.name == LOCK:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink(missing_ok=True)
        if [entry.name for entry in os.scandir(folder)] in ([], [LOCK]):
            (folder / LOCK).unlink(missing_ok=True)
            try:
                folder.rmdir()
            except OSError:
                (folder / LOCK).touch()
