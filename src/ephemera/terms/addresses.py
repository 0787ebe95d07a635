"""This module computes where messages go: texts that stand in a program, or what expressions give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ephemera.terms.compute import Scope
from ephemera.terms.construct import Origin, Row, value_of
from ephemera.terms.functions import Undefined
from ephemera.terms.nodes import Expression
from ephemera.terms.text import plain
from ephemera.terms.values import Term, Value

Address: TypeAlias = tuple[str, str]
"""The recipient and the transport of a message."""


def address(
    recipient: str | Expression, transport: str | Expression, rows: Sequence[Row], origin: Origin, scope: Scope
) -> Address:
    """Where the message of some rows goes; there is none where a part of it is no text and no number, or is empty."""

    def text(part: str | Expression, what: str) -> str:
        return part if isinstance(part, str) else _text(value_of(part, list(rows), origin, scope), what)

    return text(recipient, "recipient"), text(transport, "transport")


def _text(value: Value, what: str) -> str:
    if value is None or isinstance(value, Term):
        raise Undefined(f"the {what} of the message is {'null' if value is None else 'an element'}, not a text")
    written = value if isinstance(value, str) else plain(value)
    if not written.strip():
        raise Undefined(f"the {what} of the message is empty")
    return written
