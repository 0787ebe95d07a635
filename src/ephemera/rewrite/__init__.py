"""This package rewrites plans before they are run, and says what of the input they need."""

from __future__ import annotations

from ephemera.rewrite.drop_unasked import drop_unasked
from ephemera.rewrite.fuse_construction import fuse_construction
from ephemera.rewrite.optimize import Rewrite
from ephemera.rewrite.push_constants import push_constants
from ephemera.rewrite.pushdown import narrow_columns
from ephemera.rewrite.select_before_windows import select_before_windows
from ephemera.rewrite.share_alike_rules import share_alike_rules
from ephemera.rewrite.split_joins import split_joins

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
"""What is done besides, and afterwards, where a program runs in several places."""

ALL_REWRITES: tuple[Rewrite, ...] = (*REWRITES, *SPREADING)
"""All rewrites: what tests leave out one by one."""
