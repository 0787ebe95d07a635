"""This module writes into a story what its program answers; what is right in its table stays as the author wrote it.

Prose stays, the program and the input stay. What was written is to be looked at: a recorded story says only what is
answered today.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from ephemera.formats.json_events import BadEvent, write_event
from ephemera.stories.judge import Found, Ready, canonical
from ephemera.stories.read import Rows, is_answer, split_at_answers, table_in
from ephemera.terms.events import Event

COLUMNS = ("event", "time", "data", "term", "xml", "recipient", "after")
"""The columns of answers, in the order in which they are written where a story has none yet."""
NONE = "No answers.\n"
WHY = "Answers: recorded; say here why these hold, and no others."


def recorded(text: str, one: Ready, found: Found) -> str:
    """The text of a story with the answers that were found."""
    before, after = split_at_answers(text)
    if not after:
        before, after = f"{before.rstrip()}\n", WHY.removeprefix("Answers:") + "\n"
    old = table_in(after)
    header, rows = ([], []) if old is None else (old.header, old.rows)
    table = _written(header, _rows(rows, one, found))
    if old is not None:
        after = after[: old.start] + table + after[old.end :]
    elif table != NONE:
        after = f"{after.replace(NONE.strip(), '', 1).rstrip()}\n\n{table}"
    elif NONE.strip() not in after:
        after = f"{after.rstrip()}\n\n{NONE}"
    return f"{before}\nAnswers:{after}"


def _rows(old: Rows, one: Ready, found: Found) -> Rows:
    """The rows of the new table: those of the old one that hold, in their order, then those that it lacked."""
    story, catalogue = one.story, one.program.catalogue
    numbers = found.after if found.after is not None else [None] * len(found.answers)
    asked = [
        (answer, number)
        for answer, number in zip(found.answers, numbers, strict=True)
        if story.emit is None or answer["event"] in story.emit
    ]
    new = {canonical(answer, catalogue): _answer(answer, number) for answer, number in asked}
    cells = [row for row in old if is_answer(row)]
    written = {canonical(answer, catalogue): row for answer, row in zip(story.answers, cells, strict=True)}
    kept = [{**row, **_changed(row, new[key])} for key, row in written.items() if key in new]
    as_numbers = not any(isinstance(step.event["time"], str) for step in story.steps if step.event is not None)
    others = [_bad(bad) for bad in found.bad]
    others += [_late(event, one, as_numbers=as_numbers) for event in found.late]
    return [
        *kept,
        *(row for key, row in new.items() if key not in written),
        *_as_written(others, [row for row in old if not is_answer(row)]),
    ]


def _as_written(rows: Rows, old: Rows) -> Rows:
    """Rows of what is bad or late, as the author wrote them where they say the same; of what is bad no time counts."""
    left = list(old)
    found: Rows = []
    for row in rows:
        same = next((one for one in left if _says(one) == _says(row)), row)
        if same is not row:
            left.remove(same)
        found.append(same)
    return found


def _says(row: Mapping[str, str]) -> tuple[str, ...]:
    time = () if row["event"] == "bad" else (row.get("time", "").strip("`"),)
    return row["event"], row.get("data", "").strip("`"), *time


def _changed(row: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """What has to change in a row that holds: when it is given, if it says so."""
    return {"after": new["after"]} if row.get("after") and "after" in new else {}


def _answer(answer: Mapping[str, Any], number: int | None) -> dict[str, str]:
    row = {"event": answer["event"], "time": line_of(answer["time"], plain=True)}
    if answer.get("data") not in (None, []):
        row["data"] = line_of(answer["data"], plain=True)
    row |= {name: f"`{answer[name]}`" for name in ("term", "xml") if name in answer}
    row |= {"recipient": answer["recipient"]} if "recipient" in answer else {}
    return row if number is None else {**row, "after": str(number) if number else "end"}


def _bad(bad: BadEvent) -> dict[str, str]:
    try:
        time = line_of(json.loads(bad.original, parse_float=Decimal)["time"], plain=True)
    except (ValueError, KeyError, TypeError):
        time = ""
    return {"event": "bad", "time": time, "data": line_of(bad.label or "", plain=True)}


def _late(event: Event, one: Ready, *, as_numbers: bool) -> dict[str, str]:
    time = write_event(event, one.program.catalogue, as_numbers=as_numbers)["time"]
    return {"event": "late", "time": line_of(time, plain=True), "data": line_of(event.term.label, plain=True)}


def _written(header: Sequence[str], rows: Rows) -> str:
    """A table in columns of one width each; without rows the words for that."""
    if not rows:
        return NONE
    used = {name for row in rows for name, cell in row.items() if cell}
    names = [*header, *(name for name in COLUMNS if name in used and name not in header)]
    cells = [[row.get(name, "").replace("|", "\\|") for name in names] for row in rows]
    widths = [max(3, len(name), *(len(row[k]) for row in cells)) for k, name in enumerate(names)]
    lines = [names, ["-" * (width + 2) for width in widths], *cells]
    return "".join(f"|{'|'.join(_cell(c, w) for c, w in zip(line, widths, strict=True))}|\n" for line in lines)


def _cell(cell: str, width: int) -> str:
    return cell if len(cell) > width else f" {cell.ljust(width)} "


def line_of(value: Any, *, plain: bool = False) -> str:
    """JSON with fractions as exact as they are; `plain` has letters of any script as they are."""
    match value:
        case dict():
            pairs = (f"{line_of(key, plain=plain)}: {line_of(v, plain=plain)}" for key, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        case list():
            return "[" + ", ".join(line_of(v, plain=plain) for v in value) + "]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=not plain)
