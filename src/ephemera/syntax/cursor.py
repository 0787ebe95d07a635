"""This module reads tokens one after another for the parser, and remembers what would have fitted where.

Every question the parser asks about the current token (`at`, `accept`, `expect`, `name`) is noted; when
nothing fits, the notes are the message.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help, Related
from ephemera.base.span import Span
from ephemera.base.suggest import suggestion
from ephemera.base.time import SHORT, SPELLINGS, UNIT_ALIASES
from ephemera.syntax.lexer import DEEPEST_NESTING, Token, Tokens, shorten

T = TypeVar("T")

MOST_EXPECTED = 6
ENDINGS = ("ON", "END", "where", "having")
"""The words before which every bracket of a term is closed."""
_FARTHEST_CLOSER = 1_000
_STATEMENT_WORDS = (
    ";",
    "END",
    "DETECT",
    "RAISE",
    "STRATUM",
    "NAMESPACE",
    "EVENT",
    "STREAM",
    "TABLE",
    "TIME",
    "WRITE",
    "RESERVE",
)
_OPENER_OF = {")": "(", "]": "[", "}": "{"}


class SyntaxFault(Exception):
    """A place where the parser cannot go on; caught at the next statement."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Cursor:
    """A place in the tokens; see the module."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens.tokens
        self._partner = tokens.partner
        self._position = 0
        self._expected: dict[str, None] = {}
        self._depth = 0
        self._counted = -1
        self._strays = [
            k
            for k, (token, partner) in enumerate(zip(tokens.tokens, tokens.partner, strict=True))
            if partner < 0 and token.kind == "op" and token.text in _OPENER_OF
        ]
        """Where brackets stand that close nothing."""
        self.in_block = False
        """Whether a block rule is being read, in which ``cal:x {{ }}`` is a namespace and not an identifier."""
        self.token = self._tokens[0]
        """The current token."""

    @property
    def position(self) -> int:
        return self._position

    @property
    def ended(self) -> bool:
        return self.token.kind == "end"

    def look(self, ahead: int) -> Token:
        return self._tokens[min(self._position + ahead, len(self._tokens) - 1)]

    def after_bracket(self, ahead: int) -> Token:
        """The token behind the bracket that closes the one `ahead` tokens away (or the last token if none does)."""
        partner = self._partner[min(self._position + ahead, len(self._tokens) - 1)]
        return self._tokens[partner + 1] if partner >= 0 else self._tokens[-1]

    def inside_bracket(self, ahead: int) -> list[Token]:
        """The tokens between the bracket `ahead` tokens away and its partner."""
        opener = self._position + ahead
        return self._tokens[opener + 1 : self._partner[opener]] if self._partner[opener] >= 0 else []

    def partner(self) -> Token | None:
        """The bracket that belongs to the current one."""
        partner = self._partner[self._position]
        return self._tokens[partner] if partner >= 0 else None

    def is_closed(self, opener: int) -> bool:
        """Whether the bracket at that position has a partner."""
        return self._partner[opener] >= 0

    def unopened(self) -> str:
        """The brackets that should have been opened in the rest of the statement, as ``{{``; often none."""
        first = bisect_left(self._strays, self._position)
        strays = [k for k in self._strays[first : first + 3] if k < self._position + _FARTHEST_CLOSER]
        between = self._tokens[self._position : strays[-1] if strays else self._position]
        end = next((k for k, token in enumerate(between, self._position) if token.text in _STATEMENT_WORDS), None)
        found = "".join(_OPENER_OF[self._tokens[k].text] for k in strays if end is None or k < end)
        return found if found in ("(", "[", "{", "[[", "{{") else found[:1]

    def previous(self) -> Token:
        return self._tokens[max(0, self._position - 1)]

    def span_from(self, start: int) -> Span:
        """From an offset to the end of the token read last."""
        return Span(start, max(start, self.previous().end))

    def advance(self) -> Token:
        """Reads the current token; a name in backquotes comes without them."""
        token = self.token
        if token.kind != "end":
            self._position += 1
            self.token = self._tokens[self._position]
        self._expected.clear()
        return token._replace(text=token.text[1:-1]) if token.kind == "quoted" else token

    def is_at(self, *words: str) -> bool:
        """Whether the current token is one of the words or signs, without noting that it was asked."""
        return self.token.kind in ("name", "op") and self.token.text in words

    def at(self, word: str) -> bool:
        if self.token.kind in ("name", "op") and self.token.text == word:
            return True
        self._expected[f"`{word}`"] = None
        return False

    def accept(self, word: str) -> Token | None:
        return self.advance() if self.at(word) else None

    def expect(self, word: str) -> Token:
        if not self.at(word):
            raise self.fault()
        return self.advance()

    def name(self, what: str) -> Token:
        if not self.token.is_name:
            self.wants(what)
            raise self.fault()
        return self.advance()

    def text(self, what: str) -> Token:
        if self.token.kind != "text":
            self.wants(what)
            raise self.fault()
        return self.advance()

    def listed(self, read: Callable[[Cursor], T], closer: str) -> tuple[T, ...]:
        """What stands between here and the closing sign, with commas between; the sign is read, too."""
        found: list[T] = []
        if not self.at(closer):
            found.append(read(self))
            while self.accept(","):
                found.append(read(self))
        self.expect(closer)
        return tuple(found)

    def wants(self, what: str) -> None:
        """Notes something that would have fitted here."""
        self._expected[what] = None

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Counts a level of nesting that has no bracket of its own, such as `desc desc desc …`."""
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise SyntaxFault(
                Diagnostic(
                    Code.TOO_DEEP,
                    f"this nests more than {DEEPEST_NESTING} deep",
                    self.token.span,
                    help=(Help("name a part of it by a rule of its own"),),
                )
            )
        try:
            yield
        finally:
            self._depth -= 1

    def fault(self, message: str | None = None, *help: Help) -> SyntaxFault:
        """The fault at the current token: the message given, or what was expected instead of it."""
        expected = list(self._expected)
        found = "the end of the program" if self.ended else f"`{shorten(self.token.text)}`"
        span = self.behind() if self.ended else self.token.span
        if message is None:
            unit = self.unit_fault()
            if unit is not None:
                return unit
            message = f"expected {_alternatives(expected)}, found {found}" if expected else f"unexpected {found}"
        return SyntaxFault(Diagnostic(Code.SYNTAX, message, span, help=help or self._advice(expected)))

    def counts_time(self) -> None:
        """Notes that the number read last is a length of time, though it has no unit."""
        self._counted = self._position

    def unit_fault(self, position: int | None = None) -> SyntaxFault | None:
        """The fault of a word behind a number, here or at an earlier position, that is meant as a unit of time."""
        position = self._position if position is None else position
        number, unit = self._tokens[max(0, position - 1)], self._tokens[position]
        if number.kind != "number" or unit.kind != "name":
            return None
        fault = unit_fault(number, unit)
        following = self._tokens[position + 1]
        stands_alone = following.kind != "op" or following.text in (")", "]", "}", ",", ";")
        if fault is None and stands_alone and position == self._counted and not suggestion(unit.text, self._words()):
            fault = SyntaxFault(no_unit(number.text, unit.text, number.span.to(unit.span), " "))
        return fault

    def unopened_fault(self, name: Token) -> SyntaxFault | None:
        """The fault of a name whose bracket is closed somewhere behind, and nowhere opened."""
        following = self.token if name.end <= self.token.start else self.look(1)
        missing = self.unopened() if following.text not in _OPENER_OF else ""
        if not missing:
            return None
        message = f"expected `{missing}` behind `{shorten(name.text)}`, found `{shorten(following.text)}`"
        written = missing if missing == "(" else f" {missing}"
        advice = Help(f"write `{missing}` here", (Edit(Span(name.end, name.end), written),))
        return SyntaxFault(Diagnostic(Code.SYNTAX, message, following.span, help=(advice,)))

    def unclosed(self, opener: int, closer: str) -> SyntaxFault:
        """The fault of a bracket that is still open where a word stands that ends what it belongs to."""
        bracket = self._tokens[opener]
        opened = bracket.text * len(closer)
        return SyntaxFault(
            Diagnostic(
                Code.SYNTAX,
                f"the `{opened}` is not closed before `{self.token.text}`",
                self.token.span,
                related=(Related(Span(bracket.start, bracket.start + len(opened)), "opened here"),),
                help=(Help(f"write `{closer}` before it", (Edit(self.behind(), f" {closer}"),)),),
            )
        )

    def behind(self) -> Span:
        """The empty place behind the token read last."""
        where = self.previous().end if self._position else 0
        return Span(where, where)

    def missing(self, what: str, word: str) -> SyntaxFault:
        """The fault where a word is missing behind the token read last, and something else begins."""
        advice = Help(f"write `{word}` here", (Edit(self.behind(), word if word in _TIGHT else f"\n{word}"),))
        return SyntaxFault(Diagnostic(Code.SYNTAX, f"{what} has no `{word}` at its end", self.behind(), help=(advice,)))

    def _words(self) -> list[str]:
        """The words and signs that would have fitted here."""
        return [e.strip("`") for e in self._expected if e.startswith("`") and e.endswith("`")]

    def _advice(self, expected: list[str]) -> tuple[Help, ...]:
        """The word that was meant, the sign that is missing, or else what would fit."""
        words = self._words()
        token = self.token
        close = suggestion(token.text, [w for w in words if w.isalpha()]) if token.kind == "name" else None
        if close is not None:
            return (Help(f"did you mean `{close}`?", (Edit(token.span, close),)),)
        begins = (token.is_name and token.text not in ENDINGS) or token.kind in ("number", "duration", "text")
        closers = [w for w in words if w in ")]}"]
        if "," in words and begins:
            return (Help("write `,` between the two", (Edit(self.behind(), ","),)),)
        if closers and not begins and token.text not in (":", "(", "[", "{"):
            return (Help(f"write `{closers[0]}` here", (Edit(self.behind(), closers[0]),)),)
        if len(words) == len(expected) == 1:
            text = words[0] if words[0] in _TIGHT else f" {words[0]} "
            return (Help(f"write `{words[0]}` here", (Edit(self.behind(), text),)),)
        return (Help(f"write {_alternatives(expected)} here" if expected else "remove it"),)


_TIGHT = (",", ";", ")", "]", "}", ":")


def unit_fault(number: Token, unit: Token) -> SyntaxFault | None:
    """What is wrong with a word behind a number that looks like a unit of time, if it does."""
    span = number.span.to(unit.span)
    if unit.text in SPELLINGS:
        written = f"{number.text}{unit.text}"
        message = f"the unit `{unit.text}` of one letter stands right behind its number"
    elif unit.text in _VAGUE_UNITS or suggestion(unit.text, _LONG_UNITS, UNIT_ALIASES):
        return SyntaxFault(no_unit(number.text, unit.text, span, " "))
    else:
        return None
    return SyntaxFault(
        Diagnostic(Code.DURATION, message, span, help=(Help(f"write `{written}`", (Edit(span, written),)),))
    )


def no_unit(amount: str, unit: str, span: Span, space: str = "") -> Diagnostic:
    """A word that is no unit of time, where one is meant."""
    message = f"`{shorten(unit)}` is no unit of time"
    close = suggestion(unit, _LONG_UNITS, UNIT_ALIASES)
    if unit in _VAGUE_UNITS:
        advice = Help("months and years differ in length: write weeks or days")
    elif close:
        written = f"{amount} {close}" if space else f"{amount}{SHORT[SPELLINGS[close]]}"
        advice = Help(f"write `{written}`", (Edit(span, written),))
    else:
        advice = Help("the units are week, day, hour, min, sec, ms and us, for short w, d, h, m and s")
    return Diagnostic(Code.DURATION, message, span, help=(advice,))


_LONG_UNITS = [word for word in SPELLINGS if len(word) > 2]
_VAGUE_UNITS = ("month", "months", "year", "years", "quarter", "quarters")


def _alternatives(expected: list[str]) -> str:
    shown = expected[:MOST_EXPECTED]
    if len(expected) > MOST_EXPECTED:
        return ", ".join(shown) + " or the like"
    return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
