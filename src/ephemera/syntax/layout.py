"""This module lays documents out on lines: what fits stays on one line, the rest breaks at its outermost list.

A document is a text, a row of documents, a stack of lines, or a list in brackets. A list that holds comments
always breaks, so that every comment keeps a line of its own or the end of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

WIDTH = 100
INDENT = 2


@dataclass(frozen=True, slots=True)
class Item:
    """A member of a list with the comments before it and behind it; an empty comment is an empty line."""

    doc: Doc
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bracketed:
    """``open item, item close``; `closing` comments stand before the closing bracket."""

    open: str
    items: tuple[Item, ...]
    close: str
    pad: str = " "
    closing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hanging:
    """Items after a lead, ended by a sign: an arrow rule's body."""

    lead: str
    items: tuple[Item, ...]
    end: str


@dataclass(frozen=True, slots=True)
class Row:
    """Documents side by side."""

    docs: tuple[Doc, ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """Items on lines of their own, each indented by its level."""

    lines: tuple[tuple[int, Item], ...]


Doc: TypeAlias = str | Bracketed | Hanging | Row | Stack


def render(doc: Doc, indent: int = 0, column: int | None = None) -> str:
    """The document as text; `column` is where it begins on its first line."""
    column = indent if column is None else column
    line = _flat(doc)
    if line is not None and column + len(line) <= WIDTH:
        return line
    match doc:
        case str():
            return doc
        case Row(docs):
            return _row(docs, indent, column)
        case Bracketed():
            return _bracketed(doc, indent)
        case Hanging():
            return _hanging(doc, indent)
        case Stack(lines):
            return ("\n").join(
                _item(item, indent + INDENT * level, "", first=k == 0) for k, (level, item) in enumerate(lines)
            )


def one_line(doc: Doc) -> str:
    """The document on one line however long; only comments can break it."""
    line = _flat(doc)
    return render(doc) if line is None else line


def _flat(doc: Doc) -> str | None:
    match doc:
        case str():
            return None if "\n" in doc else doc
        case Row(docs):
            parts = [_flat(d) for d in docs]
            return None if None in parts else "".join(p for p in parts if p is not None)
        case Bracketed(opener, items, closer, pad, closing):
            inside = None if closing else _flat_items(items)
            if inside is None:
                return None
            return f"{opener}{pad}{inside}{pad}{closer}" if items else f"{opener}{pad}{closer}"
        case Hanging(lead, items, end):
            inside = _flat_items(items)
            return None if inside is None else f"{lead} {inside}{end}"
        case Stack():
            return None


def _flat_items(items: tuple[Item, ...]) -> str | None:
    parts: list[str] = []
    for item in items:
        line = None if item.before or item.after else _flat(item.doc)
        if line is None:
            return None
        parts.append(line)
    return ", ".join(parts)


def _row(docs: tuple[Doc, ...], indent: int, column: int) -> str:
    text = ""
    for doc in docs:
        here = len(text) - text.rfind("\n") - 1 + (column if "\n" not in text else 0)
        text += render(doc, indent, here)
    return text


def _bracketed(doc: Bracketed, indent: int) -> str:
    inner = indent + INDENT
    lines = [doc.open]
    for k, item in enumerate(doc.items):
        lines.append(_item(item, inner, "," if k < len(doc.items) - 1 else ""))
    lines.extend(" " * inner + comment for comment in doc.closing)
    return "\n".join([*lines, " " * indent + doc.close])


def _hanging(doc: Hanging, indent: int) -> str:
    inner = indent + 2 * INDENT
    last = len(doc.items) - 1
    lines = [_item(item, inner, "," if k < last else doc.end) for k, item in enumerate(doc.items)]
    return "\n".join([doc.lead, *lines])


def _item(item: Item, indent: int, sign: str, *, first: bool = False) -> str:
    """A member on its own lines; the first of a stack begins where the stack does, unless comments precede it."""
    margin = " " * indent
    before = "".join((margin + comment).rstrip(" ") + "\n" for comment in item.before)
    if first:
        before = before.removeprefix(margin)
    lead = "" if first and not item.before else margin
    body = render(item.doc, indent) + sign
    after = "".join("  " + comment for comment in item.after)
    return before + lead + body + after
