"""This module reads the declarations of a program into its catalogue, and numbers its rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.span import Span
from ephemera.base.suggest import suggestion
from ephemera.base.time import SECOND, UNITS, microseconds
from ephemera.rules.apart import check_apart, declared_apart
from ephemera.rules.declared_functions import read_functions
from ephemera.rules.findings import Findings, Vocabulary
from ephemera.rules.nodes import Catalogue, Resolved, Schema, Source
from ephemera.rules.places import check_places
from ephemera.rules.reserves import read_reserves
from ephemera.rules.transports import check_messages, read_transports
from ephemera.syntax.format_declarations import attribute as format_attribute
from ephemera.syntax.nodes import (
    Attribute,
    Derive,
    Detect,
    EventType,
    Head,
    Program,
    Raise,
    Rule,
    Statement,
    Stratum,
    Stream,
    Table,
    TimeUnit,
    TimeZone,
    Write,
)
from ephemera.terms.namespaces import NONE, Namespaces
from ephemera.terms.nodes import All, Construct, ConstructTerm, Duration, Label, OptionalConstruct
from ephemera.terms.zones import LocalTime


def declare(program: Program, findings: Findings, *, namespaces: Namespaces = NONE, complete: bool = True) -> Resolved:
    """The catalogue, and the rules in order, each with the STRATUM block it stands in.

    `complete` is whether the whole program could be read, so that an undeclared event is a mistake.
    """
    unit = _unit(program, findings)
    rules, blocks = _number(program.statements)
    events, tables = _schemas(program, unit, findings)
    locations = {str(t.label): (t.location, t.format) for t in program.statements if isinstance(t, Table)}
    catalogue = Catalogue(
        unit=unit,
        zone=(zone := _zone(program, findings)),
        events=events,
        tables=tables,
        table_locations=locations,
        sources=_sources(program, unit, events if complete else {}, findings),
        derived=_derived(rules),
        arities=_arities(rules),
        namespaces=namespaces,
        transports=read_transports(program, partial(length_of, unit=unit, findings=findings), findings),
        functions=read_functions(program, findings),
        writes=_writes(program, rules, findings, complete=complete),
        reserves=read_reserves(
            program, events, _derived(rules), partial(length_of, unit=unit, findings=findings), findings
        ),
        local=LocalTime(zone, is_declared=any(isinstance(s, TimeZone) for s in program.statements)),
    )
    _check_renamed(program, catalogue, findings)
    check_apart(program, catalogue, findings)
    check_places(program, findings)
    if complete:  # else the declaration may be what could not be read
        check_messages(rules, catalogue.transports, findings)
    labels = tuple(sorted({*events, *tables, *catalogue.derived}))
    findings.vocabulary = Vocabulary(labels, frozenset(name.split(":")[0] for name in labels if ":" in name))
    return Resolved(catalogue, rules, blocks)


def _number(statements: Iterable[Statement]) -> tuple[tuple[Rule, ...], tuple[int | None, ...]]:
    rules: list[Rule] = []
    blocks: list[int | None] = []
    block = 0
    for statement in statements:
        if isinstance(statement, Rule):
            rules.append(statement)
            blocks.append(None)
        elif isinstance(statement, Stratum):
            block += 1
            rules.extend(statement.rules)
            blocks.extend(block for _ in statement.rules)
    return tuple(rules), tuple(blocks)


def head_label(head: Head) -> str | None:
    """The label a rule derives; None for a message, or where a variable decides."""
    match head:
        case Derive(label, _):
            return str(label)
        case Detect(term):
            return construct_label(term)
        case Raise():
            return None


def head_label_span(head: Head) -> Span:
    """Where the label of a head stands; the whole head where it has none."""
    match head:
        case Derive(label, _):
            return label.span
        case Detect(Construct(Label() as label, _, _)) | Detect(All(Construct(Label() as label, _, _), _, _)):
            return label.span
        case _:
            return head.span


def construct_label(term: ConstructTerm) -> str | None:
    """The label of what a construct term builds, if it is fixed."""
    match term:
        case Construct(Label() as label, _, _):
            return str(label)
        case All(inner, _, _) | OptionalConstruct(inner, None):
            return construct_label(inner)
        case _:
            return None


def _derived(rules: tuple[Rule, ...]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for number, rule in enumerate(rules, 1):
        label = head_label(rule.head)
        if label is not None:
            found.setdefault(label, []).append(number)
    return {label: tuple(numbers) for label, numbers in found.items()}


def _arities(rules: tuple[Rule, ...]) -> dict[str, tuple[int, ...]]:
    found: dict[str, set[int]] = {}
    terms: set[str | None] = set()
    for rule in rules:
        if isinstance(rule.head, Derive):
            found.setdefault(str(rule.head.label), set()).add(len(rule.head.arguments))
        else:
            terms.add(head_label(rule.head))
    return {label: tuple(sorted(arities)) for label, arities in found.items() if label not in terms}


def _writes(
    program: Program, rules: tuple[Rule, ...], findings: Findings, *, complete: bool
) -> tuple[tuple[tuple[str, ...], str], ...]:
    """What is written where; only what rules derive can be."""
    derived = _derived(rules)
    found: list[tuple[tuple[str, ...], str]] = []
    for declared in (s for s in program.statements if isinstance(s, Write)):
        for label in declared.labels:
            if complete and str(label) not in derived:
                meant = suggestion(str(label), derived)
                findings.add(
                    Code.UNKNOWN_EVENT,
                    f"`{label}` is to be written, and no rule derives it",
                    label.span,
                    help=[
                        Help(f"did you mean `{meant}`?" if meant is not None else "name an event that a rule derives")
                    ],
                )
        found.append((tuple(str(label) for label in declared.labels), declared.location))
    return tuple(found)


# ---- time --------------------------------------------------------------------------------------------------


def length_of(duration: Duration, unit: int, findings: Findings) -> int:
    """A duration in microseconds; what is no whole number of them is told and counts as 0."""
    length = microseconds(((part.amount, part.unit) for part in duration.parts), unit)
    if length is not None:
        return length
    whole = [part for part in duration.parts if part.amount == part.amount.to_integral_value()]
    if len(whole) == len(duration.parts):
        message = "this duration is too long: the longest is about 146,000 years"
        advice = Help("write a shorter one")
    else:
        message = "this duration is no whole number of microseconds, the finest that there are"
        rounded = (replace(p, amount=p.amount.quantize(Decimal(1), ROUND_CEILING), span=p.span) for p in duration.parts)
        written = " ".join(f"{p.amount} {p.unit}".strip() for p in rounded)
        advice = Help(f"write `{written}`", (Edit(duration.span, written),))
    findings.add(Code.DURATION, message, duration.span, help=[advice])
    return 0


def _unit(program: Program, findings: Findings) -> int:
    declared = [s for s in program.statements if isinstance(s, TimeUnit)]
    _once("TIME UNIT", [s.span for s in declared], findings)
    if not declared:
        return SECOND
    unit = length_of(declared[0].duration, SECOND, findings)
    if all(part.amount == 0 for part in declared[0].duration.parts):
        span = declared[0].duration.span
        advice = Help("write a length such as `1 sec`", (Edit(span, "1 sec"),))
        findings.add(Code.DURATION, "the time unit has no length", span, help=[advice])
    return unit or SECOND


def _zone(program: Program, findings: Findings) -> str:
    declared = [s for s in program.statements if isinstance(s, TimeZone)]
    _once("TIME ZONE", [s.span for s in declared], findings)
    if not declared:
        return "UTC"
    zone = declared[0].zone
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        span = declared[0].span
        otherwise = "write a name such as `Europe/Berlin` or `UTC`"
        close = findings.did_you_mean(zone, available_timezones(), span, otherwise, what="zone")
        edits = tuple(Edit(span, f'TIME ZONE "{e.text}";') for e in close.edits)
        findings.add(Code.UNKNOWN_ZONE, f"there is no time zone `{zone}`", span, help=[Help(close.message, edits)])
        return "UTC"
    return zone


def _once(what: str, spans: list[Span], findings: Findings) -> None:
    for span in spans[1:]:
        findings.add(
            Code.DUPLICATE_DECLARATION,
            f"a program has one {what}",
            span,
            related=[Related(spans[0], "declared here before")],
            help=[Help("remove one of the two", (Edit(span, ""),))],
        )


# ---- events, tables, streams -------------------------------------------------------------------------------


def _schemas(program: Program, unit: int, findings: Findings) -> tuple[dict[str, Schema], dict[str, Schema]]:
    events: dict[str, Schema] = {}
    tables: dict[str, Schema] = {}
    for statement in program.statements:
        match statement:
            case EventType():
                schema = _event(statement, unit, findings)
                target = events
            case Table(label, attributes, _, _):
                types = _attributes(attributes, findings)
                schema = Schema(str(label), types, renamed=_renamed(attributes, findings), span=label.span)
                target = tables
            case _:
                continue
        before = events.get(schema.label) or tables.get(schema.label)
        if before is not None:
            findings.add(
                Code.DUPLICATE_DECLARATION,
                f"`{schema.label}` is declared twice",
                schema.span,
                related=[Related(before.span, "declared here before")],
                help=[Help("remove one of the two", (Edit(statement.span, ""),))],
            )
            if schema.attributes != before.attributes or schema.longest != before.longest:
                known = events if schema.label in events else tables
                known[schema.label] = Schema(schema.label, None, None, span=before.span)  # nobody knows which is meant
        else:
            target[schema.label] = schema
    return events, tables


def _event(declared: EventType, unit: int, findings: Findings) -> Schema:
    attributes = None if declared.attributes is None else _attributes(declared.attributes, findings)
    longest: int | None = 0
    if declared.lasts is not None:
        limit = declared.lasts.limit
        longest = None if limit is None else length_of(limit, unit, findings)
    rate = declared.rate
    per_second = float(rate.count) * SECOND / UNITS[rate.per] if rate else None
    distance = length_of(declared.apart.distance, unit, findings) if declared.apart is not None else 0
    return Schema(
        str(declared.label),
        attributes,
        longest,
        declared.arrives_at_begin,
        per_second,
        _renamed(declared.attributes or (), findings),
        declared_apart(declared, distance, findings),
        span=declared.label.span,
    )


def _attributes(attributes: tuple[Attribute, ...], findings: Findings) -> tuple[tuple[str, str], ...]:
    seen: dict[str, Attribute] = {}
    for attribute in attributes:
        if attribute.name in seen:
            findings.add(
                Code.DUPLICATE_DECLARATION,
                f"the attribute `{attribute.name}` is declared twice",
                attribute.span,
                related=[Related(seen[attribute.name].span, "declared here before")],
                help=[_rename(attribute, {a.name for a in attributes})],
            )
        seen.setdefault(attribute.name, attribute)
    return tuple((a.name, a.type) for a in attributes)


def _rename(attribute: Attribute, taken: set[str]) -> Help:
    fresh = next(name for k in range(2, len(taken) + 3) if (name := f"{attribute.name}{k}") not in taken)
    written = str(format_attribute(replace(attribute, name=fresh)))
    return Help(f"give it a name of its own, such as `{fresh}`", (Edit(attribute.span, written),))


def _renamed(attributes: tuple[Attribute, ...], findings: Findings) -> tuple[tuple[str, str], ...]:
    """The columns that have other names than their attributes; no two attributes have the same."""
    named: dict[str, Attribute] = {}
    seen: dict[str, Attribute] = {}
    for attribute in (a for a in attributes if named.setdefault(a.name, a) is a):
        column = attribute.name if attribute.column is None else attribute.column
        first = seen.setdefault(column, attribute)
        if first is not attribute:
            findings.add(
                Code.DUPLICATE_DECLARATION,
                f"`{first.name}` and `{attribute.name}` are both read from the column `{column}`",
                attribute.span,
                related=[Related(first.span, "here first")],
                notes=["without `FROM` a column is called as its attribute"]
                if first.column is None or attribute.column is None
                else [],
                help=[Help(f'name the column of one of them, as in `{attribute.name}: {attribute.type} FROM "…"`')],
            )
    return tuple((a.name, a.column) for a in attributes if a.column is not None and a.column != a.name)


def _check_renamed(program: Program, catalogue: Catalogue, findings: Findings) -> None:
    """Tells of columns of events that rules derive, where no stream carries them: answers have no such columns."""
    carried = {label for source in catalogue.sources for label in source.carries}
    for declared in (s for s in program.statements if isinstance(s, EventType)):
        label = str(declared.label)
        if label not in catalogue.derived or label in carried:
            continue
        for attribute in (a for a in declared.attributes or () if a.column is not None):
            plain = str(format_attribute(replace(attribute, column=None)))
            findings.add(
                Code.UNREAD_COLUMN,
                f"rules derive `{label}`, and no stream carries it, so the column `{attribute.column}` is not read",
                attribute.span,
                severity="warning",
                notes=[f"in answers the column is called `{attribute.name}`, as the attribute is"],
                help=[
                    Help("leave `FROM` out", (Edit(attribute.span, plain),)),
                    Help(f"if they also come from outside, let a stream carry them: `STREAM … CARRIES {label};`"),
                ],
            )


def _carried_once(stream: Stream, k: int) -> Help:
    """Takes a type out of the list that a stream carries; the only one is left to the author."""
    label = stream.carries[k]
    edits: tuple[Edit, ...] = ()
    if k:
        edits = (Edit(Span(stream.carries[k - 1].span.end, label.span.end), ""),)
    elif len(stream.carries) > 1:
        edits = (Edit(Span(label.span.start, stream.carries[1].span.start), ""),)
    return Help(f"let only one stream carry `{label}`", edits)


def _sources(program: Program, unit: int, events: Mapping[str, Schema], findings: Findings) -> tuple[Source, ...]:
    found: dict[str, Stream] = {}
    carried: dict[str, Label] = {}
    for stream in (s for s in program.statements if isinstance(s, Stream)):
        if stream.name in found:
            findings.add(
                Code.DUPLICATE_DECLARATION,
                f"the stream `{stream.name}` is declared twice",
                stream.span,
                related=[Related(found[stream.name].span, "declared here before")],
                help=[Help("remove one of the two", (Edit(stream.span, ""),))],
            )
        found.setdefault(stream.name, stream)
        for k, label in enumerate(stream.carries):
            if str(label) in carried:
                findings.add(
                    Code.DUPLICATE_DECLARATION,
                    f"two streams carry `{label}`",
                    label.span,
                    related=[Related(carried[str(label)].span, "carried here before")],
                    notes=["a type has one source, which says how late it may be"],
                    help=[_carried_once(stream, k)],
                )
            carried.setdefault(str(label), label)
            if events and str(label) not in events:
                otherwise = f"declare it: `EVENT {label}(…);`"
                advice = findings.did_you_mean(str(label), events, label.span, otherwise, what="declared event")
                findings.add(Code.UNKNOWN_EVENT, f"no event `{label}` is declared", label.span, help=[advice])
    return tuple(
        Source(
            s.name,
            s.location,
            s.format,
            tuple(str(label) for label in s.carries),
            s.time,
            length_of(s.watermark, unit, findings) if s.watermark else 0,
            length_of(s.idle, unit, findings) if s.idle else None,
        )
        for s in found.values()
    )
