"""This module writes a syntax tree as text: the one way to write each program.

`parse(format(tree))` is the tree again, and formatting what was formatted changes nothing. A comment belongs to the
statement, query, condition or term that follows it, or to the one on whose last line it stands; a comment in the
middle of one moves in front of it. One between the last word of a statement and its `;` stands behind the `;`
afterwards if it is on that word's line, and before the last item of the body if not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar, assert_never

from ephemera.base.span import Span
from ephemera.syntax.comments import Comments, texts
from ephemera.syntax.format_declarations import attribute, declaration
from ephemera.syntax.format_terms import (
    algebra_document,
    braces,
    condition,
    duration,
    element_label,
    expression,
    field,
    identifier,
    label,
    periodic,
    plain,
    quote,
    root_label,
    variables,
    window,
    word,
)
from ephemera.syntax.layout import (
    Bracketed,
    Doc,
    Hanging,
    Item,
    Stack,
    aligned,
    listed,
    one_line,
    parenthesized,
    render,
    row,
)
from ephemera.syntax.lexer import Comment
from ephemera.syntax.nodes import (
    QUERIES,
    Absent,
    Accumulation,
    Algebra,
    AlgebraExpression,
    And,
    At,
    AtMost,
    Condition,
    Derive,
    Detect,
    Event,
    EventType,
    Head,
    Or,
    Program,
    Query,
    Raise,
    Rule,
    Selection,
    Statement,
    Stratum,
    Table,
    Timer,
    Where,
)
from ephemera.terms.nodes import (
    Aggregate,
    All,
    AnyEvent,
    As,
    Atom,
    Construct,
    ConstructTerm,
    Desc,
    Duration,
    Element,
    Expression,
    Label,
    NamedAtom,
    Node,
    Optional,
    OptionalConstruct,
    Pattern,
    Periodic,
    QueryTerm,
    Regex,
    Var,
    Without,
)

N = TypeVar("N", bound=Node)


def format(program: Program, comments: Sequence[Comment] = (), text: str = "") -> str:
    """The program in its one layout; `text` is what it was read from, whose empty lines are kept."""
    return _Formatter(comments, text).program(program)


def format_head(head: Head) -> str:
    """A head on one line."""
    formatter = _Formatter((), "")
    match head:
        case Derive(name, arguments):
            return one_line(listed(f"{label(name)}(", [expression(a) for a in arguments], ")"))
        case Detect(term):
            return one_line(formatter.construct(term))
        case Raise(recipient, transport, term):
            inner = one_line(formatter.construct(term))
            return f"{_to(recipient, transport)} {{ {inner} }}"
        case _:
            assert_never(head)


def _to(recipient: str | Expression, transport: str | Expression) -> str:
    def written(e: str | Expression) -> str:
        return quote(e) if isinstance(e, str) else one_line(expression(e))

    return f"to(recipient={written(recipient)}, transport={written(transport)})"


def format_pattern(pattern: Pattern) -> str:
    """A pattern on one line."""
    if isinstance(pattern, Periodic):
        return periodic(pattern, units=True)
    return one_line(_Formatter((), "").pattern(pattern))


def format_algebra(e: AlgebraExpression) -> str:
    """An expression of the event detection algebra on one line, without the brackets around it."""
    return one_line(_Formatter((), "").algebra(e))


def format_condition(c: Condition) -> str:
    return one_line(condition(c))


def format_expression(e: Expression) -> str:
    """An expression on one line."""
    return one_line(expression(e))


class _Formatter:
    """Walks the tree in the order of the text and hands each comment to the node it belongs to."""

    def __init__(self, comments: Sequence[Comment], text: str) -> None:
        self._text = text
        self._comments = Comments(comments, text)

    # ---- lists ---------------------------------------------------------------------------------------------

    def _item(self, span: Span, build: Callable[[], Doc], limit: int) -> Item:
        """What stands in the span, with its comments; those behind it begin before the limit."""
        around, self._comments.lifted = self._comments.lifted, []
        before = self._comments.take(span.start)
        doc = build()
        before += [*self._comments.lifted, *self._comments.take(span.end)]
        self._comments.lifted = around
        return Item(doc, texts(before), texts(self._comments.take_behind(span.end, limit)))

    def _items(self, nodes: Sequence[N], build: Callable[[N], Doc], end: int) -> list[Item]:
        limits = [*(node.span.start for node in nodes[1:]), end]
        return [self._item(n.span, partial(build, n), limit) for n, limit in zip(nodes, limits, strict=False)]

    def _bracketed(self, opener: str, nodes: Sequence[N], build: Callable[[N], Doc], closer: str, place: Span) -> Doc:
        """A list in brackets; the place begins where only the opening bracket follows, and ends at the closing one."""
        pad = "" if closer == ")" else " "
        self._comments.lift(self._comments.at(place.start))
        items = self._items(nodes, build, place.end)
        return Bracketed(opener, tuple(items), closer, pad, texts(self._comments.take(place.end)))

    # ---- programs ------------------------------------------------------------------------------------------

    def program(self, program: Program) -> str:
        items = self._statements(program.statements, len(self._text) + 1)
        return render(Stack(tuple((0, item) for item in items))) + "\n" if items else ""

    def _statements(self, statements: Sequence[Statement], limit: int) -> list[Item]:
        """Statements with their comments and the empty lines between them, then the comments left before the limit."""
        items: list[Item] = []
        previous: Statement | None = None
        edge = 0
        for k, statement in enumerate(statements):
            following = statements[k + 1].span.start if k + 1 < len(statements) else limit
            behind = self._comments.take_before_semicolon(statement)
            before = self._comments.take(statement.span.start)
            item = self._item(statement.span, partial(self._statement, statement), 0)
            behind = self._comments.take_behind(statement.span.end, following, behind)
            first = before[0].start if before else statement.span.start
            apart = previous is not None and (
                _stands_alone(previous) or _stands_alone(statement) or self._comments.gap(edge, first)
            )
            lines = (*([""] if apart else []), *self._comments.spaced(before, statement.span.start), *item.before)
            items.append(Item(item.doc, lines, texts(behind)))
            previous = statement
            edge = max(statement.span.end, behind[-1].end) if behind else statement.span.end
        if rest := self._comments.take(limit):
            apart = previous is not None and self._comments.gap(edge, rest[0].start)
            lines = (*([""] if apart else []), *self._comments.spaced(rest[:-1], rest[-1].start))
            items.append(Item(rest[-1].text, lines))
        return items

    def _statement(self, statement: Statement) -> Doc:
        match statement:
            case Rule():
                return self._rule(statement)
            case Stratum(rules):
                items = self._statements(rules, statement.span.end)
                return Stack(((0, Item("STRATUM")), *((1, item) for item in items), (0, Item("END"))))
            case _:
                return declaration(statement, self._attributes)

    def _attributes(self, opener: str, declared: EventType | Table) -> Doc:
        attributes = declared.attributes or ()
        begin = declared.label.span.end
        end = self._comments.at(attributes[-1].span.end) if attributes else begin
        return self._bracketed(opener, attributes, attribute, ")", Span(begin, end))

    def _rule(self, rule: Rule) -> Doc:
        head = rule.head
        if isinstance(head, Derive):
            place = Span(head.label.span.end, head.span.end)
            lead = self._bracketed(f"{label(head.label)}(", head.arguments, expression, ")", place)
            return self._arrow_rule(row(lead, " <-"), rule)
        on, end = self._comments.at(head.span.end), rule.span.end - len("END")
        lines = self._head(head, on) + [(1, Item(c.text)) for c in self._comments.take(on)]
        span = Span(rule.body.span.start, self._comments.last_end(end))
        body = self._item(span, partial(self._block_body, rule, span.end), end)
        left = [(1, Item(c.text)) for c in self._comments.take(end)]
        return Stack((*lines, (0, Item("ON")), (1, body), *left, (0, Item("END"))))

    def _head(self, head: Detect | Raise, limit: int) -> list[tuple[int, Item]]:
        build = partial(self.construct, head.term)
        if isinstance(head, Detect):
            return [(0, Item("DETECT")), (1, self._item(head.term.span, build, limit))]
        to = f"{_to(head.recipient, head.transport)} {{"
        term = self._item(head.term.span, build, head.span.end)
        left = [(2, Item(c.text)) for c in self._comments.take(head.span.end)]
        closer = Item("}", after=texts(self._comments.take_behind(head.span.end, limit)))
        return [(0, Item("RAISE")), (1, Item(to)), (2, term), *left, (1, closer)]

    def _block_body(self, rule: Rule, end: int) -> Doc:
        body = self._query(rule.body, block=True)
        if not rule.having:
            return body
        place = Span(self._comments.at(rule.body.span.end) + len("having"), end)
        return row(body, " having ", self._bracketed("{", rule.having, partial(condition, words=True), "}", place))

    def _arrow_rule(self, lead: Doc, rule: Rule) -> Doc:
        members = rule.body.items if isinstance(rule.body, And) else (rule.body,)
        build = partial(self._member, block=False)
        end = members[-1].span.end
        if rule.having:
            having = self._comments.at_word("having", end)
            items = self._items(members, build, having)
            place = Span(having + len("having"), self._comments.last_end(rule.span.end - 1))
            before = texts(self._comments.take(self._comments.at(place.start)))
            items.append(Item(self._bracketed("having {", rule.having, condition, "}", place), before))
        else:
            items = self._items(members, build, end)  # what stands behind the last one stands behind the rule
        last = items[-1]
        items[-1] = Item(last.doc, last.before + texts(self._comments.take(rule.span.end)), last.after)
        return Hanging(lead, tuple(items), ";")

    # ---- queries -------------------------------------------------------------------------------------------

    def _member(self, member: Query | Condition, *, block: bool) -> Doc:
        if isinstance(member, QUERIES):
            return self._query(member, block=block)
        return condition(member, words=block)

    def _query(self, query: Query, *, block: bool) -> Doc:
        match query:
            case Event(name, Periodic() as timer):
                return f"{identifier(name, None, block=block)}{periodic(timer, words=block)}"
            case Event(name, pattern):
                return row(identifier(name, pattern, block=block), self.pattern(pattern))
            case Timer(name, kind, anchor, length):
                lead = identifier(name, None, block=block)
                if block:
                    return row(f"{lead}timer:{kind}[event {word(anchor.name)}, ", _length(length, words=True), "]")
                return row(f"{lead}{kind}({word(anchor.name)}, ", _length(length, words=False), ")")
            case Accumulation(where, mode, event, conditions):
                doc = row(f"{window(where)}: {mode} ", self._query(event, block=block))
                place = Span(event.span.end, query.span.end)
                return self._where(doc, conditions, place, block=block) if conditions else doc
            case Selection():
                return self._selection(query, block=block)
            case Absent(pattern):
                return row("not ", self.pattern(pattern))
            case At(moment, pattern, negated):
                return row(f"at {word(moment.name)}: {'not ' if negated else ''}", self.pattern(pattern))
            case Algebra(name, inner, restricted, per):
                apart = f"per {', '.join(plain(v.name) for v in per)} " if per else ""
                opener = f"algebra {'' if restricted else 'unrestricted '}{apart}("
                place = Span(self._comments.at_word("(", query.span.start), query.span.end)
                lead = identifier(name, None, block=block)
                return row(lead, self._bracketed(opener, (inner,), self.algebra, ")", place))
            case And(items):
                place = Span(query.span.start + len("and"), query.span.end)
                return self._bracketed("and {", items, partial(self._member, block=block), "}", place)
            case Or(items):
                place = Span(query.span.start + len("or"), query.span.end)
                return self._bracketed("or {", items, partial(self._query, block=block), "}", place)
            case Where(inner, conditions):
                place = Span(inner.span.end, query.span.end)
                return self._where(self._query(inner, block=block), conditions, place, block=block)
            case _:
                assert_never(query)

    def _selection(self, selection: Selection, *, block: bool) -> Doc:
        anchor, within, without = selection.anchor, selection.within, selection.without
        lead = f"{identifier(selection.event.name, None, block=block)}{selection.which} "
        limit = f" within {duration(within, words=block)}" if within is not None else ""
        doc = row(lead, self.pattern(selection.event.pattern), f" {selection.relation} {word(anchor.name)}{limit}")
        end = within.span.end if within is not None else anchor.span.end
        if without:
            place = Span(self._comments.at_word("{", end), self._comments.at_word("}", without[-1].span.end) + 1)
            doc = row(doc, " without ", self._bracketed("{", without, self.pattern, "}", place))
            end = without[-1].span.end
        place = Span(end, selection.span.end)
        return self._where(doc, selection.conditions, place, block=block) if selection.conditions else doc

    def _where(self, doc: Doc, conditions: Sequence[Condition], place: Span, *, block: bool) -> Doc:
        """The place begins behind the query and ends with the closing bracket."""
        inside = Span(self._comments.at(place.start) + len("where"), place.end)
        return row(doc, " where ", self._bracketed("{", conditions, partial(condition, words=block), "}", inside))

    def algebra(self, e: AlgebraExpression) -> Doc:
        document = algebra_document(e, self.pattern)
        return parenthesized(document) if isinstance(e, AnyEvent) else aligned(document)

    def pattern(self, pattern: Pattern) -> Doc:
        match pattern:
            case Atom(name, arguments):
                place = Span(name.span.end, pattern.span.end)
                return self._bracketed(f"{root_label(name)}(", arguments, expression, ")", place)
            case NamedAtom(name, fields):
                place = Span(name.span.end, pattern.span.end)
                return self._bracketed(f"{root_label(name)}(", fields, field, ")", place)
            case AnyEvent(name):
                return root_label(name)
            case Periodic():
                return periodic(pattern)
            case Element(Label() as name, ordered, partial, children):
                place = Span(name.span.end, pattern.span.end)
                return self._element(root_label(name), ordered, partial, children, place)
            case Element() | As() | Desc() | Var():
                return self._term(pattern)
            case _:
                assert_never(pattern)

    # ---- terms ---------------------------------------------------------------------------------------------

    def _term(self, term: QueryTerm) -> Doc:
        match term:
            case Element(name, ordered, partial, children):
                place = Span(name.span.end, term.span.end)
                return self._element(element_label(name), ordered, partial, children, place)
            case As(variable, inner):
                return row(f"var {plain(variable)} -> ", self._term(inner))
            case Desc(inner):
                return row("desc ", self._term(inner))
            case Without(inner):
                return row("without ", self._term(inner))
            case Optional(inner):
                return row("optional ", self._term(inner))
            case Regex(pattern):
                return "/" + re.sub(r"(\\.)|/", lambda m: m[1] or "\\/", pattern) + "/"
            case _:
                return expression(term)

    def _element(self, name: str, ordered: bool, partial: bool, children: Sequence[QueryTerm], place: Span) -> Doc:
        opener, closer = braces(ordered, partial)
        return row(f"{name} ", self._bracketed(opener, children, self._term, closer, place))

    def construct(self, term: ConstructTerm) -> Doc:
        match term:
            case Construct(name, ordered, children):
                opener, closer = braces(ordered, partial=False)
                place = Span(name.span.end, term.span.end)
                return row(f"{element_label(name)} ", self._bracketed(opener, children, self.construct, closer, place))
            case All(inner, group_by, order_by):
                parts: list[Doc] = ["all ", self.construct(inner)]
                if group_by is not None:
                    parts += [" group by ", variables("{", group_by, "}")]
                if order_by is not None:
                    mode = f"({', '.join(order_by.modes)}) " if order_by.modes else ""
                    parts += [f" order by {mode}", variables("[", order_by.keys, "]", pad="")]
                return row(*parts)
            case Aggregate(function, Construct() as built, _, group_by):
                group: tuple[Doc, ...] = (" group by ", variables("{", group_by, "}")) if group_by else ()
                return row(f"{function}(all ", self.construct(built), *group, ")")
            case OptionalConstruct(inner, default):
                parts = ["optional ", self.construct(inner)]
                if default is not None:
                    parts += [" with default ", self.construct(default)]
                return row(*parts)
            case _:
                return expression(term)


def _length(length: Duration | AtMost, *, words: bool) -> Doc:
    """How long a timer is."""
    if isinstance(length, Duration):
        return duration(length, words=words)
    return row(expression(length.expression), f" AT MOST {duration(length.limit, words=words)}")


def _stands_alone(statement: Statement) -> bool:
    return isinstance(statement, Stratum) or (isinstance(statement, Rule) and not isinstance(statement.head, Derive))
