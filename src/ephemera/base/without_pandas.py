"""This module keeps pyarrow from loading pandas in a process that has no use for it.

With the first values that it is given, pyarrow asks for pandas and loads it where it is installed, which takes longer
than all the rest of a small run. It remembers the answer, so it is told once that there is none. Conversions from and
to data frames ask again, and would still work.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PANDAS = "pandas"


class _Without(MetaPathFinder):
    """Finds no pandas, and leaves all else to others."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        del path, target
        if name == PANDAS:
            raise ModuleNotFoundError(f"no module {PANDAS} is looked for here", name=PANDAS)
        return None


@cache
def do_without_pandas() -> None:
    """From here on pyarrow does without pandas, unless that has been loaded already."""
    if PANDAS in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415 - what stands on this package does without it, too

    finder = _Without()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
