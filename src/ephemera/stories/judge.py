"""This module runs a story and compares what a program derives with what the story says it must."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ephemera.base.diagnostic import render_text
from ephemera.base.errors import EphemeraError
from ephemera.base.span import Source
from ephemera.io.jsonl import BadEvent, read_object, read_time
from ephemera.pipeline import Program, check
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.stories.read import Rows, Story
from ephemera.terms.values import Key


def judge(story: Story, name: str = "story.eq", *, engine: str = "oracle") -> list[str]:
    """What is wrong, a line each; nothing if the story holds."""
    checked = check(Source(name, story.program))
    if checked.rules is None:
        return ["the program does not pass:", *render_text(checked.report).splitlines()]
    program = Program(checked)
    catalogue = program.catalogue
    tables = {label: typed_rows(catalogue.tables[label], rows) for label, rows in story.tables.items()}
    times = [e["time"] for e in story.events] + story.advances
    try:
        until = max(story.advances, key=lambda t: read_time(t, catalogue.unit), default=None)
        run = program.run_all(story.events, engine=engine, tables=tables, until=until)
    except EphemeraError as error:
        return [str(error)]
    found = [a for a in (*run.answers, *run.messages) if story.emit is None or a["event"] in story.emit]
    wrong = _differences(story.answers, found, catalogue)
    if Counter(e.label or "" for e in run.bad) != Counter(story.bad):
        wrong.append(f"bad events: expected {sorted(story.bad)}, found {[(e.label, e.reason) for e in run.bad]}")
    if not times:
        wrong.append("the story has no input")
    return wrong


def typed_rows(schema: Schema, rows: Rows) -> list[dict[str, Any]]:
    """The rows of a table as objects, each cell as its attribute is declared."""
    return [{name: _cell(row[name], kind) for name, kind in schema.attributes or ()} for row in rows]


def _cell(cell: str, declared: str) -> Any:
    plain = cell.strip("`")
    if not plain:
        return None
    if declared == "string" and not plain.startswith('"'):
        return plain
    try:
        return json.loads(plain)
    except ValueError:
        return plain


def _canonical(answer: Mapping[str, Any], catalogue: Catalogue) -> Key:
    """What an answer is compared by, however it is written."""
    plain = {k: v for k, v in answer.items() if k not in ("recipient", "transport")}
    event = read_object(plain, replace(catalogue, events={}))
    if isinstance(event, BadEvent):
        return ("unreadable", event.reason, json.dumps(dict(answer), default=str))
    return (event.key, event.positional, answer.get("recipient"))


def _differences(expected: list[dict[str, Any]], found: list[dict[str, Any]], catalogue: Catalogue) -> list[str]:
    """The answers that are missing, and those that are too much, as JSON."""
    wanted = {_canonical(a, catalogue): a for a in expected}
    given = {_canonical(a, catalogue): a for a in found}
    missing = [f"missing:  {json.dumps(a, default=float)}" for k, a in wanted.items() if k not in given]
    return missing + [f"too much: {json.dumps(a, default=float)}" for k, a in given.items() if k not in wanted]
