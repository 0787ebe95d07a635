"""This module holds the command that tells stories to engines: `test`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path

import click

from ephemera.base.installed import lacking_spark
from ephemera.cli.files import WRONG_PROGRAM, read_text, tell, write_file, write_out
from ephemera.cli.spark import check_spark
from ephemera.stories.coverage import Coverage, coverage
from ephemera.stories.judge import Ready, applies, differences, judge_all, prepared, run_on
from ephemera.stories.read import BadStory, Story, read_story
from ephemera.stories.record import recorded


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


@dataclass(slots=True)
class Told:
    """What has come of a story: what is wrong with it, by the engine that says so, or in itself."""

    path: Path
    story: Story | None = None
    wrong: list[tuple[str, list[str]]] = field(default_factory=list)
    is_passed_over: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """What the command is to do besides running stories."""

    record: bool = False
    coverage: bool = False
    least: float | None = None
    """How many of a hundred rules have to match in some story."""
    as_json: bool = False


def stories_command(paths: Sequence[Path], engine: StoryEngine | None, options: Options) -> None:
    """Run stories on every engine; say which do not hold, and how. Spark runs all of them at once."""
    engines = _engines(engine)
    stories = [_read(path, options) for path in paths]
    readable = [(one, story) for one in stories if (story := one.story) is not None]
    for where in engines:
        found = judge_all([(str(one.path), story) for one, story in readable], engine=where)
        for (one, _), lines in zip(readable, found, strict=True):
            one.wrong += [(f"does not hold on {where.value}", lines)] if lines else []
    for one, story in readable:
        one.is_passed_over = not one.wrong and not any(applies(story, where) for where in engines)
    covered = _covered(readable) if options.coverage else None
    if options.as_json:
        _print_json(stories, covered)
    else:
        _print_text(stories, covered)
    too_few = covered is not None and options.least is not None and covered.percent < options.least
    if too_few and covered is not None:
        tell(f"rules that matched: {covered.percent:.1f} of a hundred, and --coverage-at-least is {options.least:g}")
    if too_few or any(one.wrong for one in stories):
        raise click.exceptions.Exit(WRONG_PROGRAM)


def _read(path: Path, options: Options) -> Told:
    """A story, with its answers recorded if that is wanted."""
    text = read_text(path)
    try:
        if options.record:
            text = _recorded(path, text, quiet=options.as_json)
        return Told(path, read_story(text, path.parent))
    except BadStory as error:
        return Told(path, None, [("is no story", [str(error)])])


def _recorded(path: Path, text: str, *, quiet: bool) -> str:
    """Writes what the engine in this process answers into a story that says something else, and shows what changed."""
    one = prepared(str(path), read_story(text, path.parent, unanswered=True))
    if not isinstance(one, Ready):
        return text  # it is told when the story is run
    found = run_on(one, "local")
    if one.story.is_answered and not differences(one, found):
        return text
    new = recorded(text, one, found)
    write_file(path, new)
    if not quiet:
        lines = unified_diff(text.splitlines(), new.splitlines(), str(path), str(path), n=1, lineterm="")
        write_out("".join(f"{line}\n" for line in lines))
    return new


def _covered(stories: Sequence[tuple[Told, Story]]) -> Coverage:
    ready = [(str(one.path), prepared(str(one.path), story)) for one, story in stories]
    return coverage((name, one) for name, one in ready if isinstance(one, Ready))


def _print_text(stories: Sequence[Told], covered: Coverage | None) -> None:
    for one in stories:
        for what, lines in one.wrong:
            for line in (f"{one.path} {what}:", *(f"    {line}" for line in lines)):
                click.echo(line, err=True)
    for line in covered.lines() if covered is not None else ():
        click.echo(line)
    passed, failed, idle = _counts(stories)
    over = f", {idle} passed over" if idle else ""
    click.echo(f"{passed} passed, {failed} failed{over}")


def _print_json(stories: Sequence[Told], covered: Coverage | None) -> None:
    passed, failed, idle = _counts(stories)
    told = {
        "stories": [
            {
                "story": str(one.path),
                "holds": None if one.is_passed_over else not one.wrong,
                "wrong": [{"what": what, "lines": lines} for what, lines in one.wrong],
            }
            for one in stories
        ],
        "passed": passed,
        "failed": failed,
        "passed_over": idle,
    }
    more = {} if covered is None else {"coverage": covered.as_json()}
    write_out(json.dumps({**told, **more}, indent=2, ensure_ascii=False) + "\n")


def _counts(stories: Sequence[Told]) -> tuple[int, int, int]:
    """How many have passed, failed, and been passed over."""
    failed, idle = sum(bool(one.wrong) for one in stories), sum(one.is_passed_over for one in stories)
    return len(stories) - failed - idle, failed, idle


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
