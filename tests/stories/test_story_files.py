"""This module shows how stories name program files and streams, and have their answers recorded and rules counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ephemera.cli.main import app
from ephemera.stories.judge import Ready, canonical, judge, prepared, run_on
from ephemera.stories.read import BadStory, read_story, story_at
from ephemera.stories.record import recorded

PROGRAM = """\
TIME UNIT 1 hour;
EVENT order(id: string, qty: int);
EVENT shipped(id: string);
STREAM shop CARRIES order WATERMARK 1 sec;
STREAM floor CARRIES shipped;
overdue(id) <- o: order(id, qty), w: extend(o, 6), while w: not shipped(id), qty < 10;
huge(id) <- o: order(id, qty), qty > 1000;
"""
STORY = """\
# A small order is overdue after six hours

Program: [the rules of the shop](../the%20shop.eq), as they run.

Stream `shop`:

| time | data     |
|------|----------|
| 1    | ["a", 3] |
| 2    | ["b", 3] |

Stream `floor`:

| event   | time | data  |
|---------|------|-------|
| shipped | 8    | ["b"] |
"""
ANSWERS = """
Answers: `b` was shipped at the last moment.

| event   | time     | data  |
|---------|----------|-------|
| overdue | `[1, 7]` | ["a"] |
"""


@pytest.fixture
def story(tmp_path: Path) -> Path:
    (tmp_path / "the shop.eq").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "stories").mkdir()
    path = tmp_path / "stories" / "overdue.md"
    path.write_text(STORY + ANSWERS, encoding="utf-8")
    return path


def test(*words: str | Path) -> Result:
    result = CliRunner().invoke(app, ["test", "--engine", "local", *map(str, words)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


test.__test__ = False  # type: ignore[attr-defined]


# ---- programs and streams ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["oracle", "local"])
def test_a_story_links_to_its_program_from_where_it_stands(engine: str, story: Path) -> None:
    assert judge(story_at(story), engine=engine) == []


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("(nowhere.eq)", "nowhere.eq: No such file"),
        ("(latin.eq)", "latin.eq: it is not UTF-8"),
        ("(<../the shop.eq>)", ""),
    ],
)
def test_a_program_that_cannot_be_read_is_named(link: str, complaint: str, story: Path) -> None:
    (story.parent / "latin.eq").write_bytes(b"-- \xe9\n")
    story.write_text((STORY + ANSWERS).replace("(../the%20shop.eq)", link), encoding="utf-8")
    done = test(story)
    assert (done.exit_code, complaint in done.stderr) == (1 if complaint else 0, True)


def test_a_story_has_one_program(story: Path) -> None:
    with pytest.raises(BadStory, match="not 1, and 1 links"):
        read_story(STORY + "\n```eq\nEVENT a();\n```\n" + ANSWERS, story.parent)


def test_what_is_wrong_with_a_program_stands_at_its_place_in_its_file(story: Path) -> None:
    (story.parent.parent / "the shop.eq").write_text(PROGRAM.replace("qty > 1000", "q > 1000"), encoding="utf-8")
    assert "the shop.eq:7:32" in test(story).stderr
    inline = STORY.replace(STORY.splitlines()[2], "```eq\n" + PROGRAM.replace("qty > 1000", "q > 1000") + "```")
    story.write_text(inline + ANSWERS, encoding="utf-8")
    assert "overdue.md:10:32" in test(story).stderr


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("Stream `floor`", "Stream `flor`", "Stream `flor`: the program declares none of that name; `floor` is one"),
        ("| shipped | 8 ", "| order   | 8 ", "the stream `floor` carries `shipped`, and not `order`"),
        ("Stream `floor`:\n", "", "a row of the table of input has no `event`"),
        ("Stream `floor`:\n\n", "Stream `floor`:\n\nAnd: \n\nTable `zone`:\n\n", "no table behind Stream `floor`"),
        ("Stream `floor`", "Table `floor`", "Table `floor`: the program declares none of that name"),
    ],
)
def test_rows_come_by_the_stream_that_carries_them(old: str, new: str, complaint: str, story: Path) -> None:
    text = (STORY + ANSWERS).replace(old, new)
    if old.endswith(":\n"):
        text = text.replace("Stream `shop`:\n", "")  # then both tables are of no stream
        complaint = "one table of input, or one for each stream"
    story.write_text(text, encoding="utf-8")
    assert complaint in test(story).stderr


def test_rows_of_a_stream_of_several_types_name_theirs(story: Path) -> None:
    program = story.parent.parent / "the shop.eq"
    program.write_text(
        PROGRAM.replace("CARRIES order W", "CARRIES order, huge W").replace("huge(id) <-", "big(id) <-")
        + "EVENT huge(id: string);"
    )
    assert "the stream `shop` carries `order`, `huge`, so its rows name the `event`" in test(story).stderr


LIVE = (
    (STORY + ANSWERS)
    .replace("Answers:", "Live: as it comes.\n\nAnswers:")
    .replace("| time | data     |\n|------|----------|", "| row | time | data     |\n|-----|------|----------|")
    .replace("| 1    | [", "| 1 | 1    | [")
    .replace("| 2    | [", "| 3 | 2    | [")
    .replace(
        "| event   | time | data  |\n|---------|------|-------|",
        "| row | event   | time | data  |\n|---|---------|------|-------|",
    )
    .replace("| shipped | 8    ", "| 2 | shipped | 8    ")
    .replace(
        "| event   | time     | data  |\n|---------|----------|-------|",
        "| event   | time     | data  | after |\n|---|---|---|---|",
    )
    .replace('| `[1, 7]` | ["a"] |', '| `[1, 7]` | ["a"] | end |')
)


def test_rows_of_a_live_story_arrive_by_their_numbers(story: Path) -> None:
    story.write_text(LIVE, encoding="utf-8")
    assert test(story).exit_code == 0
    story.write_text(LIVE.replace("| end |", "| 3 |"), encoding="utf-8")
    assert "given at the end, and not after row 3" in test(story).stderr


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("| 3 | 2 ", "| 2 | 2 ", "numbers all rows of input from 1 to 3, each once"),
        ("| row |", "| nr |", "says in a column `row` in which order rows arrive"),
    ],
)
def test_the_order_of_arrival_over_several_tables_is_said(old: str, new: str, complaint: str, story: Path) -> None:
    story.write_text(LIVE.replace(old, new), encoding="utf-8")
    assert complaint in test(story).stderr


# ---- answers that are recorded -----------------------------------------------------------------------------


def test_answers_that_are_missing_are_recorded_and_the_rest_of_the_story_stays(story: Path) -> None:
    story.write_text(STORY, encoding="utf-8")
    assert "`ephemera test --record` writes the table" in test(story).stderr
    assert story.read_text(encoding="utf-8") == STORY  # without the flag nothing is written
    done = test("--record", story)
    assert (done.exit_code, '+| overdue | [1, 7] | ["a"] |' in done.stdout) == (0, True)
    written = story.read_text(encoding="utf-8")
    assert written.startswith(STORY)
    assert "Answers: recorded; say here why these hold" in written
    assert test(story).exit_code == 0


def test_what_holds_in_a_table_stays_as_it_was_written(story: Path) -> None:
    wrong = (
        ANSWERS.replace("| overdue | `[1, 7]`", '| overdue | [2, 8]   | ["b"] |\n| overdue | `[1, 7]`') + "\nMore.\n"
    )
    story.write_text(STORY + wrong, encoding="utf-8")
    done = test("--record", story)
    assert done.exit_code == 0
    assert [line for line in done.stdout.splitlines() if line.startswith(("-|", "+|"))] == [
        '-| overdue | [2, 8]   | ["b"] |'
    ]
    assert story.read_text(encoding="utf-8") == STORY + ANSWERS + "\nMore.\n"


def test_a_story_that_holds_is_not_touched(story: Path) -> None:
    before = story.stat().st_mtime_ns
    assert test("--record", story).stdout == "1 passed, 0 failed\n"
    assert story.stat().st_mtime_ns == before


def test_no_answers_become_some_and_some_become_none(story: Path) -> None:
    none = ANSWERS[: ANSWERS.index("\n|")] + "\nNo answers.\n"
    story.write_text(STORY + none, encoding="utf-8")
    assert test("--record", story).exit_code == 0
    told = story.read_text(encoding="utf-8")
    assert '| overdue | [1, 7] | ["a"] |\n' in told
    assert "No answers." not in told
    story.write_text(told.replace('["a", 3]', '["a", 30]'), encoding="utf-8")
    assert test("--record", story).exit_code == 0
    assert story.read_text(encoding="utf-8") == (STORY + none).replace('["a", 3]', '["a", 30]')


def test_what_is_bad_or_late_and_when_answers_come_is_recorded_too(story: Path) -> None:
    odd = (
        LIVE[: LIVE.index("\nAnswers:")]
        .replace('["b", 3]', '["b", "x"]')
        .replace("| 2 | shipped | 8 ", "| 2 | shipped | 0 ")
    )
    odd = odd.replace('| 1 | 1    | ["a", 3] |', '| 1 | 1    | ["a\\|é", 3] |\n| 4 | 1    | ["late", 3] |')
    story.write_text(odd.replace("| 4 | 1 ", "| 4 | 0 "), encoding="utf-8")
    assert test("--record", story).exit_code == 0
    rows = [
        line
        for line in story.read_text(encoding="utf-8").splitlines()
        if line.startswith(("| overdue", "| bad", "| late"))
    ]
    assert rows == [
        '| overdue | [1, 7] | ["a\\|é"] | end   |',
        '| bad     | 2      | "order"  |       |',
        '| late    | 0      | "order"  |       |',
    ]


def test_a_program_that_does_not_pass_is_told_and_nothing_is_recorded(story: Path) -> None:
    (story.parent.parent / "the shop.eq").write_text("a(x) <- o: order(id);", encoding="utf-8")
    story.write_text(STORY, encoding="utf-8")
    assert test("--record", story).exit_code == 1
    assert story.read_text(encoding="utf-8") == STORY


STORIES = sorted(Path(__file__).parent.glob("*.md"))[::25]


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_gets_back_the_answers_that_it_had(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    before, emit = text.split("\nAnswers:")[0], [line for line in text.splitlines() if line.startswith("Emit:")]
    live = ["Live: still."] if read_story(text).is_live else []
    bare = "\n\n".join([before, *emit, *live, "Answers: none yet.\n"])
    one = prepared(path.name, read_story(bare, unanswered=True))
    assert isinstance(one, Ready)
    told = read_story(recorded(bare, one, run_on(one, "local")))
    assert judge(told, path.name) == []
    keys = [{canonical(a, one.program.catalogue) for a in story.answers} for story in (told, read_story(text))]
    assert keys[0] == keys[1]


# ---- rules that no story shows -----------------------------------------------------------------------------


def test_rules_that_never_matched_in_any_story_are_named(story: Path) -> None:
    done = test("--coverage", story)
    assert done.exit_code == 0
    first, second, last = done.stdout.splitlines()
    assert first == "coverage: 1 of 2 rules matched in some story"
    assert second.endswith("the shop.eq: rule 2 `huge` (line 7) never matched")
    assert last == "1 passed, 0 failed"


def test_stories_of_one_program_cover_it_together(story: Path) -> None:
    other = story.with_name("huge.md")
    other.write_text(
        (STORY + ANSWERS).replace('["a", 3]', '["a", 3000]').replace("| overdue | `[1, 7]`", "| huge    | 1 "),
        encoding="utf-8",
    )
    done = test("--coverage-at-least", "100", story, other)
    assert (done.exit_code, done.stdout) == (0, "coverage: 2 of 2 rules matched in some story\n2 passed, 0 failed\n")


def test_a_rule_that_is_not_needed_for_what_a_story_asks_for_is_not_shown_by_it(story: Path) -> None:
    text = (STORY + ANSWERS).replace("Answers:", "Emit: `overdue`\n\nAnswers:").replace('["b", 3]', '["b", 3000]')
    story.write_text(text, encoding="utf-8")
    assert "coverage: 1 of 2" in test("--coverage", story).stdout


def test_too_few_rules_that_match_are_an_error(story: Path) -> None:
    done = test("--coverage-at-least", "50.1", story)
    assert (done.exit_code, done.stderr) == (
        1,
        "rules that matched: 50.0 of a hundred, and --coverage-at-least is 50.1\n",
    )
    assert test("--coverage-at-least", "50", story).exit_code == 0


def test_machines_read_what_came_of_stories_and_in_which_of_them_rules_matched(story: Path) -> None:
    wrong = story.with_name("wrong.md")
    wrong.write_text((STORY + ANSWERS).replace("`[1, 7]`", "[1, 8]"), encoding="utf-8")
    done = test("--format", "json", "--coverage", story, wrong)
    told = json.loads(done.stdout)
    assert (done.exit_code, done.stderr) == (1, "")
    assert (told["passed"], told["failed"], told["passed_over"]) == (1, 1, 0)
    assert [one["holds"] for one in told["stories"]] == [True, False]
    (what,) = told["stories"][1]["wrong"]
    assert (what["what"], len(what["lines"])) == ("does not hold on local", 2)
    assert (told["coverage"]["rules"], told["coverage"]["matched"]) == (2, 1)
    assert [rule["matched_in"] for rule in told["coverage"]["programs"][0]["rules"]] == [[str(story), str(wrong)], []]
