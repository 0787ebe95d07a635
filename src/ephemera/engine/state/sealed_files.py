"""This module seals the small files that are read back one day: each says what it is, in which form, and a checksum.

What is broken, empty, of another kind, or in a form that this version does not know is refused in one line that names
the file and a way out.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from ephemera.base.errors import EphemeraError

WAY_OUT = "bring all of it back from a copy, or begin anew in another folder"


class Broken(EphemeraError):
    """Something that was stored and cannot be gone on from: a file is damaged, missing, or another one's."""


def seal(kind: str, form: int, content: Mapping[str, Any]) -> bytes:
    """The bytes of a file."""
    told = {"kind": kind, "format": form, "checksum": _check(kind, form, content), "content": content}
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "surrogatepass")


def unseal(data: bytes, kind: str, form: int, path: str, way_out: str = WAY_OUT) -> dict[str, Any]:
    """What a file holds, if it is what it should be.

    >>> unseal(seal("progress", 1, {"batch": 3}), "progress", 1, "progress/3.json")
    {'batch': 3}
    """
    if not data:
        raise Broken(f"{path} is empty, and should hold a {kind}; {way_out}")
    try:
        told = json.loads(data.decode("utf-8", "surrogatepass"))
    except ValueError:
        raise Broken(f"{path} is damaged: it is no {kind} that can be read; {way_out}") from None
    if not isinstance(told, dict) or not isinstance(told.get("format"), int):
        raise Broken(f"{path} is no {kind} of Ephemera; {way_out}")
    if told["format"] != form:
        raise Broken(
            f"{path} has format {told['format']}, and this version of Ephemera reads format {form}; "
            f"go on with the version that wrote it, or begin anew in another folder"
        )
    content = told.get("content")
    if not isinstance(content, dict) or told.get("checksum") != _check(str(told.get("kind")), form, content):
        raise Broken(f"{path} is damaged: it does not have the checksum that is written there; {way_out}")
    if told["kind"] != kind:
        raise Broken(f"{path} is a {told['kind']}, and should be a {kind}; {way_out}")
    return content


def _check(kind: str, form: int, content: Mapping[str, Any]) -> int:
    text = json.dumps([kind, form, content], ensure_ascii=False, sort_keys=True)
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
