"""This module pauses Python's search for cycles of garbage while large trees are made.

Compiling makes nodes by the million, nearly all of which stay, and none of which needs that search: it would look at
everything that is there again and again, which takes a fifth of the time of a program of thousands of rules.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Lets it rest, unless it rests already."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
