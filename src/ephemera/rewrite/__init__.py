"""This package rewrites plans before they are run, and says what of the input they need."""

from __future__ import annotations

from ephemera.rewrite.optimize import Rewrite
from ephemera.rewrite.pushdown import narrow_columns
from ephemera.rewrite.share_alike_rules import share_alike_rules

REWRITES: tuple[Rewrite, ...] = (narrow_columns, share_alike_rules)
"""All rewrites, in the order in which they are done: what is read is judged by the rules as they were written."""
