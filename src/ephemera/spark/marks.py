"""This module leaves marks of the steps of a live query, for whoever has to know where it was when it was killed.

Without the environment variable `EPHEMERA_MARKS`, which names a file, it does nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

_FILE = "EPHEMERA_MARKS"


def mark(step: str) -> None:
    """This process comes to a step."""
    name = os.environ.get(_FILE)
    if name:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {step}\n")
