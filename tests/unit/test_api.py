"""This module pins the public names, and runs the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import ephemera

MODULES = sorted(
    info.name for info in pkgutil.walk_packages(ephemera.__path__, "ephemera.") if not info.name.endswith("__main__")
)


def test_the_public_names_are_these() -> None:
    names = ["Diagnostic", "EphemeraError", "EphemeraWarning", "Program", "ProgramError", "Report", "compile"]
    assert ephemera.__all__ == names


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
