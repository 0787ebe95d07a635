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
"""All rewrites, in the order in which they are done: rules that are not run read nothing, and what the others read is
judged before some of them are put together."""

JOINS: tuple[Rewrite, ...] = (share_joins, store_joins)
"""What is done then, for the sake of cost: what several rules store is not stored again by one of them."""

SPLITS: tuple[Rewrite, ...] = (split_joins,)
"""What is done before that where a program runs in several places."""

EVERY_JOIN: tuple[Rewrite, ...] = (store_every_join,)
"""What is done in its place to try what it costs to store all."""
