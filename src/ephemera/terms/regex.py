r"""This module matches texts against regular expressions, in time that is linear in the text whatever it is.

RE2 does it, which knows neither backreferences nor look-around. `\d`, `\w` and `\s` go by Unicode, as names in the
language do, and RE2's own by ASCII; so they are written out for it, with the few signs that it spells differently.
Nodes hold expressions as text; they are compiled where they are used, and the latest of them kept. RE2 is loaded with
the first of them.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any

MOST_COMPILED = 128
MOST_MEMORY = 32 << 20
"""What one expression may take, in bytes: 1,000 letters of any alphabet in a row."""

_PIECE = re.compile(
    r"""
    (?P<posix>\[:\^?[a-z]+:\])
  | \\u(?P<four>[0-9a-fA-F]{4}) | \\U(?P<eight>[0-9a-fA-F]{8})
  | (?P<escaped>\\.)
  | \{,(?P<most>[0-9]+)\}
  | (?P<class>\[\^?\]?)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SETS = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": r"\p{L}\p{N}_",
    "s": r"\t-\r\x1c-\x20\x{85}\p{Z}",
    "S": r"\x{0}-\x{8}\x{e}-\x{1b}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}"
    r"\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}",
}
_SIGNS = frozenset(".^$*+?{}[]()|\\")
_FOREIGN = frozenset("CQE")  # one byte, and quotations: what RE2 has and Python has not
_NOT_LINEAR = re.compile(r"(?<!\\)(?:\\\\)*(\(\?(?:[=!>(]|<[=!]|P=)|\\[1-9])")
_TOO_LARGE = "pattern too large"
_REPEATED = "invalid repetition size"


class NoRegex(ValueError):
    """A text that is no regular expression, or none that can be matched in linear time."""

    def __init__(self, reason: str, *, linear: bool = True) -> None:
        super().__init__(reason)
        self.linear = linear


def is_match(expression: str, text: str) -> bool:
    r"""Whether the whole text matches.

    >>> is_match(r"K\w+-\d{2}", "Kæ-12"), is_match("a|b", "ab"), is_match("(a+)+", "a" * 1000 + "!")
    (True, False, False)
    """
    # A half of a surrogate pair, which JSON may hold, is a character like others here.
    return _compiled(expression).fullmatch(text.encode("utf-8", "surrogatepass")) is not None


def found_in(expression: str, text: str) -> str | None:
    r"""What the first group of the leftmost match has, or all of it if there is no group; None if nothing matches.

    >>> (
    ...     found_in(r"channel_id=(\d+)", "https://x.example/?channel_id=17&n=3"),
    ...     found_in("b+", "abba"),
    ...     found_in("c", "ab"),
    ... )
    ('17', 'bb', None)
    """
    found = _compiled(expression, captures=True).search(text.encode("utf-8", "surrogatepass"))
    if found is None:
        return None
    piece = found.group(1 if found.re.groups else 0)
    return None if piece is None else str(piece.decode("utf-8", "surrogatepass"))


def check(expression: str) -> None:
    """Raises `NoRegex` for what cannot be matched."""
    import re2  # noqa: PLC0415 - only who matches expressions needs it

    try:
        _compiled(expression)
    except re2.error as error:
        raise _reason(expression, error) from None


def beginning(expression: str) -> str:
    r"""Letters with which all texts begin that match: as many as can be seen without knowing more of expressions.

    >>> beginning(r"ab\.c+.*"), beginning("ab?"), beginning("ab|cd"), beginning("(?i)ab")
    ('ab.c', 'a', '', '')
    """
    found: list[str] = []
    is_open, depth, in_class = True, 0, False
    for piece in _PIECE.finditer(expression):
        sign = piece[0]
        if in_class:
            in_class = sign != "]" and not (piece.lastgroup == "class" and sign.endswith("]"))
            continue
        if sign == "|" and not depth:
            return ""
        in_class = piece.lastgroup == "class"
        depth += (sign == "(") - (sign == ")")
        if not is_open:
            continue
        if sign in "*?{" or piece.lastgroup == "most":
            del found[-1:]
            is_open = False
        elif (letter := _letter(sign)) is not None:
            found.append(letter)
        else:
            is_open = False
    return "".join(found)


def _letter(sign: str) -> str | None:
    """The one character that a sign stands for, if it is one that does."""
    if len(sign) == 2 and sign[0] == "\\":
        return sign[1] if sign[1].isascii() and not sign[1].isalnum() else None
    return sign if len(sign) == 1 and sign not in _SIGNS else None


@lru_cache(MOST_COMPILED)
def _compiled(expression: str, *, captures: bool = False) -> Any:
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    options.max_mem = MOST_MEMORY
    return re2.compile(_in_re2(expression).encode(), options)


def _reason(expression: str, error: Exception) -> NoRegex:
    told = error.args[0] if error.args else b""
    message = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
    kind, _, fragment = message.partition(": ")
    if found := _NOT_LINEAR.search(expression):
        return NoRegex(f"`{found[1]}` cannot be matched in linear time", linear=False)
    if kind.startswith(_TOO_LARGE):
        return NoRegex("this regular expression is too large")
    if kind == _REPEATED:
        return NoRegex(f"`{fragment}` repeats more than 1000 times, together with what stands around it")
    shown = f": `{fragment}`" if fragment and fragment in expression and fragment != expression else ""
    return NoRegex(f"this is no regular expression: {kind}{shown}")


def _in_re2(expression: str) -> str:
    """The expression as RE2 spells it."""
    written: list[str] = []
    in_class = False
    for piece in _PIECE.finditer(expression):
        match piece.lastgroup:
            case "four" | "eight":
                written.append(f"\\x{{{piece[piece.lastgroup]}}}")
            case "escaped":
                written.append(_escape(piece[0][1], in_class=in_class))
            case "most" if not in_class:
                written.append(f"{{0,{piece['most']}}}")
            case "class" if not in_class:
                in_class = True
                written.append(piece[0])
            case "class":  # a bracket in a class stands for itself, and what follows it may end the class
                in_class = not piece[0].endswith("]")
                written.append("\\" + piece[0])
            case _:
                in_class = in_class and piece[0] != "]"
                written.append(piece[0])
    return "".join(written)


def _escape(letter: str, *, in_class: bool) -> str:
    if letter in _FOREIGN:
        import re2  # noqa: PLC0415

        raise re2.error(f"invalid escape sequence: \\{letter}".encode())
    if letter == "b" and in_class:
        return r"\x08"
    if letter == "Z":
        return r"\z"
    if letter == "W":
        return _not_word() if in_class else rf"[^{_SETS['w']}]"
    if letter in _SETS:
        return _SETS[letter] if in_class else f"[{_SETS[letter]}]"
    return f"\\{letter}"


@lru_cache(1)
def _not_word() -> str:
    r"""All characters that `\w` leaves out, as ranges: RE2 has no class that takes others away from a class."""
    limits = [0]
    inside = False
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        if (letter.isalnum() or letter == "_") is not inside:
            inside = not inside
            limits.append(code)
    limits.append(sys.maxunicode + 1)
    # From the first limit on characters are left out, from the second on they are in the class, and so on.
    return "".join(f"\\x{{{a:x}}}-\\x{{{b - 1:x}}}" for a, b in zip(limits[::2], limits[1::2], strict=False))
