"""This module runs programs by the oracle from the command line, and writes what comes of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from heapq import merge
from pathlib import Path
from typing import Any

import click

from ephemera.base.errors import EphemeraError
from ephemera.cli.files import FAILED, bad_letter, undefined_letter, write_file, write_out
from ephemera.cli.inputs import Given, read_all
from ephemera.cli.progress import (
    count_lines,
    is_shown,
    note_lines,
    shown_progress,
    tell_notes,
    tell_unused,
    tell_warnings,
)
from ephemera.cli.spark import Wanted
from ephemera.engine.hosts.batch import Run
from ephemera.program import Program


def run_oracle(
    programs: Sequence[Program],
    paths: Sequence[Path],
    tables: Sequence[dict[str, list[dict[str, Any]]]],
    given: Sequence[Given],
    wanted: Wanted,
) -> None:
    """A run over history by the oracle, which goes through the events of each program again and again."""
    began = time.monotonic()
    runs: list[Run] = []
    for program, path, own, reading in zip(
        programs, paths, tables, read_all(programs, given, wanted.emit, lenient=wanted.lenient), strict=True
    ):
        try:
            with shown_progress(path.name, wanted=wanted.progress) as tell:
                more: dict[str, Any] = {"tables": own, "until": wanted.until, "progress": tell}
                runs.append(program._run_read(reading, engine="oracle", **more))
        except EphemeraError as error:
            click.echo(f"{path}: {error}", err=True)
            raise click.exceptions.Exit(FAILED) from None
    letters = wanted.dead_letter
    write = partial(_write_answers, runs, None if wanted.output is None else Path(wanted.output))
    bury = partial(_write_dead_letters, runs, wanted.names, letters)
    for put in (bury, write) if letters is not None else (write, bury):  # answers last: a run that fails leaves none
        put()
    tell_notes(note for run in runs for note in run.said)
    if is_shown(wanted=wanted.progress):
        _print_summary(runs, wanted.names, time.monotonic() - began)
    tell_warnings((note for run in runs for note in run.warnings), strict=wanted.strict)


def _write_answers(runs: list[Run], output: Path | None) -> None:
    merged = merge(*(run.output for run in runs), key=lambda line: line[0])
    text = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for _, answer in merged)
    if output is None:
        write_out(text)
    else:
        write_file(output, text)


def _write_dead_letters(runs: Sequence[Run], names: Sequence[dict[str, str]], output: Path | None) -> None:
    both = list(zip(runs, names, strict=True))
    letters: list[dict[str, Any]] = [bad_letter(b) | name for run, name in both for b in run.bad]
    letters += [undefined_letter(u) | name for run, name in both for u in run.undefined]
    if output is not None:
        write_file(output, "".join(json.dumps(letter, ensure_ascii=False, default=str) + "\n" for letter in letters))
    elif letters:
        tell_unused(len(letters), letters[0])


def _print_summary(runs: Sequence[Run], names: Sequence[dict[str, str]], seconds: float) -> None:
    answers = Counter(answer["event"] for run in runs for _, answer in run.output)
    letters = sum(len(run.bad) + len(run.undefined) for run in runs)
    lines = count_lines(max((run.read for run in runs), default=0), answers, letters, seconds)
    lacking = [[note for note in run.notes if note not in (*run.said, *run.warnings)] for run in runs]
    click.echo("\n".join([*lines, *note_lines(lacking, names)]), err=True)
