"""This module puts what stands beside lines of JSON into them, such as the key of the message that each has come in.

An object of data gets what its type declares by that name; an array gets it where the attribute stands, if it has the
others and no more; and a plain object gets all. What says when stands beside the data. Whatever else a line holds stays
as it was written, byte for byte, and what is no event is left to be told where it is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from ephemera.rules.nodes import Catalogue

_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_ARRAY = msgspec.json.Decoder(list[Raw])
_LABEL = msgspec.json.Decoder(str)
_WRONG = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def put_in(lines: Sequence[bytes], beside: Sequence[Mapping[str, Any]], catalogue: Catalogue) -> bytes:
    """Lines with what stands beside each."""
    return b"\n".join([_line(line, more, catalogue) for line, more in zip(lines, beside, strict=True)])


def _line(line: bytes, more: Mapping[str, Any], catalogue: Catalogue) -> bytes:
    try:
        found = _OBJECT.decode(line)
        label = _LABEL.decode(found["event"]) if "event" in found else catalogue.only or ""
        return msgspec.json.encode(_with(found, label, more, catalogue))
    except _WRONG:  # no JSON, no object, too deep, or no name of an event
        return line


def _with(found: dict[str, Raw], label: str, more: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    columns = catalogue.columns(label)
    stamps = {name: more[name] for name in catalogue.stamps(label) if name in more}
    data = bytes(found["data"]) if "data" in found else _no_data(found, columns, more)
    if data is not None and data.startswith(b"{"):
        own = {name: value for name, value in more.items() if columns is None or name in columns}
        return {**found, **stamps, "data": {**_OBJECT.decode(data), **own}}
    if data is not None and data.startswith(b"[") and columns is not None:
        return {**found, **stamps, "data": _in_place(_ARRAY.decode(data), columns, more)}
    return {**found, **more}


def _no_data(found: Mapping[str, Raw], columns: Sequence[str] | None, more: Mapping[str, Any]) -> bytes | None:
    """The data of an event that has none, if that is what its type declares besides the columns; None otherwise."""
    is_bare = "event" in found and not {"term", "xml"}.intersection(found)
    return b"[]" if is_bare and columns and all(name in more for name in columns) else None


def _in_place(values: list[Raw], columns: Sequence[str], more: Mapping[str, Any]) -> list[Any]:
    """Values by position with those of columns where they are declared, if just these are missing."""
    if len(values) != sum(name not in more for name in columns):
        return list(values)
    rest = iter(values)
    return [more[name] if name in more else next(rest) for name in columns]
