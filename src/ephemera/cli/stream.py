"""This module runs programs live from the command line: lines come in, answers go out as soon as they are certain.

Lines are read as they come, from files one after the other, from standard input, or from a file that grows. What is
wrong or late goes to the dead letters, and nothing stops the run but its end or Ctrl-C.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import typer

from ephemera.cli.files import FAILED, WRONG_COMMAND, undefined_letter, write_out
from ephemera.engine.live import LiveEngine
from ephemera.io.jsonl import write_event

CHUNK = 1 << 16
PAUSE = 0.05
"""How long to wait for a file to grow, in seconds."""
INTERRUPTED = 130
LATE = "it came behind the bound of its source"


class Stream:
    """Engines, and where their answers and dead letters go."""

    def __init__(
        self, engines: Sequence[LiveEngine], output: Path | None, dead: Path | None, emit: Sequence[str]
    ) -> None:
        self._engines = engines
        self._emit = frozenset(emit)
        self._output = _opened(output)
        self._dead = _opened(dead)

    def run(self, inputs: Sequence[str], *, follow: bool) -> None:
        """Until the input ends; with `follow` the last file may grow for ever."""
        try:
            for lines in _chunks(inputs, follow=follow):
                self._each(lambda engine, lines=lines: engine.send_many(lines))  # type: ignore[misc]
            self._each(LiveEngine.finish)
        except KeyboardInterrupt:
            typer.echo(f"stopped: {self._summary()}", err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            self._close()
        if any(engine.stats().bad or engine.stats().late for engine in self._engines):
            typer.echo(self._summary(), err=True)

    def _each(self, work: Callable[[LiveEngine], list[dict[str, Any]]]) -> None:
        for engine in self._engines:
            answers = [a for a in work(engine) if not self._emit or a["event"] in self._emit]
            text = "".join(json.dumps(a, ensure_ascii=False) + "\n" for a in answers)
            if text and self._output is not None:
                self._output.write(text.encode("utf-8", "backslashreplace"))
                self._output.flush()
            elif text:
                write_out(text)
                sys.stdout.flush()
            self._bury(engine)

    def _bury(self, engine: LiveEngine) -> None:
        """What was wrong, late or without a value since the last time, to the dead letters; it is not kept here."""
        letters = [{"reason": b.reason, "event": b.original} for b in engine.bad]
        for event in engine.late:
            given = write_event(event, engine.catalogue, as_numbers=True)
            letters.append({"reason": LATE, "event": json.dumps(given, default=str)})
        letters += [undefined_letter(letter) for letter in engine.take_dead_letters()]
        engine.bad.clear()
        engine.late.clear()
        if letters and self._dead is not None:
            self._dead.write("".join(json.dumps(x, ensure_ascii=False) + "\n" for x in letters).encode("utf-8"))
            self._dead.flush()

    def _summary(self) -> str:
        stats = [engine.stats() for engine in self._engines]
        received = max((s.received for s in stats), default=0)
        bad, late = sum(s.bad for s in stats), sum(s.late for s in stats)
        hint = "" if self._dead is not None or not (bad or late) else "; `--dead-letter PATH` keeps them"
        return f"{received} events, {bad} bad, {late} late{hint}"

    def _close(self) -> None:
        for file in (self._output, self._dead):
            if file is not None:
                file.close()


def _opened(path: Path | None) -> IO[bytes] | None:
    if path is None:
        return None
    try:
        return path.open("wb")
    except OSError as error:
        typer.echo(f"cannot write {path}: {error.strerror}", err=True)
        raise typer.Exit(FAILED) from None


def _chunks(inputs: Sequence[str], *, follow: bool) -> Iterator[list[bytes]]:
    """The lines of all inputs, as many at a time as are there."""
    for number, name in enumerate(inputs):
        if name == "-":
            yield from _lines(sys.stdin.buffer, grows=False)
            continue
        try:
            file = Path(name).open("rb")  # noqa: SIM115 - closed below, and told apart from what goes wrong later
        except OSError as error:
            typer.echo(f"cannot read {name}: {error.strerror}", err=True)
            raise typer.Exit(WRONG_COMMAND) from None
        with file:
            yield from _lines(file, grows=follow and number == len(inputs) - 1)


def _lines(file: IO[bytes], *, grows: bool) -> Iterator[list[bytes]]:
    rest = b""
    while True:
        data = _available(file)
        if not data and grows:
            time.sleep(PAUSE)
            continue
        *lines, rest = (rest + data).split(b"\n") if data else ([rest] if rest else []) + [b""]
        found = [line for line in lines if line.strip()]
        if found:
            yield found
        if not data:
            return


def _available(file: IO[bytes]) -> bytes:
    """What can be read without waiting for more; nothing at the end."""
    try:
        return os.read(file.fileno(), CHUNK)
    except (AttributeError, OSError, ValueError):
        return file.read(CHUNK)
