"""This module shows that every story holds on Spark, with all of them in one job, and that one that fails is seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner
from pyspark.sql import SparkSession

from ephemera.base.errors import EphemeraError
from ephemera.cli.main import app
from ephemera.language import compile
from ephemera.stories.judge import Found, Ready, applies, judge_all, judged_together
from ephemera.stories.read import read_story

PATHS = sorted((Path(__file__).parents[1] / "stories").glob("*.md"))
STORIES = [(path.name, read_story(path.read_text(encoding="utf-8"))) for path in PATHS]

RIGHT = """# An order is seen

```eq
seen(id) <- o: order(id);
```

| event | time | data |
|-------|------|------|
| order | 1    | [7]  |

Answers: it was there.

| event | time | data |
|-------|------|------|
| seen  | 1    | [7]  |
"""
WRONG = RIGHT.replace("| seen  | 1    | [7]  |", "| seen  | 1    | [8]  |")
LIVE = RIGHT.replace("```\n\n|", "```\n\nLive:\n\n|", 1)
DIFFERENCES = [
    'missing:  {"event": "seen", "time": 1, "data": [8]}',
    'too much: {"event": "seen", "time": 1, "data": [7]}',
]


def test_every_story_holds_on_spark_with_all_of_them_in_one_job(spark: SparkSession) -> None:
    assert spark is not None
    told = [(name, story) for name, story in STORIES if applies(story, "spark")]
    assert len(told) > 300
    wrong = dict(zip([name for name, _ in told], judge_all(told, engine="spark"), strict=True))
    assert {name: lines for name, lines in wrong.items() if lines} == {}


def test_a_story_that_fails_among_others_is_run_alone_and_told_of(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    for name, text in (("right.md", RIGHT), ("wrong.md", WRONG), ("live.md", LIVE)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    names = [str(tmp_path / name) for name in ("right.md", "wrong.md", "live.md")]
    result = CliRunner().invoke(app, ["test", *names, "--engine", "spark"])
    assert result.exit_code == 1
    assert result.output == "\n".join(
        [
            f"{names[1]} does not hold on spark:",
            *(f"    {d}" for d in DIFFERENCES),
            "1 passed, 1 failed, 1 passed over",
            "",
        ]
    )


def test_what_fails_as_a_whole_is_split_until_the_culprit_is_alone() -> None:
    stories = [_ready(RIGHT) for _ in range(5)]
    sizes: list[int] = []

    def run(given: Sequence[Ready]) -> list[Found]:
        sizes.append(len(given))
        if any(one is stories[3] for one in given):
            raise EphemeraError("a mistake of the engine")
        return [Found([{"event": "seen", "time": 1, "data": [7]}]) for _ in given]

    assert judged_together(stories, run) == [[], [], [], ["a mistake of the engine"], []]
    assert sizes == [5, 2, 3, 1, 2, 1, 1]


def test_a_story_that_holds_alone_but_not_among_others_fails() -> None:
    def run(given: Sequence[Ready]) -> list[Found]:
        return [Found([{"event": "seen", "time": 1, "data": [7 if len(given) == 1 else 8]}]) for _ in given]

    first, second = judged_together([_ready(RIGHT), _ready(RIGHT)], run)
    assert first == second
    assert first[0] == "it holds alone, but not in one run with the others:"


def test_a_program_that_fails_in_a_worker_spoils_no_other_and_says_what_local_says(spark: SparkSession) -> None:
    assert spark is not None
    growing = "seen(id) <- o: order(id);\nseen(2 * n) <- s: seen(n);\nseen(2 * n + 1) <- s: seen(n);"
    endless = read_story(RIGHT.replace("seen(id) <- o: order(id);", growing))
    told = [("right.eq", read_story(RIGHT)), ("endless.eq", endless)]
    good, wrong = judge_all(told, engine="spark")
    assert good == []
    (said,) = judge_all(told, engine="local")[1]
    assert wrong[0].startswith(said)
    assert "Traceback" not in wrong[0]


def _ready(text: str) -> Ready:
    return Ready(read_story(text), compile(read_story(text).program), {})
