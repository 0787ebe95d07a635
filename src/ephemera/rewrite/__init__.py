"""This package rewrites plans before they are run, and says what of the input they need."""

from __future__ import annotations

from ephemera.rewrite.drop_unasked import drop_unasked
from ephemera.rewrite.fuse_construction import fuse_construction
from ephemera.rewrite.optimize import Rewrite
from ephemera.rewrite.push_constants import push_constants
from ephemera.rewrite.pushdown import narrow_columns
from ephemera.rewrite.select_before_windows import select_before_windows
from ephemera.rewrite.share_alike_rules import share_alike_rules
from ephemera.rewrite.share_joins import share_joins
from ephemera.rewrite.split_joins import split_joins
from ephemera.rewrite.store_joins import store_every_join, store_joins

REWRITES: tuple[Rewrite, ...] = (
    drop_unasked,
    push_constants,
    fuse_construction,
    narrow_columns,
    share_alike_rules,
    select_before_windows,
)
"""What is done wherever a program runs, in this order: rules that are not run read nothing, and what the others read is
judged before some of them are put together."""

SPREADING: tuple[Rewrite, ...] = (split_joins,)
"""What is done then where a program runs in several places."""

JOINS: tuple[Rewrite, ...] = (share_joins, store_joins)
"""What is done last, for the sake of cost: what several rules store is not stored again by one of them."""

ALL_REWRITES: tuple[Rewrite, ...] = (*REWRITES, *SPREADING, *JOINS)
"""All of them: what tests leave out one by one."""

NO_JOINS: tuple[Rewrite, ...] = REWRITES
EVERY_JOIN: tuple[Rewrite, ...] = (*REWRITES, store_every_join)
"""To try what it costs to store no joins, or all."""
