"""This module writes programs in their one layout for the command `fmt`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ephemera.base.diagnostic import Report
from ephemera.base.span import Source
from ephemera.cli.files import WRONG_COMMAND, WRONG_PROGRAM, print_reports, read_program, write_file, write_out
from ephemera.syntax.format import format
from ephemera.syntax.parser import parse


def format_programs(paths: Sequence[Path], *, only_check: bool) -> None:
    """Rewrites programs, or only says which would change."""
    sources = [read_program(path) for path in paths]
    wrong = [_rewrite(path, s, only_check=only_check) for path, s in zip(paths, sources, strict=True) if s]
    if None in sources or any(wrong):
        raise click.exceptions.Exit(WRONG_COMMAND if None in sources else WRONG_PROGRAM)


def _rewrite(path: Path, source: Source | Report, *, only_check: bool) -> bool:
    """Formats one program; whether it is wrong, or would change where it must not."""
    if isinstance(source, Report):
        print_reports([source])
        return True
    parsed = parse(source)
    if parsed.report.failed:
        print_reports([parsed.report])
        return True
    text = format(parsed.program, parsed.comments, source.text)
    if only_check:
        if text != source.text:
            click.echo(f"{path} would change", err=True)
        return text != source.text
    from ephemera.connect.atomic_files import is_open_end

    if str(path) == "-" or is_open_end(path):  # a pipe is no file that could be rewritten
        write_out(text)
    elif text != source.text:
        write_file(path, text)
    return False
