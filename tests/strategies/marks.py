"""This module writes program text whose features can be taken out again: marked text.

A mark is a piece of text that makes up a feature, with the text that stands there when the feature is knocked out.
Marks nest, and marks of one name belong together: they are knocked out at once. A mark's name is its feature, `#`,
and a number.
"""

from __future__ import annotations

from collections.abc import Iterator

_OPEN, _ELSE, _CLOSE, _THEN = "\x01", "\x02", "\x03", "\x04"


def mark(name: str, text: str, instead: str = "") -> str:
    """A piece of text, and what stands there without the feature.

    >>> render(f"p(x) <- i: a(x){mark('condition#1', ', x > 1')};", knocked="condition#1")
    'p(x) <- i: a(x);'
    """
    return f"{_OPEN}{name}{_THEN}{text}{_ELSE}{instead}{_CLOSE}"


def render(marked: str, knocked: str | None = None) -> str:
    """The text, with the marks of one name knocked out."""
    return "".join(_Reader(marked, knocked).pieces())


def taken_out(marked: str, name: str) -> str:
    """The marked text for good without the marks of one name; the others stay.

    >>> render(taken_out(f"p(x) <- i: a(x){mark('condition#1', ', x > 1')};", "condition#1"))
    'p(x) <- i: a(x);'
    """
    return "".join(_Reader(marked, name, keeps=True).pieces())


def names(marked: str) -> list[str]:
    """The names of the marks that the text shows, each once."""
    reader = _Reader(marked, None)
    "".join(reader.pieces())
    return list(dict.fromkeys(reader.seen))


def feature_of(name: str) -> str:
    return name.partition("#")[0]


class _Reader:
    def __init__(self, marked: str, knocked: str | None, *, keeps: bool = False) -> None:
        self._text = marked
        self._knocked = knocked
        self._keeps = keeps
        self._at = 0
        self.seen: list[str] = []

    def pieces(self, *, shown: bool = True) -> Iterator[str]:
        """What is to be read up to the end of the text or of the part of a mark; nothing comes of hidden parts."""
        while self._at < len(self._text) and self._text[self._at] not in (_ELSE, _CLOSE):
            if self._text[self._at] == _OPEN:
                yield from self._mark(shown=shown)
            else:
                if shown:
                    yield self._text[self._at]
                self._at += 1

    def _mark(self, *, shown: bool) -> Iterator[str]:
        then = self._text.index(_THEN, self._at)
        name = self._text[self._at + 1 : then]
        if shown:
            self.seen.append(name)
        is_kept = self._keeps and shown and name != self._knocked
        self._at = then + 1
        yield f"{_OPEN}{name}{_THEN}" if is_kept else ""
        yield from self.pieces(shown=shown and name != self._knocked)
        self._at += 1
        yield _ELSE if is_kept else ""
        yield from self.pieces(shown=is_kept or (shown and name == self._knocked))
        self._at += 1
        yield _CLOSE if is_kept else ""
