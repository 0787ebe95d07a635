"""A class of two methods in somebody else's package is a source or a sink, found by its entry point."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ephemera.cli.main import app
from ephemera.connect.systems.registry import history_at

MODULE = '''
import json
from pathlib import Path


class Lines:
    """A file of lines, one position a line."""

    def __init__(self, address):
        self.path = Path("/" + address.path)

    def read(self, position, seconds):
        begin = position or 0
        lines = self.path.read_text().splitlines()
        return [json.loads(line) for line in lines[begin:]], len(lines)

    def write(self, answers, number):
        with self.path.open("a") as file:
            file.writelines(json.dumps([number, answer["data"]]) + "\\n" for answer in answers)

    def close(self):
        pass


class Half:
    def __init__(self, address):
        pass
'''
ENTRIES = """[ephemera.sources]
lines = made_up_lines:Lines
half = made_up_lines:Half
[ephemera.sinks]
lines = made_up_lines:Lines
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that is installed, and a folder for its files."""
    (tmp_path / "made_up_lines.py").write_text(MODULE)
    told = tmp_path / "made_up-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1\n")
    (told / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "p.eq").write_text("EVENT a(x: int); STREAM s CARRIES a; b(x) <- i: a(x);")
    return tmp_path


def run(folder: Path, *given: object) -> Result:
    return CliRunner().invoke(app, ["run", str(folder / "p.eq"), *map(str, given)])


def event(x: int) -> dict[str, Any]:
    return {"event": "a", "time": x, "data": [x]}


def test_a_plug_in_is_read_and_written_live_and_goes_on_from_its_position(package: Path) -> None:
    given = ["--mode", "stream", "--trigger", "once", "--input", f"lines://here{package}/in"]
    given += ["--output", f"lines://here{package}/out", "--checkpoint", str(package / "state")]
    lines = [json.dumps(event(x)) for x in range(4)]
    for count in (2, 4):
        (package / "in").write_text("\n".join(lines[:count]) + "\n")
        done = run(package, *given)
        assert done.exit_code == 0, done.output
    told = [json.loads(line) for line in (package / "out").read_text().splitlines()]
    assert told == [[1, [0]], [2, [1]], [2, [2]]]  # the last is not certain before time has passed it


def test_the_first_bad_event_is_told_at_once_and_no_other(package: Path) -> None:
    given = ["--mode", "stream", "--trigger", "once", "--input", f"lines://here{package}/in"]
    wrong = [{"event": "a", "time": 1, "data": ["x" * 300]}, {"event": "a", "time": 2, "data": ["y"]}]
    (package / "in").write_text("".join(json.dumps(one) + "\n" for one in (event(0), *wrong, event(3), event(4))))
    # It fails when it writes what came with the bad events, so that nothing is told at its end.
    done = run(package, *given, "--output", f"lines://here{package}/none/out")
    assert isinstance(done.exception, FileNotFoundError)
    (told,) = [line for line in done.stderr.splitlines() if "bad" in line]
    assert told.startswith("the first bad event: ")
    assert "; it is `{" in told
    assert told.endswith("xxx…`")
    assert len(told) < 500
    assert run(package, *given).stderr.count("the first bad event") == 1


def test_a_plug_in_has_a_history(package: Path) -> None:
    (package / "in").write_text(json.dumps(event(1)) + "\n")
    done = run(package, "--engine", "local", "--input", f"lines://here{package}/in")
    assert json.loads(done.stdout) == {"event": "b", "time": 1, "data": [1]}


SLOW = '''
class Slow:
    """Brings its events one by one, each to who waits; nothing more once it is closed."""

    def __init__(self, address):
        self.is_open = True

    def read(self, position, seconds):
        assert self.is_open
        position = position or 0
        if seconds <= 0 or position == 3:
            return [], position
        return [{"event": "a", "time": position, "data": [position]}], position + 1

    def close(self):
        self.is_open = False
'''


def test_a_history_is_read_to_its_end_also_if_it_comes_slowly_and_is_read_twice(package: Path) -> None:
    (package / "made_up-1.dist-info" / "entry_points.txt").write_text("[ephemera.sources]\nslow = made_up_slow:Slow\n")
    (package / "made_up_slow.py").write_text(SLOW)
    source = history_at("slow://here/a")
    for _ in range(2):
        opened = source.open()
        found = []
        while (batch := opened.read()) is not None:
            found.append(batch)
        opened.close()
        assert len(found) == 3


def test_a_plug_in_that_lacks_a_method_is_told(package: Path) -> None:
    done = run(package, "--engine", "local", "--input", "half://here/x")
    assert (done.exit_code, "has no method `read`" in done.output) == (2, True)


# ---- what the documentation shows ------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, list[str]]]:
    """The package of the page, installed as it says there, and the options of a run that the page names."""
    page = PAGE.read_text(encoding="utf-8").partition("\n## Plug-ins\n")[2]
    (module,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (entries,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (options,) = re.findall(r"`(--input \S+ --output \S+)`", page)
    groups = tomllib.loads(entries)["project"]["entry-points"]
    told = tmp_path / "shown-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: shown\nVersion: 1\n")
    lines = [f"[{group}]\n{name} = {place}\n" for group, own in groups.items() for name, place in own.items()]
    (told / "entry_points.txt").write_text("".join(lines))
    (tmp_path / "mypackage.py").write_text(module)
    (tmp_path / "p.eq").write_text(
        "EVENT order(id: string); STREAM s CARRIES order WATERMARK 1 sec; overdue(id) <- o: order(id);"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("mypackage"), options.split()
    del sys.modules["mypackage"]


def test_the_plug_in_of_the_documentation_is_installed_and_run(
    shown: tuple[ModuleType, list[str]], tmp_path: Path
) -> None:
    package, options = shown
    done = run(tmp_path, "--engine", "local", *options)
    assert done.exit_code == 0, done.output
    assert package.LISTS["overdue"] == [{"event": "overdue", "time": 1, "data": ["a"]}]


def test_the_plug_in_of_the_documentation_is_run_live_and_goes_on(
    shown: tuple[ModuleType, list[str]], tmp_path: Path
) -> None:
    package, options = shown
    given = [*options, "--mode", "stream", "--trigger", "once", "--checkpoint", str(tmp_path / "state")]
    for k in (10, 20):
        package.LISTS["orders"].append({"event": "order", "time": k, "data": [str(k)]})
        done = run(tmp_path, *given)
        assert done.exit_code == 0, done.output
    assert [answer["data"] for answer in package.LISTS["overdue"]] == [["a"], ["10"]]
