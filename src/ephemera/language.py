"""This module takes texts in the language: it compiles, checks and formats them."""

from __future__ import annotations

from pathlib import Path

from ephemera import pipeline
from ephemera.analysis.unbounded import unbounded_in
from ephemera.base.diagnostic import Report
from ephemera.base.errors import ProgramError
from ephemera.base.span import Source
from ephemera.program import Program
from ephemera.syntax.format import format as formatted
from ephemera.syntax.parser import decode, parse


def compile(text: str, name: str = "program.eq") -> Program:
    """Checks a program and returns it; raises `ProgramError` with all that is wrong otherwise.

    >>> import ephemera
    >>> ephemera.compile("seen(id) <- o: order(id);").explain("rules").splitlines()[0]
    'rule 1  seen(id)'
    """
    return Program(pipeline.check(Source(name, text)))


def load(path: str | Path) -> Program:
    """Compiles the program in a file.

    >>> import ephemera, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "seen.eq")
    ...     _ = path.write_text("seen(id) <- o: order(id);")
    ...     program = ephemera.load(path)
    >>> program.run([{"event": "order", "time": 1, "data": ["a"]}])
    [{'event': 'seen', 'time': 1, 'data': ['a']}]
    """
    source = decode(Path(path).read_bytes(), str(path))
    if isinstance(source, Report):
        raise ProgramError(source)
    return Program(pipeline.check(source))


def check(text: str, name: str = "program.eq", *, allow_unbounded: bool = False) -> Report:
    """All that is wrong with a program, as the command `check` tells it; nothing is raised.

    >>> import ephemera
    >>> found = ephemera.check("late(id) <- o: order(i);")
    >>> found
    <Report program.eq: 1 error>
    >>> found.diagnostics[0]
    <Diagnostic error[unbound-variable]: the variable `id` in the head has no value>
    """
    return pipeline.check(Source(name, text), unbounded=unbounded_in("check", allowed=allow_unbounded)).report


def format(text: str, name: str = "program.eq") -> str:
    """A program in its one layout, comments kept; raises `ProgramError` where it is no program.

    >>> import ephemera
    >>> print(ephemera.format("seen( id )<-o:order(id)  ; -- all of them"), end="")
    seen(id) <- o: order(id);  -- all of them
    """
    parsed = parse(Source(name, text))
    if parsed.report.failed:
        raise ProgramError(parsed.report)
    return formatted(parsed.program, parsed.comments, text)
