"""This module generates whole syntax trees: conditions, queries, rules, declarations and programs.

Every tree is canonical, one that a parse can yield, so that `parse(format(tree)) == tree` has to hold. Where two
trees would be written alike, only the one that the text is read as is drawn.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ephemera.syntax import nodes as syntax_nodes
from ephemera.syntax.nodes import (
    Absent,
    Accumulation,
    Algebra,
    AlgebraExpression,
    AlgebraOperator,
    AllOf,
    And,
    AnyOf,
    Apart,
    At,
    AtMost,
    Attribute,
    Between,
    Comparison,
    Composed,
    Condition,
    Declaration,
    Derive,
    Detect,
    Event,
    EventType,
    Import,
    InCalendar,
    IsNull,
    Lasts,
    Limited,
    Moment,
    Namespace,
    Not,
    Or,
    Parameter,
    Program,
    Query,
    Raise,
    Rate,
    Relation,
    Rule,
    Selection,
    Statement,
    Stratum,
    Stream,
    Table,
    Timer,
    TimeUnit,
    TimeZone,
    Unlimited,
    Where,
    While,
    Window,
    Within,
)
from ephemera.terms import nodes as term_nodes
from ephemera.terms.nodes import AnyEvent, Call, ComparisonOperator, Element, Label, Node, Number, Periodic

from .terms import atoms, elements, patterns, root_terms, table_patterns
from .words import (
    UNITS,
    among,
    amounts,
    bare_names,
    durations,
    expressions,
    labels,
    maybe,
    names,
    node,
    plain_names,
    several,
    texts,
)

NODE_CLASSES: tuple[type[Node], ...] = tuple(
    item
    for item in {**vars(term_nodes), **vars(syntax_nodes)}.values()
    if isinstance(item, type) and issubclass(item, Node) and item is not Node
)

RELATIONS = tuple(
    """
    before after meets met-by overlaps overlapped-by starts started-by during contains finishes finished-by equals
    """.split()
)
TIMER_KINDS = tuple(
    """
    extend shorten extend-begin extend-backward shorten-begin shift-forward shift-backward
    from-end from-end-backward from-start from-start-backward
    """.split()
)
TYPES = tuple(name + suffix for name in ("int", "float", "string", "bool", "time", "any") for suffix in ("", "[]"))

# ---- conditions --------------------------------------------------------------------------------------------


@cache
def _simple_conditions() -> SearchStrategy[Condition]:
    operand = expressions(1)
    comparisons: SearchStrategy[ComparisonOperator] = st.sampled_from(get_args(ComparisonOperator))
    moments: SearchStrategy[Moment] = among(
        bare_names(), bare_names(), node(Call, st.just("datetime"), st.tuples(texts()))
    )
    parameters: SearchStrategy[Parameter] = among(durations(), durations(), node(Unlimited))
    events = several(bare_names(), least=1)
    calendars = node(Label, names().filter(lambda name: not name.startswith("@")), names())
    return among(
        node(IsNull, operand, st.booleans()),
        node(Comparison, comparisons, operand, operand),
        node(Relation, st.sampled_from(RELATIONS), moments, moments, several(parameters, most=4)),
        node(Within, events, durations()),
        node(Apart, events, durations()),
        node(InCalendar, events, calendars),
    )


@cache
def conditions(depth: int = 2, *, below: Literal["", "and", "or"] = "") -> SearchStrategy[Condition]:
    """Conditions of every kind; `below` a conjunction stands no conjunction, and likewise for disjunctions."""
    simple = _simple_conditions()
    if depth == 0:
        return simple
    kinds: list[SearchStrategy[Condition]] = [simple, simple, node(Not, conditions(depth - 1))]
    if below != "and":
        kinds.append(node(AllOf, several(conditions(depth - 1, below="and"), least=2)))
    if below != "or":
        kinds.append(node(AnyOf, several(conditions(depth - 1, below="or"), least=2)))
    return among(*kinds)


# ---- the event detection algebra ---------------------------------------------------------------------------


def _reads_as_limit(element: Element) -> bool:
    """Whether ``a[3]`` is meant to be an element, which could as well be `a` within 3."""
    return (
        element.ordered
        and not element.partial
        and len(element.children) == 1
        and isinstance(element.children[0], Number)
    )


@cache
def algebra_expressions(depth: int = 2) -> SearchStrategy[AlgebraExpression]:
    """Expressions of the algebra over atoms, elements and bare labels."""
    element = elements(labelled=True).filter(lambda element: not _reads_as_limit(element))
    leaves: SearchStrategy[AlgebraExpression] = among(node(AnyEvent, labels()), atoms(), element)
    if depth == 0:
        return leaves
    inner = algebra_expressions(depth - 1)
    operators: SearchStrategy[AlgebraOperator] = st.sampled_from(get_args(AlgebraOperator))
    composed = node(Composed, operators, inner, inner)
    return among(leaves, composed, composed, node(Limited, inner, durations()))


# ---- queries -----------------------------------------------------------------------------------------------


@cache
def events() -> SearchStrategy[Event]:
    named = node(Event, bare_names(), patterns())
    return among(node(Event, st.none(), patterns()), named, named)


@cache
def accumulations() -> SearchStrategy[Accumulation]:
    windows: SearchStrategy[Window] = among(
        node(While, bare_names(), st.booleans(), st.booleans()), node(Between, bare_names(), bare_names())
    )
    modes: SearchStrategy[Literal["not", "collect", "collect optional"]] = st.sampled_from(
        ("not", "collect", "collect optional")
    )
    return node(Accumulation, windows, modes, events(), several(conditions(1), most=2))


@cache
def selections() -> SearchStrategy[Selection]:
    def selection(
        which: Literal["next", "first", "last"], *relations: Literal["after", "before", "in"]
    ) -> SearchStrategy[Selection]:
        own = several(conditions(1), most=2)
        kinds = several(table_patterns(labelled=True) | node(AnyEvent, labels()), most=2)
        return node(
            Selection,
            st.just(which),
            events(),
            st.sampled_from(relations),
            bare_names(),
            maybe(durations()),
            kinds,
            own,
        )

    return among(selection("next", "after"), selection("last", "before", "in"), selection("first", "in"))


@cache
def periodics() -> SearchStrategy[Periodic]:
    every = node(Periodic, st.none(), durations(), maybe(durations()))
    return among(every, node(Periodic, durations(), maybe(durations()), maybe(durations())))


@cache
def queries(depth: int = 2, *, in_where: bool = False) -> SearchStrategy[Query]:
    """Queries of every kind; a `Where` stands over no `Where`, accumulation or selection, which take the conditions."""
    limits: SearchStrategy[AtMost] = node(AtMost, expressions(1), durations())
    kinds: list[SearchStrategy[Query]] = [
        events(),
        events(),
        node(Timer, maybe(bare_names()), st.sampled_from(TIMER_KINDS), bare_names(), durations()),
        node(Timer, maybe(bare_names()), st.sampled_from(TIMER_KINDS), bare_names(), limits),
        node(Event, maybe(bare_names()), periodics()),
        node(Absent, table_patterns(labelled=True)),
        node(At, bare_names(), table_patterns(labelled=False)),
        node(At, bare_names(), table_patterns(labelled=True), st.just(True)),
        node(Algebra, maybe(bare_names()), algebra_expressions(), st.booleans()),
    ]
    if not in_where:
        kinds += [accumulations(), accumulations(), selections()]
    if depth > 0:
        kinds.append(conjunctions(depth))
        kinds.append(node(Or, several(queries(depth - 1), least=1)))
        if not in_where:
            wheres = node(Where, queries(depth - 1, in_where=True), several(conditions(1), least=1, most=2))
            kinds += [wheres, wheres]
    return among(*kinds)


@cache
def conjunctions(depth: int = 2) -> SearchStrategy[And]:
    inner = queries(depth - 1)
    items: SearchStrategy[Query | Condition] = among(inner, inner, conditions(1))
    return node(And, several(items, least=1))


# ---- rules -------------------------------------------------------------------------------------------------


@cache
def rules() -> SearchStrategy[Rule]:
    """Arrow rules, whose body is a list of items, and the two kinds of block rules."""
    having = several(conditions(1), most=2)
    derive = node(Derive, labels(prefixed=False), several(expressions(1)))
    detect = node(Detect, root_terms())
    raised = node(Raise, st.text(max_size=5), st.text(max_size=5), root_terms())
    return among(
        node(Rule, detect, queries(), having),
        node(Rule, derive, conjunctions(), having),
        node(Rule, raised, queries(), having),
    )


# ---- declarations ------------------------------------------------------------------------------------------


@cache
def _attributes() -> SearchStrategy[Attribute]:
    return node(Attribute, names(), st.sampled_from(TYPES), maybe(st.text(max_size=5)))


@cache
def _event_types() -> SearchStrategy[EventType]:
    attributes = several(_attributes())
    lasts = node(Lasts, maybe(durations()))
    rates = node(Rate, amounts(), st.sampled_from(UNITS))
    return node(EventType, labels(prefixed=False), maybe(attributes), maybe(lasts), st.booleans(), maybe(rates))


@cache
def declarations() -> SearchStrategy[Declaration]:
    """Declarations of every kind."""
    locations = maybe(st.text(max_size=5))
    formats = maybe(plain_names())
    attributes = several(_attributes())
    streams = node(
        Stream,
        names(),
        locations,
        formats,
        several(labels()),
        several(names(), most=2),
        maybe(durations()),
        maybe(durations()),
    )
    return among(
        node(TimeUnit, durations()),
        node(TimeZone, st.text(max_size=5)),
        node(Import, st.text(max_size=5), names()),
        node(Namespace, names(), st.text(max_size=5)),
        _event_types(),
        streams,
        node(Table, labels(prefixed=False), attributes, locations, formats),
    )


# ---- programs ----------------------------------------------------------------------------------------------


@cache
def programs() -> SearchStrategy[Program]:
    """Whole programs of up to three statements."""
    strata = node(Stratum, several(rules(), most=2))
    statements: SearchStrategy[Statement] = among(declarations(), declarations(), rules(), rules(), strata)
    # By `builds`, so that a failing program is reported by its repr, which leaves the spans out.
    return st.builds(Program, several(statements))
