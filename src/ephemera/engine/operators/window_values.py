"""This module sums up windows in which a value counts only above or below a limit: `collect b(_, y) where { y > v }`.

That is possible for whole numbers, where all else that is asked of a window is a range of one stamp in an index, and
only a number, a sum or an average is wanted. Elsewhere the window is unfolded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ephemera.algebra.scalar import Holds
from ephemera.algebra.truth import Tester
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.engine.operators.window import Looked, in_window
from ephemera.kernels.arithmetic import Arithmetic
from ephemera.kernels.columns import Batch, Ints
from ephemera.kernels.computed import gathered
from ephemera.kernels.history import History, Run
from ephemera.kernels.search import Question, bucket_pairs, ranges
from ephemera.kernels.value_tree import ValueTree
from ephemera.physical.nodes import Wanted, WindowPlan
from ephemera.syntax.nodes import Comparison
from ephemera.terms.nodes import ComparisonOperator, Expression, Name, Var

MIRRORED: Mapping[ComparisonOperator, ComparisonOperator] = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
"""What a comparison is when its sides change places."""
COMPARED: Mapping[str, Any] = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}


@dataclass(frozen=True, slots=True)
class Limited:
    """A variable of what lies in a window, and what it is compared with."""

    name: str
    operator: ComparisonOperator
    limit: Expression


def limited(window: WindowPlan, outer: frozenset[str]) -> Limited | None:
    """The one condition of a window, if it compares a variable of its own with what is known outside."""
    if len(window.tests) != 1 or any(one.function != "sum" for one in window.wanted):
        return None
    match window.tests[0]:
        case Holds(Comparison(operator, Var(name), limit)) if name not in outer:
            found = Limited(name, operator, limit)
        case Holds(Comparison(operator, limit, Var(name))) if name not in outer and operator in MIRRORED:
            found = Limited(name, MIRRORED[operator], limit)
        case _:
            return None
    is_known = {v.name for v in find(found.limit, Var)} <= outer and not any(True for _ in find(found.limit, Name))
    is_summed = all(one.value == Var(found.name) for one in window.wanted)
    return found if is_known and is_summed and found.operator in MIRRORED else None


def look_beyond(
    window: WindowPlan, history: History, batch: Batch, outer: frozenset[str], tester: Tester
) -> Looked | None:
    """How much is in each window, and its sum; None if the window has to be unfolded."""
    condition = limited(window, outer)
    if condition is None or not window.leaf.variables & batch.columns.keys() <= frozenset(window.keys):
        return None
    limit, sure = gathered(Arithmetic(batch, tester.scope({})).shares(condition.limit), len(batch))
    if sure is not None or limit.kind != "int":
        return None
    asked = in_window(batch, window)
    if len(asked.keys) < len(window.keys):
        return None
    own = {new: old for old, new in window.leaf.names.items()}
    looked = Looked(len(asked), len(history))
    for run in history.flush():
        if not _add(run, asked, condition, own[condition.name], limit.values, looked):
            return None
    return looked


def _add(  # noqa: PLR0913, PLR0917 - a run, what is asked of it, and what has been found
    run: Run, asked: Question, condition: Limited, name: str, limits: Ints, looked: Looked
) -> bool:
    """Adds what windows hold of a run: one by one where that is little; whether all could be had."""
    sums = looked.so_far(run, Wanted.of("sum", Var(condition.name)), name)
    if sums is None:
        return False
    pairs = bucket_pairs(run, asked)
    for rows, others in pairs or ():
        values = run.batch[name].take(others)
        passing = COMPARED[condition.operator](values, limits.take(rows)).nonzero()[0]
        np.add.at(sums, rows.take(passing), values.take(passing))
        looked.counts += np.bincount(rows.take(passing), minlength=len(looked.counts))
    if pairs is not None:
        return True
    asking, starts, stops = ranges(run, asked)
    index = run.index(asked.keys, asked.stamp)
    if index.grain > 1 or not index.exact:
        return False
    if ("tree", name) not in index.summaries:
        index.summaries["tree", name] = ValueTree(run.batch[name].take(index.order))
    tree: ValueTree = index.summaries["tree", name]
    side = tree.above if condition.operator in (">", ">=") else tree.below
    more = side(starts, stops, limits.take(asking), equal=condition.operator in (">=", "<="))
    looked.counts[asking] += more[0]
    sums[asking] += more[1]
    return True
