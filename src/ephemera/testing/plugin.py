"""This module is the plug-in for pytest: it collects stories, and gives tests engines on virtual time.

pytest loads it in every project where Ephemera is installed. So it loads nothing of ours until a test asks for it, and
collects only files that the project names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from ephemera.program import Program
    from ephemera.testing.virtual import VirtualEngine

    EngineMaker: TypeAlias = Callable[..., VirtualEngine]

_STORIES, _ENGINES = "ephemera_stories", "ephemera_engines"
_KNOWN = ("local", "oracle", "spark", "stream")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The settings of a project."""
    parser.addini(_STORIES, "which Markdown files are stories of Ephemera: patterns such as stories/*.md", "args", [])
    parser.addini(_ENGINES, "on which engines stories run", "args", ["local", "oracle"])


# ---- stories -----------------------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Files that the project names as stories."""
    patterns = parent.config.getini(_STORIES)
    if not patterns or not any(file_path.match(pattern) for pattern in patterns):
        return None
    return StoryFile.from_parent(parent, path=file_path)


class StoryFile(pytest.File):
    """A story, which is told to each engine."""

    def collect(self) -> Iterator[StoryItem]:
        """A test for each engine."""
        for engine in self.config.getini(_ENGINES):
            if engine not in _KNOWN:
                raise pytest.UsageError(f"{_ENGINES}: there is no engine `{engine}`; there are {', '.join(_KNOWN)}")
            yield StoryItem.from_parent(self, name=engine)


class StoryItem(pytest.Item):
    """A story on an engine."""

    def runtest(self) -> None:
        """Tells the story, and fails with what is wrong with it."""
        from ephemera.stories.judge import applies, judge
        from ephemera.stories.read import BadStory, story_at

        try:
            story = story_at(self.path)
        except BadStory as error:
            raise StoryFailure(f"{self.path} is no story:", [str(error)]) from None
        if not applies(story, self.name):
            pytest.skip("a story in the order of arrival is not told to an engine that knows only whole histories")
        wrong = judge(story, str(self.path), engine=self.name)
        if wrong:
            raise StoryFailure(f"{self.path} does not hold on {self.name}:", wrong)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is wrong, without the way that led here."""
        if isinstance(excinfo.value, StoryFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it stands, and what it is called."""
        return self.path, 0, f"{self.path.name} on {self.name}"


class StoryFailure(Exception):
    """A story that does not hold, or is none."""

    def __init__(self, what: str, lines: list[str]) -> None:
        super().__init__("\n    ".join([what, *lines]))


# ---- engines -----------------------------------------------------------------------------------------------


@pytest.fixture
def eph_engine(request: pytest.FixtureRequest) -> EngineMaker:
    """Makes engines on virtual time, of a program file beside the test, of the text of a program, or of a `Program`.

    `engine = eph_engine("shop.eq"); engine.send("order", "a", 3); engine.advance("6h"); assert engine.answers == […]`
    """

    def make(program: str | Path | Program, **options: Any) -> VirtualEngine:
        from ephemera.testing.virtual import VirtualEngine

        return VirtualEngine(_program(program, request), **options)

    return make


def _program(given: str | Path | Program, request: pytest.FixtureRequest) -> Program:
    from ephemera.language import compile, load
    from ephemera.program import Program

    if isinstance(given, Program):
        return given
    if isinstance(given, str) and not given.endswith(".eq"):
        return compile(given)
    beside = request.path.parent / given
    path = beside if beside.exists() else request.config.rootpath / given
    if not path.exists():
        raise FileNotFoundError(f"there is no program {given} beside {request.path}, nor in {request.config.rootpath}")
    return load(path)
