"""This module turns program text into a tree: statement by statement, so that one mistake does not hide the next.

The parser is written by hand, one function a production (`docs/decisions/0001-hand-written-parser.md`): the
language has no reserved words and asks for messages that say what would have fitted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help, Report, report
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import Source, Span
from ephemera.base.tree import depth
from ephemera.syntax.conditions import braced_conditions, condition
from ephemera.syntax.cursor import Cursor, SyntaxFault
from ephemera.syntax.declarations import DECLARATIONS, declaration
from ephemera.syntax.expressions import expression
from ephemera.syntax.lexer import Comment, tokenize
from ephemera.syntax.nodes import And, Condition, Derive, Detect, Head, Program, Query, Raise, Rule, Statement, Stratum
from ephemera.syntax.queries import comma_help, item, query
from ephemera.syntax.terms import construct_term, label
from ephemera.terms.nodes import ConstructTerm, Expression, Text

DEEPEST_TREE = 200


@dataclass(frozen=True, slots=True)
class Parsed:
    """A tree with its comments, and what was wrong with the text; where that failed the tree has gaps."""

    source: Source
    program: Program
    comments: tuple[Comment, ...]
    report: Report


def parse(source: Source) -> Parsed:
    tokens = tokenize(source.text)
    cursor = Cursor(tokens)
    lexical = sorted(tokens.diagnostics, key=lambda d: d.span.start)
    starts = [d.span.start for d in lexical]
    found: list[Diagnostic] = []
    explained: set[int] = set()  # the unbalanced brackets that follow from a mistake before them
    statements: list[Statement] = []
    in_stratum = False  # whether a STRATUM has failed whose END is still to come
    while not cursor.ended:
        if in_stratum and cursor.is_at("END") and cursor.look(1).text != "(":
            cursor.advance()
            in_stratum = False
            continue
        start = cursor.position
        in_stratum = in_stratum or cursor.is_at("STRATUM")
        begin = cursor.token.start
        try:
            statement = _statement(cursor)
            if depth(statement) > DEEPEST_TREE:
                raise SyntaxFault(_too_deep(statement))
            statements.append(statement)
            in_stratum = in_stratum and not isinstance(statement, Stratum)
        except SyntaxFault as fault:
            end = cursor.token.end
            _skip(cursor, start)
            first = bisect_left(starts, begin)
            within = range(first, bisect_right(starts, max(end, cursor.previous().end)))
            if all(_follows(lexical[k], fault.diagnostic) for k in within):
                found.append(fault.diagnostic)
                explained.update(within)
    program = Program(tuple(statements), span=Span(0, len(source.text)))
    found += [d for k, d in enumerate(lexical) if k not in explained]
    return Parsed(source, program, tokens.comments, report(source, found))


def _follows(lexical: Diagnostic, fault: Diagnostic) -> bool:
    """Whether a bracket is unbalanced only because of what the parser found before it."""
    return lexical.code == Code.UNBALANCED and fault.span.start < lexical.span.start


def decode(data: bytes, path: str) -> Source | Report:
    """The text of a file, or what keeps it from being text."""
    try:
        return Source(path, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        readable = Source(path, data[: error.start].decode("utf-8") + "\N{REPLACEMENT CHARACTER}")
        where = len(readable.text) - 1
        message = f"the file is not UTF-8: byte 0x{data[error.start]:02x} does not fit"
        advice = Help("save it as UTF-8")
        return report(readable, [Diagnostic(Code.ENCODING, message, Span(where, where + 1), help=(advice,))])


def _too_deep(statement: Statement) -> Diagnostic:
    return Diagnostic(
        Code.TOO_DEEP,
        f"this nests more than {DEEPEST_TREE} deep",
        Span(statement.span.start, statement.span.start + 1),
        help=(Help("name a part of it by a rule of its own"),),
    )


def _skip(c: Cursor, start: int) -> None:
    """Goes on behind the statement that failed: its `;` or `END`, or a word that begins the next one."""
    while not c.ended:
        token = c.token
        if c.position > start and _starts(c):
            return
        c.advance()
        if token.kind in ("op", "name") and token.text in (";", "END"):
            return


_STARTS = ("DETECT", "RAISE", "STRATUM", *DECLARATIONS)


def _starts(c: Cursor) -> bool:
    """Whether a word stands here that begins a statement; `TIME` is an option of streams too."""
    token, following = c.token, c.look(1).text
    if token.kind != "name" or token.text not in _STARTS:
        return False
    return following in ("UNIT", "ZONE") if token.text == "TIME" else following not in ("(", ":")


def _statement(c: Cursor) -> Statement:
    if c.token.kind == "name" and c.look(1).text not in ("(", ":"):
        if c.token.text in DECLARATIONS:
            return declaration(c)
        if c.is_at("STRATUM"):
            return _stratum(c)
    return rule(c)


def _stratum(c: Cursor) -> Stratum:
    start = c.advance().start
    rules: list[Rule] = []
    while not (c.at("END") and c.look(1).text != "("):
        if c.ended:
            raise c.missing("the STRATUM", "END")
        rules.append(rule(c))
    c.advance()
    return Stratum(tuple(rules), span=c.span_from(start))


def rule(c: Cursor) -> Rule:
    if c.look(1).text != "(":
        if c.at("DETECT"):
            return _block_rule(c, _detect(c))
        if c.at("RAISE"):
            return _block_rule(c, _raise(c))
    if not c.token.is_name:
        c.wants("a rule or a declaration")
        raise c.fault()
    return _arrow_rule(c)


def _detect(c: Cursor) -> Detect:
    start = c.advance().start
    return Detect(_head_term(c), span=c.span_from(start))


def _head_term(c: Cursor) -> ConstructTerm:
    return construct_term(c)


def _raise(c: Cursor) -> Raise:
    start = c.advance().start
    c.expect("to")
    c.expect("(")
    given: dict[str, str | Expression] = {}
    while len(given) < 2:
        key = "recipient" if c.at("recipient") else "transport"
        if key in given:
            key = "transport" if key == "recipient" else "recipient"
        c.expect(key)
        c.expect("=")
        value = expression(c)
        given[key] = value.value if isinstance(value, Text) else value
        if len(given) < 2 and not c.accept(","):
            raise c.fault(None, Help('say both: `to(recipient="…", transport="…")`'))
    c.expect(")")
    c.expect("{")
    term = _head_term(c)
    c.expect("}")
    return Raise(given["recipient"], given["transport"], term, span=c.span_from(start))


def _block_rule(c: Cursor, head: Head) -> Rule:
    c.expect("ON")
    c.in_block = True
    body: Query = query(c)
    having = _having(c)
    if not having and c.is_at(","):
        raise c.fault("several queries of a body stand in an `and`", Help("write `ON and { …, … } END`"))
    if c.ended or _rule_begins(c):
        raise c.missing("the rule", "END")
    c.expect("END")
    return Rule(head, body, having, span=c.span_from(head.span.start))


def _having(c: Cursor) -> tuple[Condition, ...]:
    if not c.at("having"):
        return ()
    c.advance()
    return braced_conditions(c) if c.is_at("{") else (condition(c),)


def _arrow_rule(c: Cursor) -> Rule:
    c.in_block = False
    head = _derive(c)
    if not c.at("<-"):
        raise _no_arrow(c)
    c.advance()
    start = c.token.start
    items = [item(c)]
    having: tuple[Condition, ...] = ()
    while True:
        if not c.at(","):
            having = _having(c)
            break
        c.advance()
        if c.is_at("having") and c.look(1).text != ":":
            having = _having(c)
            break
        if c.is_at(";"):
            advice = Help("remove the `,` before it", (Edit(Span(items[-1].span.end, c.token.start), ""),))
            raise c.fault("nothing stands between the last `,` and the `;`", advice)
        items.append(item(c))
    body = And(tuple(items), span=Span(start, c.previous().end))
    if not c.at(";"):
        if c.ended or c.is_at("END") or _rule_begins(c):
            raise c.missing("the rule", ";")
        raise c.fault(None, *comma_help(c), *_end_help(c))
    c.advance()
    return Rule(head, body, having, span=c.span_from(head.span.start))


def _rule_begins(c: Cursor) -> bool:
    """Whether another statement begins here, so that this one should have ended before."""
    token, following = c.token, c.look(1)
    if token.kind == "name" and token.text in _STARTS and following.is_name:
        return True
    return token.is_name and following.text == "(" and c.after_bracket(1).text == "<-"


def _no_arrow(c: Cursor) -> SyntaxFault:
    """What was written for an arrow: `<=`, `=`, `:-`, `=>`; or nothing, as in a fact."""
    token, following = c.token, c.look(1)
    if c.is_at(";"):
        return c.fault(None, Help("a rule has a body with an event: write `… <- e: event(…);`"))
    if not c.is_at("<=", "=", ":", "<"):
        return c.fault()
    span, written = token.span, token.text
    if following.kind == "op" and following.text in ("-", ">", "=") and following.start == token.end:
        span, written = span.to(following.span), written + following.text
    advice = Help("write `<-`", (Edit(span, "<-"),))
    return SyntaxFault(Diagnostic(Code.SYNTAX, f"expected `<-`, found `{written}`", span, help=(advice,)))


def _end_help(c: Cursor) -> tuple[Help, ...]:
    where = c.previous().end
    return (Help("write `;` at the end of the rule", (Edit(Span(where, where), ";"),)),)


def _derive(c: Cursor) -> Derive:
    start = c.token.start
    name = label(c, "a rule or a declaration")
    c.expect("(")
    arguments = c.listed(expression, ")")
    return Derive(name, arguments, span=c.span_from(start))
