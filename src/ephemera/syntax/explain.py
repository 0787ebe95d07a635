"""This module prints syntax trees, as indented text and as plain data."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from ephemera.base.span import Source
from ephemera.syntax.nodes import Program
from ephemera.terms.nodes import Node


def as_text(program: Program) -> str:
    lines: list[str] = []
    stack: list[tuple[int, str, Any]] = [(0, "", program)]
    while stack:
        level, title, value = stack.pop()
        lead = "  " * level + (f"{title}: " if title else "")
        if isinstance(value, tuple):
            if not value:
                continue
            lines.append(f"{lead}".rstrip(": ") + ":" if title else lead)
            stack.extend((level + 1, "", item) for item in reversed(value))
        elif is_dataclass(value):
            plain, nested = _split(value)
            shown = " ".join(f"{name}={_plain(v)}" for name, v in plain)
            lines.append(f"{lead}{type(value).__name__}{' ' + shown if shown else ''}")
            stack.extend((level + 1, name, v) for name, v in reversed(nested))
        else:
            lines.append(lead + _plain(value))
    return "\n".join(lines)


def _split(node: Any) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """A node's fields, those that fit on its line and those that are nodes themselves."""
    plain: list[tuple[str, Any]] = []
    nested: list[tuple[str, Any]] = []
    for f in fields(node):
        value = getattr(node, f.name)
        if f.name == "span" or value is None or value == ():
            continue
        is_nested = is_dataclass(value) or (isinstance(value, tuple) and any(is_dataclass(v) for v in value))
        (nested if is_nested else plain).append((f.name, value))
    return plain, nested


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, str) else str(value)


def as_json(program: Program, source: Source) -> Any:
    """Nodes as objects with `node`, `line`, `column` and their fields; imported ones have the `path` of their file."""

    def convert(value: Any) -> Any:
        if isinstance(value, Node):
            file, place = source.file_at(value.span.start)[0], source.place(value.span.start)
            of = {} if file is source else {"path": file.path}
            members = {f.name: convert(getattr(value, f.name)) for f in fields(value) if f.name != "span"}
            return {"node": type(value).__name__, **of, "line": place.line, "column": place.column, **members}
        if isinstance(value, tuple):
            return [convert(item) for item in value]
        if isinstance(value, Decimal):
            return int(value) if value == value.to_integral_value() else float(value)
        return value

    return convert(program)
