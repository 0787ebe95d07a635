"""This module shows what is said where Spark is asked for and is not installed: one line, with the way out."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ephemera
from ephemera.base import installed
from ephemera.cli.main import app

ROOT = Path(__file__).parents[2]
LACK = "needs PySpark, which is not installed: pip install 'ephemera-cep[spark]'"
STORY = str(ROOT / "tests" / "stories" / "absence-is-known-when-the-window-ends.md")
SHOP = ["run", str(ROOT / "examples" / "shop.eq"), "--input"]


DISTRIBUTIONS = {"re2": "google-re2", "py4j": "pyspark", "confluent_kafka": "confluent-kafka", "paho": "paho-mqtt"}
"""Of modules that are called otherwise; py4j comes with PySpark."""


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules that a file imports when it runs, without those for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                continue
            case ast.Import(names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case _:
                yield from imported(node)


@pytest.mark.parametrize("part", ["", "spark"])
def test_what_is_imported_is_installed(part: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ["spark"] if part else ["kafka", "postgres", "mqtt", "delta", "metrics"]
    stated = project["dependencies"] + [one for extra in extras for one in project["optional-dependencies"][extra]]
    installed = {re.split(r"[<>=\[]", name)[0] for name in stated}
    source = ROOT / "src" / "ephemera"
    plugin = source / "testing" / "plugin.py"  # who loads it is pytest itself
    files = [p for p in source.rglob("*.py") if part == ("spark" if p.is_relative_to(source / "spark") else "")]
    files = [p for p in files if p != plugin]
    found = {name.partition(".")[0] for p in files for name in imported(ast.parse(p.read_text(encoding="utf-8")))}
    needed = {DISTRIBUTIONS.get(name, name) for name in found - {"ephemera"} - sys.stdlib_module_names}
    assert needed <= installed


def test_the_tools_have_all_of_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"{project['name']}[spark,kafka,postgres,mqtt,delta,metrics]" in project["optional-dependencies"]["dev"]


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda _name: None)


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*SHOP, str(ROOT / "examples" / "shop.jsonl")], f"the engine `spark` {LACK}; or run with --engine local"),
        (
            [*SHOP, str(ROOT / "examples"), "--mode", "stream"],
            f"the engine `spark` {LACK}; or give files or - with --input, which are read without it",
        ),
        (["demo"], f"the demo {LACK}"),
        (["test", "--engine", "stream", STORY], f"the engine `stream` {LACK}; or leave --engine out"),
    ],
    ids=["run", "live", "demo", "test"],
)
def test_without_spark_commands_that_need_it_say_so_in_one_line(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.output) == (2, said + "\n")


@pytest.mark.usefixtures("no_spark")
def test_without_spark_stories_run_on_the_other_engines_and_that_is_said() -> None:
    result = CliRunner().invoke(app, ["test", STORY])
    assert result.exit_code == 0
    assert result.stderr == f"stories run without Spark here: the engine `spark` {LACK}\n"
    assert result.stdout == "1 passed, 0 failed\n"


def test_an_old_spark_is_told_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "3.5.1")
    with pytest.raises(ephemera.EphemeraError, match=r"needs PySpark 4\.2 or newer, and 3\.5\.1 is installed: pip"):
        installed.need_spark()


@pytest.mark.parametrize("told", ["4.2.0", "4.3.1", "4.10.0.dev1"])
def test_spark_that_is_new_enough_is_taken(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: told)
    assert installed.lacking_spark() is None


def test_metrics_need_a_package_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda name: None if name == "prometheus_client" else object())
    words = [*SHOP, str(ROOT / "examples"), "--mode", "stream", "--metrics", "0"]
    result: Any = CliRunner().invoke(app, words)
    said = "--metrics needs prometheus_client, which is not installed: pip install 'ephemera-cep[spark]'\n"
    assert (result.exit_code, result.output) == (2, said)
