"""This module looks into windows without unfolding them: whether there is anything in one, how much, and its sum.

That is possible where a window is exactly a range of one stamp in an index: the events in it are points, and nothing
but the window and equal variables is asked of them. Then windows that overlap cost no more than windows that do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ephemera.algebra.nodes import Cross, Group, Join, Rename
from ephemera.algebra.scalar import Distance, Every, Formula, begin, end
from ephemera.kernels.columns import Batch, Ints, Mask, ints
from ephemera.kernels.equality import joins
from ephemera.kernels.history import History, Question, Run, ranges, running_sum
from ephemera.physical.nodes import Leaf, RulePlan
from ephemera.syntax.nodes import Derive
from ephemera.terms.construct import direct_variables
from ephemera.terms.nodes import Aggregate, Bool, Number, Text, Var

COUNT = "#count"
LARGEST_SUM = 1 << 62


def total_of(variable: str) -> str:
    """The column of the sums of a variable."""
    return f"#sum {variable}"


def is_range(leaf: Leaf, condition: Formula) -> bool:
    """Whether a window asks for nothing but a range of time, of events that are points."""
    parts = condition.parts if isinstance(condition, Every) else (condition,)
    own = {begin(leaf.name), end(leaf.name)}
    return leaf.is_point and all(isinstance(p, Distance) and len(own & {p.later, p.earlier}) == 1 for p in parts)


def keys_of(leaf: Leaf, batch: Batch) -> list[str] | None:
    """The variables that a leaf shares with a batch, if an index can tell them all."""
    shared = sorted(v for v in leaf.variables if v in batch.columns)
    if any(v not in leaf.sure or batch.columns[v].kind == "any" for v in shared):
        return None
    return shared


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What is in the windows of some rows."""

    counts: Ints
    sums: dict[str, Ints]


def look(batch: Batch, leaf: Leaf, history: History, asked: Question, summed: Sequence[str]) -> Looked | None:
    """How much is in each window, and the sums of some columns; None if two keys share a hash, or a sum overflows."""
    own = {new: old for old, new in leaf.names.items()}
    counts = np.zeros(len(batch), dtype=np.int64)
    sums = {name: np.zeros(len(batch), dtype=np.int64) for name in summed}
    for run in history.runs:
        asking, starts, stops = ranges(run, asked)
        full = stops > starts
        asking, starts, stops = asking[full], starts[full], stops[full]
        if not len(asking):
            continue
        if not _has_the_keys(batch, leaf, run, asked, asking, starts):
            return None
        counts[asking] += stops - starts
        for name in summed:
            if run.batch.columns[own[name]].kind != "int" or _may_overflow(run, own[name], len(history)):
                return None
            running = running_sum(run, asked, own[name])
            sums[name][asking] += running[stops] - running[starts]
    return Looked(counts, sums)


def _has_the_keys(batch: Batch, leaf: Leaf, run: Run, asked: Question, asking: Ints, starts: Ints) -> bool:  # noqa: PLR0913, PLR0917
    """Whether rows of equal hash have equal keys; one of each range is enough, since an index tells hashes apart."""
    if run.index(asked.keys, asked.stamp).grain > 1:
        return False
    first = run.index(asked.keys, asked.stamp).order[starts]
    checks: list[Mask] = [
        joins(batch.columns[leaf.names.get(k, k)].take(asking), run.batch.columns[k].take(first)) for k in asked.keys
    ]
    return all(bool(check.all()) for check in checks)


def _may_overflow(run: Run, name: str, count: int) -> bool:
    values = run.batch[name]
    return max(abs(int(values.max())), abs(int(values.min()))) * count >= LARGEST_SUM


@dataclass(frozen=True, slots=True)
class Summary:
    """A rule that only counts and sums what lies in one window."""

    right: Rename
    condition: Formula
    summed: tuple[str, ...]


def summary_of(plan: RulePlan) -> Summary | None:
    """The summary that a rule asks for, if that is all it asks of its collection."""
    e, group = plan.accumulated, plan.head
    if not isinstance(e, Join | Cross) or e.left != plan.positive or not isinstance(e.right, Rename):
        return None
    if not isinstance(group, Group) or group.having or len(group.collections) != 1:
        return None
    head, binds = group.head, frozenset(group.collections[0].binds)
    if not isinstance(head, Derive) or binds & frozenset[str]().union(*(direct_variables(a) for a in head.arguments)):
        return None
    summed: list[str] = []
    for argument in head.arguments:
        match argument:
            case Aggregate("count", None, False, ()):
                continue
            case Aggregate("sum" | "avg", Var(name), False, ()) if name in binds:
                summed.append(name)
            case Var() | Number() | Text() | Bool():
                continue
            case _:
                return None
    return Summary(e.right, e.condition, tuple(dict.fromkeys(summed)))


def summarized(batch: Batch, found: Looked) -> Batch:
    """The rows with something in their windows, with how much and the sums."""
    columns = {COUNT: ints(found.counts), **{total_of(name): ints(s) for name, s in found.sums.items()}}
    return batch.with_columns(columns).take(found.counts > 0)
