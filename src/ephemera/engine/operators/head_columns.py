"""This module gives the columns of an arrow head: variables and constants as they are, and what is computed of them.

Where rows are grouped, equal values of two forms become one (`1` and `1.0`, zeros of both signs). So there only values
that have one form are vouched for: whole numbers and texts.
"""

from __future__ import annotations

from ephemera.base.tree import find
from ephemera.kernels.arithmetic import Arithmetic
from ephemera.kernels.columns import UNBOUND, Batch, Column, column, constant
from ephemera.kernels.computed import gathered
from ephemera.terms.compute import Scope
from ephemera.terms.nodes import Aggregate, Bool, Construct, Expression, Name, Number, Text, Var


def bound(e: Expression, batch: Batch) -> Column | None:
    """A variable or a constant as it is, which has a value on every row: where a variable has none, that is null."""
    c = batch.columns.get(e.name) if isinstance(e, Var) else shown(e, batch)
    return column([None if v is UNBOUND else v for v in c.tolist()]) if c is not None and c.kind == "any" else c


def exact(e: Expression, batch: Batch, scope: Scope) -> Column | None:
    """An expression over whole numbers and texts, which have one form; None if columns do not vouch for all rows."""
    plain = shown(e, batch)
    if plain is not None or not _has_one_form(e, batch, ("int", "text")):
        return plain
    computed, sure = gathered(Arithmetic(batch, scope).shares(e), len(batch))
    return computed if sure is None and computed.kind != "any" else None


def ranging(e: Expression | Construct, batch: Batch, ranged: frozenset[str], scope: Scope) -> Column | None:
    """What an aggregate ranges over, where it is computed of one collection only; None if columns do not vouch."""
    if isinstance(e, Construct) or not frozenset(v.name for v in find(e, Var)) <= ranged & batch.columns.keys():
        return None
    if isinstance(e, Var):
        return batch.columns[e.name]
    if not _has_one_form(e, batch, ("int", "float")):
        return None
    computed, sure = gathered(Arithmetic(batch, scope).shares(e), len(batch))
    return computed if sure is None else None


def _has_one_form(e: Expression, batch: Batch, kinds: tuple[str, ...]) -> bool:
    """Whether an expression is computed of variables of some kinds, and of some of them."""
    columns = [batch.columns.get(v.name) for v in find(e, Var)]
    is_plain = not any(True for _ in find(e, (Aggregate, Name)))
    return bool(columns) and is_plain and all(c is not None and c.kind in kinds for c in columns)


def shown(e: Expression, batch: Batch) -> Column | None:
    """A variable that is of one kind, or a constant."""
    match e:
        case Var(name):
            c = batch.columns.get(name)
            return c if c is not None and c.kind != "any" else None
        case Number(value) | Text(value) | Bool(value):
            return constant(value, len(batch))
        case _:
            return None
