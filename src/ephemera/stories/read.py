"""This module reads stories: Markdown files with a program, its input as a table, and the answers it must give."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ephemera.base.errors import EphemeraError

_PROGRAM = re.compile(r"^```eq\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLE_NAME = re.compile(r"^Table `([^`]+)`:", re.MULTILINE)
_LIVE = re.compile(r"^Live:", re.MULTILINE)
_EMIT = re.compile(r"^Emit: (.*)$", re.MULTILINE)


class BadStory(EphemeraError):
    """A story that cannot be read."""


Rows = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Step:
    """A row of input: an event, or (None) nothing; until when time passes, if it does; and what the clock says.

    Without a word of the clock it stands where it stood, and at 0 in the beginning.
    """

    event: dict[str, Any] | None = None
    advance: Any = None
    now: Any = None


@dataclass(frozen=True, slots=True)
class Story:
    """A program with an input and the answers to it; events are JSON objects as on lines of input."""

    title: str
    program: str
    tables: Mapping[str, Rows]
    steps: list[Step]
    answers: list[dict[str, Any]]
    after: list[int | None]
    """For each answer the row of input that makes it certain, counted from 1; 0 is the end, None is not said."""
    bad: list[str]
    late: list[dict[str, Any]]
    emit: frozenset[str] | None
    is_live: bool
    """Whether the rows stand in the order in which they arrive."""

    @property
    def events(self) -> list[dict[str, Any]]:
        return [step.event for step in self.steps if step.event is not None]

    @property
    def advances(self) -> list[Any]:
        return [step.advance for step in self.steps if step.advance is not None]


def read_story(text: str) -> Story:
    """The parts of a story, in their order: program, tables, input, `Answers:`, answers."""
    programs = _PROGRAM.findall(text)
    if len(programs) != 1:
        raise BadStory(f"a story has one eq block, not {len(programs)}")
    prose = _PROGRAM.sub("", text)
    if "\nAnswers:" not in prose:
        raise BadStory("a story says after `Answers:` why its answers hold")
    before, after = prose.split("\nAnswers:", 1)
    tables, inputs = _tables(before)
    answered = list(_markdown_tables(after))
    if len(inputs) > 1 or len(answered) > 1 or (not answered and "No answers." not in after):
        raise BadStory("a story has one table of input and one of answers (or the words `No answers.`)")
    rows = answered[0] if answered else []
    answers = [row for row in rows if row["event"] != "bad" and not _is_late(row)]
    late = [row for row in rows if _is_late(row)]
    emit = _EMIT.search(text)
    return Story(
        title=text.split("\n", 1)[0].removeprefix("# "),
        program=programs[0],
        tables=tables,
        steps=[_step(row) for row in (inputs[0] if inputs else [])],
        answers=[_event(row) for row in answers],
        after=[_after(row) for row in answers],
        bad=[str(_json(row["data"])) for row in rows if row["event"] == "bad"],
        late=[{"event": str(_json(row["data"])), "time": _json(row["time"])} for row in late],
        emit=frozenset(re.findall(r"`([^`]+)`", emit[1])) if emit else None,
        is_live=bool(late) or _LIVE.search(text) is not None,
    )


def _tables(text: str) -> tuple[dict[str, Rows], list[Rows]]:
    """Named tables, and the others."""
    named: dict[str, Rows] = {}
    others: list[Rows] = []
    pieces = _TABLE_NAME.split(text)
    others += _markdown_tables(pieces[0])
    for name, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        first, *rest = _markdown_tables(piece)
        named[name] = first
        others += rest
    return named, others


def _markdown_tables(text: str) -> Iterator[Rows]:
    """The tables of a text, each a list of rows by column."""
    lines: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.strip().startswith("|"):
            cells = re.split(
                r"(?<!\\)\|", line.strip().strip("|") if not line.strip().endswith("\\|") else line.strip()[1:]
            )
            lines.append([cell.strip().replace("\\|", "|") for cell in cells])
        elif lines:
            header = lines[0]
            yield [dict(zip(header, row, strict=False)) for row in lines[2:]]
            lines = []


def _is_late(row: dict[str, str]) -> bool:
    """Whether a row of answers names a late event: by its type, as a text; rules may derive events called `late`."""
    data = row.get("data", "")
    return row["event"] == "late" and data != "" and isinstance(_json(data), str)


def _step(row: dict[str, str]) -> Step:
    now = _json(row["now"]) if row.get("now") else None
    if row["event"] != "advance":
        return Step(event=_event(row), now=now)
    return Step(advance=_json(row["time"]) if row.get("time") else None, now=now)


def _after(row: dict[str, str]) -> int | None:
    cell = row.get("after", "").strip("`")
    if not cell:
        return None
    if cell != "end" and not (cell.isdecimal() and int(cell) > 0):
        raise BadStory(f"`after` names a row of input by its number, or the `end`, not {cell}")
    return 0 if cell == "end" else int(cell)


def _event(row: dict[str, str]) -> dict[str, Any]:
    event: dict[str, Any] = {"event": row["event"], "time": _json(row["time"])}
    if row.get("data"):
        event["data"] = _json(row["data"])
    for name in ("term", "xml", "recipient"):
        if row.get(name):
            event[name] = row[name].strip("`")
    if not {"data", "term", "xml"} & event.keys():
        event["data"] = []
    return event


def _json(cell: str) -> Any:
    plain = cell.strip("`")
    try:
        return json.loads(plain, parse_float=Decimal)
    except ValueError:
        return plain
