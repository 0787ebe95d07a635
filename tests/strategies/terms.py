"""This module generates terms: query terms, the patterns of events, and construct terms.

A construct term cannot be bracketed, so a clause at its end belongs to the innermost `all` or `optional` that can
take it; trees in which an outer one has it are never drawn.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ephemera.terms.nodes import (
    Aggregate,
    All,
    Anonymous,
    Argument,
    As,
    Atom,
    Construct,
    ConstructTerm,
    Desc,
    Duration,
    Element,
    Field,
    Label,
    NamedAtom,
    Optional,
    OptionalConstruct,
    OrderBy,
    Pattern,
    QueryTerm,
    Regex,
    Var,
    Without,
)

from .words import (
    among,
    bare_names,
    element_labels,
    expressions,
    labels,
    maybe,
    names,
    node,
    several,
    values,
    variables,
)

# ---- query terms -------------------------------------------------------------------------------------------


@cache
def regexes() -> SearchStrategy[Regex]:
    """What stands between slashes; ``/*`` would open a comment, and a slash after a backslash loses it."""
    character = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="\\")
    common = st.sampled_from(tuple('abz019.*+?/|()[]{}^$ "`-'))
    escaped = st.sampled_from((r"\d", r"\w+", r"\.", r"\\", r"\*", r"\("))
    patterns = st.lists(among(common, common, escaped, character), min_size=1, max_size=5).map("".join)
    return node(Regex, patterns.filter(lambda text: not text.startswith("*") and not text.endswith("\\")))


@cache
def query_terms(depth: int = 2) -> SearchStrategy[QueryTerm]:
    """Query terms of every kind."""
    leaves: SearchStrategy[QueryTerm] = among(variables(), regexes(), values())
    if depth == 0:
        return leaves
    inner = query_terms(depth - 1)
    nested = elements(depth)
    return among(
        leaves,
        leaves,
        node(Desc, inner),
        node(Without, inner),
        node(Optional, inner),
        node(As, names(), inner),
        nested,
        nested,
    )


@cache
def elements(depth: int = 2, *, labelled: bool = False) -> SearchStrategy[Element]:
    """Elements with children below; `labelled` ones have no variable for a label."""
    fixed = element_labels()
    label: SearchStrategy[Label | Var] = fixed if labelled else among(fixed, fixed, fixed, variables())
    return node(Element, label, st.booleans(), st.booleans(), several(query_terms(depth - 1)))


# ---- patterns ----------------------------------------------------------------------------------------------


@cache
def arguments() -> SearchStrategy[Argument]:
    return among(bare_names(), variables(), node(Anonymous), values())


@cache
def atoms() -> SearchStrategy[Atom | NamedAtom]:
    """Events by position or by attribute."""
    label = labels()
    fields = node(Field, names(), arguments())
    return among(node(Atom, label, several(arguments())), node(NamedAtom, label, several(fields, least=1)))


@cache
def patterns() -> SearchStrategy[Pattern]:
    """What an event may look like."""
    return among(
        variables(),
        atoms(),
        atoms(),
        elements(),
        elements(),
        node(Desc, query_terms(1)),
        node(As, names(), query_terms(1)),
    )


@cache
def table_patterns(*, labelled: bool) -> SearchStrategy[Pattern]:
    """What a row of a table may look like; after `not` it has to be `labelled`."""
    return among(atoms(), elements(labelled=labelled))


# ---- construct terms ---------------------------------------------------------------------------------------


@cache
def construct_terms(depth: int = 2) -> SearchStrategy[ConstructTerm]:
    """Construct terms of every kind; an expression among them is neither a bare name nor a duration."""
    computed = expressions(1, in_construct=True).filter(lambda term: not isinstance(term, Duration))
    if depth == 0:
        return computed
    nested = constructs(depth)
    return among(computed, computed, nested, nested, alls(depth), optional_constructs(depth), _counts(depth))


@cache
def constructs(depth: int = 2) -> SearchStrategy[Construct]:
    label: SearchStrategy[Label | Var] = among(element_labels(), element_labels(), variables())
    return node(Construct, label, st.booleans(), several(construct_terms(depth - 1)))


@cache
def _orders() -> SearchStrategy[OrderBy]:
    return node(
        OrderBy,
        st.sampled_from(((), ("lexical",), ("numeric",), ("descending",), ("ascending", "lexical"))),
        several(variables(), least=1),
    )


@cache
def _counts(depth: int) -> SearchStrategy[Aggregate]:
    """``count(all item { … })``: aggregates over elements."""
    functions = st.sampled_from(("count", "min", "max"))
    element = st.builds(Construct, element_labels(), st.booleans(), several(construct_terms(depth - 1)))
    return st.builds(Aggregate, functions, element, st.just(True), several(variables()))


@cache
def _plain_constructs(depth: int) -> SearchStrategy[ConstructTerm]:
    """What `all` and `with default` take: an element or an expression, so that no clause is left dangling."""
    computed = expressions(1, in_construct=True).filter(lambda term: not isinstance(term, Duration))
    return among(computed, constructs(depth)) if depth else computed


@cache
def alls(depth: int = 2) -> SearchStrategy[All]:
    """``all c`` with and without its clauses."""
    return node(All, _plain_constructs(depth - 1), maybe(several(variables(), least=1)), maybe(_orders()))


@cache
def optional_constructs(depth: int = 2) -> SearchStrategy[OptionalConstruct]:
    """``optional c`` with and without a default."""
    term: SearchStrategy[ConstructTerm] = among(_plain_constructs(depth - 1), alls(depth))
    return node(OptionalConstruct, term, maybe(_plain_constructs(depth - 1)))


@cache
def root_terms() -> SearchStrategy[ConstructTerm]:
    """What a rule may construct as a whole."""
    nested = constructs()
    return among(variables(), nested, nested, nested, alls())
