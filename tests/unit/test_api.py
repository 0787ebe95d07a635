"""This module pins the public names, and runs the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import ephemera

MODULES = sorted(
    info.name for info in pkgutil.walk_packages(ephemera.__path__, "ephemera.") if not info.name.endswith("__main__")
)


NAMES = """
Answers DeadLetter Diagnostic Engine EphemeraError EphemeraWarning Event Program ProgramError Query Report __version__
check compile format load sinks sources
""".split()


def test_the_public_names_are_these() -> None:
    assert sorted(ephemera.__all__) == sorted(NAMES)
    assert set(NAMES) <= set(dir(ephemera))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "__version__"])
def test_a_public_name_is_there_and_documented(name: str) -> None:
    public = getattr(ephemera, name)
    assert public.__doc__
    assert getattr(ephemera, name) is public


def test_nothing_else_is_there() -> None:
    with pytest.raises(AttributeError, match="module `ephemera` has no attribute `Programme`"):
        _ = ephemera.Programme  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_large() -> None:
    large = ("numpy", "pyarrow", "pyspark", "pandas", "lxml", "rich", "click", "ephemera.")
    code = f"import ephemera, sys; print([name for name in sys.modules if name.startswith({large!r})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_wrong_program_raises_with_all_that_is_wrong() -> None:
    with pytest.raises(ephemera.ProgramError) as caught:
        ephemera.compile("p(x) <- e: q(y);\np(x) <- e: q(x) f: q(x);\n", name="two.eq")
    (report,) = caught.value.reports
    assert [str(d.code) for d in report.diagnostics] == ["unbound-variable", "syntax"]
    assert "two.eq:1:3" in str(caught.value)
    assert "two.eq:2:17" in str(caught.value)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_is_for(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").startswith(("This module ", "This package "))
