"""This module checks event patterns against what is declared: known events, arity, attributes, tables, regexes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.span import Span
from ephemera.base.tree import children, walk
from ephemera.rules.declare import head_label, head_label_span
from ephemera.rules.findings import Findings, listed
from ephemera.rules.nodes import Resolved, Schema
from ephemera.rules.scope import definitions, primitives
from ephemera.syntax.nodes import Absent, Accumulation, Algebra, At, Derive, Detect, Event, Raise
from ephemera.syntax.queries import TIMER_KINDS
from ephemera.terms.nodes import (
    All,
    AnyEvent,
    As,
    Atom,
    Construct,
    ConstructTerm,
    Element,
    Field,
    Label,
    Name,
    NamedAtom,
    Optional,
    OptionalConstruct,
    Pattern,
    Periodic,
    Regex,
    Var,
    Without,
)
from ephemera.terms.regex import NoRegex, check

_LONGEST_SPACED = 200


def pattern_label(pattern: Pattern) -> Label | None:
    """The label an event must carry; None where any may."""
    match pattern:
        case Atom(label) | NamedAtom(label) | AnyEvent(label) | Element(Label() as label):
            return label
        case Periodic():
            return pattern.label
        case As(_, Element(Label() as label)):
            return label
        case _:
            return None


def check_patterns(resolved: Resolved, number: int, findings: Findings, *, complete: bool) -> None:
    """`complete` is whether the whole program could be read, so that an unknown event is a mistake."""
    _Patterns(resolved, number, findings, complete=complete).check()


class _Patterns:
    def __init__(self, resolved: Resolved, number: int, findings: Findings, *, complete: bool) -> None:
        self._rules = resolved.rules
        self._rule = resolved.rules[number - 1]
        self._catalogue = resolved.catalogue
        self._findings = findings
        self._complete = complete

    def check(self) -> None:
        self._head()
        for node in walk(self._rule.body):
            match node:
                case Event(name, pattern):
                    self._event(pattern, name.span if name else None, node.span)
                case Absent(pattern):
                    self._table(pattern, node.span, "`not` without a window")
                case At():
                    self._at(node)
                case NamedAtom(_, fields):
                    self._given_twice(fields)
                case Accumulation(_, _, event, _):
                    self._no_table(event.pattern, "a window")
                case Algebra(_, expression, _):
                    for primitive in primitives(expression):
                        self._no_table(primitive, "an algebra expression")
                        self._event(primitive, None, primitive.span)
                case Regex():
                    self._regex(node)
        self._misplaced()

    # ---- events --------------------------------------------------------------------------------------------

    def _event(self, pattern: Pattern, name: Span | None, whole: Span) -> None:
        label = pattern_label(pattern)
        if label is None or label.prefix == "timer":
            return
        table = self._catalogue.tables.get(str(label))
        if table is not None:
            if name is not None:
                self._findings.add(
                    Code.MISUSED_TABLE,
                    f"`{label}` is a table: its rows have no time, so none can be named",
                    name,
                    help=[Help("leave the identifier out", (Edit(Span(whole.start, pattern.span.start), ""),))],
                )
            self._shape(pattern, table)
            return
        schema = self._catalogue.events.get(str(label))
        if schema is not None:
            self._shape(pattern, schema)
        elif str(label) in self._catalogue.derived:
            self._derived_shape(pattern, label)
        elif self._is_timer_without_limit(pattern):
            self._without_limit(pattern)
        elif self._catalogue.is_closed and self._complete and not self._is_calendar(label):
            self._unknown_event(label, pattern)

    def _is_timer_without_limit(self, pattern: Pattern) -> bool:
        """Whether an event is meant as a timer: it is called as one, and its first argument is an event of the rule."""
        match pattern:
            case Atom(Label(kind, ""), (Name(anchor), Name() | Var())) if kind in TIMER_KINDS:
                return anchor in definitions(self._rule.body).some and self._complete
            case _:
                return False

    def _without_limit(self, pattern: Pattern) -> None:
        behind = Span(pattern.span.end - 1, pattern.span.end - 1)
        self._findings.add(
            Code.UNBOUNDED_RELEVANCE,
            "this timer may be as long as any event says, so what waits for it would be kept forever",
            pattern.span,
            help=[Help("say how long it may be, such as `AT MOST 1 day`", (Edit(behind, " AT MOST 1 day"),))],
        )

    def _is_calendar(self, label: Label) -> bool:
        """Whether a label belongs to a namespace in which the program itself names nothing."""
        return bool(label.prefix) and label.prefix not in self._findings.vocabulary.namespaces

    def _unknown_event(self, label: Label, pattern: Pattern) -> None:
        known = self._findings.vocabulary.labels
        notes = [f"the program knows {listed(known)}"] if len(known) <= 12 else []
        name, span = str(label), label.span
        match pattern:
            case Atom(Label("algebra", ""), (Name(only) as argument,)) if self._spaced(only):
                name, span = only, argument.span
        spaced = self._spaced(name)
        if spaced:
            notes.append("`-` joins names; a minus in an algebra expression needs spaces")
            advice = Help(f"write `{spaced}`", (Edit(span, spaced),))
        else:
            advice = self._findings.did_you_mean(name, known, span, f"declare it: `EVENT {name}(…);`", what="event")
        self._findings.add(
            Code.UNKNOWN_EVENT,
            f"no event `{name}` is declared, and no rule derives one",
            span,
            notes=notes,
            help=[advice],
        )

    def _knows(self, name: str) -> bool:
        return any(name in known for known in (self._catalogue.events, self._catalogue.derived, self._catalogue.tables))

    def _spaced(self, name: str) -> str | None:
        """The name cut at a minus into two that are known: ``a-b`` for ``a - b``."""
        for minus in re.finditer("-", name[:_LONGEST_SPACED]):
            left, right = name[: minus.start()], name[minus.end() :]
            if self._knows(left) and self._knows(right):
                return f"{left} - {right}"
        return None

    def _shape(self, pattern: Pattern, schema: Schema) -> None:
        if schema.attributes is None:
            return
        match pattern:
            case Atom(label, arguments) if len(arguments) != len(schema.attributes):
                self._arity(pattern, label, len(arguments), schema)
            case NamedAtom(_, fields):
                self._attributes([(field.name, _field_name(field)) for field in fields], schema)
            case (Element() as element) | As(_, Element() as element):
                labels = [child.label for child in _children_elements(element)]
                self._attributes([(str(label), label.span) for label in labels if isinstance(label, Label)], schema)

    def _given_twice(self, fields: tuple[Field, ...]) -> None:
        seen: dict[str, Field] = {}
        for before, field in zip((None, *fields), fields, strict=False):
            if field.name in seen and before is not None:
                removal = (Edit(Span(before.span.end, field.span.end), ""),)
                tell_given_twice(
                    self._findings, f"the attribute `{field.name}`", _field_name(field), seen[field.name].span, removal
                )
            seen.setdefault(field.name, field)

    def _arity(self, pattern: Atom | Derive, label: Label, given: int, schema: Schema, origin: str = "") -> None:
        wanted = len(schema.attributes or ())
        self._findings.add(
            Code.ARITY,
            f"`{label}` has {_count(wanted, 'attribute')}, not {given}",
            pattern.span,
            related=[Related(schema.span, origin or f"declared with {listed(schema.names)}")],
            help=[_arity_help(pattern, wanted)],
        )

    def _attributes(self, given: list[tuple[str, Span]], schema: Schema) -> None:
        """Tells the names, with their places, that are none of the attributes."""
        names = schema.names
        known, what = set(names), f"attribute of {schema.label}"
        for name, span in given:
            if name not in known:
                otherwise = f"its attributes are {listed(names)}"
                self._findings.add(
                    Code.UNKNOWN_ATTRIBUTE,
                    f"`{schema.label}` has no attribute `{name}`",
                    span,
                    related=[Related(schema.span, f"declared with {listed(names)}")],
                    help=[self._findings.did_you_mean(name, names, span, otherwise, what=what)],
                )

    def _derived_shape(self, pattern: Pattern, label: Label) -> None:
        """An event that rules derive but nothing declares has the arities that their heads give it."""
        arities = self._catalogue.arities.get(str(label))
        if arities is None:
            return
        head = self._rules[self._catalogue.derived[str(label)][0] - 1].head
        if isinstance(pattern, NamedAtom) and self._catalogue.is_closed:
            self._findings.add(
                Code.UNKNOWN_ATTRIBUTE,
                f"`{label}` is derived by position: its attributes have no names",
                pattern.span,
                help=[Help(f"write it by position, or declare it: `EVENT {label}(…);`")],
            )
        if isinstance(pattern, Atom) and len(pattern.arguments) not in arities:
            given = len(pattern.arguments)
            wanted = " or ".join(map(str, arities)) + (" attribute" if arities == (1,) else " attributes")
            if self._catalogue.is_closed:
                positions = tuple((str(k), "any") for k in range(1, arities[0] + 1))
                self._arity(pattern, label, given, Schema(label.name, positions, span=head.span), "derived here")
            else:
                self._findings.add(
                    Code.ARITY,
                    f"`{label}` is derived with {wanted}, and asked for with {given}",
                    pattern.span,
                    severity="warning",
                    related=[Related(head.span, "derived here")],
                    help=[
                        _arity_help(pattern, arities[0]),
                        Help(f"declare it if others come from outside: `EVENT {label}(…);`"),
                    ],
                )

    # ---- tables --------------------------------------------------------------------------------------------

    def _table(self, pattern: Pattern, span: Span, what: str, *, negated: bool = True) -> None:
        label = pattern_label(pattern)
        schema = None if label is None else self._catalogue.tables.get(str(label))
        if schema is not None:
            self._shape(pattern, schema)
            return
        if label is not None and not self._complete and not self._knows(str(label)):
            return  # the table may be declared in what could not be read
        name = "this" if label is None else f"`{label}`"
        advice = (
            Help(f"say in which window it must be absent, as in `while w: not {label}(…)`")
            if negated
            else Help("leave `at` out", (Edit(Span(span.start, pattern.span.start), ""),))
        )
        self._findings.add(Code.MISUSED_TABLE, f"{what} asks a table, and {name} is an event", span, help=[advice])

    def _at(self, at: At) -> None:
        """No table has versions yet, so that none can be read as it was."""
        self._table(at.pattern, at.span, "`at`", negated=at.negated)
        label = pattern_label(at.pattern)
        if label is None or str(label) not in self._catalogue.tables:
            return
        edit = Edit(Span(at.span.start, at.pattern.span.start), "not " if at.negated else "")
        self._findings.add(
            Code.MISUSED_TABLE,
            f"`{label}` has no versions, so it cannot be read as it was when `{at.moment.name}` ended",
            Span(at.span.start, at.moment.span.end),
            help=[Help("leave `at` out: its rows hold at all times", (edit,))],
        )

    def _no_table(self, pattern: Pattern, where: str) -> None:
        label = pattern_label(pattern)
        if label is not None and str(label) in self._catalogue.tables:
            self._findings.add(
                Code.MISUSED_TABLE,
                f"`{label}` is a table: its rows have no time, so they cannot lie in {where}",
                label.span,
                help=[Help(f"ask for it outside, as in `{label}(…)` or `not {label}(…)`")],
            )

    # ---- heads, calls, terms -------------------------------------------------------------------------------

    def _head(self) -> None:
        head = self._rule.head
        if isinstance(head, Detect | Raise) and not _builds_element(head.term):
            begin, end = head.term.span.start, head.term.span.end
            self._findings.add(
                Code.MISPLACED_TERM,
                f"{'an event' if isinstance(head, Detect) else 'a message'} is an element, and this is a value",
                head.term.span,
                help=[
                    Help(
                        "put it into an element, as in `value { … }`",
                        (Edit(Span(begin, begin), "value { "), Edit(Span(end, end), " }")),
                    )
                ],
            )
        label = head_label(head)
        if label is None:
            return
        if label in self._catalogue.tables:
            span = head_label_span(head)
            self._findings.add(
                Code.MISUSED_TABLE,
                f"`{label}` is a table, and rules derive events",
                span,
                related=[Related(self._catalogue.tables[label].span, "declared here")],
                help=[
                    Help(f"derive an event of another name, such as `{label}-event`", (Edit(span, f"{label}-event"),))
                ],
            )
        schema = self._catalogue.events.get(label)
        if schema is not None and isinstance(head, Derive) and schema.arity not in (None, len(head.arguments)):
            self._arity(head, head.label, len(head.arguments), schema)
        if schema is not None and schema.attributes is not None and isinstance(head, Detect):
            self._attributes([(str(child), child.span) for child in _built_labels(head.term)], schema)

    def _regex(self, regex: Regex) -> None:
        try:
            check(regex.pattern)
        except NoRegex as error:
            advice = "write `.*` for any text, and `\\` before a sign that stands for itself"
            if not error.linear:
                advice = "do without backreferences, look-around and atomic groups"
            self._findings.add(Code.REGEX, str(error), regex.span, help=[Help(advice)])

    def _misplaced(self) -> None:
        """`without` and `optional` make sense only as children of an element."""
        for node in walk(self._rule.body):
            if isinstance(node, Element):
                continue
            for child in children(node):
                if isinstance(child, Without | Optional):
                    word = "without" if isinstance(child, Without) else "optional"
                    self._findings.add(
                        Code.MISPLACED_TERM,
                        f"`{word}` says what an element may lack, so it stands directly inside one",
                        child.span,
                        help=[
                            Help(
                                f"leave out `{word}`",
                                (Edit(Span(child.span.start, child.term.span.start), ""),),
                            )
                        ],
                    )


def tell_given_twice(findings: Findings, what: str, span: Span, before: Span, removal: tuple[Edit, ...]) -> None:
    """Tells an attribute, or a field of a timer, that one pattern names twice."""
    findings.add(
        Code.ARITY,
        f"{what} is given twice",
        span,
        related=[Related(before, "given here before")],
        help=[Help("remove one of the two", removal)],
    )


def _field_name(field: Field) -> Span:
    return Span(field.span.start, field.span.start + len(field.name))


def _children_elements(element: Element) -> Iterator[Element]:
    for child in element.children:
        inner = child.term if isinstance(child, Without | Optional | As) else child
        if isinstance(inner, Element):
            yield inner


def _builds_element(term: ConstructTerm) -> bool:
    match term:
        case Construct() | Var():
            return True
        case All(inner, _, _) | OptionalConstruct(inner, None):
            return _builds_element(inner)
        case OptionalConstruct(inner, default) if default is not None:
            return _builds_element(inner) and _builds_element(default)
        case _:
            return False


def _built_labels(term: ConstructTerm) -> Iterator[Label]:
    """The labels of the children of what a head builds, where they are fixed."""
    match term:
        case All(inner, _, _) | OptionalConstruct(inner, _):
            yield from _built_labels(inner)
        case Construct(_, _, children):
            for child in children:
                while isinstance(child, All | OptionalConstruct):
                    child = child.term  # noqa: PLW2901 - the element is what counts, however often it is built
                if isinstance(child, Construct) and isinstance(child.label, Label):
                    yield child.label


def _arity_help(pattern: Atom | Derive, wanted: int) -> Help:
    """Blanks for what is missing, or what is too much taken out."""
    given = len(pattern.arguments)
    if given > wanted:
        surplus = pattern.arguments[wanted:]
        begin = pattern.arguments[wanted - 1].span.end if wanted else surplus[0].span.start
        return Help("remove what is too much", (Edit(Span(begin, surplus[-1].span.end), ""),))
    if isinstance(pattern, Derive):
        return Help(f"give it {_count(wanted, 'attribute')}")
    where = pattern.span.end - 1
    added = ", ".join("_" for _ in range(wanted - given))
    what = "the attributes" if wanted - given > 1 else "the attribute"
    return Help(
        f"add `{added}` for {what} of no interest", (Edit(Span(where, where), f", {added}" if given else added),)
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}" if number else f"no {what}s"
