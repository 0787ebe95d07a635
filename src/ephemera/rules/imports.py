"""This module links a program with those that it imports, so that everything after it sees one program.

What an imported program derives gets the prefix of the import: heads and declarations of it, and whatever asks for it.
All else that it names is shared: its inputs, its tables, its streams. What both declare alike counts once. Its text
stands behind that of the program that imports it, so that each place is one of its own file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ephemera.base.diagnostic import Code, Diagnostic, Edit, Help, Related, Report, report
from ephemera.base.span import Source, Span
from ephemera.base.time import SECOND, describe, microseconds
from ephemera.base.tree import walk
from ephemera.rules.declare import head_label
from ephemera.rules.findings import did_you_mean
from ephemera.rules.relabel import named, renamed, with_parts
from ephemera.syntax.nodes import (
    Algebra,
    DeclaredFunction,
    Event,
    EventType,
    Import,
    Namespace,
    Program,
    Reserve,
    Rule,
    Statement,
    Stratum,
    Stream,
    Table,
    Timer,
    TimeUnit,
    TimeZone,
    Transport,
    Write,
)
from ephemera.syntax.parser import Parsed, decode, parse
from ephemera.syntax.queries import TIMER_PREFIXES
from ephemera.terms.nodes import Label

MOST_FILES = 100
"""So many files may be imported, counted as often as they are; more are mostly twins of twins."""
_SHARED = (Namespace, EventType, Stream, Table, Transport, Write, Reserve, DeclaredFunction)
"""What two programs may declare alike."""


def linked(parsed: Parsed) -> Parsed:
    """A program with all that it imports, and with what is wrong with that; one without imports as it is."""
    if not any(isinstance(statement, Import) for statement in parsed.program.statements):
        return parsed
    linking = _Linking(parsed.source)
    statements = linking.link(parsed, (_real(Path(parsed.source.path)),))
    source = replace(parsed.source, behind=tuple(linking.files))
    whole = Program(tuple(statements), span=parsed.program.span)
    return Parsed(source, whole, parsed.comments, report(source, linking.found))


class _Linking:
    def __init__(self, source: Source) -> None:
        self.files: list[Source] = []
        self.found: list[Diagnostic] = []
        self._end = len(source.text) + 1
        """Where the next file begins."""

    def link(self, parsed: Parsed, way: tuple[Path, ...]) -> list[Statement]:
        """The statements of a program and of all that it imports; `way` are the files that led here, and its own."""
        self.found += parsed.report.diagnostics
        own: list[Statement] = [s for s in parsed.program.statements if not isinstance(s, Import)]
        prefixes: dict[str, Import] = {}
        derived: dict[str, frozenset[str] | None] = {}
        """By prefix; None where the file could not be read, so that nothing is known of it."""
        imported: list[Statement] = []
        for statement in (s for s in parsed.program.statements if isinstance(s, Import)):
            if not self._is_free(statement, prefixes, own):
                continue
            prefixes[statement.prefix] = statement
            theirs = self._load(statement, way)
            if theirs is None:
                derived[statement.prefix] = None
                continue
            self._check_time(statement, own, theirs)
            labels = frozenset(_derived(theirs))
            derived[statement.prefix] = labels
            names = {label: f"{statement.prefix}:{label}" for label in labels}
            imported += renamed(theirs, named(names))
        self._check_identifiers(own, prefixes)
        self._check_heads(own, prefixes)
        return _merged(renamed(own, lambda label: self._asked(label, derived)), imported)

    def _load(self, statement: Import, way: tuple[Path, ...]) -> list[Statement] | None:
        path = Path(os.path.normpath(way[-1].parent / statement.path))
        try:
            real = _real(path)
            is_other = path.exists() and not path.is_file()
        except ValueError:  # no file can be called so
            real, is_other = path, True
        if real in way:
            names = [*(one.name for one in way[way.index(real) :]), real.name]
            self._tell(
                f"`{statement.path}` imports itself: {', which imports '.join(f'`{name}`' for name in names)}",
                statement.span,
                Help("move what both need into a file of its own"),
            )
            return None
        if len(self.files) == MOST_FILES:
            self._tell(
                f"more than {MOST_FILES} files would be imported",
                statement.span,
                Help("import what several files need in one of them; what it derives has both prefixes then"),
            )
            return None
        if is_other:
            self._tell(f"`{_shown(path)}` is no file", statement.span, Help("name the file of a program"))
            return None
        try:
            source = decode(path.read_bytes(), _shown(path))
        except OSError as error:
            self._tell(
                f"cannot read `{_shown(path)}`: {error.strerror}",
                statement.span,
                Help("a path is taken from the file that imports it"),
            )
            return None
        if isinstance(source, Report):
            self._tell(f"`{_shown(path)}` is not UTF-8", statement.span, Help("save it as UTF-8"))
            return None
        begin = self._end
        self.files.append(source)
        self._end += len(source.text) + 1
        # Behind so many blanks each place is where it is in the whole.
        parsed = parse(Source(source.path, " " * begin + source.text))
        folder = os.path.relpath(real.parent, way[-1].parent)
        return [_moved(one, folder) for one in self.link(parsed, (*way, real))]

    def _is_free(self, statement: Import, prefixes: Mapping[str, Import], own: Iterable[Statement]) -> bool:
        before = prefixes.get(statement.prefix) or next(
            (s for s in own if isinstance(s, Namespace) and s.prefix == statement.prefix), None
        )
        if before is not None:
            other = Help("choose another prefix")
            self._tell(
                f"the prefix `{statement.prefix}` is declared twice",
                statement.span,
                other,
                Related(before.span, "declared here before"),
            )
        elif statement.prefix in TIMER_PREFIXES:
            self._tell(
                f"`{statement.prefix}` has a meaning of its own and cannot be a prefix",
                statement.span,
                Help("choose another prefix"),
            )
        else:
            return True
        return False

    def _check_time(self, statement: Import, own: list[Statement], theirs: list[Statement]) -> None:
        """A bare number means the same in both, and so does a time without a zone."""
        for what, of in (("TIME UNIT", _unit), ("TIME ZONE", _zone)):
            here, there = of(own), of(theirs)
            if here != there:
                self._tell(
                    f"`{statement.path}` has the {what} {there}, and this program {here}",
                    statement.span,
                    Help(f"declare the same {what} in both"),
                )

    def _asked(self, label: Label, derived: Mapping[str, frozenset[str] | None]) -> Label:
        """A label that a program writes with the prefix of an import, in one word."""
        if label.prefix not in derived:
            return label
        labels = derived[label.prefix]
        if labels is not None and label.name not in labels:
            place = Span(label.span.end - len(label.name), label.span.end)
            otherwise = "ask for what it derives; its inputs have no prefix"
            message = f"the import `{label.prefix}` derives no `{label.name}`"
            self._tell(message, label.span, did_you_mean(label.name, labels, place, otherwise))
        return Label(str(label), span=label.span)

    def _check_identifiers(self, own: list[Statement], prefixes: Mapping[str, Import]) -> None:
        """In arrow form `x:p(…)` names an event `x`, and whoever imports something as `x` means something else."""
        for one in walk(Program(tuple(own))):
            if isinstance(one, Event | Timer | Algebra) and one.name is not None and one.name.name in prefixes:
                at = Span(one.name.span.start, one.name.span.start)
                self._tell(
                    f"`{one.name.name}` is the prefix of an import, and names an event here",
                    one.name.span,
                    Help(f"write `_: {one.name.name}:…` for an event of the import", (Edit(at, "_: "),)),
                )

    def _check_heads(self, own: list[Statement], prefixes: Mapping[str, Import]) -> None:
        """Nobody derives more of what an import derives."""
        for rule in _rules(own):
            label = head_label(rule.head)
            if label is not None and ":" in label and label.split(":", 1)[0] in prefixes:
                self._tell(
                    f"`{label}` is derived by an import alone",
                    rule.head.span,
                    Help("derive an event of another name"),
                )

    def _tell(self, message: str, span: Span, advice: Help, *related: Related) -> None:
        self.found.append(Diagnostic(Code.IMPORT, message, span, related, help=(advice,)))


# ---- statements --------------------------------------------------------------------------------------------


def _merged(own: list[Statement], imported: list[Statement]) -> list[Statement]:
    """Both together; what is declared alike counts once, and the time is that of the program that imports."""
    found = list(own)
    declared = {s for s in own if isinstance(s, _SHARED)}
    for statement in imported:
        if isinstance(statement, TimeUnit | TimeZone) or statement in declared:
            continue
        found.append(statement)
        if isinstance(statement, _SHARED):
            declared.add(statement)
    return found


def _moved(statement: Statement, folder: str) -> Statement:
    """A declaration whose file is looked for beside the one that declares it, also from another folder."""
    location = statement.location if isinstance(statement, Stream | Table | Write) else None
    if location is None or not location or folder == os.curdir or "://" in location:
        return statement
    if location[:6].lower() != "delta:":
        return with_parts(statement, location=str(Path(folder, location)))
    path, mark, query = location[6:].partition("?")
    written = folder.replace("%", "%25").replace("?", "%3F")
    return with_parts(statement, location=f"{location[:6]}{Path(written, path)}{mark}{query}")


def _rules(statements: Iterable[Statement]) -> Iterator[Rule]:
    for statement in statements:
        match statement:
            case Rule():
                yield statement
            case Stratum(rules):
                yield from rules
            case _:
                pass


def _derived(statements: Iterable[Statement]) -> Iterator[str]:
    """The labels that rules derive, as far as they are fixed."""
    return (label for rule in _rules(statements) if (label := head_label(rule.head)) is not None)


def _unit(statements: Iterable[Statement]) -> str:
    for statement in statements:
        if isinstance(statement, TimeUnit):
            parts = [(part.amount, part.unit) for part in statement.duration.parts]
            return describe(microseconds(parts, SECOND) or 0)
    return describe(SECOND)


def _zone(statements: Iterable[Statement]) -> str:
    return next((f"`{statement.zone}`" for statement in statements if isinstance(statement, TimeZone)), "`UTC`")


# ---- files -------------------------------------------------------------------------------------------------


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _shown(path: Path) -> str:
    """A path as people read it: from the current folder on, if it lies there."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
