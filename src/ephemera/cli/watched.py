"""This module takes program files that change while they run: `run --watch`.

A file is looked at again when it has another time or size, and has had them for one look: nobody is told of half a
program that is being written. SIGHUP has all files looked at at once. What is wrong with a program, or lacks for its
rules, is told, and the program before goes on.
"""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from ephemera.analysis.unbounded import unbounded_in
from ephemera.base.errors import EphemeraError
from ephemera.cli.files import tell
from ephemera.cli.inputs import past_sources
from ephemera.cli.programs import recompiled
from ephemera.cli.run_checks import declared_tables
from ephemera.connect.archive import SourceArchive
from ephemera.engine.change.starts import LookBack
from ephemera.engine.hosts.live_engine import LiveEngine
from ephemera.program import Program
from ephemera.rules.nodes import Catalogue

if TYPE_CHECKING:
    from ephemera.cli.live import LiveWanted
    from ephemera.cli.spark import Wanted

LOOK = 0.2
"""Seconds between two looks at the files."""
_HANGUP = getattr(signal, "SIGHUP", None)


@dataclass(slots=True)
class _File:
    """A program file as it was taken last."""

    path: Path
    content: bytes
    state: tuple[int, int] | None
    """Its time and size when its content was looked at."""
    seen: tuple[int, int] | None


class WatchedPrograms:
    """The files of programs that run, and the engines that run them."""

    def __init__(
        self,
        paths: Sequence[Path],
        programs: list[Program],
        engines: Sequence[LiveEngine],
        *,
        look_back: Callable[[int], Any],
        tables: Callable[[Program, Path], Any],
        compiled: Callable[[Path], Program | None],
        reads_declared: bool,
    ) -> None:
        """`programs` has those that run now; `look_back` says what each finds its past in."""
        self._programs, self._engines = programs, engines
        self._look_back, self._tables, self._compiled = look_back, tables, compiled
        self._reads_declared = reads_declared
        self._files = [_File(path, _content(path), state := _state(path), state) for path in paths]
        self._looked = time.monotonic()
        self._is_asked = False

    @contextmanager
    def heeding(self) -> Iterator[WatchedPrograms]:
        """While this lasts, SIGHUP has the files looked at, unless it started ignored."""
        before = signal.getsignal(_HANGUP) if _HANGUP is not None else None
        can = _HANGUP is not None and before is not signal.SIG_IGN
        if not can or threading.current_thread() is not threading.main_thread():
            yield self
            return
        signal.signal(_HANGUP, self._ask)  # type: ignore[arg-type]
        try:
            yield self
        finally:
            signal.signal(_HANGUP, before)  # type: ignore[arg-type]

    def _ask(self, *_: object) -> None:
        self._is_asked = True

    def __call__(self) -> Sequence[int]:
        """The numbers of the programs that others have taken the place of since the last time."""
        is_asked, self._is_asked = self._is_asked, False
        now = time.monotonic()
        if not is_asked and now - self._looked < LOOK:
            return ()
        self._looked = now
        return [number for number in range(len(self._files)) if self._look(number, is_asked=is_asked)]

    def _look(self, number: int, *, is_asked: bool) -> bool:
        file = self._files[number]
        state = _state(file.path)
        is_still, file.seen = state == file.seen, state
        if not is_asked and (state is None or state == file.state or not is_still):
            return False
        content = _content(file.path)
        file.state = state
        if content == file.content:
            if is_asked:
                tell(f"{file.path} is as it was" if state is not None else f"cannot read {file.path}: it is gone")
            return False
        file.content = content
        return self._take(number, file.path)

    def _take(self, number: int, path: Path) -> bool:
        program = self._compiled(path)
        if program is None:
            tell(f"{path} has changed, and is not taken: the program before goes on")
            return False
        try:
            _check_places(self._programs[number].catalogue, program.catalogue, reads_declared=self._reads_declared)
            tables = self._tables(program, path)
            done = self._engines[number].change(program, look_back=self._look_back(number), tables=tables)
        except click.exceptions.Exit:  # what is wrong has been said
            tell(f"{path} has changed, and is not taken: the program before goes on")
            return False
        except (EphemeraError, ValueError, OSError) as error:
            tell(f"{path} has changed, and is not taken: {error}\nthe program before goes on")
            return False
        self._programs[number] = program
        tell(f"{path} has changed:\n" + "\n".join(f"  {line}" for line in str(done).splitlines()))
        return True


@dataclass(slots=True)
class Watching:
    """How the programs of a live run are watched, if they are."""

    programs: list[Program]
    """Those that run now."""
    paths: Sequence[Path]
    asked: LiveWanted
    wanted: Wanted
    allowed: bool
    """Whether programs may keep something for ever."""
    reads_declared: bool
    """Whether the run reads what its programs declare."""

    @contextmanager
    def of(self, engines: Sequence[LiveEngine]) -> Iterator[WatchedPrograms | None]:
        """What is asked between two rounds; nothing if nobody watches."""
        if not self.asked.watch:
            yield None
            return
        for engine in engines:  # who delivers has begun with the messages that there are, if with any
            engine.is_delivered = self.wanted.delivery.is_wanted
        unbounded = unbounded_in("live", allowed=self.allowed)
        watched = WatchedPrograms(
            self.paths,
            self.programs,
            engines,
            look_back=self._look_back,
            tables=lambda program, path: declared_tables(program, path.parent, lenient=self.wanted.lenient),
            compiled=lambda path: recompiled(path, unbounded, self.wanted.emit),
            reads_declared=self.reads_declared,
        )
        with watched.heeding():
            yield watched

    def _look_back(self, number: int) -> Any:
        """What a changed program finds its past in."""
        return past_by(self.asked.look_back, number, self.programs, self.paths, lenient=self.wanted.lenient)


def past_by(how: str, number: int, programs: Sequence[Program], paths: Sequence[Path], *, lenient: bool) -> Any:
    """How added rules of a program find their past, as `--look-back` says it: by a word, or in an archive."""
    if how in get_args(LookBack):
        return how
    found = past_sources([how], programs, paths)
    readers = [(one.source, (one.readers or {}).get(number, one.source.only), one.readers) for one in found]
    sources = [(source, only) for source, only, own in readers if own is None or number in own]
    return SourceArchive(sources, how, lenient)


def _check_places(old: Catalogue, new: Catalogue, *, reads_declared: bool) -> None:
    """Refuses to read or write elsewhere than the run has begun to."""
    if old.writes != new.writes:
        raise EphemeraError("where answers go (`WRITE`) stays as it is while programs run: start again for that")
    were, are = ({s.name: (s.location, s.format, s.only) for s in one.sources} for one in (old, new))
    other = next((name for name in sorted(are) if are[name] != were.get(name, (None, None, None))), None)
    if reads_declared and other is not None and are[other][0] is not None:
        raise EphemeraError(f"`STREAM {other}` is read elsewhere than before: start again for that")


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _content(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""
