"""This module holds diagnostics: what is wrong with a program, where, why, and what would help.

A diagnostic's help carries the edits that apply it, so an editor (and our own tests) can try the way out
that the message promises. Rendering yields styled pieces; the command line alone decides about colour.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import accumulate
from typing import Any, Literal

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import Source, Span

Severity = Literal["error", "warning"]


class Code(StrEnum):
    """Every kind of mistake that is found before a program runs; `docs/diagnostics.md` explains each."""

    # text and syntax
    ENCODING = "encoding"
    TOO_LARGE = "too-large"
    TOO_DEEP = "too-deep"
    BAD_TOKEN = "bad-token"
    UNTERMINATED = "unterminated"
    UNBALANCED = "unbalanced"
    SYNTAX = "syntax"
    DURATION = "bad-duration"
    BAD_NUMBER = "bad-number"
    # declarations
    DUPLICATE_DECLARATION = "duplicate-declaration"
    UNREAD_COLUMN = "unread-column"
    DERIVED_APART = "derived-apart"
    UNKNOWN_TYPE = "unknown-type"
    UNKNOWN_ZONE = "unknown-zone"
    UNKNOWN_FORMAT = "unknown-format"
    EMPTY_PLACE = "empty-place"
    UNKNOWN_TRANSPORT = "unknown-transport"
    SETTING = "bad-setting"
    PLAIN_SECRET = "plain-secret"
    IMPORT = "bad-import"
    NAMESPACE = "bad-namespace"
    PREFIX = "namespace-prefix"
    # names
    UNKNOWN_EVENT = "unknown-event"
    UNKNOWN_IDENTIFIER = "unknown-identifier"
    DUPLICATE_IDENTIFIER = "duplicate-identifier"
    PARTIAL_IDENTIFIER = "partial-identifier"
    NOT_A_WINDOW = "not-a-window"
    TIMER_CYCLE = "timer-cycle"
    UNKNOWN_ATTRIBUTE = "unknown-attribute"
    UNKNOWN_FUNCTION = "unknown-function"
    MIXED_COMPARISON = "mixed-comparison"
    MISUSED_TABLE = "misused-table"
    # shape
    ARITY = "wrong-arity"
    METRIC = "wrong-parameters"
    REGEX = "bad-regex"
    MISPLACED_AGGREGATE = "misplaced-aggregate"
    MISPLACED_TERM = "misplaced-term"
    NO_EVENT = "no-event"
    TOO_MANY_ALTERNATIVES = "too-many-alternatives"
    TOO_MANY_PARTS = "too-many-parts"
    # safety and types
    UNBOUND_VARIABLE = "unbound-variable"
    ABSENT_ONLY = "absent-only"
    TYPE_CLASH = "type-clash"
    # time
    IMPOSSIBLE_DATE = "impossible-date"
    CONTRADICTORY_DURATION = "contradictory-duration"
    NEVER_FIRES = "never-fires"
    NEVER_OCCURS = "never-occurs"
    FAR_TIMER = "far-timer"
    UNBOUNDED_RELEVANCE = "unbounded-relevance"
    # programs
    NOT_STRATIFIABLE = "not-stratifiable"
    STRATUM_ORDER = "stratum-order"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace what stands in the span by the text."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Help:
    """What to do about it, and the edits that do it (none where only the author can know)."""

    message: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that has to do with it."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A mistake: its kind, what it is in a sentence, where it is, and what helps.

    >>> import ephemera
    >>> (found,) = ephemera.check("late(id) <- o: order(i);").diagnostics
    >>> str(found.code), found.severity, found.message
    ('unbound-variable', 'error', 'the variable `id` in the head has no value')
    """

    code: Code
    message: str
    span: Span
    related: tuple[Related, ...] = ()
    notes: tuple[str, ...] = ()
    help: tuple[Help, ...] = ()
    severity: Severity = "error"

    def __repr__(self) -> str:
        return f"<Diagnostic {self.severity}[{self.code}]: {self.message}>"


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found in one program, in the order of its text; as a text it is what a compiler prints.

    >>> import ephemera
    >>> print(ephemera.check("late(id) <- o: order(i);"))  # doctest: +ELLIPSIS
    error[unbound-variable]: the variable `id` in the head has no value
     --> program.eq:1:6
    ...
    """

    source: Source
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        return any(d.severity == "error" for d in self.diagnostics)

    def __repr__(self) -> str:
        counts = {word: sum(d.severity == word for d in self.diagnostics) for word in ("error", "warning")}
        told = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count]
        return f"<Report {self.source.path}: {', '.join(told) or 'nothing wrong'}>"

    def __str__(self) -> str:
        return render_text(self)


def report(source: Source, diagnostics: Iterable[Diagnostic]) -> Report:
    """What was found, put in the order of the text."""
    return Report(source, tuple(sorted(diagnostics, key=lambda d: (d.span.start, d.span.end, d.code))))


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits done, from the last to the first so that offsets stay true."""
    for edit in sorted(edits, key=lambda e: (e.span.start, e.span.end), reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


# ---- rendering ---------------------------------------------------------------------------------------------

Style = Literal["", "error", "warning", "frame", "caret", "strong"]
Piece = tuple[str, Style]

MOST_SHOWN = 50
WIDEST_LINE = 160


def render(found: Report) -> Iterator[Piece]:
    """Styled pieces of text, one block a diagnostic, as a compiler prints them."""
    for diagnostic in found.diagnostics[:MOST_SHOWN]:
        yield from _render_one(diagnostic, found.source)
        yield "\n", ""
    if len(found.diagnostics) > MOST_SHOWN:
        yield f"… and {len(found.diagnostics) - MOST_SHOWN} more\n", ""


def render_text(found: Report) -> str:
    """The same without styles."""
    return "".join(text for text, _ in render(found))


def _render_one(diagnostic: Diagnostic, source: Source) -> Iterator[Piece]:
    places = [(diagnostic.span, ""), *((r.span, r.message) for r in diagnostic.related)]
    numbers = [source.place(span.start).line for span, _ in places]
    gutter = " " * len(str(max(numbers)))
    head: Style = diagnostic.severity
    yield f"{diagnostic.severity}[{diagnostic.code}]", head
    yield f": {diagnostic.message}\n", "strong"
    place, file = source.place(diagnostic.span.start), source.file_at(diagnostic.span.start)[0]
    yield f"{gutter}--> ", "frame"
    yield f"{file.path}:{place.line}:{place.column}\n", ""
    yield f"{gutter} |\n", "frame"
    shown = 0
    for (span, message), number in zip(places, numbers, strict=True):
        other = source.file_at(span.start)[0]
        if other is not file:
            file, shown, place = other, 0, source.place(span.start)
            yield f"{gutter}::: ", "frame"
            yield f"{file.path}:{place.line}:{place.column}\n", ""
        if shown and number != shown and number != shown + 1:
            yield f"{gutter} …\n", "frame"
        if number != shown:
            yield f"{number:>{len(gutter)}} | ", "frame"
            yield f"{_clip(source, span)[0]}\n", ""
        shown = number
        yield f"{gutter} | ", "frame"
        yield (
            _caret(source, span, message, primary=span is diagnostic.span),
            head if span is diagnostic.span else "caret",
        )
    for note in diagnostic.notes:
        yield f"{gutter} = ", "frame"
        yield "note: ", "strong"
        yield f"{note}\n", ""
    for advice in diagnostic.help:
        yield f"{gutter} = ", "frame"
        yield "help: ", "strong"
        yield f"{advice.message}\n", ""


def _clip(source: Source, span: Span) -> tuple[str, int]:
    """The line of a span, cut to a readable width around it, and which character of it the span begins at."""
    file, own = source.file_at(span.start)
    place = file.place(own)
    line, column = file.line(place.line).replace("\t", " "), place.column - 1
    begin, end = 0, len(line)
    if end > WIDEST_LINE or _width(line) > WIDEST_LINE:
        begin = column - _fitting(line[max(0, column - WIDEST_LINE) : column][::-1], WIDEST_LINE // 2)
        end = begin + _fitting(line[begin : begin + WIDEST_LINE], WIDEST_LINE)
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[begin:end])
    lead = "…" if begin else ""
    return lead + printable + ("…" if end < len(line) else ""), column - begin + len(lead)


def _caret(source: Source, span: Span, message: str, *, primary: bool) -> str:
    line, column = _clip(source, span)
    width = max(1, _width(line[column : column + span.end - span.start]))
    mark = ("^" if primary else "-") * width
    return " " * _width(line[:column]) + mark + (f" {message}" if message else "") + "\n"


def _width(text: str) -> int:
    """How many columns of a terminal a text takes: two for each wide character, none for one that joins the last."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _fitting(text: str, width: int) -> int:
    """How many characters from the beginning on take no more than a width."""
    for count, taken in enumerate(accumulate(map(_columns, text))):
        if taken > width:
            return count
    return len(text)


def as_json(found: Report) -> list[dict[str, Any]]:
    """The same for machines; lines and columns count from 1, edits are in character offsets."""
    return [
        {
            "code": str(d.code),
            "severity": d.severity,
            "message": d.message,
            "path": found.source.file_at(d.span.start)[0].path,
            **_json_place(found.source, d.span),
            "related": [_json_related(found.source, d, r) for r in d.related],
            "notes": list(d.notes),
            "help": [
                {
                    "message": h.message,
                    "edits": [_json_edit(found.source, e) for e in h.edits],
                }
                for h in d.help
            ],
        }
        for d in found.diagnostics
    ]


def _json_related(source: Source, diagnostic: Diagnostic, related: Related) -> dict[str, Any]:
    own, other = (source.file_at(span.start)[0] for span in (diagnostic.span, related.span))
    path = {} if own is other else {"path": other.path}
    return {"message": related.message, **path, **_json_place(source, related.span)}


def _json_edit(source: Source, edit: Edit) -> dict[str, Any]:
    start = source.file_at(edit.span.start)[1]
    return {"start": start, "end": start + edit.span.end - edit.span.start, "text": edit.text}


def _json_place(source: Source, span: Span) -> dict[str, int]:
    begin, end = source.place(span.start), source.place(span.end)
    return {"line": begin.line, "column": begin.column, "end_line": end.line, "end_column": end.column}
