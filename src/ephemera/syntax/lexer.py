"""This module cuts program text into tokens, keeps the comments, and pairs the brackets.

There are no keyword tokens: a word is a word, and the parser knows where one means something. Brackets are
single characters (`{{` is two), so that `where {{a, b} within 1 h}` reads as it should. A slash begins a
regular expression only where an operand may stand in a term, after a bracket, a comma, an arrow or one of the
words that take a term.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, cast

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help, Related
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import Span

LARGEST_TEXT = 5_000_000
DEEPEST_NESTING = 64
MOST_DIAGNOSTICS = 200
"""How many mistakes of words, and of brackets, are kept: nobody reads more, and each costs time to explain."""
_FARTHEST_PARTNER = 1_000

Kind = Literal["name", "quoted", "number", "duration", "text", "regex", "op", "end"]


class Token(NamedTuple):
    """A word, literal or sign as written; `quoted` is a name in backquotes, which is never a keyword."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def is_name(self) -> bool:
        return self.kind in ("name", "quoted")


class Comment(NamedTuple):
    """A comment as written; `own_line` when nothing but space stands before it."""

    text: str
    start: int
    end: int
    own_line: bool


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens (the last is always `end`), for each the index of its partner bracket or -1, and the comments."""

    tokens: list[Token]
    partner: list[int]
    comments: tuple[Comment, ...]
    diagnostics: tuple[Diagnostic, ...]


NAME = r"[^\W\d]\w*(?:-\w+)*"

_TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<comment>--[^\n]*|/\*(?s:.*?)\*/)
  | (?P<unclosed>/\*)
  | (?P<name>@?{NAME})
  | (?P<number>(?>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))(?![^\W\d])
  | (?P<duration>(?>(?:[0-9]+(?:\.[0-9]+)?[^\W\d_]+)+))(?!\w)
  | (?P<text>"[^"\\\n]*(?:\\.[^"\\\n]*)*")
  | (?P<quoted>`[^`\n]+`)
  | (?P<op><-|->|<=|>=|!=|[<>=+*/\-(){{}}\[\],:;|])
    """,
    re.VERBOSE,
)
_REGEX = re.compile(r"/(?!\*)(?:[^/\\\n]|\\.)+/")
_PLAIN_NAME = re.compile(rf"@?{NAME}")
_JUNK = re.compile(r"[^\s\w\"`(){}\[\],:;]+|\d[\w.]*|\w+|.", re.DOTALL)
"""The whole word that is none, so that no part of it is looked at again."""

_SINGLE_QUOTED = re.compile(r"'([^'\"\\\n]*)'")
_OPEN_NAME = re.compile(r"`[^`\n(){}\[\],:;]*")
_ALIASES = {"&&": "and", "&": "and", "!": "not", "%": "mod", "#": "--"}
"""Signs of other languages."""

_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = set(_OPENERS.values())
_BEFORE_REGEX = {"{", "[", ",", "->"}
_TERM_WORDS = {"desc", "without", "optional"}


def is_plain_name(text: str) -> bool:
    """Whether a name can be written without backquotes."""
    return _PLAIN_NAME.fullmatch(text) is not None


def tokenize(text: str) -> Tokens:
    if len(text) > LARGEST_TEXT:
        return _refused(_too_large(text))
    tokens: list[Token] = []
    comments: list[Comment] = []
    found: list[Diagnostic] = []
    position = 1 if text.startswith("\ufeff") else 0
    fresh_line = True
    while position < len(text):
        if text[position] == "/" and _regex_may_begin(tokens) and (regex := _REGEX.match(text, position)):
            tokens.append(Token("regex", regex[0], position, regex.end()))
            position, fresh_line = regex.end(), False
            continue
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup == "unclosed":
            diagnostic, position = _bad_token(text, position)
            if len(found) < MOST_DIAGNOSTICS:
                found.append(diagnostic)
            fresh_line = False
            continue
        kind, lexeme, start, position = match.lastgroup, match[0], position, match.end()
        if kind == "space":
            fresh_line = fresh_line or "\n" in lexeme
        elif kind == "comment":
            comments.append(Comment(lexeme.rstrip(), start, start + len(lexeme.rstrip()), fresh_line))
            fresh_line = False
        else:
            tokens.append(Token(cast(Kind, kind), lexeme, start, position))
            fresh_line = False
    tokens.append(Token("end", "", len(text), len(text)))
    partner, unbalanced = _pair(tokens)
    if any(d.code == Code.TOO_DEEP for d in unbalanced):
        return _refused(*unbalanced)
    return Tokens(tokens, partner, tuple(comments), (*found, *unbalanced))


def _refused(*diagnostics: Diagnostic) -> Tokens:
    return Tokens([Token("end", "", 0, 0)], [-1], (), diagnostics)


def _too_large(text: str) -> Diagnostic:
    return Diagnostic(
        Code.TOO_LARGE,
        f"the program has {len(text):,} characters, more than {LARGEST_TEXT:,}",
        Span(0, 0),
        help=(Help("split it into several programs"),),
    )


def _regex_may_begin(tokens: list[Token]) -> bool:
    if not tokens:
        return False
    last = tokens[-1]
    if last.kind == "op":
        return last.text in _BEFORE_REGEX
    of_variable = len(tokens) > 1 and tokens[-2].kind == "name" and tokens[-2].text == "var"
    return last.kind == "name" and last.text in _TERM_WORDS and not of_variable


def _bad_token(text: str, position: int) -> tuple[Diagnostic, int]:
    """What is wrong at a place where no token begins, and where to go on."""
    here = Span(position, position + 1)
    match text[position]:
        case '"':
            line_end = _line_end(text, position)
            close = Edit(_empty(position + len(text[position:line_end].rstrip(" \t)]},;"))), '"')
            advice = Help('close it with `"` on the same line', (close,))
            return Diagnostic(Code.UNTERMINATED, "this text has no closing quote", here, help=(advice,)), line_end
        case "`":
            close = Edit(_empty(_OPEN_NAME.match(text, position).end()), "`")  # type: ignore[union-attr]
            advice = Help("close it with a backquote on the same line", (close,))
            message = "this name has no closing backquote"
            return Diagnostic(Code.UNTERMINATED, message, here, help=(advice,)), _line_end(text, position)
        case "/" if text.startswith("/*", position):
            advice = Help("close it with `*/`", (Edit(_empty(_line_end(text, position)), " */"),))
            opener = Span(position, position + 2)
            return Diagnostic(Code.UNTERMINATED, "this comment is never closed", opener, help=(advice,)), len(text)
        case "'" if quoted := _SINGLE_QUOTED.match(text, position):
            written = f'"{quoted[1]}"'
            span = Span(position, quoted.end())
            advice = Help(f"write `{written}`", (Edit(span, written),))
            message = "a text stands in double quotes"
            return Diagnostic(Code.BAD_TOKEN, message, span, help=(advice,)), quoted.end()
    junk = _JUNK.match(text, position)
    end = junk.end() if junk else position + 1
    found, span = text[position:end], Span(position, end)
    message = f"{_quote(shorten(found))} is no word of the language"
    return Diagnostic(Code.BAD_TOKEN, message, span, help=(_instead(found, span),)), end


def _line_end(text: str, position: int) -> int:
    found = text.find("\n", position)
    return len(text) if found < 0 else found


def shorten(text: str) -> str:
    """A word that may be long, for a message."""
    return text if len(text) <= 40 else text[:37] + "…"


def _empty(position: int) -> Span:
    return Span(position, position)


def _instead(junk: str, span: Span) -> Help:
    """What may have been meant by signs or letters that are no token."""
    if junk in _ALIASES:
        return Help(f"write `{_ALIASES[junk]}`", (Edit(span, _ALIASES[junk]),))
    if junk[0].isdigit():
        return Help("a name begins with a letter; another stands in backquotes", (Edit(span, f"`{junk}`"),))
    return Help("remove it, or put it in double quotes if it belongs to a text")


def _quote(text: str) -> str:
    return f"`{text}`" if text.isprintable() else repr(text)


def _pair(tokens: list[Token]) -> tuple[list[int], list[Diagnostic]]:
    """Brackets with their partners; a closing one that has none is told, an open one is left to the parser."""
    partner = [-1] * len(tokens)
    found: list[Diagnostic] = []
    open_at: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind != "op":
            continue
        if token.text in _OPENERS:
            open_at.append(index)
            if len(open_at) > DEEPEST_NESTING:
                return partner, [_too_deep(token)]
        elif token.text in _CLOSERS:
            if open_at and _OPENERS[tokens[open_at[-1]].text] == token.text:
                opener = open_at.pop()
                partner[opener], partner[index] = index, opener
            elif any(_OPENERS[tokens[i].text] == token.text for i in open_at):
                found.append(_mismatch(tokens[open_at[-1]], token))
                while _OPENERS[tokens[open_at.pop()].text] != token.text:
                    pass
            elif open_at and (len(found) >= MOST_DIAGNOSTICS or _is_missing(tokens, index, open_at)):
                found.append(_wrong_kind(tokens[open_at.pop()], token))
            else:
                found.append(_closes_nothing(token))
            del found[MOST_DIAGNOSTICS:]
        elif token.text == ";" and not any(tokens[i].text == "(" for i in open_at):
            open_at.clear()  # a rule has ended, so brackets that are still open miss their partner there
    return partner, found


def _is_missing(tokens: list[Token], index: int, open_at: list[int]) -> bool:
    """Whether the innermost open bracket finds no partner in the rest of its rule either."""
    opener = tokens[open_at[-1]].text
    needed = sum(tokens[i].text == opener for i in open_at)
    for token in tokens[index + 1 : index + _FARTHEST_PARTNER]:
        if token.text in (";", "END"):
            break
        if token.kind == "op":
            needed += (token.text == opener) - (token.text == _OPENERS[opener])
    return needed > 0


def _closes_nothing(token: Token) -> Diagnostic:
    removal = Help("remove it", (Edit(token.span, ""),))
    return Diagnostic(Code.UNBALANCED, f"this `{token.text}` closes nothing", token.span, help=(removal,))


def _wrong_kind(opener: Token, closer: Token) -> Diagnostic:
    wanted = _OPENERS[opener.text]
    return Diagnostic(
        Code.UNBALANCED,
        f"expected `{wanted}` to close the `{opener.text}`, found `{closer.text}`",
        closer.span,
        related=(Related(opener.span, "opened here"),),
        help=(Help(f"write `{wanted}` instead", (Edit(closer.span, wanted),)),),
    )


def _too_deep(token: Token) -> Diagnostic:
    return Diagnostic(
        Code.TOO_DEEP,
        f"brackets nest more than {DEEPEST_NESTING} deep here",
        token.span,
        help=(Help("name a part of it by a rule of its own"),),
    )


def _mismatch(opener: Token, closer: Token) -> Diagnostic:
    wanted = _OPENERS[opener.text]
    return Diagnostic(
        Code.UNBALANCED,
        f"expected `{wanted}` to close the `{opener.text}`, found `{closer.text}`",
        closer.span,
        related=(Related(opener.span, "opened here"),),
        help=(Help(f"write `{wanted}` before it", (Edit(Span(closer.start, closer.start), wanted),)),),
    )
