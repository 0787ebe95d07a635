"""This module opens files for reading, and writes files and folders as a whole or not at all.

What a command was asked for is written in a hidden folder beside the target, and gets the target's name when it is
complete. Whatever ends the run before leaves nothing under that name, and what stood there stays as it was. A symbolic
link is followed. What is no plain file, such as a pipe or a device, is written to and never replaced.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Literal, cast

from ephemera.base.errors import EphemeraError

Layout = Literal["file", "json", "parquet", "csv"]
MARK = "_EPHEMERA"
"""A file in each folder that a batch run wrote: only such folders are replaced."""
_BLOCK = 1 << 20
_MOST_LINKS = 40
_DATA, _OLD = "data", "old"
_OF_SPARK = ("part-", ".part-", "_SUCCESS", "._SUCCESS", MARK)
"""How the names of what is in such a folder begin."""


class CannotWrite(EphemeraError):
    """Something cannot be written where it should."""


class NotEmpty(CannotWrite):
    """A file that holds something, and would be written over before there is anything in its place."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"`{path}` is not empty, and a live run that begins anew would write over it; move it away, name another "
            "file, or go on from the checkpoint of the run that wrote it"
        )


def opened(path: str | Path) -> IO[bytes]:
    """A file for reading; one that ends in `.gz` is unpacked."""
    import gzip  # noqa: PLC0415 - who only writes needs neither

    from ephemera.formats.decode_csv import COMPRESSED  # noqa: PLC0415

    return cast("IO[bytes]", gzip.open(path, "rb")) if str(path).lower().endswith(COMPRESSED) else Path(path).open("rb")


def layout(target: str) -> Layout:
    """How answers are written to a target: one file if it ends in .jsonl, else a folder, of JSON lines by default."""
    name = target.rstrip("/").lower()
    if (name.endswith(".jsonl") and not target.endswith("/")) or is_open_end(Path(target)):
        return "file"
    if name.endswith(".parquet"):
        return "parquet"
    return "csv" if name.endswith(".csv") else "json"


def is_open_end(path: Path) -> bool:
    """Whether a path leads to something that is written to and cannot be replaced: a pipe, a device, an open file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or _of_process(path) is not None


def _of_process(path: Path) -> Path | None:
    """What a path such as /dev/stdout leads to, if it stands for something that a process has open."""
    for _ in range(_MOST_LINKS):
        folder = Path(os.path.realpath(path.parent))
        if folder.parts[:2] == ("/", "proc") or folder == Path("/dev/fd"):
            return folder / path.name
        try:
            path = folder / path.readlink()
        except OSError:
            return None
    return None


def _open_end(path: Path) -> int:
    """Opens what cannot be replaced; it is neither made nor emptied, and what is open here is used as it stands."""
    end = _of_process(path)
    if end is not None and end.parent in (Path(f"/proc/{os.getpid()}/fd"), Path("/dev/fd")):
        return os.dup(int(end.name))  # opened anew, it would be written from another place on
    return os.open(path, os.O_WRONLY | os.O_APPEND)


def refusal(target: Path, form: Layout) -> str | None:
    """Why nothing can be written to a target, as far as that is seen without writing; None if it can."""
    if form == "file":
        return _file_refusal(target)
    if target.is_dir():
        return _folder_refusal(target)
    place = Path(os.path.realpath(target))
    if place.exists():
        return f"`{target}` is a file, and answers would be written to a folder; name a new one, or a file (.jsonl)"
    above = next(p for p in place.parents if p.exists())
    if not above.is_dir():
        return f"cannot write {target}: {above} is no folder"
    return None if _is_writable(above) else f"cannot write {target}: {_why_not(above)}"


def _file_refusal(target: Path) -> str | None:
    if target.is_dir():
        return f"`{target}` is a folder, and one file would be written; name the file"
    if is_open_end(target):
        return None if _is_writable(target) else f"cannot write {target}: Permission denied"
    place = Path(os.path.realpath(target))
    if not place.parent.is_dir():
        return f"cannot write {target}: there is no folder {place.parent}; make it first"
    if place.exists() and not _is_writable(place):
        return f"cannot write {target}: {_why_not(place)}"
    return None if _is_writable(place.parent) else f"cannot write {target}: {_why_not(place.parent)}"


def _folder_refusal(target: Path) -> str | None:
    place = Path(os.path.realpath(target))
    try:
        names = [entry.name for entry in os.scandir(place)]
    except OSError as error:
        return f"cannot write {target}: {error.strerror}"
    foreign = sorted(name for name in names if not name.startswith(_OF_SPARK))
    if foreign or (names and MARK not in names):
        such = foreign[0] if foreign else min(names)
        return f"`{target}` is a folder with other things in it, such as `{such}`; name a new one"
    return None if _is_writable(place.parent) else f"cannot write {target}: {_why_not(place.parent)}"


def _is_writable(path: Path) -> bool:
    mode = os.W_OK | os.X_OK if path.is_dir() else os.W_OK
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _why_not(path: Path) -> str:
    return f"{'the folder ' if path.is_dir() else ''}{path} is read-only for this user"


def write_file(chunks: Iterable[bytes], target: Path) -> None:
    """Bytes, one behind the other, as one file; what is no plain file gets them as they come."""
    if is_open_end(target):
        append(chunks, target)
        return
    with WholeFile(target) as file:
        for block in _blocks(chunks):
            file.write(block)
        file.commit()


class WholeFile:
    """A file that is written piece by piece beside its target, and takes its name when it is complete."""

    def __init__(self, target: Path) -> None:
        _refuse(_file_refusal(target))
        self._target = target
        self._place = Path(os.path.realpath(target))
        self._size = 0
        with ExitStack() as stack:
            self._data = stack.enter_context(_staged(self._place))
            with _told(target):
                self._number = os.open(self._data, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                stack.callback(self._close)
                _take_after(self._place, self._data)
            self._stack = stack.pop_all()

    def write(self, data: bytes | memoryview) -> int:
        """Adds some bytes; what comes after it was given up goes nowhere."""
        if self.closed:
            return len(data)
        with _told(self._target):
            write_all(self._number, data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        """How much has been written."""
        return self._size

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Whoever writes to it is done, which says nothing of whether it counts."""

    @property
    def closed(self) -> bool:
        """Whether it takes no more."""
        return self._number < 0

    def commit(self) -> None:
        """Gives it its name."""
        with _told(self._target):
            os.fsync(self._number)
            self._data.replace(self._place)
        self.abort()

    def abort(self) -> None:
        """What was written goes, unless it has its name."""
        self._stack.close()

    def _close(self) -> None:
        if self._number >= 0:
            os.close(self._number)
            self._number = -1

    def __enter__(self) -> WholeFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same in fewer pieces, so that each is worth a call."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= _BLOCK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def write_all(number: int, data: bytes | memoryview) -> None:
    """All bytes to an open file; a system call may write less than it was given."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(number, rest) :]


def append(chunks: Iterable[bytes], target: Path) -> None:
    """Bytes to what is no plain file."""
    with _told(target):
        number = _open_end(target)
    try:
        for block in _blocks(chunks):
            with _told(target):
                write_all(number, block)
    finally:
        os.close(number)


def _take_after(place: Path, data: Path) -> None:
    """Gives a file the permissions of the one that it will replace, and as far as that is allowed, its owner."""
    if not place.exists():
        return
    with suppress(OSError, AttributeError):  # only root may, and not every system has owners
        os.chown(data, place.stat().st_uid, place.stat().st_gid)
    shutil.copymode(place, data)


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A path for a folder to be made, which takes the target's name if the block succeeds, and is gone otherwise."""
    _refuse(refusal(target, "json"))
    place = Path(os.path.realpath(target))
    with _told(target):
        place.parent.mkdir(parents=True, exist_ok=True)
    with _staged(place) as data:
        yield data
        with _told(target):
            (data / MARK).touch()
            if place.is_dir():
                place.rename(data.with_name(_OLD))
            try:
                data.rename(place)
            except OSError:
                _rescue(data.parent, place)
                raise


@contextmanager
def _staged(place: Path) -> Iterator[Path]:
    """A path beside a target, in a folder that is removed with whatever is left in it."""
    from ephemera.base.scratch import NoScratch, scratch_beside  # noqa: PLC0415 - standard output needs none

    try:
        with scratch_beside(place, lambda folder: _rescue(folder, place)) as folder:
            yield folder / _DATA
    except NoScratch as error:
        raise CannotWrite(str(error)) from None


def _rescue(folder: Path, place: Path) -> None:
    """Brings back what had to make way, if nothing took its place."""
    with suppress(OSError):
        if (folder / _OLD).is_dir() and not place.exists():
            (folder / _OLD).rename(place)


def _refuse(why: str | None) -> None:
    if why is not None:
        raise CannotWrite(why)


@contextmanager
def _told(target: Path) -> Iterator[None]:
    """Says of what goes wrong for which target it did."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(f"cannot write {target}: {error.strerror or error}") from None


class GrowingFile:
    """A file that is written as answers come, line by line; one that holds something already is refused."""

    def __init__(self, target: Path) -> None:
        self._target = target
        _refuse(_file_refusal(target))
        self._is_plain = not is_open_end(target)
        with _told(target):
            if self._is_plain:
                self._number = os.open(os.path.realpath(target), os.O_WRONLY | os.O_CREAT, 0o666)
                if os.fstat(self._number).st_size:
                    os.close(self._number)
                    raise NotEmpty(target)
            else:
                self._number = _open_end(target)
        self._size = 0

    def write(self, lines: bytes) -> None:
        """Adds whole lines; what cannot be written as a whole is taken back where that is possible."""
        try:
            with _told(self._target):
                write_all(self._number, lines)
        except BaseException:
            if self._is_plain:
                with suppress(OSError):
                    os.ftruncate(self._number, self._size)
            raise
        self._size += len(lines)

    def close(self) -> None:
        """Nothing more comes."""
        with _told(self._target):
            os.close(self._number)
