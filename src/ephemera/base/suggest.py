"""This module guesses which known name was meant by an unknown one, and makes up names that are free."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import count


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


def meant_by(name: str, names: Sequence[str]) -> str | None:
    """Which of some names of data was likely meant: one that is close, blanks aside, or the same in fewer letters.

    >>> meant_by("qty", ["id", "quantity"])
    'quantity'
    """
    meant = suggestion(name, names, {n.strip().lower(): n for n in names})
    return meant or next((n for n in names if _shortens(name, n) or _shortens(n, name)), None)


def _shortens(short: str, long: str) -> bool:
    """Whether a name has lost letters of another."""
    letters = iter(long.lower())
    return len(short) > 2 and short[0].lower() == long[:1].lower() and all(c in letters for c in short.lower())


def fresh(name: str, taken: Container[str]) -> str:
    """The name with the least number behind it that is not taken.

    >>> fresh("o", {"o", "o2"})
    'o3'
    """
    return next(free for k in count(2) if (free := f"{name}{k}") not in taken)
