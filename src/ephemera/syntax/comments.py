"""This module hands comments out while a tree is written: each belongs to what it stands before or behind.

A comment belongs to what follows it, or to what ends on its line. Nothing can follow a `--` on its line, and a comment
of several lines always stands before what follows.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice

from ephemera.syntax.lexer import Comment, tokenize
from ephemera.syntax.nodes import Statement


class Comments:
    """The comments of a text, taken in their order."""

    def __init__(self, comments: Sequence[Comment], text: str) -> None:
        self._text = text
        self._comments = list(comments)
        self._next = 0
        self.lifted: list[Comment] = []
        """Comments that move in front of the item which is being built."""
        # Tokens tell where a bracket or `;` stands, which matters only to the comments around it.
        self._tokens = tokenize(text).tokens if comments else []
        self._starts = [token.start for token in self._tokens]

    # ---- places in the text --------------------------------------------------------------------------------

    def at(self, position: int) -> int:
        """Where the first token from a position on begins."""
        index = bisect_left(self._starts, position)
        return self._starts[index] if index < len(self._starts) else position

    def at_word(self, text: str, position: int) -> int:
        """Where the first such token from a position on begins."""
        following = islice(self._tokens, bisect_left(self._starts, position), None)
        return next((t.start for t in following if t.text == text), position)

    def last_end(self, position: int) -> int:
        """Where the last token before a position ends."""
        index = bisect_left(self._starts, position)
        return self._tokens[index - 1].end if index else position

    def gap(self, start: int, end: int) -> bool:
        return re.search(r"\n[ \t\r]*\n", self._text[start:end]) is not None

    # ---- comments ------------------------------------------------------------------------------------------

    def take(self, before: int) -> list[Comment]:
        first = self._next
        while self._next < len(self._comments) and self._comments[self._next].start < before:
            self._next += 1
        return self._comments[first : self._next]

    def lift(self, before: int) -> None:
        self.lifted += self.take(before)

    def _on_line(self, first: int, end: int, limit: int, behind: Sequence[Comment] = ()) -> int:
        """How many comments from the first on can stand on the line where something ends, after those `behind` it.

        Nothing can follow a `--` on its line, and a comment of several lines stands before what follows it.
        """
        runs_on = bool(behind) and behind[-1].text.startswith("--")
        count = 0
        while not runs_on and first + count < len(self._comments):
            comment = self._comments[first + count]
            if comment.start >= limit or "\n" in comment.text or self._text.find("\n", end, comment.start) >= 0:
                break
            count += 1
            runs_on = comment.text.startswith("--")
        return count

    def take_behind(self, end: int, limit: int, behind: Sequence[Comment] = ()) -> list[Comment]:
        first = self._next
        self._next += self._on_line(first, end, limit, behind)
        return [*behind, *self._comments[first : self._next]]

    def take_before_semicolon(self, statement: Statement) -> list[Comment]:
        """Comments between the last word of a statement and its `;`, on the line of that word."""
        if not self._comments or not self._text.endswith(";", 0, statement.span.end):
            return []
        end = self.last_end(statement.span.end - 1)
        first = bisect_left(self._comments, end, self._next, key=lambda comment: comment.start)
        count = self._on_line(first, end, statement.span.end)
        found = self._comments[first : first + count]
        del self._comments[first : first + count]
        return found

    def spaced(self, comments: Sequence[Comment], end: int) -> list[str]:
        """Comments on lines of their own, with the empty lines that stood between them and before the end."""
        lines: list[str] = []
        for k, comment in enumerate(comments):
            lines.append(comment.text)
            following = comments[k + 1].start if k + 1 < len(comments) else end
            if self.gap(comment.end, following):
                lines.append("")
        return lines


def texts(comments: Sequence[Comment]) -> tuple[str, ...]:
    return tuple(comment.text for comment in comments)
