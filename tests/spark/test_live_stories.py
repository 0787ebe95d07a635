"""This module shows that every story holds live on Spark, all in one query: one row at a time, and all at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ephemera.stories.judge import Ready, judged_together, prepared
from ephemera.stories.on_stream import run_on_stream
from ephemera.stories.read import read_story

LARGE = 10_000
"""More events than a batch has."""
PATHS = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))


@pytest.mark.parametrize(
    ("at_once", "small"),
    [
        pytest.param(False, LARGE, id="one row at a time in one task"),
        pytest.param(False, 0, id="one row at a time in several tasks", marks=pytest.mark.slow),
        pytest.param(True, LARGE, id="all at once in one task", marks=pytest.mark.slow),
        pytest.param(True, 0, id="all at once in several tasks", marks=pytest.mark.slow),
    ],
)
def test_every_story_holds_live(spark: SparkSession, at_once: bool, small: int) -> None:
    assert spark is not None
    told = [prepared(path.name, read_story(path.read_text(encoding="utf-8"))) for path in PATHS]
    ready = [one for one in told if isinstance(one, Ready)]
    assert len(ready) == len(PATHS) > 300
    found = judged_together(ready, partial(run_on_stream, at_once=at_once, small=small))
    wrong = {path.name: lines for path, lines in zip(PATHS, found, strict=True) if lines}
    assert wrong == {}
