"""This module holds the command that tells stories to engines: `test`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import click

from ephemera.base.installed import lacking_spark
from ephemera.cli.files import WRONG_PROGRAM, read_text, tell
from ephemera.cli.spark import check_spark
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
_ON_SPARK = (StoryEngine.spark, StoryEngine.stream)


def stories_command(stories: Sequence[Path], engine: StoryEngine | None) -> None:
    """Run stories on every engine; say which do not hold, and how. Spark runs all of them at once."""
    engines = _engines(engine)
    wrong: dict[Path, list[str]] = {path: [] for path in stories}
    told: dict[Path, Story] = {}
    for path in stories:
        try:
            told[path] = read_story(read_text(path))
        except BadStory as error:
            wrong[path] += [f"{path} is no story:", f"    {error}"]
    for one in engines:
        found = judge_all([(str(path), story) for path, story in told.items()], engine=one)
        for path, lines in zip(told, found, strict=True):
            wrong[path] += (
                [f"{path} does not hold on {one.value}:", *(f"    {line}" for line in lines)] if lines else []
            )
    for path in stories:
        for line in wrong[path]:
            click.echo(line, err=True)
    failed = sum(bool(wrong[path]) for path in stories)
    idle = sum(not wrong[path] and not any(applies(told[path], one) for one in engines) for path in stories)
    over = f", {idle} passed over" if idle else ""
    click.echo(f"{len(stories) - failed - idle} passed, {failed} failed{over}")
    if failed:
        raise click.exceptions.Exit(WRONG_PROGRAM)


def _engines(engine: StoryEngine | None) -> list[StoryEngine]:
    """Where stories run: on the engine that is asked for, else on those that are installed."""
    if engine is not None:
        if engine in _ON_SPARK:
            check_spark("leave --engine out", who=f"the engine `{engine.value}`")
        return [engine]
    lack = lacking_spark()
    if lack is None:
        return list(_USUAL)
    tell(f"stories run without Spark here: {lack}")
    return [one for one in _USUAL if one not in _ON_SPARK]
