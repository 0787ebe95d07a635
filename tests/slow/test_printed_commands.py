"""This module runs every command that README, CONTRIBUTING and the documentation print outside of sessions.

Sessions (`console`) and Python are run by `tests/unit/test_docs.py`. What is left are lines of `sh` blocks, and
commands of ours in the text. Each stands here with the way in which it is run, on few events, or with the reason why it
is not; a command that is printed and does not stand here fails.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]

FEW = "--events 4000 --keys 50 --repeat 1 --json FOLDER/figures.json"
RUNS = {
    "scripts/demo": "scripts/demo",
    "ephemera demo --keep FOLDER": ".venv/bin/ephemera demo --keep FOLDER/kept",
    "scripts/hunt": "scripts/hunt 0",  # what it hunts with is chance, so no round is run here
    "scripts/hunt algebra": "scripts/hunt algebra 2 1",
    "scripts/bench": f"scripts/bench {FEW} --rules 5 --plots FOLDER/plots",
    "scripts/bench engine --events 1000000": f"scripts/bench engine {FEW} --rules 0 --queries Q1 --hot 0",
    "scripts/bench engine --latency-only": "scripts/bench engine --latency-only --rules 5 --json FOLDER/figures.json",
    "scripts/bench command": f"scripts/bench command {FEW} --formats jsonl,csv,parquet --shuffled --objects",
    "scripts/bench command --engines spark,pyspark": f"scripts/bench command {FEW} --engines spark,pyspark "
    "--queries Q2 --formats csv",
    "scripts/bench command --engines frame": f"scripts/bench command {FEW} --engines frame --queries Q1,Q1w,Q2,Q3,Q4",
    "scripts/bench command --memory": "scripts/bench command --memory --events 1000,4000 --keys 50 --queries Q1",
    "scripts/bench algebra": "scripts/bench algebra --events 2000 --live 200",
    "scripts/bench algebra --spark": "scripts/bench algebra --spark --events 2000",
    "scripts/bench kafka": "scripts/bench kafka --events 2000 --pace 200 --seconds 2",
    "scripts/bench kafka --spark": "scripts/bench kafka --spark --events 2000 --pace 200 --seconds 2",
    "scripts/bench past": "scripts/bench past --events 4000 --keys 50 --queries Q3 --cuts 1",
    "scripts/services start": "scripts/services start",
    "python -m tests.hunt_delivery 1000 1": ".venv/bin/python -m tests.hunt_delivery 20 1",
    "scripts/bench arithmetic": "scripts/bench arithmetic --events 400 --repeat 1",
    "scripts/bench planner": "scripts/bench planner --events 600 --others 2 --repeat 1",
    "scripts/bench slices": (
        "scripts/bench slices --events 4000 --size 2000 --batches 2 --warm 1 --repeat 1 --cases hot"
    ),
    "scripts/bench many": "scripts/bench many --compile 20 --rules 20 --sends 20 --batch-rules 5 --events 1000",
    "scripts/bench memory": "scripts/bench memory --events 1000 --times 2 --units 12",
    "scripts/bench spark": f"scripts/bench spark {FEW} --queries Q1 Q4 --hot 0",
    "scripts/bench live": "scripts/bench live --parts small large --sizes 2000 --many 1 --batches 2 --warm 1 --keys 50 "
    "--stores memory",
    "scripts/bench compile": "scripts/bench compile --rules 40",
    ".venv/bin/ephemera test tests/stories/YOUR-STORY.md": ".venv/bin/ephemera test --engine local "
    "tests/stories/absence-is-known-when-the-window-ends.md",
    ".venv/bin/ephemera": ".venv/bin/ephemera --help",
    "python -m ephemera": ".venv/bin/python -m ephemera --help",
    "python -m tests.spark.live_kill_hunt --runs 25 --kills 5": ".venv/bin/python -m tests.spark.live_kill_hunt "
    "--runs 1 --kills 0",
}
"""What is printed, and how it is run here: on less, and writing to a folder of the test, FOLDER."""

LIVE = (
    "ephemera run shop.eq --mode stream --input arriving/ --output answers/ "
    '--checkpoint checkpoint/ --trigger "1 second"',
    "ephemera run shop.eq --mode stream --input arriving/ --output answers/ --dead-letter dead/ "
    '--checkpoint checkpoint/ --trigger "1 second"',
    "ephemera run shop.eq --input archive/ --then arriving/ --output answers/ --checkpoint checkpoint/",
)
"""Live runs, which go on until somebody stops them: here they take what is there."""

CHANGES = (
    "ephemera change checkpoint/ shop-2.eq --dry-run",
    "ephemera change checkpoint/ shop-2.eq",
    "ephemera run shop-2.eq --mode stream --input arriving/ --output answers/ --checkpoint checkpoint/",
)
"""What is said of rules that change live, one after the other, behind the first live run."""

WRITERS = (
    ".venv/bin/python -m tests.golden.cases",
    ".venv/bin/python -m tests.golden.test_rules",
    ".venv/bin/python -m tests.golden.test_physical",
    ".venv/bin/python -m tests.golden.test_rewrites",
    ".venv/bin/python -m tests.golden.test_goals",
    ".venv/bin/python -m tests.unit.test_docs",
)
"""They write files anew: here in a copy, in which nothing may change."""

NOT_RUN = {
    "scripts/test": "it runs these tests",
    "scripts/test -k parser": "it runs tests",
    "scripts/test --slow": "it runs these tests",
    "scripts/check": ".ci/run does",
    "scripts/bench kafka --streams": "it needs a compiler of Java",
    "scripts/test-spark42": ".ci/run does",
    "pip install ephemera-cep": "tests/slow/test_wheel.py installs what is built here",
    "pip install 'ephemera-cep[spark]'": "tests/slow/test_wheel.py does so",
    "scripts/setup": ".ci/run does, for an environment that is not there",
    "spark-submit --master spark://host:7077 --conf spark.sql.session.timeZone=Asia/Tokyo script.py": (
        "tests/spark/test_own_sessions.py submits a script, and tests/spark/test_ship.py does to a cluster"
    ),
    "PYTHON=python3.13 scripts/setup": "it would replace the environment that runs this test",
}

_SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^(`{3,})[\w-]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
_IN_TEXT = re.compile(
    r"`((?:PYTHON=\S+ |)(?:scripts/[\w-]+|python -m [\w.]+|\.venv/bin/\w+|ephemera demo)(?: [^`]*)?)`"
)


def printed() -> Iterator[tuple[Path, str]]:
    """Every command with the page that prints it."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in _SH.findall(text):
            for line in block.replace("\\\n", " ").splitlines():
                command = " ".join(line.split("  #")[0].split())
                if command:
                    yield page, command
        for command in _IN_TEXT.findall(_FENCED.sub("", text)):
            yield page, " ".join(command.split())


COMMANDS = sorted({command for _, command in printed()})


def test_every_printed_command_stands_in_these_tables() -> None:
    known = {*RUNS, *LIVE, *CHANGES, *WRITERS, *NOT_RUN}
    unknown = [f"{page.relative_to(ROOT)}: {command}" for page, command in printed() if command not in known]
    assert not unknown


def test_no_command_stands_in_these_tables_that_nothing_prints() -> None:
    assert {*RUNS, *LIVE, *CHANGES, *WRITERS, *NOT_RUN} <= {*COMMANDS}


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(RUNS))
def test_printed_commands_run(command: str, tmp_path: Path) -> None:
    run(RUNS[command].replace("FOLDER", str(tmp_path)), ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("command", LIVE)
def test_printed_live_runs_take_what_is_there(command: str, tmp_path: Path) -> None:
    (tmp_path / "arriving").mkdir()
    (tmp_path / "archive").mkdir()
    shutil.copy(ROOT / "examples" / "shop.eq", tmp_path)
    shutil.copy(ROOT / "examples" / "shop.jsonl", tmp_path / "arriving")
    run(f"{ROOT}/.venv/bin/{command} --trigger once", tmp_path)  # the last trigger counts
    answers = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "answers").glob("*.jsonl"))
    assert answers.count('"overdue"') == 3


@pytest.mark.slow
def test_printed_changes_of_rules_go_on_with_a_live_run(tmp_path: Path) -> None:
    (tmp_path / "arriving").mkdir()
    shutil.copy(ROOT / "examples" / "shop.eq", tmp_path)
    shutil.copy(ROOT / "examples" / "shop.jsonl", tmp_path / "arriving")
    run(f"{ROOT}/.venv/bin/{LIVE[0]} --trigger once", tmp_path)
    text = (tmp_path / "shop.eq").read_text(encoding="utf-8")
    (tmp_path / "shop-2.eq").write_text(f"{text}\nanew(id) <- o: order(id, _, _);\n", encoding="utf-8")
    for command in CHANGES:
        once = " --trigger once" if " run " in command else ""
        run(f"{ROOT}/.venv/bin/{command}{once}", tmp_path)
    answers = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "answers").glob("*.jsonl"))
    assert answers.count('"overdue"') == 3


@pytest.mark.slow
@pytest.mark.parametrize("command", WRITERS)
def test_printed_writers_write_what_is_there(command: str, tmp_path: Path) -> None:
    folders = ["src", "tests", "docs", "examples"]
    for name in folders:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for page in ROOT.glob("*.md"):
        shutil.copy(page, tmp_path)
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    run(f"{ROOT}/{command}", tmp_path, PYTHONPATH=f"{tmp_path / 'src'}")
    changed = [
        path.relative_to(tmp_path)
        for path in sorted(tmp_path.rglob("*"))
        if path.suffix in {".md", ".txt"} and not filecmp.cmp(path, ROOT / path.relative_to(tmp_path), shallow=False)
    ]
    assert not changed


def run(command: str, folder: Path, **more: str) -> None:
    """Runs a command, which has to succeed."""
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=os.environ | more, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
