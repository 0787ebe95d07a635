"""This module gathers diagnostics while rules are checked."""

from __future__ import annotations

from collections.abc import Iterable

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help, Related, Severity
from ephemera.base.span import Span
from ephemera.base.suggest import suggestion


class Findings:
    """A list that only grows; one mistake is told once, however many ways lead to it."""

    def __init__(self) -> None:
        self._found: dict[tuple[Code, Span, str], Diagnostic] = {}

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
        self._found.setdefault((code, span, message), diagnostic)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._found.values())

    def __len__(self) -> int:
        return len(self._found)


def did_you_mean(wrong: str, known: Iterable[str], span: Span, otherwise: str) -> Help:
    """The close name as an edit, or another way out."""
    close = suggestion(wrong, known)
    return Help(f"did you mean `{close}`?", (Edit(span, close),)) if close else Help(otherwise)


def listed(names: Iterable[str]) -> str:
    """Names in a sentence: `a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) < 2:
        return "".join(quoted) or "none"
    return ", ".join(quoted[:-1]) + " and " + quoted[-1]
