"""This module lays documents out on lines: what fits stays on one line, the rest breaks at its outermost list.

A document is a text, a row of documents, a chain that breaks before its links, a stack of lines, or a list in
brackets. A list that holds comments always breaks, so that every comment keeps a line of its own or the end of one;
what is written depends on the document alone, never on how it was laid out before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, assert_never

from ephemera.base.lazy_dataclass import dataclass

WIDTH = 100
INDENT = 2


@dataclass(frozen=True, slots=True)
class Item:
    """A member of a list with the comments before it and behind it; an empty comment is an empty line.

    What stands behind has no line break, and only the last of it may run to the end of the line.
    """

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

    lead: Doc
    items: tuple[Item, ...]
    end: str


@dataclass(frozen=True, slots=True)
class Row:
    """Documents side by side."""

    docs: tuple[Doc, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Documents with a space between them, or each on a line of its own, all but the first `indented`."""

    docs: tuple[Doc, ...]
    indented: bool = True


@dataclass(frozen=True, slots=True)
class Stack:
    """Items on lines of their own, each indented by its level."""

    lines: tuple[tuple[int, Item], ...]


Doc: TypeAlias = str | Bracketed | Hanging | Row | Chain | Stack


def row(*docs: Doc) -> Doc:
    """Documents side by side; texts make one text."""
    return "".join(d for d in docs if isinstance(d, str)) if all(isinstance(d, str) for d in docs) else Row(docs)


def listed(opener: str, docs: Sequence[Doc], closer: str) -> Bracketed:
    """A list without comments and without space inside its brackets: ``f(a, b)``."""
    return Bracketed(opener, tuple(Item(doc) for doc in docs), closer, pad="")


def parenthesized(doc: Doc) -> Bracketed:
    """A document in round brackets, in which the links of a chain stand below each other."""
    return listed("(", [aligned(doc)], ")")


def aligned(doc: Doc) -> Doc:
    """A chain without indentation, for where it is alone between brackets."""
    return Chain(doc.docs, indented=False) if isinstance(doc, Chain) else doc


def render(doc: Doc, indent: int = 0, column: int | None = None, tail: int = 0) -> str:
    """The document as text; `column` is where it begins on its first line, `tail` what follows on its last."""
    column = indent if column is None else column
    line = _flat(doc)
    if line is not None and column + len(line) + tail <= WIDTH:
        return line
    match doc:
        case str():
            return doc
        case Row(docs):
            return _row(docs, indent, column, tail)
        case Chain():
            return _chain(doc, indent, column, tail)
        case Bracketed():
            return _bracketed(doc, indent)
        case Hanging():
            return _hanging(doc, indent, column)
        case Stack(lines):
            return "\n".join(
                _item(item, indent + INDENT * level, "", first=k == 0) for k, (level, item) in enumerate(lines)
            )
        case _:
            assert_never(doc)


def one_line(doc: Doc) -> str:
    """The document on one line however long; only comments can break it."""
    line = _flat(doc)
    return render(doc) if line is None else line


def _flat(doc: Doc) -> str | None:
    match doc:
        case str():
            return None if "\n" in doc else doc
        case Row(docs):
            return _joined(docs, "")
        case Chain(docs):
            return _joined(docs, " ")
        case Bracketed(opener, items, closer, pad, closing):
            inside = None if closing else _flat_items(items)
            if inside is None:
                return None
            return f"{opener}{pad}{inside}{pad}{closer}" if items else f"{opener}{pad}{closer}"
        case Hanging(lead, items, end):
            first, inside = _flat(lead), _flat_items(items)
            return None if first is None or inside is None else f"{first} {inside}{end}"
        case Stack():
            return None
        case _:
            assert_never(doc)


def _joined(docs: tuple[Doc, ...], space: str) -> str | None:
    parts: list[str] = []
    for doc in docs:
        line = _flat(doc)
        if line is None:
            return None
        parts.append(line)
    return space.join(parts)


def _flat_items(items: tuple[Item, ...]) -> str | None:
    if any(item.before or item.after for item in items):
        return None
    return _joined(tuple(item.doc for item in items), ", ")


def _row(docs: tuple[Doc, ...], indent: int, column: int, tail: int) -> str:
    text = ""
    for k, doc in enumerate(docs):
        here = len(text) - text.rfind("\n") - 1 + (column if "\n" not in text else 0)
        width, ends = _lead(docs[k + 1 :])
        text += render(doc, indent, here, width + (0 if ends else tail))
    return text


def _lead(docs: Sequence[Doc]) -> tuple[int, bool]:
    """How far a row goes until a line can end in it, and whether one can."""
    width = 0
    for doc in docs:
        ends = True
        match doc:
            case str():
                here, ends = len(doc), False
            case Row(parts):
                here, ends = _lead(parts)
            case Chain(parts):
                here, _ = _lead(parts[:1])
            case Bracketed(opener, items, closer, pad, closing):
                ends = bool(items or closing)
                here = len(opener) if ends else len(opener + pad + closer)
            case Hanging() | Stack():
                here = 0
            case _:
                assert_never(doc)
        width += here
        if ends:
            return width, True
    return width, False


def _chain(doc: Chain, indent: int, column: int, tail: int) -> str:
    inner = indent + INDENT if doc.indented else indent
    last = len(doc.docs) - 1
    lines: list[str] = []
    for k, link in enumerate(doc.docs):
        # A chain that begins a chain goes further in than the links that follow it.
        margin = inner if k or isinstance(link, Chain) else indent
        lines.append(render(link, margin, inner if k else column, tail if k == last else 0))
    return ("\n" + " " * inner).join(lines)


def _bracketed(doc: Bracketed, indent: int) -> str:
    if not doc.items and not doc.closing:
        return doc.open + doc.pad + doc.close
    inner = indent + INDENT
    lines = [doc.open]
    for k, item in enumerate(doc.items):
        lines.append(_item(item, inner, "," if k < len(doc.items) - 1 else ""))
    lines.extend(" " * inner + comment for comment in doc.closing)
    return "\n".join([*lines, " " * indent + doc.close])


def _hanging(doc: Hanging, indent: int, column: int) -> str:
    inner = indent + 2 * INDENT
    last = len(doc.items) - 1
    lines = [_item(item, inner, "," if k < last else doc.end) for k, item in enumerate(doc.items)]
    return "\n".join([render(doc.lead, indent, column), *lines])


def _item(item: Item, indent: int, sign: str, *, first: bool = False) -> str:
    """A member on its own lines; the first of a stack begins where the stack does, unless comments precede it."""
    margin = " " * indent
    before = "".join((margin + comment).rstrip(" ") + "\n" for comment in item.before)
    if first:
        before = before.removeprefix(margin)
    lead = "" if first and not item.before else margin
    body = render(item.doc, indent, tail=len(sign)) + sign
    after = "".join("  " + comment for comment in item.after)
    return before + lead + body + after
