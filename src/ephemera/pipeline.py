"""This module is the whole road, stage by stage; it is the only one that knows them all.

text → `parse` → syntax → `resolve`, `stratify`, `normalize` → rules
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ephemera.base.diagnostic import Report, report
from ephemera.base.errors import ProgramError
from ephemera.base.span import Source
from ephemera.rules import explain as rules_explain
from ephemera.rules.findings import Findings
from ephemera.rules.nodes import Ruleset
from ephemera.rules.normalize import normalize
from ephemera.rules.resolve import resolve
from ephemera.rules.stratify import stratify
from ephemera.syntax import explain as syntax_explain
from ephemera.syntax.parser import Parsed, parse

Stage = Literal["syntax", "rules"]


@dataclass(frozen=True, slots=True)
class Checked:
    """How far a program came: its tree, its rules if they are sound, and all that was found on the way."""

    parsed: Parsed
    rules: Ruleset | None
    report: Report


def check(source: Source) -> Checked:
    """Sends a program down the road; every stage adds what it finds, and none goes on where one before failed."""
    parsed = parse(source)
    findings = Findings()
    resolved = resolve(parsed.program, findings, complete=not parsed.report.failed)
    rules: Ruleset | None = None
    found = report(source, [*parsed.report.diagnostics, *findings.diagnostics])
    if not found.failed:
        strata, dependencies = stratify(resolved, findings)
        normal = normalize(resolved, findings)
        found = report(source, [*parsed.report.diagnostics, *findings.diagnostics])
        if not found.failed:
            rules = Ruleset(resolved, strata, dependencies, normal)
    return Checked(parsed, rules, found)


class Program:
    """A program that passed its checks, ready to be explained and, in later versions, run.

    >>> import ephemera
    >>> program = ephemera.compile("late(id) <- o: order(id), w: extend(o, 6h), while w: not shipped(id);")
    >>> print(program.explain("rules"))  # doctest: +ELLIPSIS
    rule 1  late(id)...
    """

    def __init__(self, checked: Checked) -> None:
        if checked.rules is None:
            raise ProgramError(checked.report)
        self._parsed = checked.parsed
        self._rules = checked.rules

    def explain(self, stage: Stage = "rules") -> str:
        """What a stage makes of the program, as text."""
        if stage == "syntax":
            return syntax_explain.as_text(self._parsed.program)
        return rules_explain.as_text(self._rules, self._parsed.source)

    def explain_json(self, stage: Stage = "rules") -> Any:
        """The same as plain data."""
        if stage == "syntax":
            return syntax_explain.as_json(self._parsed.program, self._parsed.source)
        return rules_explain.as_json(self._rules, self._parsed.source)


def compile(text: str, name: str = "program.eq") -> Program:
    """Checks a program and returns it; raises `ProgramError` with all that is wrong otherwise.

    >>> import ephemera
    >>> ephemera.compile("seen(id) <- o: order(id);").explain("rules").splitlines()[0]
    'rule 1  seen(id)'
    """
    return Program(check(Source(name, text)))
