"""This module shows that no text crashes or hangs the front of the road: it ends in a tree or in a diagnostic."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ephemera.base.diagnostic import Report, as_json, render_text
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.syntax.format import format
from ephemera.syntax.lexer import tokenize
from ephemera.syntax.parser import decode, parse

PROGRAMS = [path.read_text(encoding="utf-8") for path in sorted((Path(__file__).parents[1] / "programs").glob("*.eq"))]
BUDGET_SECONDS = 300
"""Far more than any text needs, here only so that a hang fails instead of hanging CI."""


@contextmanager
def budget() -> Iterator[None]:
    def over(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not done after {BUDGET_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, BUDGET_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def survive(text: str) -> Report:
    """Sends a text all the way; whatever parses must also be written and read again."""
    with budget():
        report = check(Source("fuzz.eq", text)).report
        render_text(report)
        as_json(report)
        parsed = parse(Source("fuzz.eq", text))
        if not parsed.report.failed:
            written = format(parsed.program, parsed.comments, text)
            again = parse(Source("fuzz.eq", written))
            assert not again.report.failed, written
            assert again.program == parsed.program
            assert sorted(c.text for c in again.comments) == sorted(c.text for c in parsed.comments)
    return report


@given(st.binary(max_size=300))
def test_bytes_end_in_a_diagnostic_or_a_tree(data: bytes) -> None:
    source = decode(data, "fuzz.eq")
    if isinstance(source, Report):
        assert source.failed
        assert render_text(source)
    else:
        survive(source.text)


@given(st.text(max_size=300))
def test_any_characters_end_in_a_diagnostic_or_a_tree(text: str) -> None:
    survive(text)


WORDS = sorted({token.text for text in PROGRAMS for token in tokenize(text).tokens if len(token.text) < 20})


@given(st.lists(st.sampled_from(WORDS), max_size=60))
def test_a_soup_of_words_ends_in_a_diagnostic_or_a_tree(words: list[str]) -> None:
    survive(" ".join(words))


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """A program with some of its words deleted, doubled, replaced, swapped, or broken in the middle."""
    text = draw(st.sampled_from(PROGRAMS))
    for _ in range(draw(st.integers(1, 4))):
        tokens = [t for t in tokenize(text).tokens if t.kind != "end"]
        if len(tokens) < 2:
            break
        token = tokens[draw(st.integers(0, len(tokens) - 1))]
        other = tokens[draw(st.integers(0, len(tokens) - 1))]
        before, word, after = text[: token.start], text[token.start : token.end], text[token.end :]
        kind = draw(st.sampled_from(["delete", "double", "replace", "word", "junk", "cut"]))
        match kind:
            case "delete":
                text = before + after
            case "double":
                text = f"{before}{word} {word}{after}"
            case "replace":
                text = before + text[other.start : other.end] + after
            case "word":
                text = f"{before}{word} {draw(st.sampled_from(WORDS))} {after}"
            case "junk":
                text = before + word + draw(st.text(max_size=3)) + after
            case _:
                text = text[: token.start + draw(st.integers(0, len(word)))]
    return text


@given(mutants())
def test_mutated_programs_end_in_a_diagnostic_or_a_tree(text: str) -> None:
    survive(text)


NESTS = {
    "braces of a term": ("DETECT a { var X } ON event e: ", "a { ", "var X", " }", " END"),
    "partial brackets": ("DETECT a { var X } ON event e: ", "a [[ ", "var X", " ]]", " END"),
    "construct terms": ("DETECT ", "a [ ", "var X", " ]", " ON event e: b { var X } END"),
    "conjunctions": ("DETECT a { } ON ", "and { ", "event e: a { }", " }", " END"),
    "disjunctions": ("DETECT a { } ON ", "or { ", "event e: a { }", " }", " END"),
    "brackets of an expression": ("p(x) <- e: q(x), ", "(", "x", ")", " > 1;"),
    "brackets of a condition": ("p(x) <- e: q(x), ", "(", "x > 1", ")", ";"),
    "calls": ("p(", "add(1, ", "x", ")", ") <- e: q(x);"),
    "algebra": ("p() <- e: algebra (", "(", "a", ")", ");"),
    "limits": ("p() <- e: algebra (a", "", "", "[1 sec]", ");"),
    "minus signs": ("p(", "- ", "x", "", ") <- e: q(x);"),
    "negations": ("p(x) <- e: q(x), ", "not ", "x > 1", "", ";"),
    "desc": ("DETECT a { } ON event e: ", "desc ", "a { }", "", " END"),
    "without": ("DETECT a { } ON event e: b {{ ", "without ", "a { }", "", " }} END"),
    "restrictions": ("DETECT a { } ON event e: ", "var X -> ", "a { }", "", " END"),
    "sums": ("p(", "x + ", "x", "", ") <- e: q(x);"),
    "sums in brackets": ("p(", "(x + ", "x", ")", ") <- e: q(x);"),
    "sequences": ("p() <- e: algebra (", "a; ", "a", "", ");"),
    "alternatives of a condition": ("p(x) <- e: q(x), ", "x = 1 or ", "x = 2", "", ";"),
    "alternatives within each other": (
        "DETECT a { } ON and { ",
        "or { event e: a { }, ",
        "event e: b { }",
        " }",
        " } END",
    ),
    "strata": ("", "STRATUM ", "", "END ", ""),
    "openers only": ("p(x) <- ", "(", "", "", ""),
    "closers only": ("p(x) <- e: q(x)", "", "", ")", ""),
    "comment openers": ("", "/* ", "", "", ""),
}


@pytest.mark.parametrize("what", sorted(NESTS))
def test_ten_thousand_fold_nesting_ends_in_a_diagnostic_or_a_tree(what: str) -> None:
    lead, opener, middle, closer, tail = NESTS[what]
    for depth in (10, 60, 70, 300, 10_000):
        survive(lead + opener * depth + middle + closer * depth + tail)


LONG = 10_000_000


@pytest.mark.parametrize(
    "text",
    [
        "a" * LONG,
        '"' + "a" * LONG + '"',
        '"' + "\\" * LONG,
        "-" * LONG,
        "1" * LONG,
        "(" * LONG,
        " " * LONG,
        "/*" + "*" * LONG,
        "p(x) <- " + "e: q(x), " * (LONG // 9) + "x > 1;",
        "`" + "é" * LONG,
        "p(x) <- q(x);" * 50_000,
        "1a" * 2_000_000 + "_",
        "1.1a" * 1_000_000 + "_",
        "$ " * 400_000,
        "} " * 200_000,
        "(]" * 100_000,
        "`\n" * 200_000,
        "DETECT a b } " * 50_000,
    ],
    ids=[
        "name",
        "text",
        "escapes",
        "dashes",
        "digits",
        "brackets",
        "spaces",
        "comment",
        "body",
        "quoted",
        "many rules",
        "almost a duration",
        "almost a duration with fractions",
        "signs",
        "closers",
        "unlike brackets",
        "open names",
        "unopened heads",
    ],
)
def test_ten_megabyte_lines_end_in_a_diagnostic_or_a_tree(text: str) -> None:
    with budget():
        parsed = parse(Source("fuzz.eq", text))
        assert parsed.report.diagnostics or parsed.program.statements or not text.strip()
        assert len(render_text(parsed.report)) < 100_000
