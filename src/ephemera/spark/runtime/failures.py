"""This module carries what went wrong in a worker to the driver: what was done, for which rule, with which event."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import TypeVar
from urllib.parse import unquote

from ephemera.base.errors import EphemeraError
from ephemera.spark.runtime.java import java_ended
from ephemera.spark.runtime.ship_package import missing

T = TypeVar("T")
_MARK = "ephemera-failure:"
_ABSENT = "[PATH_NOT_FOUND]"
_INPUT = (_ABSENT, "[CANNOT_READ_FILE_FOOTER]", "[FAILED_READ_FILE", "[UNABLE_TO_INFER_SCHEMA]")
"""What Spark says of input that it cannot read."""
_WRONG = '"is_input": true'
"""What is said of input that we cannot read."""
_FILE = re.compile(r"reading file:? (?:file:)?(/\S+?)\.?\s")
_NOISE = re.compile(r"^(\[[A-Z_.]+\]\s*)?(Query \[id = .*?\] terminated with exception: )?|\s*SQLSTATE: \w+$")


class Failed(EphemeraError):
    """A run on Spark that failed."""


class _InWorker(Exception):
    """A failure on its way out of a worker."""


def told_by(stage: str, found: Iterable[T]) -> Iterator[T]:
    """The same, but what goes wrong says where."""
    try:
        yield from found
    except GeneratorExit:
        raise
    except Exception as error:
        notes = getattr(error, "__notes__", [])
        told = {"stage": stage, "error": f"{type(error).__name__}: {error}", "notes": notes}
        if isinstance(error, EphemeraError):
            told["error"] = str(error)
            told["is_input"] = isinstance(error, ValueError)
        raise _InWorker(f"{_MARK}{json.dumps(told)}:end") from error


def failure(error: BaseException) -> EphemeraError:
    """What to tell people of a job that failed."""
    ended = java_ended(error)
    if ended is not None:
        return ended
    text = str(error)
    lacking = missing(error)
    if lacking is not None:
        return Failed(str(lacking))
    found = re.search(re.escape(_MARK) + r"(\{.*?\}):end", text, re.DOTALL)
    if found is None:
        told = _cause(text) or type(error).__name__
        file = _FILE.search(text)
        what = "the input" if file is None else PurePosixPath(unquote(file[1])).name
        return Failed(f"cannot read {what}: {told}" if is_input(error) else f"Spark failed: {told}; --debug shows all")
    word = json.loads(found[1])
    return Failed("; ".join([word["error"], *word["notes"]]))


def _cause(text: str) -> str:
    """The first line of the last cause that Java names, or of the message where it is one for people."""
    causes = re.findall(r"^(?:Caused by)?: [\w.$]+: (.+)$", text, re.MULTILINE)
    lines = [causes[-1]] if causes else [line for line in text.splitlines() if line.strip()]
    return _NOISE.sub("", lines[0].strip()) if lines else ""


def is_absent(error: BaseException) -> bool:
    """Whether a job failed because its input is not there."""
    return _ABSENT in str(error)


def is_input(error: BaseException) -> bool:
    """Whether a job failed because its input is not there, or is none of its format."""
    return isinstance(error, ValueError) or any(code in str(error) for code in (*_INPUT, _WRONG))
