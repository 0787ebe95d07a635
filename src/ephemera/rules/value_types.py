"""This module infers the types of what rules derive before they do, so that tables of answers have columns.

It is finer than the kinds of `types`: whole numbers and doubles are told apart, and times that count whole units from
others. A declared attribute has its type, and also that of what rules derive for it, since heads are not converted. A
variable that several events share equals all of them, so it has the narrowest of their types: `1 = 1.0`, and what
equals a whole number is one. A label that rules derive and nothing declares is taken to come from them alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import walk
from ephemera.rules.calendar import RANGES
from ephemera.rules.nodes import Catalogue, NormalRule, Ruleset, Schema, TimerLiteral
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import pattern_bindings
from ephemera.syntax.nodes import AlgebraExpression, Derive, Detect
from ephemera.terms.functions import FUNCTIONS
from ephemera.terms.nodes import (
    Aggregate,
    As,
    Atom,
    Binary,
    Bool,
    Call,
    Construct,
    ConstructTerm,
    Desc,
    Duration,
    Element,
    Expression,
    Label,
    NamedAtom,
    Negative,
    Null,
    Number,
    Pattern,
    Periodic,
    Text,
    Var,
)

Type = Literal["nothing", "int", "float", "string", "bool", "time", "instant", "any"]
"""`float` may be whole numbers among doubles, `time` counts whole units, `instant` need not; `nothing` is null."""
Columns: TypeAlias = Mapping[tuple[str, int], tuple[Type, ...]]
_OPERATORS = {"add": "+", "mult": "*", "subtract": "-", "div": "div", "mod": "mod"}
_GIVEN: dict[str, Type] = {"int": "int", "float": "float", "string": "string", "bool": "bool"}
_DOUBLES = ("sqrt", "exp", "ln")
_NUMBERS = ("abs", "number", "power", "round")
"""The functions that give numbers of both forms; all others that give numbers give whole ones."""
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Times:
    """What is known of times: whether events lie at whole units, and whether their attributes do."""

    stamps: bool
    attributes: bool


def keeps_units(rules: Ruleset, calendars: Iterable[int] = ()) -> bool:
    """Whether answers lie at whole units where events do; calendars are given by the times of their days."""
    unit = rules.resolved.catalogue.unit
    lengths = [length for normal in rules.normal for t in normal.timers if (length := getattr(t, "length", 0))]
    asked = {str(pattern_label(e.pattern)) for normal in rules.normal for e in normal.events}
    asks_the_clock = any("timer:datetime" in str(a) for a in asked) or any(n.algebra for n in rules.normal)
    told = any(isinstance(t, TimerLiteral) and t.told is not None for normal in rules.normal for t in normal.timers)
    fits = not asks_the_clock or (_SECOND % unit == 0 and not any(_is_periodic(n) for n in rules.normal))
    return unit == 1 or (fits and not told and not any(moved % unit for moved in (*lengths, *calendars)))


def _is_periodic(normal: NormalRule) -> bool:
    """Whether a periodic timer takes part, which ends just before a whole unit."""
    return any(isinstance(event.pattern, Periodic) for event in normal.events)


def derived_types(rules: Ruleset, times: Times) -> Columns:
    """For each label and arity that rules derive the types of the values."""
    return _Inference(rules, times).run()


def union(a: Type, b: Type) -> Type:
    """The type of what may be of either."""
    if a == b or "nothing" in (a, b):
        return b if a == "nothing" else a
    if {a, b} == {"int", "float"}:
        return "float"
    return "instant" if {a, b} == {"time", "instant"} else "any"


def _both(a: Type, b: Type) -> Type:
    """The type of what equals a value of either."""
    if a == b or "any" in (a, b):
        return b if a == "any" else a
    if "nothing" in (a, b):
        return "nothing"
    if {a, b} == {"int", "float"}:
        return "int"
    return "time" if {a, b} == {"time", "instant"} else "any"


class _Inference:
    def __init__(self, rules: Ruleset, times: Times) -> None:
        self._rules = rules
        self._catalogue: Catalogue = rules.resolved.catalogue
        self._times = times
        self._columns: dict[tuple[str, int], tuple[Type, ...]] = {}
        self._built: set[str] = set()
        """Labels without a declaration of terms that rules build: `p [ 1, 2 ]` is an event `p(1, 2)`, too."""

    def run(self) -> Columns:
        while True:
            before = dict(self._columns)
            for normal in self._rules.normal:
                self._derive(normal)
            if self._columns == before:
                return self._columns

    def _derive(self, normal: NormalRule) -> None:
        known = self._variables(normal)
        match normal.head:
            case Derive(label, arguments):
                self._add(str(label), tuple(self._of(a, known) for a in arguments))
            case Detect(term):
                names = self._catalogue.attributes(str(term.label)) if isinstance(term, Construct) else None
                if isinstance(term, Construct) and names is not None:
                    self._add(str(term.label), tuple(self._child(term, name, known) for name in names))
                elif isinstance(term, Construct):
                    self._built.add(str(term.label))
            case _:
                return

    def _add(self, label: str, found: tuple[Type, ...]) -> None:
        before = self._columns.get((label, len(found)), _unknown(len(found)))
        open_to: Type = "any" if label in self._built else "nothing"
        own = (union(union(a, b), open_to) for a, b in zip(before, found, strict=True))
        self._columns[label, len(found)] = tuple(own)

    def _child(self, term: Construct, name: str, known: Mapping[str, Type]) -> Type:
        """The type of an attribute that a construct term builds as a child with one value."""
        if not all(isinstance(c, Construct) and isinstance(c.label, Label) for c in term.children):
            return "any"
        own = [c for c in term.children if isinstance(c, Construct) and str(c.label) == name]
        if not own:
            return "nothing"
        inside: tuple[ConstructTerm, ...] = own[0].children
        if len(own) > 1 or len(inside) != 1 or not isinstance(inside[0], Expression):
            return "any"
        return self._of(inside[0], known)

    # ---- variables -----------------------------------------------------------------------------------------

    def _variables(self, normal: NormalRule) -> dict[str, Type]:
        found: dict[str, Type] = dict.fromkeys(normal.unbound, "nothing")
        patterns = [e.pattern for e in normal.events] + [c.event.pattern for c in normal.collects]
        bound = [self._pattern(p) for p in patterns]
        bound += [self._pattern(t.pattern, is_table=True) for t in normal.tables]
        bound += [self._algebra(a.expression) for a in normal.algebra]
        for one in bound:
            for name, kind in one.items():
                found[name] = _both(found[name], kind) if name in found else kind
        return found

    def _algebra(self, expression: AlgebraExpression) -> dict[str, Type]:
        """Alternatives may differ in the type of a variable."""
        found: dict[str, Type] = {}
        for pattern in walk(expression):
            if isinstance(pattern, Atom | NamedAtom | Element | As | Desc):
                for name, kind in self._pattern(pattern).items():
                    found[name] = union(found.get(name, "nothing"), kind)
        return found

    def _pattern(self, pattern: Pattern, *, is_table: bool = False) -> dict[str, Type]:
        found: dict[str, Type] = dict.fromkeys(pattern_bindings(pattern).all, "any")
        match pattern:
            case Atom(label, arguments):
                for k, argument in enumerate(arguments):
                    if isinstance(argument, Var):
                        kind = self._attribute(str(label), len(arguments), k, is_table=is_table)
                        found[argument.name] = _both(found[argument.name], kind)
            case NamedAtom(label, fields):
                for field in fields:
                    if isinstance(field.argument, Var):
                        kind = self._named(str(label), field.name, is_table=is_table)
                        found[field.argument.name] = _both(found[field.argument.name], kind)
            case Element(Label() as label, _, _, children):
                for child in children:
                    match child:
                        case Element(Label() as name, _, _, (Var(variable),)):
                            kind = self._named(str(label), str(name), is_table=is_table)
                            found[variable] = _both(found[variable], kind)
                        case _:
                            continue
            case _:
                pass
        return found

    def _named(self, label: str, name: str, *, is_table: bool) -> Type:
        if label == "timer:datetime":
            return "int" if name in RANGES else "string"
        schema = self._schema(label, is_table=is_table)
        if schema is None or name not in schema.names:
            return "any"
        return self._attribute(label, len(schema.names), schema.names.index(name), is_table=is_table)

    def _schema(self, label: str, *, is_table: bool) -> Schema | None:
        schema = (self._catalogue.tables if is_table else self._catalogue.events).get(label)
        return schema if schema is not None and schema.attributes is not None else None

    def _attribute(self, label: str, arity: int, k: int, *, is_table: bool) -> Type:
        schema = self._schema(label, is_table=is_table)
        if schema is not None and schema.arity == arity:
            declared = self._declared((schema.attributes or ())[k][1], is_table=is_table)
            derived = None if is_table else self._columns.get((label, arity))
            return declared if derived is None else union(declared, derived[k])
        if schema is not None or not self._catalogue.is_closed or label not in self._catalogue.derived:
            return "any"
        heads = (self._rules.resolved.rules[n - 1].head for n in self._catalogue.derived[label])
        if not all(isinstance(head, Derive) for head in heads):
            return "any"
        return self._columns.get((label, arity), _unknown(arity))[k]

    def _declared(self, declared: str, *, is_table: bool) -> Type:
        match declared.removesuffix("[]"):
            case "int" | "float" | "string" | "bool" as kind:
                return kind
            case "time":
                return "instant" if is_table or not self._times.attributes else "time"
            case _:
                return "any"

    # ---- expressions ---------------------------------------------------------------------------------------

    def _of(self, e: Expression, known: Mapping[str, Type]) -> Type:
        match e:
            case Var(name):
                return known.get(name, "any")
            case Text():
                return "string"
            case Number(value):
                return "int" if isinstance(value, int) else "float"
            case Bool():
                return "bool"
            case Null():
                return "nothing"
            case Duration(parts):
                return "float" if sum(part.amount for part in parts) % self._catalogue.unit else "int"
            case Negative(operand):
                return "int" if self._of(operand, known) == "int" else "float"
            case Binary(operator, left, right):
                return _computed(operator, self._of(left, known), self._of(right, known))
            case Call("begin" | "end", _):
                return "time" if self._times.stamps else "instant"
            case Call("duration", _):
                return "int" if self._times.stamps else "float"
            case Call("datetime", _):
                return "instant"
            case Call(function, arguments) if function in FUNCTIONS:
                return self._given(function, [self._of(one, known) for one in arguments])
            case Call(function, (first, *others)) if function in _OPERATORS:
                found = self._of(first, known)
                for other in others:
                    found = _computed(_OPERATORS[function], found, self._of(other, known))
                return found
            case Call(function, _) if function in self._catalogue.functions:
                gives = self._catalogue.functions[function].gives
                return "instant" if gives == "time" else _GIVEN.get(gives, "any")
            case Aggregate():
                return self._aggregate(e, known)
            case _:
                return "any"

    def _given(self, function: str, types: list[Type]) -> Type:
        """What a function of values gives."""
        match FUNCTIONS[function].gives:
            case "string":
                return "string"
            case "bool":
                return "bool"
            case "time":
                return "instant"
            case "number" if function in _DOUBLES:
                return "float"
            case "number" if function not in _NUMBERS:
                return "int"
            case _:
                return types[0] if function != "number" and len(set(types)) == 1 else "any"

    def _aggregate(self, a: Aggregate, known: Mapping[str, Type]) -> Type:
        argument = a.argument
        kind: Type = "any" if argument is None or isinstance(argument, Construct) else self._of(argument, known)
        match a.function:
            case "count":
                return "int"
            case "sum":
                return "int" if kind in ("int", "nothing") else "float"
            case "avg":
                return "float"
            case "list" | "top":
                return "any"
            case _:
                return kind


def _unknown(arity: int) -> tuple[Type, ...]:
    return tuple("nothing" for _ in range(arity))


def _computed(operator: str, a: Type, b: Type) -> Type:
    if operator in ("/", "div"):
        return "float"
    clocks = ("time", "instant")
    if a in clocks and b in clocks:
        return "int" if a == b == "time" else "float"
    if a in clocks or b in clocks:
        return "time" if {a, b} == {"time", "int"} else "instant"
    if a == b == "int":
        return "int"
    return "any" if "any" in (a, b) and operator in ("+", "-") else "float"
