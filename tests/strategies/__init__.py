"""This module offers the Hypothesis strategies for syntax trees that a parse can yield."""

from .terms import construct_terms, query_terms
from .trees import (
    NODE_CLASSES,
    algebra_expressions,
    conditions,
    declarations,
    programs,
    queries,
    rules,
)
from .words import expressions

__all__ = [
    "NODE_CLASSES",
    "algebra_expressions",
    "conditions",
    "construct_terms",
    "declarations",
    "expressions",
    "programs",
    "queries",
    "query_terms",
    "rules",
]
