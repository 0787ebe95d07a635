"""This module reads of a line of JSON that cannot be read what it says beside its data: its name, and when it was.

Of a type that no rule reads nobody looks at the data, so nothing in it may decide whether there is such an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from ephemera.terms.errors import LARGEST_LINE, BadMessage
from ephemera.terms.json import decode

_HEAD: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LONGEST_TIME = 200
"""Bytes of a value that may be a time."""


def exact(number: str) -> Decimal | float:
    """A number that is no integer, each digit of it, unless it is too small or too large for that."""
    try:
        return Decimal(number)
    except InvalidOperation:
        return float(number)


def head_of(line: str | bytes) -> dict[str, Any] | None:
    """What a line that cannot be read says beside its data; of keys that stand twice, the last."""
    if len(line) > LARGEST_LINE:
        return None
    found: dict[str, Any] = {}
    try:
        for name, raw in _HEAD.decode(line).items():
            if name not in ("data", "term", "xml") and (name == "event" or len(raw) <= _LONGEST_TIME):
                found[name] = decode(bytes(raw), fraction=exact)
    except (BadMessage, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return found


def unnamed(data: Any) -> str:
    """Why something has no name, and the way out."""
    told = "an event has a name under `event`"
    if isinstance(data, list | tuple):
        return f"{told}, and this is an array; write each of its objects on a line of its own"
    if isinstance(data, Mapping) and "event" not in data:
        return f"{told}; where all are of one type, a stream may say so: `STREAM … FROM … CARRIES …;`"
    return told
