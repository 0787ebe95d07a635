"""This module gives each normal rule a fingerprint of what it means, and from these names what engines store.

A fingerprint is taken of the normal form, with the types that the rule reads and derives as they are declared. It is
modulo the names of variables and of events, layout, comments, spans, where the rule stands, how many others there are
and what they say; durations are microseconds, so it is modulo the unit, too, unless the rule computes with lengths. The
zone counts where a rule asks the clock or speaks of a date. The order of events and conditions counts: engines lay out
the state of a rule by it. Nothing is printed for it, no plan is looked at, and no hash of Python's is used: it is the
same in every process and version. It changes with the names of the classes and fields of normal rules; a field that has
its default value is left out, so that what the language learns later changes no rule that does not use it.

State has names that follow from fingerprints: that of a rule is its fingerprint, that of rules which run as one is made
of theirs, that of a query of its pattern and of the rules that feed it. Columns have names by where a variable or event
first stands in the normal form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import MISSING, field, fields, is_dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from ephemera.algebra.attributes import (
    begin,
    constant,
    end,
    is_constant,
    is_joined,
    occurrence,
    place_of,
    records_of,
    reference,
)
from ephemera.algebra.nodes import Calendar, Detection, Input, Match, Plan, Point, Rename
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
    return {
        **{f"prefix {prefix}": uris[prefix] for prefix in prefixes},
        **{f"event {label}": _schema(catalogue, label) for label in labels if label in catalogue.events},
        **{f"table {x}": catalogue.tables[x].attributes for x in labels if x in catalogue.tables},
    }


def _schema(catalogue: Catalogue, label: str) -> tuple[object, ...]:
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
    return any(call.function == "datetime" for call in find(normal, Call))


def _computes_lengths(normal: NormalRule) -> bool:
    """Whether a length of time may be a value in a rule: such a value counts units."""
    told = [normal.head, *normal.having, *find(normal, Comparison), *find(normal, IsNull)]
    return any(isinstance(node, Call | Binary | Negative | Duration) for one in told for node in walk(one))


# ---- names of state ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StateNames:
    """What rules, histories and columns of a plan are called in what is stored."""

    rules: Mapping[str, str] = field(default_factory=dict)
    """By the name of the point, also of those that stand for several."""
    histories: Mapping[str, str] = field(default_factory=dict)
    """Queries, and the calendars and algebra expressions of rules."""
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each rule, and each history with names of its own, the stored names of columns."""

    def together(self, rules: Sequence[str]) -> str:
        """A name for rules that run in one engine."""
        return digest(sorted(self.rules[rule] for rule in rules))


def state_names(plan: Plan, prints: Mapping[str, Print], alike: Mapping[str, Sequence[str]]) -> StateNames:
    """The names of what a plan stores; `alike` has the rules that others stand for, which have no state."""
    made_of = {name: [prints[member].fingerprint for member in members] for name, members in alike.items()}
    wanted = {name: one.fingerprint for name, one in prints.items()}
    wanted |= {name: digest(["alike", *sorted(members)]) for name, members in made_of.items()}
    joins = stored_joins(plan)
    wanted |= {rule: digest(["what is left of", wanted[rule]]) for owners in joins.values() for rule in owners}
    wanted |= {name: digest(["join", *_parts(plan, name, prints, owners)]) for name, owners in joins.items()}
    rules = _distinct(wanted)
    histories: dict[str, str] = {}
    columns: dict[str, Mapping[str, str]] = {}
    replaced = {member for members in alike.values() for member in members}
    for name, point in plan.points.items():
        if point.kind not in ("rule", "join") or name in replaced:
            continue
        owner = joins[name][0] if name in joins else name
        own = prints[owner] if owner in prints else _of_several(prints[alike[name][0]], point)
        columns[name] = own.columns()
        calendars, detections = find(point.expression, Calendar), find(point.expression, Detection)
        for leaf in [*(one.name for one in calendars), *(one.name for one in detections)]:
            histories[f"{name}/{leaf}"] = f"{rules[name]}.{own.events[leaf]}"
            columns[f"{name}/{leaf}"] = columns[name]
        for leaf in (one.name for one in find(point.expression, Detection)):
            records = records_of(name, leaf)
            histories[records] = f"{rules[name]}.{own.events[leaf]}.records"
            columns[records] = columns[name]
    feeding = _Feeding(plan, prints)
    readers = {i.point: made_of[name] for name in alike for i in find(plan.points[name].expression, Input)}
    queries: dict[str, str] = {}
    for name, point in plan.points.items():
        if point.kind != "query":
            continue
        stored = next((i.point for i in find(point.expression, Input) if i.point in joins), None)
        if stored is not None:
            queries[name] = digest(["joined", rules[stored]])
            columns[name] = columns[stored]
        else:
            queries[name] = digest([_query(point, plan, feeding), sorted(readers[name]) if _is_made(point) else []])
    return StateNames(rules, histories | _distinct(queries), columns)


def stored_joins(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The stored joins, and the rules that each is a part of, by the names of the first of which it speaks.

    Those are the rules that read it, maybe through others of them.
    """
    found: dict[str, dict[str, None]] = {}
    owners: dict[str, dict[str, None]] = {}
    if all(point.kind != "join" for point in plan.points.values()):
        return {}
    for name, point in reversed(list(plan.points.items())):
        own = owners.get(name, {name: None})
        if point.kind == "join":
            found[name] = own
        if point.kind in ("rule", "join", "query"):
            for read in find(point.expression, Input):
                if plan.points[read.point].kind == "join" or _reads_a_join(plan, read.point):
                    owners.setdefault(read.point, {}).update(own)
    return {
        name: tuple(sorted(own, key=lambda rule: plan.points[rule].normal != plan.points[name].normal))
        for name, own in found.items()
    }


def _reads_a_join(plan: Plan, query: str) -> bool:
    return any(plan.points[read.point].kind == "join" for read in find(plan.points[query].expression, Input))


def _parts(plan: Plan, join: str, prints: Mapping[str, Print], owners: Sequence[str]) -> list[str]:
    """What a stored join is a part of, and which events it joins, in the order in which it has them."""
    rule, *others = (prints[owner] for owner in owners)
    uses = [new for use in find(plan.points[join].expression, Rename) for _, new in use.events]
    named = [",".join(rule.events.get(name, name) for name in _events(use)) for use in uses]
    return [rule.fingerprint, *named, *sorted(other.fingerprint for other in others)]


def _events(name: str) -> list[str]:
    """The events that a name in a rule stands for: itself, or those of a stored join."""
    return name[1:-2].split(",") if is_joined(name) else [name]


def rule_names(prints: Mapping[str, Print]) -> dict[str, str]:
    """A name for each rule, by what it means: those that mean the same are numbered."""
    return _distinct({name: one.fingerprint for name, one in prints.items()})


def _of_several(first: Print, point: Point) -> Print:
    """The names of a rule that stands for several: those of the first, and of what stands for constants."""
    made = {
        new: constant(stands_in[1], first.events[stands_in[0]])
        for new in {v.name for v in find(point.expression, Var)} | set(_bound(point))
        if (stands_in := place_of(new)) is not None
    }
    return Print(first.fingerprint, {**first.variables, **made}, first.events)


def _bound(point: Point) -> Iterator[str]:
    yield from (new for use in find(point.expression, Rename) for _, new in use.variables)


def _is_made(query: Point) -> bool:
    """Whether a query was made for rules that are alike: it has variables for constants."""
    return any(is_constant(v.name) for m in find(query.expression, Match) for v in find(m.pattern, Var))


class _Feeding:
    """The rules that feed queries, as they are hashed: put in order once for all queries that read the same."""

    def __init__(self, plan: Plan, prints: Mapping[str, Print]) -> None:
        self._points = plan.points
        self._prints = prints
        self._known: dict[frozenset[str], bytes] = {}

    def of(self, sources: frozenset[str]) -> bytes:
        """The fingerprints of the rules behind some streams."""
        if sources not in self._known:
            rules = {i.point for source in sources for i in find(self._points[source].expression, Input)}
            told = sorted(self._prints[rule].fingerprint for rule in rules)
            self._known[sources] = b"".join(map(_hashed, _tokens(told, None)))
        return self._known[sources]


def _query(point: Point, plan: Plan, feeding: _Feeding) -> list[object]:
    """What the matches of a query depend on: its patterns, how its type is declared, and the rules that feed it."""
    matches = list(find(point.expression, Match))
    sources = frozenset(i.point for m in matches for i in find(m.input, Input))
    label, catalogue = point.label, plan.catalogue
    declared = _schema(catalogue, label) if label is not None and label in catalogue.events else None
    return [[m.pattern for m in matches], declared, feeding.of(sources)]


def _distinct(wanted: Mapping[str, str]) -> dict[str, str]:
    """Each name once: those that mean the same are counted, in whatever order; they are one as good as the other."""
    seen: dict[str, int] = {}
    found: dict[str, str] = {}
    for own, name in wanted.items():
        seen[name] = seen.get(name, 0) + 1
        found[own] = name if seen[name] == 1 else f"{name}~{seen[name]}"
    return found


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

    return blake2b(b"".join(map(_hashed, _tokens(value, naming))), digest_size=SIZE).hexdigest()


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
        _FIELDS[node] = tuple((f.name, f.default) for f in counting)
    return _FIELDS[node]


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
