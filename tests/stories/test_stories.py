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


LIVE = STORIES[0].parent / "late-a-late-event-retracts-nothing.md"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('["a"]     | 3 ', '["a"]     | 2 ', "given after row 3, and not after row 2"),
        ('["d"]     | end', '["d"]     | 6', "given at the end, and not after row 6"),
        ("| late    | 5   ", "| late    | 6   ", "late events: expected ['shipped'], found ['shipped at 5']"),
        ('| late    | 5        | "shipped" |       |\n', "Live: indeed.\n", "late events: expected []"),
    ],
)
def test_a_live_story_says_what_is_late_and_when_answers_are_given(old: str, new: str, complaint: str) -> None:
    text = LIVE.read_text(encoding="utf-8")
    assert judge(read_story(text), LIVE.name, engine="local") == []
    wrong = judge(read_story(text.replace(old, new)), LIVE.name, engine="local")
    assert [line for line in wrong if complaint in line]


def test_after_names_a_row_or_the_end() -> None:
    text = LIVE.read_text(encoding="utf-8").replace("| end   |", "| soon  |")
    with pytest.raises(BadStory, match="`after` names a row"):
        read_story(text)
