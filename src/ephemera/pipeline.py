"""This module is the whole road, stage by stage; it is the only one that knows them all.

text → `parse`, `linked` → syntax, with what it imports → `resolve`, `stratify`, `normalize` → rules, which the oracle
evaluates → `lower` → plan → `derive` → facts: how long everything must be kept → `prepare`, when a program is first to
run: it is planned, by `optimize` → plan rewritten → `physical_plan` → what engines, Spark and `explain` read

What checks a program is loaded with this module. What comes after that takes longer to load, so it is when a program
gets there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from ephemera.algebra.lower import lower
from ephemera.algebra.nodes import Plan, Points
from ephemera.analysis.arrivals import as_they_come
from ephemera.analysis.findings import tell
from ephemera.analysis.nodes import Facts
from ephemera.analysis.relevance import derive
from ephemera.base.collector import paused_collector
from ephemera.base.diagnostic import Report, Severity, report
from ephemera.base.errors import ProgramError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.span import Source
from ephemera.rules.findings import Findings
from ephemera.rules.growth import growth
from ephemera.rules.imports import linked
from ephemera.rules.nodes import Ruleset
from ephemera.rules.normalize import normalize
from ephemera.rules.resolve import resolve
from ephemera.rules.size import check_size
from ephemera.rules.stratify import stratify
from ephemera.syntax.parser import Parsed, parse
from ephemera.terms.user_functions import load_all

if TYPE_CHECKING:
    from ephemera.physical.plan import Compiled

Stage = Literal["syntax", "rules", "plan", "relevance", "bounds", "physical"]


@dataclass(frozen=True, slots=True)
class Checked:
    """How far a program came: its tree, its rules if they are sound, and all that was found on the way."""

    parsed: Parsed
    rules: Ruleset | None
    plan: Plan | None
    facts: Facts | None
    report: Report


@paused_collector()
def check(source: Source, *, unbounded: Severity | None = None) -> Checked:
    """Sends a program down the road; every stage adds what it finds, and none goes on where one before failed.

    `unbounded` says what it is if something would be kept forever: an error, a warning, or (None) all right.
    """
    parsed = linked(parse(source))
    source = parsed.source
    findings = Findings()
    resolved = resolve(parsed.program, findings, complete=not parsed.report.failed)

    def found() -> Report:
        return report(source, [*parsed.report.diagnostics, *findings.diagnostics])

    if found().failed:
        return Checked(parsed, None, None, None, found())
    strata, dependencies = stratify(resolved, findings)
    normal = normalize(resolved)
    rules = Ruleset(resolved, strata, dependencies, normal, growth(resolved, normal))
    check_size(resolved, rules.normal, findings)
    if found().failed:
        return Checked(parsed, None, None, None, found())
    plan = lower(rules)
    facts = derive(as_they_come(plan))
    tell(rules, plan, facts, findings, unbounded)
    return Checked(parsed, None if found().failed else rules, plan, facts, found())


@dataclass(frozen=True, slots=True)
class Sound:
    """A program that passed its checks: what every stage made of it."""

    parsed: Parsed
    rules: Ruleset
    plan: Plan
    facts: Facts


def sound(checked: Checked) -> Sound:
    """A program that can run; one that cannot is a `ProgramError` with all that is wrong."""
    if checked.rules is None or checked.plan is None or checked.facts is None:
        raise ProgramError(checked.report)
    return Sound(checked.parsed, checked.rules, checked.plan, checked.facts)


@paused_collector()
def prepare(program: Sound, emit: Iterable[str] = (), points: Points | None = None) -> Compiled:
    """The program as engines need it, with how it runs if it is asked for some events, or for all.

    `points` says which joins are stored, if it is not to be those that pay.
    """
    from ephemera.physical.plan import prepare as planned

    load_all(program.rules.resolved.catalogue.functions)
    return planned(program.rules, program.plan, program.facts, (), emit, points=points)


def explain(program: Sound, compiled: Compiled | None, stage: Stage, points: Points | None) -> str:
    """What a stage makes of a program, as text; the physical plan is that of `compiled`."""
    match stage:
        case "syntax":
            from ephemera.syntax import explain as syntax

            return syntax.as_text(program.parsed.program)
        case "rules":
            from ephemera.rules import explain as rules

            return rules.as_text(program.rules, program.parsed.source)
        case "plan":
            from ephemera.algebra import explain as algebra

            plan, facts = _planned(program, points)
            return algebra.as_text(plan, facts.detectors(plan))
        case "relevance":
            from ephemera.analysis import explain as analysis

            return analysis.as_text(*_planned(program, points))
        case "bounds":
            from ephemera.analysis import explain_bounds

            return explain_bounds.as_text(program.plan)
        case "physical":
            from ephemera.physical import explain_text as physical

            return physical.as_text((compiled or prepare(program)).physical)


def explain_json(program: Sound, compiled: Compiled | None, stage: Stage, points: Points | None) -> Any:
    """The same as plain data."""
    match stage:
        case "syntax":
            from ephemera.syntax import explain as syntax

            return syntax.as_json(program.parsed.program, program.parsed.source)
        case "rules":
            from ephemera.rules import explain as rules

            return rules.as_json(program.rules, program.parsed.source)
        case "plan":
            from ephemera.algebra import explain as algebra

            return algebra.as_json(_planned(program, points)[0])
        case "relevance":
            from ephemera.analysis import explain as analysis

            return analysis.as_json(*_planned(program, points))
        case "bounds":
            from ephemera.analysis import explain_bounds

            return explain_bounds.as_json(program.plan)
        case "physical":
            from ephemera.physical import explain as physical

            return physical.as_json((compiled or prepare(program)).physical)


def _planned(program: Sound, points: Points | None) -> tuple[Plan, Facts]:
    if points != "joins":
        return program.plan, program.facts
    plan = lower(program.rules, points)
    return plan, derive(as_they_come(plan))
