"""This module builds the wheel and uses it as a stranger would: outside of this tree, in an environment of its own.

Without extras there is the engine in one process and no Spark; with `[spark]` there is all of it. Each Python that is
supported is tried if it is found: under its usual name, or where this one lies among others. One that is not found is
told of as skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WITHOUT = "which is not installed: pip install 'ephemera-cep[spark]'"
PROGRAM = """EVENT order(id: string, qty: int);
EVENT shipped(id: string);

overdue(id) <- o: order(id, qty), w: extend(o, 6h), while w: not shipped(id), qty < 10;
"""
EVENTS = """{"event": "order", "time": "2026-03-02T09:00:00Z", "data": ["a", 3]}
{"event": "order", "time": "2026-03-02T10:00:00Z", "data": ["b", 3]}
{"event": "shipped", "time": "2026-03-02T15:59:00Z", "data": ["b"]}
"""
OVERDUE = {"event": "overdue", "time": ["2026-03-02T09:00:00Z", "2026-03-02T15:00:00Z"], "data": ["a"]}
STORY = ROOT / "tests" / "stories" / "absence-is-known-when-the-window-ends.md"


def python_of(version: str) -> str:
    """An interpreter of a version, if there is one."""
    own = "{}.{}".format(*sys.version_info)
    beside = sorted(Path(sys.base_prefix).parent.glob(f"{version}*/bin/python{version}"))
    names = [sys.executable] if version == own else [f"python{version}", *map(str, beside)]
    for name in names:
        found = shutil.which(name)
        told = found and subprocess.run([found, "-c", "import venv"], capture_output=True, check=False)
        if found and told and told.returncode == 0:
            return found
    pytest.skip(f"NOT TRIED: there is no Python {version} here, so the wheel was not used with it")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"  # a copy: what builds writes nothing into ours
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    pip(sys.executable, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(folder), str(tree))
    (built,) = folder.glob("ephemera_cep-*.whl")
    return built


def pip(python: str, *words: str) -> None:
    """Runs our pip for another environment, which need not have one."""
    command = [sys.executable, "-m", "pip", "--python", python, *words, "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


class Machine:
    """An environment with the wheel, and a folder with a program and events."""

    def __init__(self, version: str, folder: Path, wheel: Path, extra: str = "") -> None:
        python = python_of(version)
        subprocess.run([python, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
        self.python = str(folder / "env" / "bin" / "python")
        self.folder = folder
        if extra:  # PySpark comes as source
            pip(self.python, "install", "--constraint", str(ROOT / "constraints.txt"), "setuptools", "wheel")
        more = ["--constraint", str(ROOT / "constraints.txt"), "--no-build-isolation"]
        pip(self.python, "install", *more, f"{wheel}{extra}")
        (folder / "overdue.eq").write_text(PROGRAM, encoding="utf-8")
        (folder / "orders.jsonl").write_text(EVENTS, encoding="utf-8")
        shutil.copy(STORY, folder / "story.md")

    def run(self, *words: str) -> tuple[int, str, str]:
        """The exit code, the output and the messages of a command."""
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        command = [str(Path(self.python).with_name("ephemera")), *words]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_without_extras_the_engine_in_one_process_works(version: str, wheel: Path, tmp_path: Path) -> None:
    machine = Machine(version, tmp_path, wheel)
    assert machine.run("check", "overdue.eq") == (0, "", "")
    code, output, told = machine.run("run", "overdue.eq", "--input", "orders.jsonl", "--engine", "local")
    assert (code, told) == (0, "")
    assert [json.loads(line) for line in output.splitlines()] == [OVERDUE]
    code, output, told = machine.run("test", "story.md")
    assert (code, output) == (0, "1 passed, 0 failed\n")
    assert WITHOUT in told
    points = "from importlib.metadata import entry_points as e; print([p.value for p in e(group='pytest11')])"
    found = subprocess.run([machine.python, "-c", points], capture_output=True, text=True, check=True, env={})
    assert found.stdout == "['ephemera.testing.plugin']\n"
    for words in (
        ["run", "overdue.eq", "--input", "orders.jsonl"],
        ["demo"],
        ["test", "--engine", "spark", "story.md"],
    ):
        code, output, told = machine.run(*words)
        assert (code, output, len(told.splitlines())) == (2, "", 1)
        assert WITHOUT in told


def test_with_spark_the_shop_runs_outside_of_the_tree(wheel: Path, tmp_path: Path) -> None:
    machine = Machine("3.13", tmp_path, wheel, "[spark]")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    batch = ["run", "examples/shop.eq", "--input", "examples/shop.jsonl"]
    code, output, told = machine.run(*batch)
    assert (code, told) == (0, "")
    assert output == machine.run(*batch, "--engine", "local")[1]
    live = ["run", "examples/shop.eq", "--input", "examples/*.jsonl", "--mode", "stream", "--trigger", "once"]
    live += ["--checkpoint", "state", "--emit", "overdue"]  # the input goes on, so others are not all certain
    code, lines, told = machine.run(*live)
    assert (code, told) == (0, "")
    assert sorted(lines.splitlines()) == sorted(line for line in output.splitlines() if '"overdue"' in line)
