"""This module runs every story on every engine there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ephemera.stories.judge import judge
from ephemera.stories.read import BadStory, read_story

STORIES = sorted(Path(__file__).parent.glob("*.md"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_holds(path: Path) -> None:
    assert judge(read_story(path.read_text(encoding="utf-8")), path.name) == []


def test_there_are_enough_stories() -> None:
    assert len(STORIES) >= 120


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace("```eq", "```"), "one eq block"),
        (lambda text: text.replace("Answers:", "So:"), "Answers:"),
        (lambda text: text.split("Answers:")[0] + "Answers: none.\n", "No answers."),
    ],
)
def test_a_story_without_its_parts_is_refused(change: object, complaint: str) -> None:
    text = STORIES[0].read_text(encoding="utf-8")
    assert callable(change)
    with pytest.raises(BadStory, match=complaint):
        read_story(change(text))
