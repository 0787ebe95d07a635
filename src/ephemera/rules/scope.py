"""This module says which variables and identifiers a query binds, defines and uses.

For both, a conjunction gives what its members give, a disjunction only what all its branches give; what some
branches give is kept apart, for the messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import walk
from ephemera.syntax.nodes import (
    Absent,
    Accumulation,
    Algebra,
    AlgebraExpression,
    And,
    Apart,
    At,
    Comparison,
    Composed,
    Condition,
    Derive,
    Detect,
    Event,
    Head,
    InCalendar,
    Limited,
    Or,
    Query,
    Raise,
    Relation,
    Selection,
    Timer,
    Where,
    Within,
)
from ephemera.terms.construct import direct_variables
from ephemera.terms.nodes import (
    AnyEvent,
    As,
    Atom,
    Call,
    Desc,
    Element,
    Expression,
    Name,
    NamedAtom,
    Node,
    Optional,
    Pattern,
    Periodic,
    QueryTerm,
    Var,
    Without,
)

TIME_FUNCTIONS = ("begin", "end", "duration")
"""The functions whose argument is an event."""


# ---- variables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bindings:
    """Variables by how sure it is that an answer has a value for them."""

    sure: frozenset[str] = frozenset()
    perhaps: frozenset[str] = frozenset()
    """Bound in some branches, or inside `optional`."""
    never: frozenset[str] = frozenset()
    """Mentioned only where something must be absent."""
    optional: frozenset[str] = frozenset()
    """Those of `perhaps` that are bound inside `optional`."""

    def joined(self, other: Bindings) -> Bindings:
        return _all_of([self, other])

    def either(self, other: Bindings) -> Bindings:
        sure = self.sure & other.sure
        every = self.sure | other.sure | self.perhaps | other.perhaps
        return Bindings(sure, every - sure, self.never | other.never, (self.optional | other.optional) - sure)

    @property
    def bound(self) -> frozenset[str]:
        """Those that an answer has a value for, surely or perhaps."""
        return self.sure | self.perhaps

    @property
    def all(self) -> frozenset[str]:
        return self.sure | self.perhaps | self.never


NOTHING = Bindings()


def _all_of(parts: Sequence[Bindings]) -> Bindings:
    sure = frozenset[str]().union(*(p.sure for p in parts))
    return Bindings(
        sure,
        frozenset[str]().union(*(p.perhaps for p in parts)) - sure,
        frozenset[str]().union(*(p.never for p in parts)),
        frozenset[str]().union(*(p.optional for p in parts)) - sure,
    )


def bindings(query: Query | Condition) -> Bindings:
    """What a query binds."""
    match query:
        case Event(_, pattern):
            return pattern_bindings(pattern)
        case Selection(_, event):
            return pattern_bindings(event.pattern)
        case At(_, pattern, negated):
            return _negated(pattern) if negated else pattern_bindings(pattern)
        case Absent(pattern):
            return _negated(pattern)
        case Accumulation(_, mode, event, _):
            return _negated(event.pattern) if mode == "not" else pattern_bindings(event.pattern)
        case Algebra(_, expression, _):
            return _algebra(expression)
        case And(items):
            return _all_of([bindings(item) for item in items])
        case Or(items):
            found = bindings(items[0])
            for item in items[1:]:
                found = found.either(bindings(item))
            return found
        case Where(inner, _):
            return bindings(inner)
        case _:
            return NOTHING


def shared_in_algebra(algebra: Algebra) -> frozenset[str]:
    """The variables whose values an algebra expression keeps apart: of several of its events, or named."""
    times = Counter(name for atom in primitives(algebra.expression) for name in pattern_bindings(atom).sure)
    return frozenset(name for name, count in times.items() if count > 1) | {v.name for v in algebra.per}


def _negated(pattern: Pattern) -> Bindings:
    return Bindings(never=pattern_bindings(pattern).all)


def _algebra(expression: AlgebraExpression) -> Bindings:
    match expression:
        case Composed("|", left, right):
            return _algebra(left).either(_algebra(right))
        case Composed("-", left, right):
            return _algebra(left).joined(Bindings(never=_algebra(right).all))
        case Composed(_, left, right):
            return _algebra(left).joined(_algebra(right))
        case Limited(operand, _):
            return _algebra(operand)
        case _:
            return pattern_bindings(expression)


def pattern_bindings(pattern: Pattern | QueryTerm) -> Bindings:
    """What a pattern binds."""
    match pattern:
        case Atom(_, arguments):
            return Bindings(frozenset(a.name for a in arguments if isinstance(a, Name | Var)))
        case NamedAtom(_, fields):
            return Bindings(frozenset(f.argument.name for f in fields if isinstance(f.argument, Name | Var)))
        case AnyEvent() | Periodic():
            return NOTHING
        case Var(name):
            return Bindings(frozenset([name]))
        case As(variable, term):
            return Bindings(frozenset([variable])).joined(pattern_bindings(term))
        case Element(label, _, _, children):
            own = [Bindings(frozenset([label.name]))] if isinstance(label, Var) else []
            return _all_of([*own, *(pattern_bindings(child) for child in children)])
        case Desc(term):
            return pattern_bindings(term)
        case Without(term):
            return Bindings(never=pattern_bindings(term).all)
        case Optional(term):
            inner = pattern_bindings(term)
            return Bindings(perhaps=inner.sure | inner.perhaps, never=inner.never, optional=inner.sure | inner.perhaps)
        case _:
            return NOTHING


# ---- identifiers -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Defined:
    """Identifiers with the node that names them: those in every branch, and those in at least one."""

    sure: dict[str, Name] = field(default_factory=dict)
    some: dict[str, Name] = field(default_factory=dict)


def definitions(query: Query | Condition) -> Defined:
    """The identifiers a query defines."""
    match query:
        case Event(name, _) | Timer(name, _, _, _) | Algebra(name, _, _):
            return Defined() if name is None else Defined({name.name: name}, {name.name: name})
        case And(items):
            found = Defined()
            for item in reversed(items):
                inner = definitions(item)
                found.sure.update(inner.sure)
                found.some.update(inner.some)
            return found
        case Or(items):
            branches = [definitions(item) for item in items]
            shared = set.intersection(*(set(b.sure) for b in branches))
            some: dict[str, Name] = {}
            for branch in reversed(branches):
                some |= branch.some
            return Defined({name: some[name] for name in shared}, some)
        case Where(inner_query, _):
            return definitions(inner_query)
        case _:
            return Defined()


# ---- names in conditions and expressions -------------------------------------------------------------------


def is_event_comparison(comparison: Comparison, variables: frozenset[str]) -> bool:
    """Whether ``i = j`` compares events: both sides are bare names, and neither is a variable of the rule."""
    sides = (comparison.left, comparison.right)
    return comparison.operator in ("=", "!=") and all(isinstance(s, Name) and s.name not in variables for s in sides)


def event_names(node: Node, variables: frozenset[str]) -> Iterator[Name]:
    """The bare names below a condition, expression or head that stand for events."""
    for current in walk(node):
        match current:
            case Relation(_, left, right, _):
                yield from (side for side in (left, right) if isinstance(side, Name))
            case Within(events, _) | Apart(events, _) | InCalendar(events, _):
                yield from events
            case Comparison() if is_event_comparison(current, variables):
                yield from (side for side in (current.left, current.right) if isinstance(side, Name))
            case Call(function, arguments) if function in TIME_FUNCTIONS:
                yield from (a for a in arguments if isinstance(a, Name))
            case _:
                continue


def variable_names(node: Node, variables: frozenset[str]) -> Iterator[Name | Var]:
    """The names below a condition, expression or head that stand for variables."""
    events = {id(name) for name in event_names(node, variables)}
    return (n for n in walk(node) if isinstance(n, Name | Var) and id(n) not in events)


def plain_variables(head: Head) -> frozenset[str]:
    """The variables by which answers are grouped: those of the head outside `all` and aggregates."""
    match head:
        case Derive(_, arguments):
            return frozenset[str]().union(*(direct_variables(a) for a in arguments))
        case Detect(term):
            return direct_variables(term)
        case Raise(recipient, transport, term):
            return direct_variables(term).union(*(direct_variables(e) for e in computed(recipient, transport)))


def computed(*address: str | Expression) -> tuple[Expression, ...]:
    """What of an address is no text that stands in the program."""
    return tuple(part for part in address if not isinstance(part, str))


def primitives(expression: Node) -> Iterator[Pattern]:
    """The event patterns of an algebra expression."""
    match expression:
        case Composed(_, left, right):
            yield from primitives(left)
            yield from primitives(right)
        case Limited(operand, _):
            yield from primitives(operand)
        case Atom() | NamedAtom() | AnyEvent() | Element():
            yield expression
