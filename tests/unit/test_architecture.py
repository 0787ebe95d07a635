"""This module holds the page on the architecture to the tree: every module is named, and the way of a rule is real."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ephemera"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
WAY = PAGE.partition("## One rule from text to answer")[2].partition("\n## ")[0]
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.stem not in ("__init__", "__main__"))
STEPS = sorted(set(re.findall(r"`((?!examples)(?:\w+/)+\w+(?:\.\w+)+)`", WAY)))


def test_every_module_is_named() -> None:
    assert [str(path) for path in MODULES if f"`{path.stem}`" not in PAGE] == []


def test_the_way_of_a_rule_has_steps() -> None:
    assert len(STEPS) > 12


@pytest.mark.parametrize("step", STEPS)
def test_a_step_on_the_way_of_a_rule_is_there(step: str) -> None:
    module, *names = step.replace("/", ".").split(".")
    found = import_module(f"ephemera.{module}")
    for name in names:
        found = getattr(found, name) if hasattr(found, name) else import_module(f"{found.__name__}.{name}")
    assert callable(found)
