"""This module runs pytest as others do, with the plug-in: it collects their stories, and costs them nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testing.test_virtual import SHOP
from tests.unit.test_docs import read

ROOT = Path(__file__).parents[2]
STORY = """\
# A small order is overdue after six hours

Program: [shop.eq](../shop.eq)

| event | time | data     |
|-------|------|----------|
| order | 1    | ["a", 3] |

Answers: nothing was shipped.

| event   | time   | data  |
|---------|--------|-------|
| overdue | [1, 7] | ["a"] |
"""
TEST = """\
import ephemera
import pytest


def test_an_order_is_overdue(eph_engine):
    engine = eph_engine("shop.eq")
    engine.send("order", "a", 3)
    engine.advance("6h")
    assert engine.answers == [{"event": "overdue", "time": [0, 6], "data": ["a"]}]


def test_programs_are_files_texts_or_programs(eph_engine):
    assert eph_engine(ephemera.load("shop.eq")).now == eph_engine("EVENT a();").now == 0
    with pytest.raises(FileNotFoundError, match="no program ship.eq beside"):
        eph_engine("ship.eq")
    with pytest.raises(ephemera.ProgramError):
        eph_engine("a(x) <- b(y);")
"""
LOADED = """\
import sys


def test_nothing_of_ours_is_loaded_until_it_is_asked_for(pytestconfig):
    assert pytestconfig.pluginmanager.hasplugin("ephemera.testing.plugin")
    ours = sorted(name for name in sys.modules if name.startswith("ephemera"))
    assert ours == ["ephemera", "ephemera.testing", "ephemera.testing.plugin"]
    assert not {"numpy", "pyarrow", "pyspark", "click"} & set(sys.modules)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "stories").mkdir()
    (tmp_path / "stories" / "overdue.md").write_text(STORY, encoding="utf-8")
    (tmp_path / "README.md").write_text("# No story\n", encoding="utf-8")
    (tmp_path / "shop.eq").write_text(SHOP, encoding="utf-8")
    (tmp_path / "pytest.toml").write_text('[pytest]\nephemera_stories = ["stories/*.md"]\n', encoding="utf-8")
    return tmp_path


def run(project: Path, *words: str) -> tuple[dict[str, int], str]:
    """The outcomes of a run of pytest that has no other plug-in, and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    options = ["-p", "ephemera.testing.plugin", "-p", "no:cacheprovider", "-W", "error", "-rs"]
    command = [sys.executable, "-m", "pytest", *options, *words]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    counts = re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout.splitlines()[-1])
    return {name: int(count) for count, name in counts}, done.stdout + done.stderr


def test_stories_and_engines_are_tested_beside_everything_else(project: Path) -> None:
    (project / "test_shop.py").write_text(TEST, encoding="utf-8")
    counts, told = run(project, "-v")
    assert counts == {"passed": 4}, told
    assert "stories/overdue.md::local PASSED" in told
    assert "stories/overdue.md::oracle PASSED" in told
    assert "README" not in told


def test_a_story_that_does_not_hold_fails_with_what_is_wrong_and_no_trace(project: Path) -> None:
    (project / "stories" / "overdue.md").write_text(STORY.replace("[1, 7]", "[1, 8]"), encoding="utf-8")
    (project / "stories" / "none.md").write_text(STORY.replace("Answers:", "So:"), encoding="utf-8")
    counts, told = run(project)
    assert counts == {"failed": 4}, told
    assert 'missing:  {"event": "overdue", "time": [1, 8], "data": ["a"]}' in told
    assert "none.md is no story:" in told
    assert "Traceback" not in told
    assert "judge.py" not in told


def test_stories_run_on_the_engines_that_a_project_names(project: Path) -> None:
    (project / "stories" / "live.md").write_text(STORY.replace("Answers:", "Live:\n\nAnswers:"), encoding="utf-8")
    counts, told = run(project, "-o", "ephemera_engines=local spark", "-k", "live")
    assert counts == {"passed": 1, "skipped": 1}, told
    assert "not told to an engine that knows only whole histories" in told
    _, told = run(project, "-o", "ephemera_engines=lokal")
    assert "there is no engine `lokal`; there are local, oracle, spark, stream" in told


def test_a_project_that_names_no_stories_notices_nothing(project: Path) -> None:
    (project / "pytest.toml").unlink()
    (project / "test_loaded.py").write_text(LOADED, encoding="utf-8")
    counts, told = run(project)
    assert counts == {"passed": 1}, told


def test_the_example_of_the_documentation_is_a_test_that_passes(project: Path) -> None:
    blocks = {(block.language, block.file): block.text for block in read(ROOT / "docs" / "stories.md")}
    (project / "test_shop.py").write_text(blocks["python", None], encoding="utf-8")
    (project / "shop.eq").write_text(blocks["eq", "shop.eq"], encoding="utf-8")
    (project / "pytest.toml").unlink()
    setting = next(text for (language, _), text in blocks.items() if language == "toml")
    (project / "pyproject.toml").write_text(setting.replace("tests/", ""), encoding="utf-8")
    counts, told = run(project)
    assert counts == {"passed": 2}, told
