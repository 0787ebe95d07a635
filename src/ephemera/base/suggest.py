"""This module guesses which known name was meant by an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def suggestion(wrong: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str | None:
    """The known name that is closest, if one is close at all.

    >>> suggestion("shiped", ["order", "shipped"])
    'shipped'
    """
    if aliases and wrong.lower() in aliases:
        return aliases[wrong.lower()]
    names = sorted(set(known) - {wrong})
    by_lower = {name.lower(): name for name in reversed(names)}
    if wrong.lower() in by_lower:
        return by_lower[wrong.lower()]
    close = get_close_matches(wrong, names, n=1, cutoff=0.6)
    return close[0] if close else None
