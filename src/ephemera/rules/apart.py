"""This module reads how close events of a type may come, and says of two of them that they are too close.

`AT LEAST d APART PER x` is judged in the order of time: by end, begin and data. An event is good if it ends at least d
after the last good one of its type with the same x; otherwise it is a bad event. What has no value for x is told apart
from everything, as null is shared with nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.time import describe
from ephemera.rules.findings import Findings, listed
from ephemera.rules.nodes import Apart, Catalogue
from ephemera.syntax.nodes import EventType, Program
from ephemera.terms.events import Event
from ephemera.terms.text import to_text
from ephemera.terms.values import Key, Term, Value, key


def declared_apart(declared: EventType, length: int, findings: Findings) -> Apart | None:
    """How close events may come; a distance of nothing says nothing, and what is named has to have one value."""
    if declared.apart is None:
        return None
    distance, names = declared.apart.distance, {a.name: a for a in declared.attributes or ()}
    if all(part.amount == 0 for part in distance.parts):
        message = "events that are at least nothing apart may come as close as they like"
        advice = Help("write a length such as `1 sec`", (Edit(distance.span, "1 sec"),))
        findings.add(Code.DURATION, message, distance.span, help=[advice])
    per: list[str] = []
    for one in declared.apart.per:
        if one.name in per:
            message = f"`{one.name}` is named twice"
            findings.add(Code.DUPLICATE_DECLARATION, message, one.span, help=[Help("name it once")])
        elif one.name not in names:
            otherwise = f"its attributes are {listed(names)}" if names else f"declare it: `EVENT {declared.label}(…)`"
            guess = findings.did_you_mean(one.name, names, one.span, otherwise, what=f"attribute of {declared.label}")
            findings.add(
                Code.UNKNOWN_ATTRIBUTE,
                f"`{declared.label}` has no attribute `{one.name}`",
                one.span,
                related=[Related(declared.label.span, f"declared with {listed(names)}")],
                help=[guess],
            )
        elif names[one.name].type.endswith("[]"):
            findings.add(
                Code.TYPE_CLASH,
                f"`{one.name}` has several values, and events are told apart by one",
                one.span,
                related=[Related(names[one.name].span, "declared here")],
                help=[Help("name an attribute with one value")],
            )
        else:
            per.append(one.name)
    return Apart(length, tuple(per)) if length else None


def check_apart(program: Program, catalogue: Catalogue, findings: Findings) -> None:
    """Tells of events that rules derive: who would be told which of them are too close?"""
    for declared in (s for s in program.statements if isinstance(s, EventType)):
        if declared.apart is not None and str(declared.label) in catalogue.derived:
            findings.add(
                Code.DERIVED_APART,
                f"rules derive `{declared.label}`, and only events from outside can be bad",
                declared.apart.span,
                notes=[f"rule {catalogue.derived[str(declared.label)][0]} derives it"],
                help=[Help(f"leave it out, or derive an event of another name than `{declared.label}`")],
            )


def values_told_apart(event: Event, per: Sequence[str]) -> tuple[Value, ...] | None:
    """The values of an event for some attributes; None if it has not one for each."""
    found: list[Value] = []
    for name in per:
        fields = [c.children for c in event.term.children if isinstance(c, Term) and c.label == name]
        if len(fields) != 1 or len(fields[0]) != 1 or fields[0][0] is None:
            return None
        found.append(fields[0][0])
    return tuple(found)


def told_apart_by(event: Event, per: Sequence[str]) -> tuple[Key, ...] | None:
    """The same as keys, which are equal where the values are."""
    values = values_told_apart(event, per)
    return None if values is None else tuple(map(key, values))


def too_close(event: Event, good: Event, apart: Apart) -> str:
    """Why an event is bad: how close it is to the last good one, and what is declared."""
    label = event.term.label
    distance = event.time.end - good.time.end
    after = f"{describe(distance)} after" if distance else "together with"
    per = f" PER {', '.join(apart.per)}" if apart.per else ""
    declared = f"`{label}` is declared AT LEAST {describe(apart.distance)} APART{per}"
    return f"it ends {after} `{to_text(good.term)}`, and {declared}"
