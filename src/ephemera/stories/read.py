"""This module reads stories: Markdown files with a program, its input as a table, and the answers it must give."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ephemera.base.errors import EphemeraError

_PROGRAM = re.compile(r"^```eq\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAM_FILE = re.compile(r"^Program: \[[^\]\n]*\]\((?:<([^>\n]+)>|([^)\s]+))\)", re.MULTILINE)
_NAMED = re.compile(r"^(Table|Stream) `([^`]+)`:", re.MULTILINE)
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
    stream: str | None = None
    """The declared stream by which it comes, if the story says it."""


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
    path: Path | None
    """The file of the program, if it does not stand in the story."""
    line: int
    """So many lines of the story stand before the program."""
    is_answered: bool = True
    """Whether it says what the answers are; one that is to be recorded need not."""

    @property
    def events(self) -> list[dict[str, Any]]:
        return [step.event for step in self.steps if step.event is not None]

    @property
    def advances(self) -> list[Any]:
        return [step.advance for step in self.steps if step.advance is not None]


def story_at(path: Path, *, unanswered: bool = False) -> Story:
    """The story in a file; one that may be `unanswered` need not say yet what its answers are."""
    return read_story(path.read_text(encoding="utf-8"), path.parent, unanswered=unanswered)


def read_story(text: str, folder: Path = Path(), *, unanswered: bool = False) -> Story:
    """The parts of a story, in their order: program, tables, input, `Answers:`, answers.

    A program that stands in a file of its own is looked for from the `folder` of the story on.
    """
    program, path, line = _program(text, folder)
    prose = _PROGRAM.sub("", text)
    is_answered, (before, after) = True, split_at_answers(prose)
    tables, inputs = _tables(before)
    answered = list(_markdown_tables(after))
    if not answered and "No answers." not in after:
        if not unanswered:
            raise BadStory(
                "a story says after `Answers:` why its answers hold, and has a table of them or the words "
                "`No answers.`; `ephemera test --record` writes the table"
            )
        is_answered = False
    if len(answered) > 1 or sum(stream is None for stream, _ in inputs) > 1:
        raise BadStory("a story has one table of input, or one for each stream, and one of answers")
    emit = _EMIT.search(text)
    rows = answered[0] if answered else []
    _has_columns(rows, "answers", "event")
    late = [row for row in rows if _is_late(row)]
    is_live = bool(late) or _LIVE.search(text) is not None
    answers = [row for row in rows if is_answer(row)]
    return Story(
        title=text.split("\n", 1)[0].removeprefix("# "),
        program=program,
        tables=tables,
        steps=_steps(inputs, is_live=is_live),
        answers=[_event(row) for row in answers],
        after=[_after(row) for row in answers],
        bad=[str(_json(row.get("data", ""))) for row in rows if row["event"] == "bad"],
        late=[{"event": str(_json(row["data"])), "time": _json(row.get("time", ""))} for row in late],
        emit=frozenset(re.findall(r"`([^`]+)`", emit[1])) if emit else None,
        is_live=is_live,
        path=path,
        line=line,
        is_answered=is_answered,
    )


def split_at_answers(text: str) -> tuple[str, str]:
    """What stands before `Answers:`, and what stands behind it; without that word, everything and nothing."""
    programs = list(_PROGRAM.finditer(text))
    start = text.find("\nAnswers:", programs[-1].end() if programs else 0)
    return (text, "") if start < 0 else (text[:start], text[start + len("\nAnswers:") :])


def _program(text: str, folder: Path) -> tuple[str, Path | None, int]:
    """The program of a story, the file that it is in, if it is in one, and how many lines stand before it here."""
    blocks, files = list(_PROGRAM.finditer(text)), _PROGRAM_FILE.findall(_PROGRAM.sub("", text))
    if len(blocks) + len(files) != 1:
        found = f"{len(blocks)}, and {len(files)} links" if files else f"{len(blocks)}"
        raise BadStory(f"a story has one eq block, or one line `Program: [shop.eq](shop.eq)`, not {found}")
    if blocks:
        return blocks[0][1], None, text.count("\n", 0, blocks[0].start(1))
    linked = folder / unquote(files[0][0] or files[0][1])
    short = Path(os.path.normpath(linked))
    path = short if short.resolve() == linked.resolve() else linked  # which differ behind a link to a folder
    try:
        return path.read_text(encoding="utf-8"), path, 0
    except OSError as error:
        raise BadStory(f"cannot read the program {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadStory(f"cannot read the program {path}: it is not UTF-8") from None


def _tables(text: str) -> tuple[dict[str, Rows], list[tuple[str | None, Rows]]]:
    """The tables of the program, and those of input, with the streams by which they come."""
    named: dict[str, Rows] = {}
    inputs: list[tuple[str | None, Rows]] = []
    first, *pieces = _NAMED.split(text)
    inputs += [(None, rows) for rows in _markdown_tables(first)]
    for kind, name, piece in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        tables = list(_markdown_tables(piece))
        if not tables:
            raise BadStory(f"there is no table behind {kind} `{name}`:")
        if kind == "Table":
            named[name] = tables[0]
        else:
            inputs.append((name, tables[0]))
        inputs += [(None, rows) for rows in tables[1:]]
    return named, inputs


def _steps(inputs: list[tuple[str | None, Rows]], *, is_live: bool) -> list[Step]:
    """The rows of input in the order in which they come: as they stand, or by their numbers."""
    for stream, rows in inputs:
        _has_columns(rows, "input" if stream is None else f"Stream `{stream}`", *(() if stream else ("event",)))
    came = [(row, stream) for stream, own in inputs for row in own]
    numbers = [row["row"].strip("`") for row, _ in came if "row" in row]
    if is_live and len(inputs) > 1 and not numbers:
        raise BadStory("a live story with several tables of input says in a column `row` in which order rows arrive")
    if numbers:
        if sorted(numbers) != sorted(str(k) for k in range(1, len(came) + 1)):
            raise BadStory(f"the column `row` numbers all rows of input from 1 to {len(came)}, each once")
        came.sort(key=lambda one: int(one[0]["row"].strip("`")))
    return [replace(_step(row), stream=stream) for row, stream in came]


def _has_columns(rows: Rows, name: str, *columns: str) -> None:
    for column in columns:
        if any(column not in row for row in rows):
            raise BadStory(f"a row of the table of {name} has no `{column}`")


@dataclass(frozen=True, slots=True)
class MarkdownTable:
    """A table, and where it stands in a text."""

    header: list[str]
    rows: Rows
    start: int
    end: int


_TABLE = re.compile(r"(?:^[ \t]*\|.*(?:\n|\Z))+", re.MULTILINE)


def table_in(text: str) -> MarkdownTable | None:
    """The first table of a text."""
    return next(_found_tables(text), None)


def _markdown_tables(text: str) -> Iterator[Rows]:
    """The tables of a text, each a list of rows by column."""
    return (table.rows for table in _found_tables(text))


def _found_tables(text: str) -> Iterator[MarkdownTable]:
    for match in _TABLE.finditer(text):
        header, *rows = [_cells(line.strip()) for line in match[0].splitlines()]
        named = [dict(zip(header, row, strict=False)) for row in rows[1:]]
        yield MarkdownTable(header, named, match.start(), match.end())


def _cells(line: str) -> list[str]:
    """The cells of a line; a bar behind a backslash is no border."""
    inside = line[1:] if line.endswith("\\|") else line.strip("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inside)]


def is_answer(row: Mapping[str, str]) -> bool:
    """Whether a row of answers is one, and does not name what is bad or late."""
    return row["event"] != "bad" and not _is_late(row)


def _is_late(row: Mapping[str, str]) -> bool:
    """Whether a row of answers names a late event: by its type, as a text; rules may derive events called `late`."""
    data = row.get("data", "")
    return row["event"] == "late" and data != "" and isinstance(_json(data), str)


def _step(row: dict[str, str]) -> Step:
    now = _json(row["now"]) if row.get("now") else None
    if row.get("event") != "advance":
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
    event: dict[str, Any] = {"event": row["event"]} if row.get("event") else {}
    if "time" not in row:
        raise BadStory(f"a row of {row.get('event') or 'the input'} has no `time`")
    event["time"] = _json(row["time"])
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
