"""This module holds what is raised for a message that cannot be read or written, and the limits of messages."""

from __future__ import annotations

from ephemera.base.errors import EphemeraError
from ephemera.terms.values import LARGEST_INTEGER, is_valid

LARGEST_MESSAGE = 10_000_000
"""Bytes in UTF-8."""

LARGEST_LINE = 64_000_000
"""Bytes of a line of input, which may hold a message of the largest size as text, escapes included."""

DEEPEST_TERM = 200
"""How deep elements may nest; a term without children is one deep."""


class BadMessage(EphemeraError, ValueError):
    """A message from outside that is no term, or a term that a format cannot hold: what, where, and the limit.

    >>> from ephemera.terms.text import from_text
    >>> try:
    ...     from_text("a { b }")
    ... except BadMessage as error:
    ...     print(error)
    the term cannot be read at line 1, column 5: expected a child or `}`, found `b }`
    """


def too_deep(what: str, where: str) -> BadMessage:
    """What to raise for elements within elements without an end in sight."""
    return BadMessage(f"{what} nests elements more than {DEEPEST_TERM} deep {where}")


def decode(data: str | bytes, what: str, largest: int = LARGEST_MESSAGE) -> str:
    """The text of a message, without a byte order mark, if it is UTF-8 and not too large.

    >>> decode(b"<a/>", "the XML")
    '<a/>'
    """
    if len(data) > largest or (isinstance(data, str) and len(whole(data, what).encode()) > largest):
        raise BadMessage(f"{what} has more than {largest:,} bytes")
    try:
        return (data if isinstance(data, str) else data.decode()).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BadMessage(f"{what} is not UTF-8: {error.reason} at byte {error.start:,}") from None


def whole(text: str, what: str) -> str:
    """A text, if it has none of the half characters that escapes can smuggle in."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadMessage(f"{what} has half a character, {text[error.start]!a}") from None
    return text


def in_range(number: int | float, where: str) -> int | float:
    """A number, if it is one of ours."""
    if is_valid(number):
        return number
    shown = f"`{number}`" if isinstance(number, float) else f"an integer of {number.bit_length()} bits"
    limits = f"integers go up to {LARGEST_INTEGER}, floats up to 1.79e308, and there are no others"
    raise BadMessage(f"{where} has a number out of range, {shown}: {limits}")


def excerpt(text: str, most: int = 40) -> str:
    """Text from outside as a message may quote it: short, on one line, and printable."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:most])
    return f"`{shown}…`" if len(text) > most else f"`{shown}`"
