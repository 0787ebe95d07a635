"""This module holds the command that tells stories to engines: `test`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ephemera.cli.files import WRONG_PROGRAM, read_text
from ephemera.stories.judge import applies, judge_all
from ephemera.stories.read import BadStory, Story, read_story


class StoryEngine(StrEnum):
    """What stories are told to: the engine in this process, the definition of the language itself, or Spark.

    Spark is given whole histories, or, as `stream`, one row after the other.
    """

    local = "local"
    oracle = "oracle"
    spark = "spark"
    stream = "stream"


_USUAL = (StoryEngine.local, StoryEngine.oracle, StoryEngine.spark)
"""Where stories run unless told otherwise: as a stream each row is a batch, and batches of Spark take their time."""


def stories_command(
    stories: Annotated[list[Path], typer.Argument(metavar="STORY.md…", help="Stories to run.", show_default=False)],
    engine: Annotated[
        StoryEngine | None,
        typer.Option("--engine", help="Only on this engine; otherwise on all but stream, which is live on Spark."),
    ] = None,
) -> None:
    """Run stories on every engine; say which do not hold, and how. Spark runs all of them at once."""
    wrong: dict[Path, list[str]] = {path: [] for path in stories}
    told: dict[Path, Story] = {}
    for path in stories:
        try:
            told[path] = read_story(read_text(path))
        except BadStory as error:
            wrong[path] += [f"{path} is no story:", f"    {error}"]
    engines = [engine] if engine else list(_USUAL)
    for one in engines:
        found = judge_all([(str(path), story) for path, story in told.items()], engine=one)
        for path, lines in zip(told, found, strict=True):
            wrong[path] += (
                [f"{path} does not hold on {one.value}:", *(f"    {line}" for line in lines)] if lines else []
            )
    for path in stories:
        for line in wrong[path]:
            typer.echo(line, err=True)
    failed = sum(bool(wrong[path]) for path in stories)
    idle = sum(not wrong[path] and not any(applies(told[path], one) for one in engines) for path in stories)
    over = f", {idle} passed over" if idle else ""
    typer.echo(f"{len(stories) - failed - idle} passed, {failed} failed{over}")
    if failed:
        raise typer.Exit(WRONG_PROGRAM)
