"""This module says what a change of a program would do to one that runs: `explain --change`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from ephemera.analysis.unbounded import unbounded_in
from ephemera.cli.files import WRONG_COMMAND, WRONG_PROGRAM, write_out
from ephemera.cli.programs import compile_all
from ephemera.engine.change import explain
from ephemera.engine.change.compared import ChangeRefused
from ephemera.rules.emitted import unknown_emitted


def explain_change(
    old: Path, new: Path, emit: Sequence[str], *, with_others: bool, machine: bool, allow_unbounded: bool
) -> None:
    """Prints what becomes of each rule, and what would be lacking."""
    if with_others:
        click.echo("--change says what becomes of rules; leave out --stage, --points, --analyze and --input", err=True)
        raise click.exceptions.Exit(WRONG_COMMAND)
    before, after = compile_all([old, new], unbounded_in("live", allowed=allow_unbounded))
    wrong = unknown_emitted(emit, [before._rules.resolved, after._rules.resolved])
    if wrong is not None:
        click.echo(wrong, err=True)
        raise click.exceptions.Exit(WRONG_COMMAND)
    plans = before._planned(emit).live(), after._planned(emit).live()
    try:
        if machine:
            write_out(json.dumps(explain.as_json(*plans), indent=2, ensure_ascii=False) + "\n")
        else:
            write_out(explain.as_text(*plans) + "\n")
    except ChangeRefused as refused:
        click.echo(f"a program that runs cannot be changed so: {refused}", err=True)
        raise click.exceptions.Exit(WRONG_PROGRAM) from None
