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
_EMIT = re.compile(r"^Emit: (.*)$", re.MULTILINE)


class BadStory(EphemeraError):
    """A story that cannot be read."""


Rows = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Story:
    """A program with an input and the answers to it; events are JSON objects as on lines of input."""

    title: str
    program: str
    tables: Mapping[str, Rows]
    events: list[dict[str, Any]]
    advances: list[Any]
    answers: list[dict[str, Any]]
    bad: list[str]
    emit: frozenset[str] | None


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
    events, advances = [], []
    for row in inputs[0] if inputs else []:
        if row["event"] == "advance":
            advances.append(_json(row["time"]))
        else:
            events.append(_event(row))
    answers = [row for row in (answered[0] if answered else []) if row["event"] != "bad"]
    bad = [str(_json(row["data"])) for row in (answered[0] if answered else []) if row["event"] == "bad"]
    emit = _EMIT.search(text)
    return Story(
        title=text.split("\n", 1)[0].removeprefix("# "),
        program=programs[0],
        tables=tables,
        events=events,
        advances=advances,
        answers=[_event(row) for row in answers],
        bad=bad,
        emit=frozenset(re.findall(r"`([^`]+)`", emit[1])) if emit else None,
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
