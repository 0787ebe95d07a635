"""This module holds the first pass over lines of JSON: each as its name, its times, and its data as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

TIME = int | str | tuple[int | str, int | str]
"""Times as most lines write them."""


def line_type(stamps: Sequence[str]) -> type[Any]:
    """What a line is decoded as, if some keys say when."""
    fields: list[Any] = [("event", str)]
    fields += [(name, Raw | UnsetType, UNSET) for name in ("data", "term", "xml")]
    fields += [(field_of(name), TIME | UnsetType, UNSET) for name in stamps]
    return msgspec.defstruct("Line", fields, rename={field_of(name): name for name in stamps}, gc=False)


def field_of(stamp: str) -> str:
    """The field of a line under which a key says when."""
    return "at_" + stamp.encode().hex()


def is_text(data: bytes) -> bool:
    """Whether some bytes are UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def by_label(labels: Sequence[Any]) -> dict[Any, list[int]]:
    """The places of each label."""
    found: dict[Any, list[int]] = {}
    for place, label in enumerate(labels):
        own = found.get(label)
        if own is None:
            found[label] = [place]
        else:
            own.append(place)
    return found


def has_odd(lines: Sequence[Any]) -> bool:
    """Whether some line has no data, or its data as a text."""
    forms = [{type(value) for value in map(attrgetter(name), lines)} for name in ("data", "term", "xml")]
    return forms != [{Raw}, {UnsetType}, {UnsetType}]


def is_odd(line: Any) -> bool:
    """Whether a line has no data, or its data as a text."""
    return line.data is UNSET or line.term is not UNSET or line.xml is not UNSET


def lines_of(block: bytes) -> list[bytes]:
    """The lines of a block that are not blank."""
    return [line for line in block.split(b"\n") if line.strip()]
