"""This module shows that text and tree are two sides of one thing, for trees of every kind and for any comments."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ephemera.base.diagnostic import render_text
from ephemera.base.span import Source
from ephemera.base.tree import walk
from ephemera.syntax.format import format, format_pattern
from ephemera.syntax.lexer import tokenize
from ephemera.syntax.nodes import Event, Program
from ephemera.syntax.parser import Parsed, parse
from tests.strategies.trees import programs


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
def commented(draw: st.DrawFn) -> tuple[Program, str, list[str]]:
    """A tree, and its text with comments strewn between the tokens."""
    tree = draw(programs())
    text = format(tree)
    tokens = tokenize(text).tokens
    gaps = draw(st.lists(st.integers(0, len(tokens) - 1), max_size=6, unique=True))
    pieces, comments, position = [], [], 0
    for number, gap in enumerate(sorted(gaps)):
        comment, spaced = draw(
            st.sampled_from(
                [
                    (f"-- note {number}", f"\n-- note {number}\n"),
                    (f"-- tail {number}", f" -- tail {number}\n"),
                    (f"/* inline {number} */", f" /* inline {number} */ "),
                    (f"/* two\n lines {number} */", f"\n\n/* two\n lines {number} */\n\n"),
                ]
            )
        )
        start = tokens[gap].start
        pieces += [text[position:start], spaced]
        comments.append(comment)
        position = start
    return tree, "".join([*pieces, text[position:]]), comments


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


@given(programs())
def test_layout_does_not_matter(tree: Program) -> None:
    text = format(tree)
    spread = "\n".join(text[t.start : t.end] for t in tokenize(text).tokens)
    namespaces = any(isinstance(n, Event) and n.name is None and ":" in format_pattern(n.pattern) for n in walk(tree))
    # Texts and regular expressions hold spaces of their own; a namespace and its label hold none between them.
    if not re.search(r"[\"`/]", text) and not namespaces:
        assert reparse(spread).program == tree
