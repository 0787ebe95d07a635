"""This module says what a run lacked: types that never came, rules that never matched, names that are hardly meant.

That hints at mistakes in names, files and conditions. Events of a type that no rule reads and nothing declares are
passed over, since most inputs hold more than a program asks for. But if such a type is called almost like one that
rules wait for, and that has not come, people are told in any case; and if only the case of letters differs, even if
both came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ephemera.algebra.nodes import Base
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.suggest import suggestion
from ephemera.base.tree import find
from ephemera.physical.plan import Compiled
from ephemera.rewrite.drop_unasked import all_read
from ephemera.rules.emitted import emitted_label

UNREAD = 100
"""So many types that no rule reads are remembered."""


@dataclass(frozen=True, slots=True)
class Never:
    """What a run lacked."""

    came: tuple[str, ...] = ()
    """Types of which no event came."""
    matched: tuple[int, ...] = ()
    """The numbers of rules that gave nothing, counted from 1."""
    run: tuple[int, ...] = ()
    """The numbers of rules that were not run, since nobody asked for what they derive."""
    misnamed: tuple[tuple[str, str], ...] = ()
    """Types that came and that no rule reads, each with the one that was likely meant."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is told in any case."""
        return tuple(self._of_names())

    def _of_names(self) -> Iterator[str]:
        for name, meant in self.misnamed:
            also = ", which never came" if meant in self.came else ""
            yield f"events `{name}` were passed over, since no rule reads them; did you mean `{meant}`{also}?"


def never(
    compiled: Compiled,
    missing: Iterable[str],
    matched: Iterable[int],
    emit: Collection[str] | None = None,
    unread: Collection[str] = (),
) -> Never:
    """What a run lacked, by the types that were missing and the rules that matched.

    Where only some events are asked for, only what these need counts; `emit` may name fewer than the program runs for.
    Of `unread`, types that came, only those count that no rule reads.
    """
    matched = {*matched, *compiled.physical.rewritten.reshaped}
    rules, plan, physical = compiled.rules, compiled.plan, compiled.physical
    every = range(1, len(rules.resolved.rules) + 1)
    unasked = tuple(n for n in every if n not in physical.running)
    came = tuple(sorted(missing))
    emit = physical.emit if emit is None else emit
    if not emit:
        silent = tuple(n for n in every if n not in matched)
        return Never(came, silent, misnamed=_misnamed(compiled, came, unread))
    heads = {n: emitted_label(rules.resolved.rules[n - 1].head) for n in every}
    asked = [n for n, label in heads.items() if label is None or label in emit]
    needed = all_read(plan, [name for name, point in plan.points.items() if point.rule in asked])
    numbers = {plan.points[name].rule for name in needed}
    labels = {base.label for name in needed for base in find(plan.points[name].expression, Base)}
    came = tuple(label for label in came if label in labels)
    silent = tuple(n for n in every if n in numbers and n not in matched)
    return Never(came, silent, unasked, _misnamed(compiled, came, unread))


def _misnamed(compiled: Compiled, missing: Sequence[str], unread: Collection[str]) -> tuple[tuple[str, str], ...]:
    same = {label.lower(): label for label in compiled.physical.awaited}
    strange = sorted(filter(compiled.is_unread, unread))
    found = ((name, same.get(name.lower()) or suggestion(name, missing)) for name in strange)
    return tuple((name, meant) for name, meant in found if meant is not None)
