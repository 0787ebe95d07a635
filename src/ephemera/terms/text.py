"""This module reads and writes data terms as text: ``order [ id { 4711 }, @lang { "de" } ]``.

The words are those of the language (docs/grammar.md): names with `-` inside or in backquotes, a namespace before a
colon, `@` before an attribute; texts with the escapes of JSON, numbers, `true`, `false`, `null`; commas may be left
out. A label that begins with `@` is an attribute of the element around it, and holds one value.

`to_text` has one layout, so that equal terms are written alike: attributes first and by name, unordered children by
their keys, curly brackets where there is no order to speak of, and an integer for a float that equals one. What it
writes, `from_text` reads back as an equal term, except that a time is written as a text (ISO 8601, UTC).

What the formats share stands here, too: numbers, and values without quotes.
"""

from __future__ import annotations

import json
import re
from dataclasses import field
from datetime import date, timedelta
from typing import TypeAlias

from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import DAY, HOUR, MINUTE, SECOND
from ephemera.terms.errors import DEEPEST_TERM, BadMessage, decode, excerpt, in_range, too_deep, whole
from ephemera.terms.values import Term, Time, Value, is_valid, key

Scalar: TypeAlias = bool | int | float | str | Time | None

NAME = r"[^\W\d]\w*(?:-\w+)*"  # without backquotes, as in the language
_NAME = re.compile(NAME)
_QUOTABLE = re.compile(r"[^`\n]+")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PART = re.compile(
    rf"""
  (?:
    (?P<first>@?(?>{NAME})|`[^`\n]+`) (?:\s*+:\s*+(?P<second>(?>{NAME})|`[^`\n]+`))? \s*+ (?P<opener>[\[{{])
  | (?:
        (?P<text>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")
      | (?P<number>-?\s*+(?>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))(?![^\W\d])
      | (?P<constant>true|false|null)(?![\w-])
      | (?P<closer>[\]}}])
    )
    (?:\s*+,)?
  ) \s*+
    """,
    re.VERBOSE,
)
_CLOSERS = {"{": "}", "[": "]"}
_CONSTANTS = {"true": True, "false": False, "null": None}
_DAYS_IN_400_YEARS = 146_097  # after which the calendar repeats


def read_number(text: str) -> int | float | None:
    """The number that a text is, if it is exactly a number of JSON.

    >>> read_number("4711"), read_number("2.50"), read_number("007"), read_number(" 1"), read_number("NaN")
    (4711, 2.5, None, None, None)
    """
    return parse_number(text) if _JSON_NUMBER.fullmatch(text) else None


def parse_number(digits: str) -> int | float:
    """The number that digits, with a sign, a fraction or an exponent, stand for, if it is one of ours."""
    unsigned = digits.removeprefix("-")
    if unsigned.isdigit():  # 20 digits are out of range already, and Python converts no more than thousands
        magnitude = int(unsigned.lstrip("0")[:20] or "0")
        return in_range(magnitude if unsigned == digits else -magnitude, "the text")
    return in_range(float(digits), "the text")


def canonical(number: int | float) -> int | float:
    """The one number to write for all that equal this one: an integer if there is one.

    >>> canonical(2.0), canonical(-0.0), canonical(2.5), canonical(1e300)
    (2, 0, 2.5, 1e+300)
    """
    integer = int(in_range(number, "the term"))
    return integer if number == integer and is_valid(integer) else number


def plain(value: Scalar) -> str:
    """A value as text without quotes."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(canonical(value))
        case str():
            return value
        case Time():
            return iso(value)


def iso(time: Time) -> str:
    """A time in ISO 8601, in UTC; years beyond four digits have a sign and six.

    >>> iso(Time(0)), iso(Time(1_500_000)), iso(Time(2**62))
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.5Z', '+148108-07-06T14:00:27.387904Z')
    """
    days, rest = divmod(time.microseconds, DAY)
    cycles, days = divmod(days, _DAYS_IN_400_YEARS)
    day = date(1970, 1, 1) + timedelta(days=days)
    number = day.year + 400 * cycles
    year = f"{number:04}" if 0 <= number <= 9999 else f"{number:+07}"
    clock = f"{rest // HOUR:02}:{rest % HOUR // MINUTE:02}:{rest % MINUTE // SECOND:02}"
    fraction = f".{rest % SECOND:06}".rstrip("0").rstrip(".")
    return f"{year}-{day.month:02}-{day.day:02}T{clock}{fraction}Z"


# ---- reading -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """An element whose closing bracket is still to come."""

    label: str
    closer: str
    children: list[Value] = field(default_factory=list)
    attributes: dict[str, Value] = field(default_factory=dict)


def from_text(text: str) -> Term:
    """The term that a text is.

    >>> from_text('a { "1", @lang { "de" } }')
    Term(label='a', children=('1',), ordered=False, attributes=(('lang', 'de'),))
    """
    text = decode(text, "the term")
    stack: list[_Open] = []
    position = len(text) - len(text.lstrip())
    while True:
        part = _PART.match(text, position)
        if part is None or (not stack and part["opener"] is None):
            raise _unexpected(text, position, f"a child or `{stack[-1].closer}`" if stack else "a label and a bracket")
        if part["opener"] is not None:
            label = ":".join(name.strip("`") for name in part.group("first", "second") if name)
            stack.append(_Open(label, _CLOSERS[part["opener"]]))
            if len(stack) > DEEPEST_TERM:
                raise too_deep("the term", _place(text, position))
        elif part["closer"] is None:
            stack[-1].children.append(_scalar(part, text))
        elif part["closer"] != stack[-1].closer:
            raise _unexpected(text, position, f"a child or `{stack[-1].closer}`")
        else:
            done = stack.pop()
            if not stack:
                return _root(done, text, part.end("closer"))
            _add(done, stack[-1], text, position)
        position = part.end()


def _scalar(part: re.Match[str], text: str) -> Scalar:
    if part["constant"] is not None:
        return _CONSTANTS[part["constant"]]
    try:
        if part["number"] is not None:
            return parse_number("".join(part["number"].split()))
        return whole(json.loads(part["text"], strict=False), "the text")
    except json.JSONDecodeError as error:
        reason = f"the text has a wrong escape ({error.msg})"
    except BadMessage as error:
        reason = str(error)
    raise BadMessage(f"the term cannot be read {_place(text, part.start())}: {reason}")


def _root(done: _Open, text: str, end: int) -> Term:
    rest = text[end:].lstrip()
    if rest:
        raise _unexpected(text, len(text) - len(rest), "nothing more")
    if done.label.startswith("@"):
        raise BadMessage(f"{excerpt(done.label)} is an attribute and cannot stand alone; put it into an element")
    return _closed(done)


def _add(done: _Open, parent: _Open, text: str, position: int) -> None:
    if not done.label.startswith("@"):
        parent.children.append(_closed(done))
        return
    name = done.label[1:]
    if len(done.children) != 1 or done.attributes or name in parent.attributes:
        reason = "stands twice in one element" if name in parent.attributes else "must hold one value"
        raise BadMessage(f"the attribute {excerpt(done.label)} {reason}, {_place(text, position)}")
    parent.attributes[name] = done.children[0]


def _closed(done: _Open) -> Term:
    return Term(done.label, tuple(done.children), done.closer == "]", tuple(done.attributes.items()))


def _unexpected(text: str, position: int, wanted: str) -> BadMessage:
    found = excerpt(text[position:], 20) if position < len(text) else "the end"
    return BadMessage(f"the term cannot be read {_place(text, position)}: expected {wanted}, found {found}")


def _place(text: str, position: int) -> str:
    return f"at line {text.count(chr(10), 0, position) + 1}, column {position - text.rfind(chr(10), 0, position)}"


# ---- writing -----------------------------------------------------------------------------------------------


def to_text(term: Term) -> str:
    """A term in its one layout.

    >>> to_text(Term("a", ("2", 1.0), ordered=False)), to_text(Term("a"))
    ('a { 1, "2" }', 'a { }')
    """
    written: list[str] = []
    stack: list[str | Term] = [term]  # a str is finished text
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            written.append(part)
        else:
            stack += reversed(_layout(part))
    return "".join(written)


def _layout(term: Term) -> list[str | Term]:
    if term.label.startswith("@"):
        raise BadMessage(f"{excerpt(term.label)} is the name of an attribute and cannot label an element")
    children = term.children if term.is_ordered else sorted(term.children, key=key)
    opener, closer = "[]" if term.is_ordered and len(children) > 1 else "{}"
    parts: list[str | Term] = [f"{_label(term.label)} {opener}"]
    separator = " "
    for name, value in sorted(term.attributes, key=lambda attribute: (attribute[0], key(attribute[1]))):
        parts += [separator, f"{_label(f'@{name}')} {{ ", _leaf(value), " }"]
        separator = ", "
    for child in children:
        parts += [separator, _leaf(child)]
        separator = ", "
    return [*parts, f" {closer}"]


def _leaf(value: Value) -> str | Term:
    if isinstance(value, Term):
        return value
    return json.dumps(plain(value), ensure_ascii=False) if isinstance(value, str | Time) else plain(value)


def _label(label: str) -> str:
    prefix, colon, name = label.partition(":")
    is_plain = _NAME.fullmatch(prefix) and _NAME.fullmatch(name) if colon else _NAME.fullmatch(label.removeprefix("@"))
    if is_plain:
        return label
    if _QUOTABLE.fullmatch(label):
        return f"`{label}`"
    raise BadMessage(f"the label {excerpt(label)} cannot be written: it is empty, or has a backquote or a line break")
