"""This module checks dates: moments that there are, and absolute timers that can go off.

A timer's fields must be fields of `timer:datetime`, each with a value that it can have, and together they must meet
on some day of the calendar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ephemera.base.diagnostic import Code, Edit, Help
from ephemera.base.span import Span
from ephemera.rules.calendar import (
    FIELDS,
    FRACTIONS,
    MONTHS,
    RANGES,
    WORDS,
    impossible,
    parse_date,
    parse_moment,
    parse_time,
)
from ephemera.rules.findings import Findings, listed
from ephemera.rules.patterns import pattern_label, tell_given_twice
from ephemera.terms.errors import BadMessage
from ephemera.terms.nodes import As, Atom, Call, Element, Label, NamedAtom, Node, Number, Pattern, Periodic, Text
from ephemera.terms.zones import LocalTime


class Dates:
    """Tells the dates of a rule that cannot be."""

    def __init__(self, findings: Findings, zone: str) -> None:
        self._findings = findings
        self._zone = zone

    def moment(self, call: Call, text: str) -> None:
        parsed = parse_moment(text)
        if parsed is not None:
            try:
                LocalTime(self._zone).instant(parsed)
            except BadMessage as error:
                span = call.arguments[0].span
                advice = Help('give it a zone, as in `"2026-09-18T09:00Z"`')
                self._findings.add(Code.IMPOSSIBLE_DATE, str(error), span, help=[advice])
        if parsed is None:
            span = call.arguments[0].span
            nearby = _last_day(text[:10]) + text[10:]
            advice = Help('write it as in `"2026-09-18T09:00Z"`')
            if parse_moment(nearby) is not None:
                advice = Help(f'the month ends before: write `"{nearby}"`', (Edit(span, f'"{nearby}"'),))
            self._findings.add(Code.IMPOSSIBLE_DATE, f"`{text}` is no date and time", span, help=[advice])

    def absolute(self, pattern: Pattern) -> None:
        label = pattern_label(pattern)
        if isinstance(pattern, Periodic) or label is None or str(label) != "timer:datetime":
            return
        fields: dict[str, int | str] = {}
        spans: list[Span] = []
        mentioned: dict[str, Span] = {}
        twice = False
        for name, span, value in datetime_fields(pattern):
            if name in mentioned:
                twice = True
                if not isinstance(pattern, NamedAtom):
                    removal = _freed(pattern, span)
                    tell_given_twice(self._findings, f"the field `{name}`", span, mentioned[name], removal)
                continue
            mentioned[name] = span
            if name not in FIELDS:
                self._findings.add(
                    Code.UNKNOWN_ATTRIBUTE,
                    f"`timer:datetime` has no field `{name}`",
                    span,
                    help=[
                        self._findings.did_you_mean(
                            name, FIELDS, span, f"the fields are {listed(FIELDS)}", what="field of timer:datetime"
                        )
                    ],
                )
            elif value is not None and self._field(name, value):
                fields[name] = value.value if isinstance(value, Text) else int(value.value)
                spans.append(value.span)
        if not mentioned:
            self._findings.add(
                Code.IMPOSSIBLE_DATE,
                "a timer without any field would go off at every instant",
                pattern.span,
                help=[Help('name the fields that matter, as in `timer:datetime {{ time { "9:00" } }}`')],
            )
        reason = None if twice else impossible(fields)
        if reason is not None:
            last = spans[-1]
            self._findings.add(
                Code.IMPOSSIBLE_DATE,
                f"this timer never goes off: {reason}",
                pattern.span,
                help=[Help(f"leave one of the fields free, such as `{list(fields)[-1]}`", _freed(pattern, last))],
            )

    def _field(self, name: str, value: Number | Text) -> bool:
        """Whether a field's value is one that it can have; if not, that is told."""
        possible: tuple[str, ...] = ()
        match name, value:
            case ("date", Text(text)) if parse_date(text):
                return True
            case ("time", Text(text)) if parse_time(text):
                return True
            case (_, Number(number)) if name in RANGES and RANGES[name][0] <= number <= RANGES[name][1]:
                if name in FRACTIONS or number == int(number):
                    return True
            case (_, Text(text)) if name in WORDS:
                possible = WORDS[name]
                if text in possible:
                    return True
        shown = repr(value.value) if isinstance(value, Number) else f"`{value.value}`"
        if possible:
            otherwise = f"it is one of {listed(possible)}"
            close = self._findings.did_you_mean(str(value.value), possible, value.span, otherwise, what=name)
            advice = Help(close.message, tuple(Edit(e.span, f'"{e.text}"') for e in close.edits))
        elif name in RANGES:
            low, high = RANGES[name]
            nearest = int(min(max(value.value, low), high)) if isinstance(value, Number) else low
            advice = Help(f"it is a whole number from {low} to {high}", (Edit(value.span, str(nearest)),))
        elif name == "month" and value.value in range(1, 13):
            word = MONTHS[int(value.value) - 1]
            advice = Help(f'write `"{word}"`', (Edit(value.span, f'"{word}"'),))
        elif name in WORDS:
            advice = Help(f"it is one of {listed(WORDS[name])}")
        elif name == "date" and (day := _last_day(str(value.value))):
            advice = Help(f'the month ends before: write `"{day}"`', (Edit(value.span, f'"{day}"'),))
        elif name == "date":
            advice = Help('write it as in `"2026-03-01"`')
        else:
            advice = Help('write it as in `"9:00"` or `"23:59:30"`')
        self._findings.add(Code.IMPOSSIBLE_DATE, f"there is no {name} {shown}", value.span, help=[advice])
        return False


def _freed(pattern: Pattern, within: Span) -> tuple[Edit, ...]:
    """The edit that takes the field at this place out of the pattern."""
    element = pattern.term if isinstance(pattern, As) else pattern
    members: tuple[Node, ...] = ()
    if isinstance(element, Element):
        members = element.children
    elif isinstance(element, NamedAtom):
        members = element.fields
    for k, member in enumerate(members):
        if member.span.start <= within.start and within.end <= member.span.end:
            if k:
                return (Edit(Span(members[k - 1].span.end, member.span.end), ""),)
            return (Edit(Span(member.span.start, members[1].span.start), ""),)
    return ()


def _last_day(text: str) -> str:
    """The last day of the month for a day behind it, nothing for anything else."""
    days = (f"{text[:8]}{day}" for day in (30, 29, 28))
    return next((day for day in days if parse_date(day)), "") if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else ""


def datetime_fields(pattern: Pattern) -> Iterator[tuple[str, Span, Number | Text | None]]:
    """The fields a pattern names, each with the value it fixes, if it does."""
    match pattern:
        case As(_, Element() as inner):
            yield from datetime_fields(inner)
        case NamedAtom(_, fields):
            for field in fields:
                value = field.argument if isinstance(field.argument, Number | Text) else None
                yield field.name, Span(field.span.start, field.span.start + len(field.name)), value
        case Element(_, _, _, children):
            for child in children:
                member = child.term if isinstance(child, As) else child
                if isinstance(member, Element) and isinstance(member.label, Label):
                    only = member.children[0] if len(member.children) == 1 else None
                    yield member.label.name, member.label.span, only if isinstance(only, Number | Text) else None
        case Atom():
            return
