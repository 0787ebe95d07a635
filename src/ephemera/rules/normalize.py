"""This module brings resolved rules into normal form: one conjunction each (thesis 13.4.1, figures 13.2 and 13.3).

Disjunctions split a rule, nested conjunctions are flattened, literals are ordered, sugar is expanded:

- `from a until c` becomes the timer between the two and `while(excl,excl)`, with `a before c`;
- an attribute's name becomes its position (declared) or a child (undeclared), `_` a variable of its own;
- inverse relations are turned round, `extend-backward` is `extend-begin`, events without a name get one;
- `optional t` splits a rule into one with t and one `without t`, which leaves t's variables unbound; where a head
  groups (`all`, aggregates) and in collected queries it stays, because what is gathered is gathered once, and in a
  negated query it says nothing and goes;
- a `without` whose variables other events bind is tested when they are bound (13.4.4, made exact: the event must
  match the whole pattern again, with every variable known).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from ephemera.base.errors import InternalError
from ephemera.base.span import Span
from ephemera.base.tree import find, rebuild
from ephemera.rules.alternatives import Member, bare, cases, conjuncts, groups, split_optional
from ephemera.rules.nodes import (
    AbsentRowLiteral,
    AlgebraLiteral,
    Catalogue,
    CollectLiteral,
    EventLiteral,
    GapLiteral,
    NormalRule,
    NotLiteral,
    Resolved,
    TableLiteral,
    TestLiteral,
    TimerLike,
    TimerLiteral,
)
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import bindings, pattern_bindings
from ephemera.syntax.nodes import (
    Absent,
    Accumulation,
    Algebra,
    At,
    AtMost,
    Between,
    Condition,
    Event,
    Head,
    Relation,
    Rule,
    Timer,
    While,
)
from ephemera.terms.nodes import (
    Aggregate,
    Anonymous,
    Argument,
    Atom,
    Construct,
    Duration,
    Element,
    Field,
    Label,
    Name,
    NamedAtom,
    OptionalConstruct,
    Pattern,
    Var,
    Without,
)

INVERSES = {
    "after": "before",
    "met-by": "meets",
    "overlapped-by": "overlaps",
    "started-by": "starts",
    "contains": "during",
    "finished-by": "finishes",
}

_Literals = tuple[Any, ...]
T = TypeVar("T")


def normalize(resolved: Resolved) -> tuple[NormalRule, ...]:
    """The normal forms of all rules, in their order."""
    return tuple(
        normal
        for number, rule in enumerate(resolved.rules, 1)
        for normal in _normal_rules(number, rule, resolved.catalogue)
    )


def _normal_rules(number: int, rule: Rule, catalogue: Catalogue) -> Iterable[NormalRule]:
    for case in cases(rule.body):
        for members, unbound in [(case, frozenset[str]())] if groups(rule) else split_optional(case):
            yield _Normalizer(number, rule, catalogue, members, unbound).normal()


# ---- one alternative ---------------------------------------------------------------------------------------


class _Normalizer:
    def __init__(
        self, number: int, rule: Rule, catalogue: Catalogue, members: Sequence[Member], unbound: frozenset[str]
    ) -> None:
        self._number = number
        self._rule = rule
        self._catalogue = catalogue
        self._members = members
        found = [bindings(member) for member in members]
        has_value = frozenset[str]().union(*(f.bound for f in found))
        wrapped = (v.name for o in find(rule.head, OptionalConstruct) for v in find(o, Var))
        self._unbound = unbound | (frozenset(wrapped) - has_value)
        self._open = frozenset[str]().union(*(f.optional for f in found)).difference(*(f.sure for f in found))
        taken = has_value.union(*(f.never for f in found), _identifiers(members))
        self._names = (name for k in count(1) if (name := f"${k}") not in taken)
        self._blanks = (name for k in count(1) if (name := f"_{k}") not in taken)
        self._gaps: dict[tuple[str, str, Span], str] = {}
        """The windows between two events; what stands for one selection has one of them."""
        self._bound_by = [(k, f.sure) for k, f in enumerate(found)]

    def normal(self) -> NormalRule:
        parts: dict[type, list[Any]] = {
            kind: []
            for kind in (
                EventLiteral,
                AlgebraLiteral,
                TableLiteral,
                TimerLiteral,
                CollectLiteral,
                NotLiteral,
                AbsentRowLiteral,
                TestLiteral,
            )
        }
        conditions: list[Condition] = []
        for position, member in enumerate(self._members):
            match member:
                case Event():
                    literals = self._event(position, member)
                case Timer(name, kind, anchor, duration):
                    kind = "extend-begin" if kind == "extend-backward" else kind
                    told, limit = (
                        (duration.expression, duration.limit) if isinstance(duration, AtMost) else (None, duration)
                    )
                    literals = (TimerLiteral(self._name(name), kind, anchor.name, _length(limit), told),)
                case Algebra(name, expression, restricted, per):
                    literals = (AlgebraLiteral(self._name(name), self._primitives(expression), restricted, per),)
                case Accumulation():
                    literals, more = self._accumulation(member)
                    conditions.extend(more)
                case Absent(pattern):
                    literals = (AbsentRowLiteral(self._pattern(pattern)),)
                case At(moment, pattern, negated):
                    row = AbsentRowLiteral if negated else TableLiteral
                    literals = (row(self._pattern(pattern), moment.name),)
                case _:
                    conditions.append(_turned(member))
                    continue
            for literal in literals:
                parts[TimerLiteral if isinstance(literal, GapLiteral) else type(literal)].append(literal)
        return NormalRule(
            rule=self._number,
            head=_head(self._rule.head, self._unbound, self._open),
            events=tuple(parts[EventLiteral]),
            algebra=tuple(parts[AlgebraLiteral]),
            tables=tuple(parts[TableLiteral]),
            timers=_anchored(parts[TimerLiteral]),
            collects=tuple(parts[CollectLiteral]),
            absences=tuple(parts[NotLiteral]),
            absent_rows=tuple(parts[AbsentRowLiteral]),
            tests=tuple(parts[TestLiteral]),
            conditions=tuple(dict.fromkeys(conditions)),
            having=tuple(_turned(c) for condition in self._rule.having for c in conjuncts(condition)),
            unbound=self._unbound,
        )

    def _name(self, name: Name | None) -> str:
        return next(self._names) if name is None else name.name

    def _event(self, position: int, event: Event) -> _Literals:
        label = pattern_label(event.pattern)
        if label is not None and str(label) in self._catalogue.tables:
            return (TableLiteral(self._pattern(event.pattern)),)
        name = self._name(event.name)
        pattern = self._pattern(event.pattern)
        if not self._needs_test(position, event.pattern):
            return (EventLiteral(name, pattern),)
        return EventLiteral(name, without_negations(pattern)), TestLiteral(name, pattern)

    def _needs_test(self, position: int, pattern: Pattern) -> bool:
        """Whether a variable that the pattern only negates is bound by another literal."""
        found = pattern_bindings(pattern)
        elsewhere = frozenset[str]().union(*(bound for k, bound in self._bound_by if k != position))
        return bool((found.never - found.sure) & elsewhere)

    def _accumulation(self, member: Accumulation) -> tuple[_Literals, list[Condition]]:
        gap: tuple[TimerLike, ...] = ()
        conditions: list[Condition] = []
        match member.window:
            case While(event, begin, end):
                window = event.name
            case Between(first, last, span=place):
                begin = end = False
                known = self._gaps.get((first.name, last.name, place))
                window = known or next(self._names)
                if known is None:
                    gap = (GapLiteral(window, first.name, last.name),)
                    self._gaps[first.name, last.name, place] = window
                conditions.append(Relation("before", first, last, span=member.window.span))
        pattern = member.event.pattern
        own = tuple(_turned(c) for condition in member.conditions for c in conjuncts(condition))
        name = self._name(member.event.name)
        if member.event.name is not None and self._is_called_so_too(member):
            name, own = (free := next(self._names)), tuple(_called(c, name, free) for c in own)
        if member.mode == "not":
            inner = EventLiteral(name, self._pattern(bare(pattern)))
            return (*gap, NotLiteral(window, begin, end, inner, own)), conditions
        inner = EventLiteral(name, self._pattern(pattern))
        collect = CollectLiteral(window, begin, end, inner, own, member.mode == "collect optional")
        return (*gap, collect), conditions

    def _is_called_so_too(self, member: Accumulation) -> bool:
        """Whether the event of another window keeps its name: the one that heads may speak of."""
        same = [
            m
            for m in self._members
            if isinstance(m, Accumulation) and m.event.name is not None and m.event.name == member.event.name
        ]
        keeps = next((m for m in same if m.mode != "not"), same[0])
        return keeps is not member

    # ---- patterns ------------------------------------------------------------------------------------------

    def _pattern(self, pattern: Pattern) -> Pattern:
        if isinstance(pattern, NamedAtom):
            pattern = self._positions(pattern)
        if isinstance(pattern, Atom):
            return replace(pattern, arguments=tuple(self._argument(a) for a in pattern.arguments))
        return pattern

    def _primitives(self, expression: Any) -> Any:
        return rebuild(expression, lambda n: self._pattern(n) if isinstance(n, Atom | NamedAtom) else n)

    def _argument(self, argument: Argument) -> Argument:
        return Var(next(self._blanks), span=argument.span) if isinstance(argument, Anonymous) else argument

    def _positions(self, atom: NamedAtom) -> Atom | Element:
        schema = self._catalogue.events.get(str(atom.label)) or self._catalogue.tables.get(str(atom.label))
        if schema is None or schema.attributes is None:
            children = tuple(_child(field) for field in atom.fields)
            return Element(atom.label, ordered=False, partial=True, children=children, span=atom.span)
        given = {field.name: field.argument for field in atom.fields}
        arguments = tuple(given.get(name, Anonymous(span=atom.span)) for name in schema.names)
        return Atom(atom.label, arguments, span=atom.span)


def _identifiers(members: Sequence[Member]) -> set[str]:
    """The names that the author gave to events and timers."""
    named = (m.event if isinstance(m, Accumulation) else m for m in members)
    return {m.name.name for m in named if isinstance(m, Event | Timer | Algebra) and m.name is not None}


def _child(field: Field) -> Element:
    label = Label(field.name, span=field.span)
    if isinstance(field.argument, Anonymous):
        return Element(label, ordered=False, partial=True, children=(), span=field.span)
    if isinstance(field.argument, Name):
        raise InternalError("normalize", f"the name `{field.argument.name}` was not resolved")
    return Element(label, ordered=False, partial=False, children=(field.argument,), span=field.span)


def without_negations(pattern: T) -> T:
    """The pattern with its `without` parts left out: it matches at least where the whole does."""

    def drop(node: Any) -> Any:
        if isinstance(node, Element) and any(isinstance(c, Without) for c in node.children):
            kept = tuple(c for c in node.children if not isinstance(c, Without))
            return replace(node, children=kept)
        return node

    return rebuild(pattern, drop)


def _called(condition: Condition, name: str, other: str) -> Condition:
    """A condition in which an event has another name."""
    return rebuild(condition, lambda n: replace(n, name=other) if isinstance(n, Name) and n.name == name else n)


def _length(duration: Duration) -> int:
    (part,) = duration.parts
    if part.unit != "us":
        raise InternalError("normalize", "a duration was not resolved to microseconds")
    return int(part.amount)


def _turned(condition: Condition) -> Condition:
    """Inverse relations the other way round, in every part of a condition."""

    def turn(node: Any) -> Any:
        if isinstance(node, Relation) and node.relation in INVERSES:
            return Relation(INVERSES[node.relation], node.right, node.left, node.parameters, span=node.span)
        return node

    return rebuild(condition, turn)


def _anchored(timers: list[TimerLike]) -> tuple[TimerLike, ...]:
    """Timers so that each stands behind those it is anchored to."""
    waiting = list(timers)
    names = {timer.name for timer in timers}
    placed: list[TimerLike] = []
    known: set[str] = set()
    while waiting:
        ready = [t for t in waiting if all(a in known or a not in names for a in _anchors(t))]
        if not ready:
            raise InternalError("normalize", "timers anchored to each other were not refused")
        placed += ready
        known |= {t.name for t in ready}
        waiting = [t for t in waiting if t not in ready]
    return tuple(placed)


def _anchors(timer: TimerLike) -> tuple[str, ...]:
    return (timer.anchor,) if isinstance(timer, TimerLiteral) else (timer.first, timer.last)


def _head(head: Head, unbound: frozenset[str], undecided: frozenset[str]) -> Head:
    """The head with `optional` decided: its default where a variable has no value, else what it wraps.

    Whether an aggregate ranges over anything is known only when the head is built.
    """

    def is_open(node: OptionalConstruct) -> bool:
        names = [v.name for v in find(node.term, Var)]
        if any(name in undecided for name in names):
            return True
        return not any(name in unbound for name in names) and next(find(node.term, Aggregate), None) is not None

    def decide(node: Any) -> Any:
        match node:
            case OptionalConstruct() if is_open(node):
                return node
            case OptionalConstruct(term) if not any(v.name in unbound for v in find(term, Var)):
                return term
            case OptionalConstruct(_, default) if default is not None:
                return default
            case Construct(_, _, children):
                kept = tuple(c for c in children if not isinstance(c, OptionalConstruct) or is_open(c))
                return replace(node, children=kept) if len(kept) < len(children) else node
            case _:
                return node

    return rebuild(head, decide)
