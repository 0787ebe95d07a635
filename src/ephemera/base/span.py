"""This module names places in program text: spans of character offsets, and the source they point into."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from ephemera.base.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """The half-open range of character offsets ``[start, end)``."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the beginning of this one to the end of the other."""
        return Span(self.start, other.end)


NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column as people count them, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Source:
    """A program's text and the name it is known by; offsets become lines and columns here."""

    path: str
    text: str
    behind: tuple[Source, ...] = ()
    """The files that the program imports: their offsets go on behind this one's, a character apart."""
    _starts: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._starts.append(0)
        position = self.text.find("\n")
        while position >= 0:
            self._starts.append(position + 1)
            position = self.text.find("\n", position + 1)

    def file_at(self, offset: int) -> tuple[Source, int]:
        """The file in which an offset lies, and the offset in that."""
        begin = 0
        for file in (self, *self.behind):
            if offset <= begin + len(file.text):
                return file, offset - begin
            begin += len(file.text) + 1
        return self, offset

    def place(self, offset: int) -> Place:
        if self.behind and offset > len(self.text):
            file, own = self.file_at(offset)
            return file.place(own) if file is not self else self._place(own)
        return self._place(offset)

    def _place(self, offset: int) -> Place:
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of one line, without its end."""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def quote(self, span: Span) -> str:
        file, start = self.file_at(span.start)
        return file.text[start : start + span.end - span.start]
