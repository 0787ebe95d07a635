"""Regular expressions: as Python reads them where both can, in linear time, and refused with a reason where not."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ephemera.terms.regex import MOST_COMPILED, NoRegex, _compiled, beginning, check, is_match

LETTERS = [chr(code) for code in (*range(0x3100), 0xD800, 0xFF3F, 0x1D7D8, 0x10FFFF)]
TEXTS = ["", "a", "aaa", "aaaa", "ää", "{,3}", "ab[", "a]", "ab", "äB", "a_1", "a-b", "a\n", "\n"]


@pytest.mark.parametrize(
    "expression",
    [
        r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", r"[^\W\d]", r"[\W]", r"[\S]", r"[^\S]", r"[\D]", r"[\w-]+", "[]a]",
        "[^]a]", "a[]]", r"[ab\]]+", "a{,3}", "[{,3}]+", r"[\b]", r"\u00e4+", r"ab\Z", "(?i)ÄB", "(?s).*", ".*", ".",
        "a|",
    ],
)  # fmt: skip
def test_it_means_what_python_means(expression: str) -> None:
    check(expression)
    for text in (*LETTERS, *TEXTS):
        assert is_match(expression, text) is (re.fullmatch(expression, text) is not None), text


def test_half_a_million_letters_take_no_time() -> None:
    for expression in ("(a+)+$", "(a|a)*b", "(.*)*(.*)*x", "(a?){100}a{100}"):
        assert not is_match(expression, "a" * 500_000 + "!")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (r"(a)\1", r"`\1` cannot be matched in linear time"),
        ("(?P<x>a)(?P=x)", "`(?P=` cannot be matched in linear time"),
        ("a(?=b)", "`(?=` cannot be matched in linear time"),
        ("(?<!a)b", "`(?<!` cannot be matched in linear time"),
        ("(?>a)", "`(?>` cannot be matched in linear time"),
        ("a++", "bad repetition operator: `++`"),
        ("a{1001}", "`{1001}` repeats more than 1000 times"),
        ("(a{100}){100}", "`{100}` repeats more than 1000 times"),
        (r"((\w{90}){10}\s){1}((\w{90}){10})", "too large"),
        ("(", "missing )"),
        ("[a", "missing ]"),
        (r"\Qa\E", r"invalid escape sequence: `\Q`"),
        (r"a\C", r"invalid escape sequence: `\C`"),
        ("*", "no argument for repetition operator"),
    ],
)
def test_what_cannot_be_matched_is_refused(expression: str, reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NoRegex, match=re.escape(reason)):
        check(expression)
    assert capfd.readouterr() == ("", "")


def test_only_so_many_are_kept_compiled() -> None:
    for number in range(MOST_COMPILED + 10):
        assert is_match(f"a{number}", f"a{number}")
    assert _compiled.cache_info().currsize <= MOST_COMPILED


PIECES = (
    "a",
    "b",
    "\\.",
    ".",
    "ab",
    "[ab]",
    "[^a]",
    "[]a]",
    "(a|b)",
    "(?i)",
    "|",
    "^",
    "\\w",
    "\\u0061",
    "[[:alpha:]]",
)
REPEATED = ("", "", "", "*", "+", "?", "{2}", "{0,1}", "{,2}", "*?", "+?")


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(REPEATED)), max_size=5))
def test_all_that_matches_begins_so(pieces: list[tuple[str, str]]) -> None:
    expression = "".join(piece + (times if piece not in "(?i)|^" else "") for piece, times in pieces)
    try:
        check(expression)
    except NoRegex:
        assume(False)
    first = beginning(expression)
    for size in range(5):
        for text in map("".join, product("abA.", repeat=size)):
            assert not is_match(expression, text) or text.startswith(first), (expression, text, first)


def test_plain_letters_are_seen() -> None:
    assert [beginning(e) for e in ("abc", r"k7-\.x.*", "ab+c", "ab*", "a(b|c)", "ab[c|d]e")] == [
        *("abc", "k7-.x", "ab", "a", "a", "ab")
    ]
