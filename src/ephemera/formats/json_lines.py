"""This module holds the first pass over lines of JSON: each as its name, its times, and its data as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ephemera.formats.decode_csv import BadFile

TIME = int | str | tuple[int | str, int | str]
"""Times as most lines write them."""
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive, as Excel writes them; save it as CSV",
    b"BZh": "packed by bzip2; unpack it, or pack it by gzip or Zstandard",
    b"\x1f\x8b": "packed by gzip; name it .gz",
    b"\x28\xb5\x2f\xfd": "packed by Zstandard; name it .zst",
    b"PAR1": "Parquet; name it .parquet",
}
"""How files begin that hold no lines of JSON, whatever they are called."""


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


def line_numbers(block: bytes, first: int) -> list[int]:
    """The numbers of those lines, if the block begins with one."""
    return [number for number, line in enumerate(block.split(b"\n"), first) if line.strip()]


def refuse_other(block: bytes, name: str) -> None:
    """Refuses a file that begins as one of another format does."""
    held = next((held for mark, held in _OTHERS.items() if block.startswith(mark)), None)
    if held is None and name.lower().endswith(".tsv") and not block.lstrip().startswith(b"{"):
        held = "divided by tabs, by its name; divide cells by commas, and name it .csv"
    if held is not None:
        raise BadFile(f"cannot read {name}: it is {held}")
