"""This module says which rules of the programs under test have matched in some story, and which never did.

The oracle says whether a rule matched, since it runs every rule as it is written, where engines may run several as one.
A rule has matched in a story if it gave an answer there, asked for or only used by other rules; one that is not needed
for what the story asks for is not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ephemera.base.errors import EphemeraError
from ephemera.formats.reading import Reading
from ephemera.rules.declare import head_label_span
from ephemera.rules.emitted import emitted_label
from ephemera.semantics.oracle import evaluate
from ephemera.stories.judge import Ready, on_time


@dataclass(slots=True)
class CoveredRule:
    """A rule, and the stories in which it matched."""

    number: int
    label: str | None
    file: str | None
    """In which file it stands, if that is not the program's own."""
    line: int
    matched_in: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        label = f" `{self.label}`" if self.label is not None else ""
        place = f"line {self.line}" if self.file is None else f"{self.file}:{self.line}"
        return f"rule {self.number}{label} ({place})"


@dataclass(slots=True)
class Coverage:
    """What stories have shown of the rules of each program."""

    programs: dict[str, list[CoveredRule]] = field(default_factory=dict)

    @property
    def rules(self) -> list[CoveredRule]:
        return [rule for rules in self.programs.values() for rule in rules]

    @property
    def matched(self) -> int:
        return sum(bool(rule.matched_in) for rule in self.rules)

    @property
    def percent(self) -> float:
        """How many of a hundred rules have matched; all, if there are none."""
        return 100 * self.matched / len(self.rules) if self.rules else 100.0

    def lines(self) -> Iterator[str]:
        """What people read: how many, and which never did."""
        yield f"coverage: {self.matched} of {len(self.rules)} rules matched in some story"
        for program, rules in self.programs.items():
            yield from (f"  {program}: {rule} never matched" for rule in rules if not rule.matched_in)

    def as_json(self) -> dict[str, Any]:
        """The same as plain data, with the stories in which each rule matched."""
        programs = [
            {
                "program": program,
                "rules": [
                    {"rule": r.number, "label": r.label, "file": r.file or program, "line": r.line}
                    | {"matched_in": r.matched_in}
                    for r in rules
                ],
            }
            for program, rules in self.programs.items()
        ]
        return {"rules": len(self.rules), "matched": self.matched, "programs": programs}


def coverage(stories: Iterable[tuple[str, Ready]]) -> Coverage:
    """Which rules have matched in some named stories; those that read one program file are of one program."""
    found = Coverage()
    names: dict[Path, str] = {}
    for name, one in stories:
        path = one.story.path
        program = name if path is None else names.setdefault(path.resolve(), str(path))
        rules = found.programs.setdefault(program, _rules(one))
        matched = _matched(one)
        for rule in rules:
            if rule.number in matched:
                rule.matched_in.append(name)
    return found


def _rules(one: Ready) -> list[CoveredRule]:
    source, resolved = one.program._source, one.program._rules.resolved
    found: list[CoveredRule] = []
    for number, rule in enumerate(resolved.rules, 1):
        begin = head_label_span(rule.head).start
        file = source.file_at(begin)[0]
        own = None if file is source else file.path
        found.append(CoveredRule(number, emitted_label(rule.head), own, source.place(begin).line))
    return found


def _matched(one: Ready) -> frozenset[int]:
    """The rules that gave something; none, if the run failed, which the story tells of itself."""
    reading = Reading(one.compiled)
    for event in on_time(one)[0]:
        reading.add(event)
    world = one.program._world(one.tables, None, one.until)
    try:
        outcome = evaluate(one.program._rules, reading.events, world, running=one.compiled.physical.running)
    except EphemeraError:
        return frozenset()
    return frozenset(outcome.matched)
