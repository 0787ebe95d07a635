"""This module gathers diagnostics while rules are checked, and guesses which names were meant.

Guessing is bounded: a program with thousands of unknown names gets as many guesses as can be made at once, which
is more than anybody reads, and for the rest the other way out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import nlargest

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help, Related, Severity
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import Span
from ephemera.base.suggest import suggestion

MOST_GUESSING = 100_000
"""How many names are looked at for all the guesses of one program."""
MOST_COMPARED = 50
MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The labels that a program declares or derives, among which guesses are made, and their namespaces."""

    labels: tuple[str, ...] = ()
    namespaces: frozenset[str] = frozenset()


class Findings:
    """A list that only grows; one mistake is told once, however many ways lead to it."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        """Known as soon as the declarations are read."""
        self._doubled: list[Span] = []
        """Places that say two things about one event: what is wrong there is told of the first."""
        self._found: dict[tuple[Code | None, Span, str], Diagnostic] = {}
        self._guesses: dict[tuple[str, str], str | None] = {}
        self._looked_at = 0

    def add(  # noqa: PLR0913 - a diagnostic has this many parts
        self,
        code: Code,
        message: str,
        span: Span,
        *,
        help: Iterable[Help] = (),
        notes: Iterable[str] = (),
        related: Iterable[Related] = (),
        severity: Severity = "error",
    ) -> None:
        diagnostic = Diagnostic(code, message, span, tuple(related), tuple(notes), tuple(help), severity)
        is_double = any(one.start <= span.start and span.end <= one.end for one in self._doubled)
        which = (None, span, severity) if is_double else (code, span, message)
        self._found.setdefault(which, diagnostic)

    def double(self, span: Span) -> None:
        """Has a mistake in a place told once, though what is written there is asked for twice."""
        self._doubled.append(span)

    def did_you_mean(self, wrong: str, known: Collection[str], span: Span, otherwise: str, *, what: str) -> Help:
        """The close name as an edit, or another way out; the same `what` always has the same names."""
        key = (what, wrong)
        if key not in self._guesses and self._looked_at < MOST_GUESSING:
            self._looked_at += len(known) + 10 * MOST_COMPARED
            self._guesses[key] = closest(wrong, known)
        return _guessed(self._guesses.get(key), span, otherwise)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._found.values())

    def __len__(self) -> int:
        return len(self._found)


def did_you_mean(wrong: str, known: Collection[str], span: Span, otherwise: str) -> Help:
    """The close name as an edit, or another way out; for the few names of one rule."""
    return _guessed(closest(wrong, known), span, otherwise)


def _guessed(close: str | None, span: Span, otherwise: str) -> Help:
    return Help(f"did you mean `{close}`?", (Edit(span, close),)) if close else Help(otherwise)


def closest(wrong: str, known: Collection[str]) -> str | None:
    """The known name that is closest; among many, of those that begin and end most alike.

    >>> closest("order-17a", [f"order-{k}" for k in range(1000)])
    'order-17'
    """
    if len(known) > MOST_COMPARED:
        known = nlargest(MOST_COMPARED, known, key=lambda name: (_alike(wrong.lower(), name.lower()), name))
    return suggestion(wrong, known)


def _alike(a: str, b: str) -> tuple[int, int]:
    """How many letters two names share at their begins and ends, and how near their lengths are."""
    shorter = min(len(a), len(b))
    begin = next((k for k in range(shorter) if a[k] != b[k]), shorter)
    end = next((k for k in range(shorter - begin) if a[-1 - k] != b[-1 - k]), shorter - begin)
    return begin + end, -abs(len(a) - len(b))


def listed(names: Iterable[str]) -> str:
    """Names in a sentence: `a`, `b` and `c`; of very many the first."""
    every = list(names)
    quoted = [f"`{name}`" for name in every[:MOST_LISTED]]
    if len(quoted) < 2:
        return "".join(quoted) or "none"
    if len(every) > MOST_LISTED:
        return ", ".join(quoted) + f" and {len(every) - MOST_LISTED} more"
    return ", ".join(quoted[:-1]) + " and " + quoted[-1]
