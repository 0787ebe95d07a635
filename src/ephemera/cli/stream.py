"""This module runs programs live from the command line: lines come in, answers go out as soon as they are certain.

Lines are read as they come, from files one after the other, from standard input, or from a file that grows. What is
wrong or late goes to the dead letters, and nothing stops the run but its end or a signal. While nothing comes, the
engines are told the time, so that silent sources hold no one back.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any, TypeAlias

import click

from ephemera.cli.files import WRONG_COMMAND, bad_letter, tell, undefined_letter, utf_8, write_out
from ephemera.cli.follow import FollowedFile
from ephemera.cli.inputs import told_of
from ephemera.cli.progress import letters_line, tell_notes, tell_warnings
from ephemera.cli.signals import exit_code, noted, raise_if_seen
from ephemera.connect.atomic_files import GrowingFile
from ephemera.connect.live.past import Past, ReadPast, is_known
from ephemera.connect.live.past_told import known_line, past_line_of
from ephemera.engine.engine import Found
from ephemera.engine.hosts.live_engine import LiveEngine
from ephemera.formats.decode import Noticed
from ephemera.formats.reading import Keys

CHUNK = 1 << 16
PAUSE = 0.05
"""How long to wait for a file to grow, in seconds."""
Readers: TypeAlias = Mapping[int, str | None]
"""The engines that read an input, by their numbers, and as which type what names none."""
LATE = "it came behind the bound of its source"


class Stream:
    """Engines, and where their answers and dead letters go."""

    def __init__(
        self,
        engines: Sequence[LiveEngine],
        names: Sequence[dict[str, str]],
        output: Path | None,
        dead: Path | None,
        noted: Callable[[], Sequence[str]] | None = None,
        *,
        past: Sequence[Past] = (),
        lenient: bool = False,
    ) -> None:
        """`names` is what the dead letters of each engine say of where they come from.

        `noted` gives what to tell at the end besides the summary; without it there is none unless something was wrong.
        The `past` is read before the input.
        """
        self._engines = engines
        self._names = names
        self._noted = noted
        self._undefined = 0
        self._past, self._lenient = past, lenient
        self._bounds: list[dict[str, int]] = [{} for _ in engines]
        """How far the sources of each program have come with the past."""
        self._known = [0] * len(engines)
        self._output = None if output is None else GrowingFile(output)
        self._dead = None if dead is None else GrowingFile(dead)

    def run(
        self, inputs: Sequence[tuple[str, Readers]], *, follow: bool, changed: Callable[[], object] | None = None
    ) -> None:
        """Until the input ends; with `follow` the last file may grow for ever.

        Between two rounds it is asked whether programs have `changed`, which engines go on with then.
        """
        watched = changed is not None or any(engine.has_idle_sources for engine in self._engines)
        try:
            if self._past:
                self._read_past()
            for readers, lines in _chunks(inputs, follow=follow, watched=watched):
                with noted(1):  # so that no line is cut in two; who asks twice does not wait for that
                    if changed is not None:
                        changed()
                    self._send(readers, lines)
                raise_if_seen()
            with noted(1):
                self._each(lambda engine, _: engine.finish())
        except KeyboardInterrupt:
            self._tell("stopped: ")
            raise click.exceptions.Exit(exit_code(is_live=True)) from None
        finally:
            self._close()
        self._tell()

    def _read_past(self) -> None:
        """Reads the past; its answers are held until all of it is read, since it may turn out to be in no order."""
        held: list[Sequence[Found]] = []
        noticed = [Noticed(Keys(engine.compiled.physical)) for engine in self._engines]
        past = ReadPast(self._engines, self._past, noticed, held.append, held.clear, self._lenient)
        with told_of("the past"):
            self._bounds = past.read()
        for found in held:
            for engine, one in zip(self._engines, found, strict=True):
                self._put("".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in engine.answers(one)))
        for number, (engine, own) in enumerate(zip(self._engines, noticed, strict=True)):
            self._bury(number)
            engine.behind_the_past(own.keys)
        tell(past_line_of(self._engines))

    def _tell(self, what: str = "") -> None:
        stats = [engine.stats() for engine in self._engines]
        bad, late = sum(s.bad for s in stats), sum(s.late for s in stats) - sum(self._known)
        if what or self._noted is not None or bad or late or self._undefined:
            received = max((s.received for s in stats), default=0)
            tell(what + letters_line(received, bad, late, self._undefined, kept=self._dead is not None))
        if any(self._known):
            tell(known_line(max(self._known)))
        for line in self._noted() if self._noted is not None else ():
            tell(line)
        tell_notes(note for engine in self._engines for note in engine.said)
        tell_warnings((note for engine in self._engines for note in engine.warnings), strict=False)

    def _send(self, readers: Readers, lines: Sequence[bytes]) -> None:
        """Lines to those who read them; to the others, that time has passed."""

        def send(engine: LiveEngine, number: int) -> list[dict[str, Any]]:
            return engine.send_lines(lines, readers[number]) if number in readers else engine.tick()

        self._each(send)

    def _each(self, work: Callable[[LiveEngine, int], list[dict[str, Any]]]) -> None:
        for number, engine in enumerate(self._engines):
            self._put("".join(json.dumps(a, ensure_ascii=False) + "\n" for a in work(engine, number)))
            self._bury(number)

    def _put(self, text: str) -> None:
        if text and self._output is not None:
            self._output.write(utf_8(text))
        elif text:
            write_out(text)

    def _bury(self, number: int) -> None:
        """What was wrong, late or without a value since the last time, to the dead letters; it is not kept here."""
        engine, name = self._engines[number], self._names[number]
        late = [one for one in engine.late if not is_known(one.event, engine, self._bounds[number])]
        self._known[number] += len(engine.late) - len(late)
        letters = [bad_letter(bad) for bad in engine.bad]
        letters += [{"reason": LATE, "event": one.original} for one in late]
        undefined = [undefined_letter(letter) for letter in engine.take_dead_letters()]
        self._undefined += len(undefined)
        letters += undefined
        engine.bad.clear()
        engine.late.clear()
        if letters and self._dead is not None:
            lines = (json.dumps(letter | name, ensure_ascii=False, default=str) + "\n" for letter in letters)
            self._dead.write(utf_8("".join(lines)))

    def _close(self) -> None:
        for file in (self._output, self._dead):
            if file is not None:
                file.close()


def _chunks(
    inputs: Sequence[tuple[str, Readers]], *, follow: bool, watched: bool
) -> Iterator[tuple[Readers, list[bytes]]]:
    """The lines of all inputs, as many at a time as are there; none while one is quiet, if that is `watched`."""
    for number, (name, readers) in enumerate(inputs):
        if name == "-":
            yield from ((readers, lines) for lines in _lines(sys.stdin.buffer, None, watched=watched))
            continue
        try:
            file = Path(name).open("rb")  # noqa: SIM115 - closed below, and told apart from what goes wrong later
        except OSError as error:
            click.echo(f"cannot read {name}: {error.strerror}", err=True)
            raise click.exceptions.Exit(WRONG_COMMAND) from None
        followed = FollowedFile(Path(name), file) if follow and number == len(inputs) - 1 else None
        with closing(followed or file):
            yield from ((readers, lines) for lines in _lines(file, followed, watched=watched))


def _lines(file: IO[bytes], followed: FollowedFile | None, *, watched: bool) -> Iterator[list[bytes]]:
    """Whole lines, as many at a time as are there; where new content begins, the last one before it ends, too."""
    pieces: list[bytes] = []
    while True:
        while watched and not _is_ready(file):
            yield []
        is_anew = followed is not None and followed.begins_anew()
        data = b"" if is_anew else _available(file)
        if followed is not None:
            file = followed.file
            followed.note(data)
        if not data and followed is not None and not is_anew:
            if watched:
                yield []
            time.sleep(PAUSE)
            continue
        first, *more = data.split(b"\n")
        pieces.append(first)
        if more or not data:
            found = [line for line in (b"".join(pieces), *more[:-1]) if line.strip()]
            pieces = more[-1:]
            if found:
                yield found
        if not data and not is_anew:
            return


def _is_ready(file: IO[bytes]) -> bool:
    """Whether there is something to read, or the end, before the pause is over; what cannot be asked always is."""
    try:
        return bool(select.select([file], [], [], PAUSE)[0])
    except (AttributeError, OSError, ValueError):
        return True


def _available(file: IO[bytes]) -> bytes:
    """What can be read without waiting for more; nothing at the end."""
    try:
        return os.read(file.fileno(), CHUNK)
    except (AttributeError, OSError, ValueError):
        return file.read(CHUNK)
