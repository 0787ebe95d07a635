"""This module keeps what seeds give, so that tests which draw the same cases make each of them once.

Making a case asks the oracle again and again, and takes longer than most of what tests do with it. A case follows from
its seed and from the code that makes it, so it is kept in `build/cases`, in a folder for the state of that code.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import ephemera

Made = TypeVar("Made")

_TREE = Path(__file__).parent.parent.parent
_PACKAGE = Path(ephemera.__file__).parent


@cache
def _folder() -> Path:
    """Where cases are kept as this code makes them."""
    digest = hashlib.sha256()
    stages = [_PACKAGE / name for name in ("base", "terms", "syntax", "rules", "semantics", "algebra", "analysis")]
    for source in sorted(path for folder in (*stages, Path(__file__).parent) for path in folder.rglob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    folder = _TREE / "build" / "cases" / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def made_once(kind: str, seed: int, make: Callable[[int], Made]) -> Made:
    """What a seed gives, by whoever made it first; of two who do so at once one is kept, and both are the same."""
    path = _folder() / f"{kind}-{seed}"
    try:
        kept: Made = pickle.loads(path.read_bytes())
    except FileNotFoundError:
        made = make(seed)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_bytes(pickle.dumps(made))
        draft.replace(path)
        return made
    return kept
