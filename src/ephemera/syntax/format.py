"""This module writes a syntax tree as text: the one way to write each program.

`parse(format(tree))` is the tree again, and formatting what was formatted changes nothing. A comment belongs
to the declaration, rule, query, condition or term that follows it, or to the one it stands behind; a comment
in the middle of one moves in front of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar, assert_never

from ephemera.syntax.format_declarations import declaration
from ephemera.syntax.format_terms import (
    algebra,
    braces,
    condition,
    duration,
    expression,
    joined,
    label,
    plain,
    quote,
    root_label,
    word,
)
from ephemera.syntax.layout import Bracketed, Doc, Hanging, Item, Row, Stack, one_line, render
from ephemera.syntax.lexer import Comment
from ephemera.syntax.nodes import (
    QUERIES,
    Absent,
    Accumulation,
    Algebra,
    And,
    At,
    Between,
    Condition,
    Derive,
    Detect,
    Event,
    Head,
    Or,
    Program,
    Query,
    Raise,
    Rule,
    Statement,
    Stratum,
    Timer,
    Where,
    While,
    Window,
)
from ephemera.terms.nodes import (
    All,
    AnyEvent,
    As,
    Atom,
    Construct,
    ConstructTerm,
    Desc,
    Element,
    Label,
    Name,
    NamedAtom,
    Node,
    Optional,
    OptionalConstruct,
    Pattern,
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
            return f"{label(name)}({', '.join(expression(a) for a in arguments)})"
        case Detect(term):
            return one_line(formatter.construct(term))
        case Raise(recipient, transport, term):
            inner = one_line(formatter.construct(term))
            return f"to(recipient={quote(recipient)}, transport={quote(transport)}) {{ {inner} }}"
        case _:
            assert_never(head)


def format_pattern(pattern: Pattern) -> str:
    """A pattern on one line."""
    return one_line(_Formatter((), "").pattern(pattern))


def format_condition(c: Condition) -> str:
    return condition(c)


class _Formatter:
    """Walks the tree in the order of the text and hands each comment to the node it belongs to."""

    def __init__(self, comments: Sequence[Comment], text: str) -> None:
        self._comments = comments
        self._next = 0
        self._text = text

    def _take(self, before: int) -> list[Comment]:
        first = self._next
        while self._next < len(self._comments) and self._comments[self._next].start < before:
            self._next += 1
        return list(self._comments[first : self._next])

    def _take_behind(self, limit: int) -> tuple[str, ...]:
        first = self._next
        while self._next < len(self._comments):
            comment = self._comments[self._next]
            if comment.own_line or comment.start >= limit:
                break
            self._next += 1
        return tuple(c.text for c in self._comments[first : self._next])

    def _items(
        self, nodes: Sequence[N], build: Callable[[N], Doc], end: int, behind: int | None = None
    ) -> tuple[tuple[Item, ...], tuple[str, ...]]:
        """The nodes as items, each with its comments, and the comments left before `end`.

        Up to `behind`, a comment on the last item's line still belongs to it.
        """
        items: list[Item] = []
        for k, node in enumerate(nodes):
            before = self._take(node.span.start)
            doc = build(node)
            within = self._take(node.span.end)
            limit = nodes[k + 1].span.start if k + 1 < len(nodes) else behind or end
            after = self._take_behind(limit)
            items.append(Item(doc, tuple(c.text for c in [*before, *within]), after))
        return tuple(items), tuple(c.text for c in self._take(end))

    def _bracketed(
        self, opener: str, nodes: Sequence[N], build: Callable[[N], Doc], closer: str, end: int
    ) -> Bracketed:
        items, closing = self._items(nodes, build, end)
        return Bracketed(opener, items, closer, closing=closing)

    # ---- programs ------------------------------------------------------------------------------------------

    def program(self, program: Program) -> str:
        chunks: list[str] = []
        previous: Statement | None = None
        previous_end = 0
        for k, statement in enumerate(program.statements):
            before = self._take(statement.span.start)
            doc = self._statement(statement)
            within = self._take(statement.span.end)
            following = program.statements[k + 1].span.start if k + 1 < len(program.statements) else len(self._text) + 1
            behind = self._take_behind(following)
            first = before[0].start if before else statement.span.start
            if previous is not None and (
                _stands_alone(previous) or _stands_alone(statement) or self._gap(previous_end, first)
            ):
                chunks.append("")
            chunks.extend(self._spaced(before, statement.span.start))
            chunks.extend(c.text for c in within)
            chunks.append(render(doc) + "".join("  " + c for c in behind))
            previous, previous_end = statement, self._comments[self._next - 1].end if behind else statement.span.end
        rest = self._take(len(self._text) + 1)
        if rest and previous is not None and self._gap(previous_end, rest[0].start):
            chunks.append("")
        chunks.extend(self._spaced(rest, None))
        return "".join(chunk + "\n" for chunk in chunks)

    def _gap(self, start: int, end: int) -> bool:
        return re.search(r"\n[ \t\r]*\n", self._text[start:end]) is not None

    def _spaced(self, comments: list[Comment], end: int | None) -> list[str]:
        """Comments on lines of their own, with the empty lines that stood between them."""
        lines: list[str] = []
        for k, comment in enumerate(comments):
            lines.append(comment.text)
            following = comments[k + 1].start if k + 1 < len(comments) else end
            if following is not None and self._gap(comment.end, following):
                lines.append("")
        return lines

    def _statement(self, statement: Statement) -> Doc:
        match statement:
            case Rule():
                return self._rule(statement)
            case Stratum(rules):
                items, closing = self._items(rules, self._rule, statement.span.end)
                inner = [(1, item) for item in items] + [(1, Item(c)) for c in closing]
                return Stack(((0, Item("STRATUM")), *inner, (0, Item("END"))))
            case _:
                return declaration(statement)

    def _rule(self, rule: Rule) -> Doc:
        end = rule.span.end
        match rule.head:
            case Derive(name, arguments):
                lead = f"{label(name)}({', '.join(expression(a) for a in arguments)}) <-"
                return self._arrow_rule(lead, rule)
            case Detect(term):
                head: Sequence[tuple[int, Item]] = ((0, Item("DETECT")), (1, self._single(term, self.construct)))
            case Raise(recipient, transport, term):
                to = f"to(recipient={quote(recipient)}, transport={quote(transport)}) {{"
                inner = self._single(term, self.construct)
                head = ((0, Item("RAISE")), (1, Item(to)), (2, inner), (1, Item("}")))
            case _:
                assert_never(rule.head)
        body = self._single(rule.body, lambda q: self._query(q, block=True))
        if rule.having:
            having = self._bracketed("{", rule.having, lambda c: condition(c, words=True), "}", end)
            body = Item(Row((body.doc, " having ", having)), body.before, body.after)
        left = [(1, Item(c.text)) for c in self._take(end)]
        return Stack((*head, (0, Item("ON")), (1, body), *left, (0, Item("END"))))

    def _single(self, node: N, build: Callable[[N], Doc]) -> Item:
        before = self._take(node.span.start)
        doc = build(node)
        within = self._take(node.span.end)
        return Item(doc, tuple(c.text for c in [*before, *within]), self._take_behind(node.span.end + 1))

    def _arrow_rule(self, lead: str, rule: Rule) -> Doc:
        members = rule.body.items if isinstance(rule.body, And) else (rule.body,)
        if rule.having:
            limit = rule.having[0].span.start
            items, _ = self._items(members, lambda m: self._member(m, block=False), members[-1].span.end, limit)
            having = self._bracketed("having {", rule.having, condition, "}", rule.span.end)
            return Hanging(lead, (*items, Item(having)), ";")
        items, left = self._items(members, lambda m: self._member(m, block=False), rule.span.end)
        if left:
            last = items[-1]
            items = (*items[:-1], Item(last.doc, last.before + left, last.after))
        return Hanging(lead, items, ";")

    # ---- queries -------------------------------------------------------------------------------------------

    def _member(self, member: Query | Condition, *, block: bool) -> Doc:
        if isinstance(member, QUERIES):
            return self._query(member, block=block)
        return condition(member, words=block)

    def _query(self, query: Query, *, block: bool) -> Doc:
        match query:
            case Event(name, pattern):
                return Row((_identifier(name, pattern, block=block), self.pattern(pattern)))
            case Timer(name, kind, anchor, length):
                lead = _identifier(name, None, block=block)
                if block:
                    return f"{lead}timer:{kind}[event {word(anchor.name)}, {duration(length, words=True)}]"
                return f"{lead}{kind}({word(anchor.name)}, {duration(length)})"
            case Accumulation(window, mode, event, conditions):
                doc: Doc = Row((f"{_window(window)}: {mode} ", self._query(event, block=block)))
                return self._where(doc, conditions, query.span.end, block=block) if conditions else doc
            case Absent(pattern):
                return Row(("not ", self.pattern(pattern)))
            case At(moment, pattern, negated):
                return Row((f"at {word(moment.name)}: {'not ' if negated else ''}", self.pattern(pattern)))
            case Algebra(name, inner, restricted):
                text = algebra(inner, lambda p: one_line(self.pattern(p)))
                bare = f"({text})" if isinstance(inner, AnyEvent) else text
                lead = _identifier(name, None, block=block)
                return f"{lead}algebra {'' if restricted else 'unrestricted '}({bare})"
            case And(items):
                return self._bracketed("and {", items, lambda m: self._member(m, block=block), "}", query.span.end)
            case Or(items):
                return self._bracketed("or {", items, lambda q: self._query(q, block=block), "}", query.span.end)
            case Where(inner, conditions):
                return self._where(self._query(inner, block=block), conditions, query.span.end, block=block)
            case _:
                assert_never(query)

    def _where(self, doc: Doc, conditions: Sequence[Condition], end: int, *, block: bool) -> Doc:
        where = self._bracketed("{", conditions, lambda c: condition(c, words=block), "}", end)
        return Row((doc, " where ", where))

    def pattern(self, pattern: Pattern) -> Doc:
        match pattern:
            case Atom() | NamedAtom():
                return _atom(pattern)
            case AnyEvent(name):
                return root_label(name)
            case Element(Label() as name, ordered, partial, children):
                return self._element(root_label(name), ordered, partial, children, pattern.span.end)
            case Element() | As() | Desc() | Var():
                return self._term(pattern)
            case _:
                assert_never(pattern)

    # ---- terms ---------------------------------------------------------------------------------------------

    def _term(self, term: QueryTerm) -> Doc:
        match term:
            case Element(name, ordered, partial, children):
                return self._element(_element_label(name), ordered, partial, children, term.span.end)
            case As(variable, inner):
                return Row((f"var {plain(variable)} -> ", self._term(inner)))
            case Desc(inner):
                return Row(("desc ", self._term(inner)))
            case Without(inner):
                return Row(("without ", self._term(inner)))
            case Optional(inner):
                return Row(("optional ", self._term(inner)))
            case Regex(pattern):
                return "/" + re.sub(r"(\\.)|/", lambda m: m[1] or "\\/", pattern) + "/"
            case _:
                return expression(term)

    def _element(self, name: str, ordered: bool, partial: bool, children: Sequence[QueryTerm], end: int) -> Doc:
        opener, closer = braces(ordered, partial)
        return Row((f"{name} ", self._bracketed(opener, children, self._term, closer, end)))

    def construct(self, term: ConstructTerm) -> Doc:
        match term:
            case Construct(name, ordered, children):
                opener, closer = braces(ordered, partial=False)
                inside = self._bracketed(opener, children, self.construct, closer, term.span.end)
                return Row((f"{_element_label(name)} ", inside))
            case All(inner, group_by, order_by):
                group = f" group by {{ {joined(group_by)} }}" if group_by is not None else ""
                order = ""
                if order_by is not None:
                    mode = f"({plain(order_by.mode)}) " if order_by.mode else ""
                    order = f" order by {mode}[{joined(order_by.keys)}]"
                return Row(("all ", self.construct(inner), group + order))
            case OptionalConstruct(inner, default):
                parts: list[Doc] = ["optional ", self.construct(inner)]
                if default is not None:
                    parts += [" with default ", self.construct(default)]
                return Row(tuple(parts))
            case _:
                return expression(term)


def _stands_alone(statement: Statement) -> bool:
    return isinstance(statement, Stratum) or (isinstance(statement, Rule) and not isinstance(statement.head, Derive))


def _identifier(name: Name | None, pattern: Pattern | None, *, block: bool) -> str:
    if name is not None:
        return f"event {word(name.name)}: " if block else f"{word(name.name)}: "
    if block:
        return ""
    foreign = isinstance(pattern, Atom | NamedAtom | AnyEvent | Element) and isinstance(pattern.label, Label)
    if foreign and pattern.label.prefix and pattern.label.prefix not in ("timer", "datetime"):  # type: ignore[union-attr]
        return "_: "
    return ""


def _window(window: Window) -> str:
    match window:
        case While(Name(name), begin, end):
            limits = "" if begin and end else f"({'incl' if begin else 'excl'},{'incl' if end else 'excl'})"
            return f"while{limits} {word(name)}"
        case Between(first, last):
            return f"from {word(first.name)} until {word(last.name)}"
        case _:
            assert_never(window)


def _atom(atom: Atom | NamedAtom) -> str:
    if isinstance(atom, Atom):
        return f"{root_label(atom.label)}({', '.join(expression(a) for a in atom.arguments)})"
    fields = (f"{plain(f.name)}: {expression(f.argument)}" for f in atom.fields)
    return f"{root_label(atom.label)}({', '.join(fields)})"


def _element_label(name: Label | Var) -> str:
    return f"var {plain(name.name)}" if isinstance(name, Var) else label(name)
