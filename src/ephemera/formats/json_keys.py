"""This module counts the keys of JSON texts, by their looks and by what they say, to find those that stand twice.

A parser keeps the last of two keys that are alike, and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from ephemera.formats.json_data import ERRORS
from ephemera.terms.values import LARGEST_INTEGER

KEY = b'":'
"""What stands after every key, unless there is space between."""
_SPACED = re.compile(rb'"[ \t\r]+:')
"""A key behind which there is."""


def doubtful(lines: Sequence[bytes], rows: Sequence[int]) -> Iterator[int]:
    """The rows of those lines in which a key may stand twice in an object, or a number is too large."""
    for line, row in zip(lines, rows, strict=True):
        if _key_count(line) != line.count(KEY):
            yield row


def counted(*texts: bytes) -> int:
    """How many keys some JSON texts seem to have; less than none, if that cannot be told by their looks."""
    if any(space in text for text in texts for space in (b" :", b"\t:", b"\r:")):
        return -1
    return sum(text.count(KEY) for text in texts)


def _key_count(text: bytes) -> int:
    """How many different keys the objects of a JSON text have; none at all if something else is odd about it."""
    if _SPACED.search(text) is not None:
        return -1
    count = 0
    try:
        stack = [msgspec.json.decode(text)]
    except ERRORS:
        return -1
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            count += len(one)
            stack += one.values()
        elif isinstance(one, list):
            stack += one
        elif type(one) is int and not -LARGEST_INTEGER - 1 <= one <= LARGEST_INTEGER:
            return -1
    return count
