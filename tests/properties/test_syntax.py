"""This module shows that text and tree are two sides of one thing, for trees of every kind and for any comments."""

from __future__ import annotations

import re
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from ephemera.base.diagnostic import render_text
from ephemera.base.span import Source
from ephemera.base.tree import walk
from ephemera.syntax.format import format, format_pattern
from ephemera.syntax.lexer import Token, tokenize
from ephemera.syntax.nodes import Event, Program, Statement, Stratum
from ephemera.syntax.parser import Parsed, parse
from tests.strategies.trees import declarations, programs, rules
from tests.strategies.words import among, several


def reparse(text: str) -> Parsed:
    parsed = parse(Source("generated.eq", text))
    assert not parsed.report.diagnostics, f"{text}\n{render_text(parsed.report)}"
    return parsed


@given(programs())
def test_parsing_what_was_formatted_gives_the_tree_again(tree: Program) -> None:
    text = format(tree)
    assert reparse(text).program == tree, text


@given(programs())
def test_formatting_twice_changes_nothing(tree: Program) -> None:
    text = format(tree)
    again = reparse(text)
    assert format(again.program, again.comments, text) == text


@given(programs())
def test_every_node_knows_the_text_it_came_from(tree: Program) -> None:
    text = format(tree)
    program = reparse(text).program
    for node in walk(program):
        assert 0 <= node.span.start <= node.span.end <= len(text)
        if node is not program:
            assert node.span.start < node.span.end, node


@st.composite
def comments(draw: st.DrawFn, number: int, glued: bool) -> tuple[str, str]:
    """A comment, and the same with space around it; right behind a minus sign, two dashes would be three."""
    kind = draw(st.sampled_from(["-- {}", "/* {} */", "/* {}\n   lines */"]))
    comment = kind.format(number)
    before = draw(st.sampled_from([" ", "\n", "\n\n"] if glued else [" ", "", "\n", "\n\n"]))
    after = draw(st.sampled_from(["\n", "\n  \n"] if comment.startswith("--") else [" ", "", "\n", "\n\n"]))
    return comment, before + comment + after


def gaps(tokens: list[Token]) -> list[int]:
    """The tokens that a comment may precede: all but the parts of ``ns:label`` and ``-3``, which stand together."""
    found = [0]
    for k in range(1, len(tokens)):
        last, token = tokens[k - 1], tokens[k]
        tight = last.end == token.start
        if tight and (":" in (last.text, token.text) or (last.text == "-" and token.kind == "number")):
            continue
        found.append(k)
    return found


@cache
def statements() -> st.SearchStrategy[Statement]:
    """Statements of every kind, rules most often: they have the most places for comments."""

    @st.composite
    def strata(draw: st.DrawFn) -> Stratum:
        return Stratum(draw(several(rules(), most=2)))

    return among(rules(), rules(), rules(), strata(), declarations())


STATEMENT_ENDS = (";", "END", "ON", "")
LIST_ENDS = (",", ")", "]", "}", "having", "where", "and", "or")


@st.composite
def commented(draw: st.DrawFn) -> tuple[Program, str, list[str]]:
    """A tree, and its text with comments strewn over it, several in a gap, and often where something ends."""
    tree = Program(draw(several(statements(), least=1)))
    text = format(tree)
    tokens = tokenize(text).tokens
    places = gaps(tokens)
    groups = [[k for k in places if tokens[k].text in ends] for ends in (STATEMENT_ENDS, LIST_ENDS)]
    somewhere = among(*(st.sampled_from(group) for group in [*groups, places] if group))
    chosen = draw(st.lists(st.tuples(somewhere, st.integers(1, 3)), min_size=1, max_size=8))
    pieces: list[str] = []
    written: list[str] = []
    position = 0
    for gap, count in sorted(chosen):
        start = tokens[gap].start
        pieces.append(text[position:start])
        position = start
        for _ in range(count):
            comment, spaced = draw(comments(len(written), glued=bool(gap) and tokens[gap - 1].text == "-"))
            pieces.append(spaced)
            written.append(comment)
    return tree, "".join([*pieces, text[position:]]), written


@given(commented())
def test_comments_survive_and_change_nothing(case: tuple[Program, str, list[str]]) -> None:
    tree, text, comments = case
    parsed = reparse(text)
    assert parsed.program == tree
    formatted = format(parsed.program, parsed.comments, text)
    again = reparse(formatted)
    assert again.program == tree
    assert sorted(c.text for c in again.comments) == sorted(comments)
    assert format(again.program, again.comments, formatted) == formatted
    assert not any(line.endswith(" ") for line in formatted.split("\n"))


@given(programs())
def test_layout_does_not_matter(tree: Program) -> None:
    text = format(tree)
    spread = "\n".join(text[t.start : t.end] for t in tokenize(text).tokens)
    namespaces = any(isinstance(n, Event) and n.name is None and ":" in format_pattern(n.pattern) for n in walk(tree))
    # Texts and regular expressions hold spaces of their own; a namespace and its label hold none between them.
    if not re.search(r"[\"`/]", text) and not namespaces:
        assert reparse(spread).program == tree
