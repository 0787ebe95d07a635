"""This module stops recursion that does not end, by the answers that it has given so far.

Answers of a rule that may grow, at one time and with equal values of all variables that do not grow, are a series. If a
recursion does not end then some series does not, or its terms become ever deeper or larger. What counts are the answers
themselves, not rounds or steps, and a series has one time; so all engines stop at the same, however input was cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ephemera.rules.nodes import Growth
from ephemera.rules.outcome import Endless
from ephemera.terms.errors import DEEPEST_TERM, excerpt
from ephemera.terms.text import to_text
from ephemera.terms.values import Key, Term, Value, key

LONGEST = 2_000
"""So many answers a series may have."""
LARGEST = 1_000_000
"""So many elements, values and characters of text an answer may have."""

_UNBOUND: Key = (-1,)


class Series:
    """The series of one rule."""

    def __init__(self, growth: Growth) -> None:
        self._growth = growth
        self._found: dict[tuple[Key, ...], set[Key]] = {}

    def clear(self) -> None:
        """From now on there are other times."""
        self._found = {}

    def add(self, time: tuple[int, int], variables: Mapping[str, Value], answer: Term) -> None:
        """One more answer, and what was bound for it."""
        fixed = (key(variables[n]) if n in variables else _UNBOUND for n in self._growth.fixed)
        series = self._found.setdefault((time, *fixed), set())
        is_grown = any(isinstance(variables.get(name), Term | str) for name in self._growth.grows)
        if is_grown and (limit := _excess(answer)) is not None:
            raise self._endless(f"one is more than {limit}", answer)
        series.add(answer.key)
        if len(series) > LONGEST:
            raise self._endless(f"more than {LONGEST:,} at one time that differ in nothing else", answer)

    def _endless(self, what: str, answer: Term) -> Endless:
        cycle = self._growth.cycle
        rules = ", ".join(f"{number} ({label})" for number, label in cycle)
        several = "rules" if len(cycle) > 1 else "rule"
        names = ", ".join(f"`{name}`" for name in self._growth.grows)
        made = f"{several} {rules} make{'' if len(cycle) > 1 else 's'} ever new events of {names}"
        shown = excerpt(to_text(_pruned(answer, 4)).replace("`…` { }", "…"), 80)
        return Endless(
            f"the recursion does not end: {made}, {what}, such as {shown}; a condition on {names} would end it"
        )


def series_of(growth: Mapping[int, Growth]) -> dict[int, Series]:
    """The series of a program, by the numbers of its rules."""
    return {number: Series(one) for number, one in growth.items()}


def _excess(term: Term) -> str | None:
    """By what a term is too deep or too large."""
    total, level, depth = 0, [term], 0
    while level:
        depth += 1
        if depth > DEEPEST_TERM:
            return f"{DEEPEST_TERM} deep"
        inner: list[Term] = []
        for t in level:
            values: Sequence[Value] = (
                (*t.children, *(value for _, value in t.attributes)) if t.attributes else t.children
            )
            total += 1 + len(values)
            for value in values:
                if isinstance(value, Term):
                    inner.append(value)
                elif isinstance(value, str):
                    total += len(value)
            if total > LARGEST:
                return f"{LARGEST:,} elements and characters large"
        level = inner
    return None


def _pruned(term: Term, levels: int) -> Term:
    """The upper part of a term, to be shown."""
    if not levels:
        return Term("…")
    children = [_pruned(c, levels - 1) if isinstance(c, Term) else c for c in term.children[:4]]
    shown = [c[:80] if isinstance(c, str) else c for c in children]
    return Term(term.label, tuple(shown), term.ordered)
