"""This module infers the kinds of variables and finds those that clash.

Kinds are those of the values: number (`int`, `float` and lengths of time), string, bool, time, term; `any` where
nothing is known, and `nothing` while a rule that derives it has not been looked at. They come from declared
attributes, constants, functions, and from what rules derive: the attributes of a derived event have the kinds that
all its rules agree on, found by iteration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TypeAlias, assert_never

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import Span
from ephemera.base.suggest import fresh
from ephemera.base.tree import walk
from ephemera.rules.alternatives import Member, cases
from ephemera.rules.findings import Findings
from ephemera.rules.kinds import (
    FUNCTION_KINDS,
    NUMERIC_FUNCTIONS,
    UNKNOWN,
    Kind,
    as_kind,
    attribute_kind,
    kind_of_type,
    kind_of_value,
    shown_value,
    union,
)
from ephemera.rules.nodes import Catalogue, Resolved, Schema
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import bindings, is_event_comparison
from ephemera.syntax.nodes import (
    Absent,
    Accumulation,
    Algebra,
    AlgebraExpression,
    At,
    AtMost,
    Comparison,
    Composed,
    Condition,
    Derive,
    Event,
    Limited,
    Rule,
    Timer,
)
from ephemera.terms.functions import FUNCTIONS
from ephemera.terms.nodes import (
    Aggregate,
    Anonymous,
    Argument,
    As,
    Atom,
    Binary,
    Bool,
    Call,
    Construct,
    Duration,
    Element,
    Expression,
    Label,
    Name,
    NamedAtom,
    Negative,
    Node,
    Null,
    Number,
    Pattern,
    Text,
    Var,
)
from ephemera.terms.ordered_aggregates import LISTS

_Column: TypeAlias = tuple[Kind, ...]


def check_types(resolved: Resolved, sound: set[int], findings: Findings) -> None:
    """Checks the rules whose numbers are in `sound`: the others have mistakes that would only echo here."""
    columns = _infer(resolved, sound)
    for number in sorted(sound):
        rule = resolved.rules[number - 1]
        for members in cases(rule.body):
            _Kinds(rule, members, resolved.catalogue, columns, findings).check()


def _infer(resolved: Resolved, sound: set[int]) -> dict[tuple[str, int], _Column]:
    """The kinds of the attributes of derived events, by label and arity."""
    catalogue = resolved.catalogue
    columns: dict[tuple[str, int], _Column] = {}
    if not catalogue.is_closed:
        return columns  # any event may come from outside as well, with values of any kind
    readers: dict[tuple[str, int], set[int]] = {}
    for number, rule in enumerate(resolved.rules, 1):
        for atom in (n for n in walk(rule.body) if isinstance(n, Atom)):
            readers.setdefault((str(atom.label), len(atom.arguments)), set()).add(number)
    waiting = deque(range(1, len(resolved.rules) + 1))
    queued = set(waiting)
    while waiting:
        number = waiting.popleft()
        queued.discard(number)
        rule = resolved.rules[number - 1]
        if not isinstance(rule.head, Derive) or str(rule.head.label) in catalogue.events:
            continue
        key = (str(rule.head.label), len(rule.head.arguments))
        before = after = columns.get(key, _column_of("nothing", key[1]))
        for members in cases(rule.body) if number in sound else ():
            kinds = _Kinds(rule, members, catalogue, columns, None)
            after = tuple(union(b, kinds.of(a)) for b, a in zip(after, rule.head.arguments, strict=True))
        if number not in sound:
            after = _column_of("any", key[1])
        if after != before or key not in columns:
            columns[key] = after
            for reader in sorted(readers.get(key, ())):
                if reader not in queued:
                    queued.add(reader)
                    waiting.append(reader)
    return columns


def _column_of(kind: Kind, arity: int) -> _Column:
    return (kind,) * arity


@dataclass(frozen=True, slots=True)
class _Known:
    kind: Kind
    node: Node


class _Kinds:
    """The kinds of the variables in one alternative of a rule; without findings it only infers."""

    def __init__(
        self,
        rule: Rule,
        members: Sequence[Member],
        catalogue: Catalogue,
        columns: dict[tuple[str, int], _Column],
        findings: Findings | None,
    ) -> None:
        self._rule = rule
        self._catalogue = catalogue
        self._columns = columns
        self._findings = findings
        self._variables: dict[str, _Known] = {}
        self._members = members
        self._names = bindings(rule.body).all
        for member in members:
            match member:
                case Event(_, pattern) | At(_, pattern, False):
                    self._pattern(pattern)
                case Accumulation(_, "collect" | "collect optional", event, _):
                    self._pattern(event.pattern)
                case Algebra(_, expression, _):
                    self._algebra(expression)

    def check(self) -> None:
        for member in self._members:
            match member:
                case Absent(pattern) | At(_, pattern, True):
                    self._absent(pattern, ())
                case Accumulation(_, "not", event, conditions):
                    self._absent(event.pattern, conditions)
                case Accumulation(_, _, _, conditions):
                    self._expressions(conditions)
                case Timer(_, _, _, AtMost(told, _)):
                    self._expressions((told,))
                    self._length(told)
                case _:
                    self._expressions((member,))
        self._expressions((self._rule.head, *self._rule.having))
        self._head()

    def _expressions(self, nodes: Iterable[Node]) -> None:
        for node in (n for top in nodes for n in walk(top)):
            if isinstance(node, Comparison):
                self._comparison(node)
            elif isinstance(node, Binary | Negative | Call | Aggregate):
                self._operation(node)

    def _length(self, told: Expression) -> None:
        kind = self.of(told)
        if kind not in ("number", "any", "nothing"):
            advice = Help("name a number, which counts the program's time unit")
            self._clash(f"the length of a timer is a number, and this is a {kind}", told.span, None, advice)

    def _absent(self, pattern: Pattern, conditions: Sequence[Condition]) -> None:
        """What must be absent may use outer variables; its own are known only to itself."""
        outside = self._variables
        self._variables = dict(outside)
        self._pattern(pattern)
        self._expressions(conditions)
        self._variables = outside

    def _algebra(self, expression: AlgebraExpression) -> None:
        """Alternatives may differ in a variable's kind, and what must not occur knows its own variables alone."""
        match expression:
            case Composed("|", left, right):
                before = self._variables
                self._variables = dict(before)
                self._algebra(left)
                first, self._variables = self._variables, dict(before)
                self._algebra(right)
                for name, known in first.items():
                    other = self._variables.get(name, known)
                    self._variables[name] = _Known(union(known.kind, other.kind), known.node)
            case Composed("-", left, right):
                self._algebra(left)
                outside = self._variables
                self._variables = dict(outside)
                self._algebra(right)
                self._variables = outside
            case Composed(_, left, right):
                self._algebra(left)
                self._algebra(right)
            case Limited(operand, _):
                self._algebra(operand)
            case _:
                self._pattern(expression)

    # ---- what is known -------------------------------------------------------------------------------------

    def _pattern(self, pattern: Pattern) -> None:
        match pattern:
            case Atom(label, arguments):
                column = self._column(str(label), len(arguments))
                for argument, kind in zip(arguments, column, strict=True):
                    self._bind(argument, kind)
            case NamedAtom(label, fields):
                schema = self._schema(str(label))
                for field in fields:
                    self._bind(field.argument, attribute_kind(schema, str(label), field.name))
            case Element() | As(_, Element()):
                self._element(pattern)

    def _element(self, pattern: Element | As) -> None:
        element = pattern.term if isinstance(pattern, As) else pattern
        label = pattern_label(pattern)
        if label is None or not isinstance(element, Element):
            return
        schema = self._schema(str(label))
        for child in element.children:
            if isinstance(child, Element) and isinstance(child.label, Label) and len(child.children) == 1:
                only = child.children[0]
                if isinstance(only, Var | Text | Number | Bool | Null):
                    self._bind(only, attribute_kind(schema, str(label), str(child.label)))

    def _schema(self, label: str) -> Schema | None:
        return self._catalogue.events.get(label) or self._catalogue.tables.get(label)

    def _column(self, label: str, arity: int) -> _Column:
        schema = self._schema(label)
        if schema is not None and schema.arity == arity:
            return tuple(kind_of_type(kind) for _, kind in schema.attributes or ())
        if self._findings is None and label in self._catalogue.derived:
            return self._columns.get((label, arity), _column_of("nothing", arity))
        return self._columns.get((label, arity), _column_of("any", arity))

    def _bind(self, argument: Argument, kind: Kind) -> None:
        match argument:
            case Name(name) | Var(name):
                known = self._variables.get(name)
                if known is None or known.kind in UNKNOWN:
                    self._variables[name] = _Known(kind, argument)
                elif kind not in (*UNKNOWN, known.kind):
                    self._clash(
                        f"`{name}` is a {known.kind} in one place and a {kind} in another: no event has both",
                        argument.span,
                        Related(known.node.span, f"a {known.kind} here"),
                        self._fresh(argument, name),
                    )
            case Anonymous() | Null():
                return
            case Text() | Number() | Bool():
                given = kind_of_value(argument)
                if given not in UNKNOWN and kind not in (*UNKNOWN, given):
                    shown = shown_value(argument)
                    self._clash(
                        f"{shown} is a {given}, and the attribute a {kind}",
                        argument.span,
                        None,
                        as_kind(argument, kind),
                    )
            case _:
                assert_never(argument)

    def _fresh(self, node: Node, name: str) -> Help:
        free = fresh(name, self._names)
        written = f"var {free}" if isinstance(node, Var) else free
        return Help(f"name the two apart, as in `{free}`", (Edit(node.span, written),))

    # ---- expressions ---------------------------------------------------------------------------------------

    def of(self, e: Expression | Node) -> Kind:
        match e:
            case Var(name) | Name(name):
                known = self._variables.get(name)
                return known.kind if known else "any"
            case Text() | Number() | Bool() | Null():
                return kind_of_value(e)
            case Duration() | Negative():
                return "number"
            case Binary("+" | "-", left, right):
                kinds = self.of(left), self.of(right)
                if kinds == ("time", "time"):
                    return "number"
                return "time" if "time" in kinds else "any" if all(k in UNKNOWN for k in kinds) else "number"
            case Binary():
                return "number"
            case Call(function, arguments) if function in ("coalesce", "least", "greatest"):
                return reduce(union, map(self.of, arguments), "nothing")
            case Call(function, _) if function in self._catalogue.functions:
                return kind_of_type(self._catalogue.functions[function].gives)
            case Call(function, _):
                return FUNCTION_KINDS.get(function, "any")
            case Aggregate("min" | "max" | "first" | "last" | "nth", argument) if argument is not None:
                return self.of(argument)
            case Aggregate(function) if function in LISTS:
                return "term"
            case Aggregate():
                return "number"
            case _:
                return "term"

    def _comparison(self, comparison: Comparison) -> None:
        if is_event_comparison(comparison, self._names):
            return
        left, right = self.of(comparison.left), self.of(comparison.right)
        if left in UNKNOWN or right in UNKNOWN:
            return
        if left != right:
            what = "never equal" if comparison.operator in ("=", "!=") else "in no order"
            help = as_kind(comparison.right, left) if isinstance(comparison.right, Text | Number | Bool) else None
            if help is None and isinstance(comparison.left, Text | Number | Bool):
                help = as_kind(comparison.left, right)
            self._clash(
                f"a {left} and a {right} are {what}",
                comparison.span,
                None,
                help or Help("compare two values of one kind"),
                notes=list(self._origins(comparison)),
            )
        elif comparison.operator not in ("=", "!=") and left in ("bool", "term"):
            self._clash(
                f"a {left} is neither less nor greater than another",
                comparison.span,
                None,
                Help("numbers, strings and times have an order; others are compared by `=` and `!=`"),
            )

    def _origins(self, comparison: Comparison) -> Iterator[str]:
        for side in (comparison.left, comparison.right):
            if isinstance(side, Name | Var):
                yield f"`{side.name}` is a {self.of(side)}"

    def _operation(self, node: Binary | Negative | Call | Aggregate) -> None:
        operands: list[Expression | Construct] = []
        match node:
            case Call(function, arguments) if function in FUNCTIONS or function in self._catalogue.functions:
                self._arguments(function, arguments)
            case Binary("+" | "-", left, right) if "time" in (self.of(left), self.of(right)):
                operands = [side for side in (left, right) if self.of(side) != "time"]
            case Binary(_, left, right):
                operands = [left, right]
            case Negative(negated):
                operands = [negated]
            case Call(function, arguments) if function in NUMERIC_FUNCTIONS:
                operands = list(arguments)
            case Aggregate("sum" | "avg", argument, _, _) if argument is not None:
                operands = [argument]
        for operand in operands:
            kind = self.of(operand)
            if kind not in ("number", *UNKNOWN):
                what = f"`{node.function}`" if isinstance(node, Aggregate | Call) else "arithmetic"
                help = Help("give it a number")
                if kind == "string" and isinstance(node, Binary) and node.operator == "+":
                    help = Help("`concat(…)` joins strings")
                elif isinstance(node, Aggregate):
                    help = Help("`count`, `min` and `max` take values of every kind")
                if isinstance(operand, Text):
                    help = as_kind(operand, "number")
                self._clash(f"{what} takes numbers, and this is a {kind}", operand.span, None, help)

    def _arguments(self, function: str, arguments: Sequence[Expression]) -> None:
        for place, argument in enumerate(arguments):
            kind, wanted = self.of(argument), self._taken(function, place)
            if wanted not in ("any", kind) and kind not in UNKNOWN:
                help = Help("`text(…)` writes it as a string" if wanted == "string" else f"give it a {wanted}")
                if isinstance(argument, Text | Number | Bool):
                    help = as_kind(argument, wanted)
                self._clash(f"`{function}` takes a {wanted} here, and this is a {kind}", argument.span, None, help)

    def _taken(self, function: str, place: int) -> Kind:
        own = self._catalogue.functions.get(function)
        return kind_of_type(own.takes[place]) if own is not None else FUNCTIONS[function].kind(place)

    def _head(self) -> None:
        head = self._rule.head
        if not isinstance(head, Derive):
            return
        schema = self._catalogue.events.get(str(head.label))
        if schema is None or schema.arity != len(head.arguments):
            return
        for argument, (name, declared) in zip(head.arguments, schema.attributes or (), strict=True):
            kind, wanted = self.of(argument), kind_of_type(declared)
            if kind != wanted and kind not in UNKNOWN and wanted != "any":
                fix = as_kind(argument, wanted) if isinstance(argument, Text | Number | Bool) else None
                self._clash(
                    f"the attribute `{name}` is a {wanted}, and this is a {kind}",
                    argument.span,
                    Related(schema.span, "declared here"),
                    fix or Help(f"derive a {wanted}, or declare `{name}` otherwise"),
                )

    def _clash(
        self, message: str, span: Span, related: Related | None, help: Help, *, notes: list[str] | None = None
    ) -> None:
        if self._findings is not None:
            places = [related] if related else []
            self._findings.add(Code.TYPE_CLASH, message, span, related=places, help=[help], notes=notes or [])
