"""This module reads query terms, atoms and construct terms."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help
from ephemera.base.span import Span
from ephemera.base.suggest import suggestion
from ephemera.syntax.cursor import ENDINGS, Cursor, SyntaxFault
from ephemera.syntax.expressions import (
    CONSTANTS,
    UNORDERED_AGGREGATES,
    at_group_by,
    expression,
    grouping,
    value,
    variable,
    variables,
)
from ephemera.syntax.lexer import Token
from ephemera.terms.nodes import (
    Aggregate,
    All,
    Anonymous,
    Argument,
    As,
    Atom,
    Construct,
    ConstructTerm,
    Desc,
    Element,
    Field,
    Label,
    Name,
    NamedAtom,
    Optional,
    OptionalConstruct,
    OrderBy,
    Pattern,
    QueryTerm,
    Regex,
    Var,
    Without,
)

ORDERS = ("ascending", "descending", "lexical", "numeric")
_OPPOSITES = ({"ascending", "descending"}, {"lexical", "numeric"})
_ORDER_ALIASES = {"asc": "ascending", "desc": "descending", "alphabetic": "lexical", "number": "numeric"}

_BRACKETS = ("{", "[")
_CONDITION_SIGNS = ("<", "<=", "=", ">=", ">", "!=", "within")
"""What stands between the braces of a `where` and never between those of a term."""
_PREFIXES: dict[str, type[Desc] | type[Without] | type[Optional]] = {
    "desc": Desc,
    "without": Without,
    "optional": Optional,
}


def at_label(c: Cursor, ahead: int = 0) -> bool:
    """Whether a label and an opening bracket stand here: ``a {``, ``ns:a [``."""
    if not c.look(ahead).is_name:
        return False
    if c.look(ahead + 1).text == ":":
        ahead += 2
    return c.look(ahead).is_name and c.look(ahead + 1).text in _BRACKETS


def label(c: Cursor, what: str = "a label") -> Label:
    first = c.name(what)
    if c.is_at(":") and c.look(1).is_name:
        c.advance()
        second = c.advance()
        return Label(second.text, first.text, span=first.span.to(second.span))
    return Label(first.text, span=first.span)


def query_term(c: Cursor) -> QueryTerm:
    token = c.token
    if token.kind == "regex":
        c.advance()
        body = re.sub(r"\\(.)", lambda m: "/" if m[1] == "/" else m[0], token.text[1:-1])
        return Regex(body, span=token.span)
    if at_label(c):
        return element(c, label(c))
    if token.kind == "name" and token.text in _PREFIXES:
        c.advance()
        with c.nested():
            term = query_term(c)
        return _PREFIXES[token.text](term, span=c.span_from(token.start))
    if (found := variable(c)) is not None:
        return _after_variable(c, found)
    if token.kind in ("number", "text") or c.is_at("-") or (token.kind == "name" and token.text in CONSTANTS):
        return value(c)
    if token.is_name:
        raise c.unopened_fault(token) or c.fault(*_bare_name(token, "{{ }}"))
    c.wants("a query term")
    raise c.fault()


def _bare_name(token: Token, brackets: str) -> tuple[str, Help, Help]:
    """What to say of a name in a term that is followed by nothing."""
    return (
        f"`{token.text}` is neither an element nor a variable here",
        Help(f"write `var {token.text}` for a variable", (Edit(token.span, f"var {token.text}"),)),
        Help(f"write `{token.text} {brackets}` for an element", (Edit(token.span, f"{token.text} {brackets}"),)),
    )


def _after_variable(c: Cursor, found: Var) -> QueryTerm:
    if c.is_at(*_BRACKETS):
        return element(c, found)
    if c.accept("->"):
        with c.nested():
            term = query_term(c)
        return As(found.name, term, span=c.span_from(found.span.start))
    return found


def _ends_in(c: Cursor, opener: int, closer: str) -> None:
    """Says so where a term is still open and a word stands that belongs to the rule around it."""
    if not (c.token.kind == "name" and c.token.text in ENDINGS):
        return
    following = c.look(1)
    if following.text in _BRACKETS:
        begins_conditions = c.token.text in ("where", "having") and following.text == "{"
        inside = c.inside_bracket(1) if begins_conditions else []
        if not (begins_conditions and not c.is_closed(opener)) and not any(t.text in _CONDITION_SIGNS for t in inside):
            return
    elif at_label(c):
        return
    raise c.unclosed(opener, closer)


def element(c: Cursor, name: Label | Var) -> Element:
    position = c.position
    opener = c.advance().text
    closer = "}" if opener == "{" else "]"
    partial = c.is_at(opener)
    if partial:
        c.advance()
    children: list[QueryTerm] = []
    while not c.at(closer):
        _ends_in(c, position, closer * 2 if partial else closer)
        children.append(query_term(c))
        c.accept(",")
    c.advance()
    if partial:
        c.expect(closer)
    return Element(name, opener == "[", partial, tuple(children), span=c.span_from(name.span.start))


def pattern(c: Cursor) -> Pattern:
    """What an event must look like: a term, or an atom with positions or attribute names."""
    if at_label(c):
        return element(c, label(c))
    if c.is_at("desc"):
        return _desc(c)
    if (found := variable(c)) is not None:
        return _pattern_after_variable(c, found)
    if c.token.is_name:
        return atom(c, label(c))
    c.wants("an event pattern")
    raise c.fault()


def _desc(c: Cursor) -> Pattern:
    if c.look(1).text in ("(", ":"):
        return atom(c, label(c))
    start = c.advance().start
    with c.nested():
        term = query_term(c)
    return Desc(term, span=c.span_from(start))


def _pattern_after_variable(c: Cursor, found: Var) -> Pattern:
    if c.is_at(*_BRACKETS):
        return element(c, found)
    if c.accept("->"):
        return As(found.name, query_term(c), span=c.span_from(found.span.start))
    return found


def atom(c: Cursor, name: Label) -> Atom | NamedAtom:
    if not c.at("("):
        raise c.unopened_fault(c.previous()) or c.fault()
    c.advance()
    start = name.span.start
    if c.token.is_name and c.look(1).text == ":" and c.look(1).kind == "op":
        fields = [_field(c)]
        while c.accept(","):
            fields.append(_field(c))
        c.expect(")")
        return NamedAtom(name, tuple(fields), span=c.span_from(start))
    return Atom(name, c.listed(argument, ")"), span=c.span_from(start))


def _field(c: Cursor) -> Field:
    name = c.name("an attribute")
    c.expect(":")
    return Field(name.text, argument(c), span=c.span_from(name.start))


def argument(c: Cursor) -> Argument:
    token = c.token
    if c.is_at("_"):
        c.advance()
        return Anonymous(span=token.span)
    if (found := variable(c)) is not None:
        return found
    if token.is_name and not (token.kind == "name" and token.text in CONSTANTS):
        return Name(c.advance().text, span=token.span)
    if token.is_name or token.kind in ("number", "text") or c.is_at("-"):
        return value(c)
    c.wants("a variable, a value or `_`")
    if c.is_at(")", ","):
        raise c.fault(None, Help("write `_` for an attribute of no interest", (Edit(c.behind(), " _"),)))
    raise c.fault()


# ---- construct terms ---------------------------------------------------------------------------------------


def construct_term(c: Cursor) -> ConstructTerm:
    start = c.token.start
    if not at_label(c):
        if c.is_at("all"):
            return _all(c)
        if c.is_at("optional"):
            c.advance()
            term: ConstructTerm = _all(c) if c.is_at("all") and not at_label(c) else _plain_construct(c)
            default = None
            if c.is_at("with") and c.look(1).text == "default":
                c.advance()
                c.advance()
                default = _plain_construct(c)
            return OptionalConstruct(term, default, span=c.span_from(start))
    return _plain_construct(c)


def _all(c: Cursor) -> All:
    start = c.advance().start
    term = _plain_construct(c)
    group_by = grouping(c) if at_group_by(c) else None
    order_by = _order_by(c) if c.is_at("order") and c.look(1).text == "by" else None
    return All(term, group_by, order_by, span=c.span_from(start))


def _order_by(c: Cursor) -> OrderBy:
    start = c.advance().start
    c.expect("by")
    modes: list[str] = []
    if c.accept("("):
        while not modes or not c.at(")"):
            modes.append(_order(c, modes))
            c.accept(",")
        c.advance()
    return OrderBy(tuple(modes), variables(c), span=c.span_from(start))


def _order(c: Cursor, before: Sequence[str]) -> str:
    """One of the ways to order, which goes with those before it."""
    token = c.token
    if not token.is_name:
        c.wants("an order such as `descending`")
        raise c.fault()
    if token.text not in ORDERS:
        close = suggestion(token.text, ORDERS, aliases=_ORDER_ALIASES)
        advice = (
            Help(f"write `{close}`", (Edit(token.span, close),)) if close else Help(f"{', '.join(ORDERS)} are known")
        )
        raise c.fault(f"there is no order `{token.text}`", advice)
    for other in before:
        if {token.text, other} in _OPPOSITES or token.text == other:
            leave_out = Edit(Span(c.previous().start if c.previous().text == "," else token.start, token.end), "")
            raise c.fault(f"`{token.text}` after `{other}`: one of the two", Help("leave it out", (leave_out,)))
    return c.advance().text


def _aggregate_of_elements(c: Cursor) -> Aggregate:
    """``count(all item { var X, var Y })``: an aggregate over what would be built."""
    function = c.advance()
    c.expect("(")
    c.expect("all")
    term = _construct(c, label(c))
    group_by = grouping(c) if at_group_by(c) else ()
    c.expect(")")
    return Aggregate(function.text, term, True, group_by, span=c.span_from(function.start))


def _plain_construct(c: Cursor) -> ConstructTerm:
    """A construct element or an expression."""
    if c.is_at(*UNORDERED_AGGREGATES) and c.look(1).text == "(" and c.look(2).text == "all" and at_label(c, 3):
        return _aggregate_of_elements(c)
    token = c.token
    if at_label(c):
        return _construct(c, label(c))
    if c.look(2).text in _BRACKETS and (found := variable(c)) is not None:
        return _construct(c, found)
    found_term = expression(c)
    if isinstance(found_term, Name):
        message, *helps = _bare_name(token, "{ }")
        if unopened := c.unopened_fault(token):
            raise unopened
        raise SyntaxFault(Diagnostic(Code.SYNTAX, message, token.span, help=tuple(helps)))
    return found_term


def _construct(c: Cursor, name: Label | Var) -> Construct:
    position = c.position
    opener = c.advance().text
    closer = "}" if opener == "{" else "]"
    if c.is_at(opener):
        closer_token = c.partner()
        edits = (Edit(c.token.span, ""), Edit(closer_token.span, "")) if closer_token else ()
        advice = Help(f"write `{opener}` once: what is built is built in full", edits)
        raise c.fault("doubled brackets leave something open, and a head cannot", advice)
    children: list[ConstructTerm] = []
    while not c.at(closer):
        _ends_in(c, position, closer)
        children.append(construct_term(c))
        c.accept(",")
    c.advance()
    return Construct(name, opener == "[", tuple(children), span=c.span_from(name.span.start))
