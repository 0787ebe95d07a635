"""This module gives each normal rule a fingerprint of what it means.

A fingerprint is taken of the normal form, with the types that the rule reads and derives as they are declared. It is
modulo the names of variables and of events, layout, comments, spans, where the rule stands, how many others there are
and what they say; durations are microseconds, so it is modulo the unit, too, unless the rule computes with lengths. The
zone counts where a rule asks the clock or speaks of a date. The order of events and conditions counts: engines lay out
the state of a rule by it. Nothing is printed for it, no plan is looked at, and no hash of Python's is used: it is the
same in every process and version. It changes with the names of the classes and fields of normal rules; a field that has
its default value is left out, so that what the language learns later changes no rule that does not use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import MISSING, Field, fields, is_dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from ephemera.algebra.attributes import (
    begin,
    end,
    occurrence,
    reference,
)
from ephemera.algebra.nodes import Plan, Point
from ephemera.base.errors import InternalError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find, walk
from ephemera.rules.declare import construct_label, head_label
from ephemera.rules.nodes import (
    AbsentRowLiteral,
    AlgebraLiteral,
    Catalogue,
    CollectLiteral,
    EventLiteral,
    GapLiteral,
    NormalRule,
    NotLiteral,
    TableLiteral,
    TestLiteral,
    TimerLiteral,
)
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import primitives
from ephemera.syntax.nodes import Comparison, IsNull, Raise
from ephemera.terms.functions import FUNCTIONS
from ephemera.terms.nodes import As, Binary, Call, Duration, Label, Name, Negative, Pattern, Var

Fields: TypeAlias = Set[tuple[type, str]]

SIZE = 16
VARIABLES: Fields = {(Var, "name"), (As, "variable")}
"""Where normal rules have names of variables."""
EVENTS: Fields = {
    (Name, "name"),
    (EventLiteral, "name"),
    (AlgebraLiteral, "name"),
    (TableLiteral, "at"),
    (AbsentRowLiteral, "at"),
    (TimerLiteral, "name"),
    (TimerLiteral, "anchor"),
    (GapLiteral, "name"),
    (GapLiteral, "first"),
    (GapLiteral, "last"),
    (CollectLiteral, "window"),
    (NotLiteral, "window"),
    (TestLiteral, "event"),
}
"""Where they have names of events and timers."""
_SAYS_NOTHING = {(NormalRule, "rule"), (NormalRule, "unbound")}
"""Where a rule stands, and what normalization has dealt with already."""


@dataclass(frozen=True, slots=True)
class Print:
    """The fingerprint of a normal rule, and what its variables and events are called in any rule that means the same.

    >>> import ephemera
    >>> text = "TIME UNIT 1 sec; late(i) <- {}: order(i), p: paid({}), {{{}, p}} within {}s;"
    >>> one, other, third = (
    ...     fingerprints(ephemera.compile(text.format(o, i, o, limit))._compiled.plan)["late"]
    ...     for o, i, limit in (("o", "i", 5), ("first", "i", 5), ("o", "i", 6))
    ... )
    >>> one.fingerprint == other.fingerprint, one.fingerprint == third.fingerprint
    (True, False)
    >>> dict(other.events)
    {'first': 'e1', 'p': 'e2'}
    """

    fingerprint: str
    variables: Mapping[str, str]
    events: Mapping[str, str]

    def columns(self) -> dict[str, str]:
        """For each column that tuples of the rule may have its name in any rule that means the same."""
        sides = (begin, end, reference, occurrence)
        return {side(own): side(name) for own, name in self.events.items() for side in sides} | dict(self.variables)


def fingerprints(plan: Plan) -> dict[str, Print]:
    """For each rule of a plan, by the name of its point, what it means."""
    return {
        name: fingerprint(plan.normal[_number(point)], plan.catalogue)
        for name, point in plan.points.items()
        if point.kind == "rule"
    }


def _number(point: Point) -> int:
    if point.normal is None:
        raise InternalError("fingerprint", f"{point.name} is no normal rule")
    return point.normal


def fingerprint(normal: NormalRule, catalogue: Catalogue) -> Print:
    """What a normal rule means; see the module."""
    naming = _Naming()
    told = [normal, _declared(normal, catalogue)]
    if _asks_for_dates(normal):
        told.append(("zone", catalogue.zone))
    if _computes_lengths(normal):
        told.append(("unit", catalogue.unit))
    return Print(digest(told, naming), naming.variables, naming.events)


def _declared(normal: NormalRule, catalogue: Catalogue) -> dict[str, object]:
    """The types that a rule speaks of as they are declared, and the namespaces of its labels."""
    labels = {str(label) for pattern in _patterns(normal) if (label := pattern_label(pattern)) is not None}
    own = construct_label(normal.head.term) if isinstance(normal.head, Raise) else head_label(normal.head)
    labels |= set() if own is None else {own}
    uris = {prefix: uri for uri, prefix in catalogue.namespaces.prefixes.items()}
    prefixes = {label.prefix for label in find(normal, Label)} & set(uris)
    called = {call.function for call in find(normal, Call)} & set(catalogue.functions)
    return {
        **{f"function {name}": catalogue.functions[name].meaning for name in called},
        **{f"prefix {prefix}": uris[prefix] for prefix in prefixes},
        **{f"event {label}": declared_as(catalogue, label) for label in labels if label in catalogue.events},
        **{f"table {x}": catalogue.tables[x].attributes for x in labels if x in catalogue.tables},
    }


def declared_as(catalogue: Catalogue, label: str) -> tuple[object, ...]:
    """How a type of events is declared, as far as it matters to what rules mean."""
    schema = catalogue.events[label]
    return schema.attributes, schema.longest, schema.arrives_at_begin


def _patterns(normal: NormalRule) -> Iterator[Pattern]:
    yield from (event.pattern for event in normal.events)
    yield from (row.pattern for row in normal.tables)
    yield from (row.pattern for row in normal.absent_rows)
    yield from (collect.event.pattern for collect in normal.collects)
    yield from (absence.event.pattern for absence in normal.absences)
    yield from (pattern for literal in normal.algebra for pattern in primitives(literal.expression))


def _asks_for_dates(normal: NormalRule) -> bool:
    if any(str(pattern_label(pattern)) == "timer:datetime" for pattern in _patterns(normal)):
        return True
    return any(call.function == "datetime" or _is_zoned(call.function) for call in find(normal, Call))


def _is_zoned(function: str) -> bool:
    return function in FUNCTIONS and FUNCTIONS[function].is_zoned


def _computes_lengths(normal: NormalRule) -> bool:
    """Whether a length of time may be a value in a rule: such a value counts units."""
    timers = [t.told for t in normal.timers if isinstance(t, TimerLiteral) and t.told is not None]
    if timers:
        return True
    told = [normal.head, *normal.having, *find(normal, Comparison), *find(normal, IsNull)]
    return any(isinstance(node, Call | Binary | Negative | Duration) for one in told for node in walk(one))


# ---- digests -----------------------------------------------------------------------------------------------


class _Naming:
    """Numbers for names in the order in which they come up."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.events: dict[str, str] = {}

    def named(self, node: type, own: str, value: Any) -> Any:
        if (node, own) in VARIABLES:
            return self.variables.setdefault(value, f"v{len(self.variables) + 1}")
        if (node, own) in EVENTS and value is not None:
            return self.events.setdefault(value, f"e{len(self.events) + 1}")
        return value


def digest(value: object, naming: _Naming | None = None) -> str:
    """A short name for a tree of nodes, values, tuples and mappings: equal ones have the same, others have not."""
    from hashlib import blake2b  # noqa: PLC0415 - plans that are only looked at need none, and it loads OpenSSL

    return blake2b(hashed(value, naming), digest_size=SIZE).hexdigest()


def hashed(value: object, naming: _Naming | None = None) -> bytes:
    """What such a name is made of; bytes in it are taken for what was made so before."""
    return b"".join(map(_hashed, _tokens(value, naming)))


def _hashed(token: str | bytes) -> bytes:
    """A token as it is hashed; several that were made so before are left as they are."""
    if isinstance(token, bytes):
        return token
    text = token.encode("utf-8", "surrogatepass")
    return b"%d:%s" % (len(text), text)


_FIELDS: dict[type, tuple[tuple[str, object], ...]] = {}
"""For each class the fields that count, and their defaults."""


def _fields(node: type) -> tuple[tuple[str, object], ...]:
    if node not in _FIELDS:
        counting = [f for f in fields(node) if f.compare and (node, f.name) not in _SAYS_NOTHING]
        _FIELDS[node] = tuple((f.name, _default(f)) for f in counting)
    return _FIELDS[node]


def _default(one: Field[Any]) -> object:
    """What a field is unless something is said; without such a value it always counts."""
    return one.default if one.default_factory is MISSING else one.default_factory()


def _tokens(value: object, naming: _Naming | None) -> list[str | bytes]:
    """What a tree consists of; how deep it is does not matter. The order of a mapping or set says nothing."""
    found: list[str | bytes] = []
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if kind is str:
            found.append(f"text {one}")
        elif kind in _FIELDS or (is_dataclass(one) and kind is not type):
            own = [(n, getattr(one, n), default) for n, default in _fields(kind)]
            said = [(n, v) for n, v, default in own if not _is(v, default)]
            if naming is not None:
                said = [(n, naming.named(kind, n, v)) for n, v in said]
            found.append(f"{kind.__name__} {len(said)}")
            waiting += [part for pair in reversed(said) for part in reversed(pair)]
        elif isinstance(one, bytes):
            found.append(one)
        elif isinstance(one, Mapping):
            found.append(f"mapping {len(one)}")
            waiting += [part for pair in sorted(one.items(), reverse=True) for part in reversed(pair)]
        elif isinstance(one, tuple | list):
            found.append(f"several {len(one)}")
            waiting += one[::-1]
        elif isinstance(one, frozenset | set):
            found.append(f"set {len(one)}")
            waiting += sorted(map(digest, one), reverse=True)
        else:
            found.append(_value(one))
    return found


def _is(value: object, default: object) -> bool:
    return default is not MISSING and type(value) is type(default) and value == default


def _value(value: object) -> str:
    match value:
        case None:
            return "none"
        case str():
            return f"text {value}"
        case bool():
            return f"bool {int(value)}"
        case int():
            return f"int {value}"
        case float():
            return f"float {value.hex()}"
        case Decimal():
            return f"decimal {value.normalize():f}"
        case _:
            raise InternalError("fingerprint", f"no form for {type(value).__name__} {value!r}")
