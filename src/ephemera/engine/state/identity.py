"""This module tells what a stored state belongs to: rules by what they mean, all declarations, and what they run on.

What rules are called and in which order they stand has no meaning, nor have the names of variables and events, layout
and comments. Nor has where a source is read, in which format, or how many of its events are expected, nor where answers
and messages go and how they are sent. All else counts:
every rule by its fingerprint, every declaration, the unit and the zone of times, and the names of calendars. Whatever
a program can declare one day counts, too, unless it is left out here.

Of all rules only those run that are needed for what is asked for, and only these have a state. So which of them run
counts, too; but not by which names they were asked for.

The rows of tables and the days of calendars are data. They may change between two starts, which is told.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ephemera.algebra import explain
from ephemera.algebra.fingerprint import digest
from ephemera.algebra.nodes import Plan
from ephemera.algebra.renaming import Renaming
from ephemera.algebra.state_names import rule_names
from ephemera.base.errors import EphemeraError
from ephemera.base.time import describe
from ephemera.physical.plan import Compiled
from ephemera.rewrite.optimize import Rewritten
from ephemera.rules.nodes import Catalogue, Schema, Source
from ephemera.rules.outcome import World

DETAILS = "the declarations in every detail"
RULE = "rule "
"""How the names of rules begin; behind it stands what a rule is called where its state is stored."""
UNASKED = "not run: rule "
"""How the names of rules begin that are not run, since nobody asked for what they derive."""
RESHAPED = "derives less: rule "
"""How the names of rules begin that derive only what their readers ask for, or nothing; then follows what that is."""
_ASKED = (UNASKED, RESHAPED)


class AnotherProgram(EphemeraError):
    """A state that belongs to another program."""


class ChangedData(UserWarning):
    """Data that programs run on besides events are not what they were."""


def program_of(compiled: Compiled, world: World) -> dict[str, str]:
    """What the state of a program belongs to, by names, in words for people; the last one is a digest of declarations.

    A rule has its text for people, which is not compared.
    """
    plan, catalogue = compiled.plan, compiled.rules.resolved.catalogue
    rewritten = compiled.physical.rewritten
    names = rule_names({name: one for name, one in rewritten.prints.items() if name in plan.points})
    found = {f"{RULE}{names[name]}": _rule(plan, name) for name in names}
    found |= {f"{UNASKED}{names[point.name]}": point.name for point in rewritten.unasked}
    found |= {f"{RESHAPED}{names[name]} {how}": name for name, how in _reshaped(rewritten).items()}
    found |= _stored(rewritten)
    found["TIME UNIT"] = describe(catalogue.unit)
    found["TIME ZONE"] = catalogue.zone
    found |= {f"NAMESPACE {prefix}": uri for uri, prefix in catalogue.namespaces.prefixes.items()}
    found |= {f"EVENT {label}": _event(schema) for label, schema in catalogue.events.items()}
    found |= {f"TABLE {label}": f"columns {schema.attributes}" for label, schema in catalogue.tables.items()}
    found |= {f"STREAM {source.name}": _stream(source) for source in catalogue.sources}
    found |= {f"RESERVE {label}": describe(length) for label, length in catalogue.reserves.items()}
    found |= {f"calendar {name}": "is given" for name in sorted(world.calendars)}
    found[DETAILS] = digest(_with_meaning(catalogue))
    return dict(sorted(found.items()))


def _reshaped(rewritten: Rewritten) -> dict[str, str]:
    """For each rule that derives less than is written what it derives: only some, or nothing, since others stand in."""
    prints = rewritten.prints
    pushed = {
        name: digest(Renaming(prints[name].events, prints[name].variables).of(test))
        for name, test in rewritten.pushed.items()
    }
    fused = {one.deriving.name: prints[name].fingerprint for name, one in rewritten.fused.items()}
    return pushed | fused | {point.name: "nothing" for point in rewritten.useless}


def _stored(rewritten: Rewritten) -> dict[str, str]:
    """The queries of which less is stored than matches; state that has more, of a version before, is another."""
    return {f"{name} is stored": f"if {explain.formula(test)}" for name, test in rewritten.tested.items()}


def _rule(plan: Plan, name: str) -> str:
    """A rule as people know it: in the first line what it is called, then what it does."""
    return f"{name}\n{explain.point_text(plan, plan.points[name])}"


def _event(schema: Schema) -> str:
    when = "begin" if schema.arrives_at_begin else "end"
    apart = schema.apart
    close = "" if apart is None else f", at least {describe(apart.distance)} apart{_per(apart.per)}"
    return f"attributes {schema.attributes}, known from its {when} on, lasts {schema.longest}{close}"


def _per(names: Sequence[str]) -> str:
    return f" per {', '.join(names)}" if names else ""


def _stream(source: Source) -> str:
    carried = ", ".join(sorted(source.carries)) or "nothing by name"
    idle = "never idle" if source.idle is None else f"idle after {describe(source.idle)}"
    times = ", ".join(source.time) or "as usual"
    return f"carries {carried}, watermark {describe(source.watermark)}, {idle}, times {times}"


def _with_meaning(catalogue: Catalogue) -> list[object]:
    """What is declared, without what has no meaning; what rules derive is theirs to say."""
    sources = [replace(s, location=None, format=None, carries=tuple(sorted(s.carries))) for s in catalogue.sources]
    tables = {label: replace(schema, renamed=()) for label, schema in catalogue.tables.items()}
    left = replace(catalogue, events={}, tables=tables, sources=(), table_locations={}, derived={}, arities={})
    left = replace(left, transports={}, writes=())  # where answers and messages go may change between two starts
    return [
        {label: replace(schema, per_second=None, renamed=()) for label, schema in catalogue.events.items()},
        sorted(sources, key=lambda source: source.name),
        catalogue.stamps(""),  # of several streams that carry nothing by name the first counts
        left,
    ]


def world_of(world: World) -> dict[str, str]:
    """Digests of the data that programs run on besides events; tables are sets of rows."""
    found = {f"table `{name}`": _digest_of_all(rows) for name, rows in world.tables.items()}
    return found | {f"calendar `{name}`": _digest_of_all(days) for name, days in world.calendars.items()}


def warn_of_changes(theirs: Mapping[str, str], ours: Mapping[str, str], when: str) -> None:
    """Tells of data that are not what they were; what was made of them stays."""
    for name in [name for name in dict.fromkeys([*theirs, *ours]) if theirs.get(name) != ours.get(name)]:
        what = "is new" if name not in theirs else "is missing" if name not in ours else "has changed"
        warnings.warn(
            f"{name} {what} since {when}: answers from now on are made with what it holds now, others stay",
            ChangedData,
            stacklevel=3,
        )


def _digest_of_all(rows: Iterable[object]) -> str:
    return digest(sorted({digest(row) for row in rows}))


def compared(program: Mapping[str, str]) -> dict[str, str]:
    """What a state belongs to without what is only there for people."""
    return {name: "" if name.startswith((RULE, *_ASKED)) else told for name, told in program.items()}


def compare(theirs: Mapping[str, str], ours: Mapping[str, str], what: str) -> None:
    """Refuses what belongs to another program, with what differs."""
    _compare_rules(theirs, ours, what)
    _compare_asked(theirs, ours, what)
    for name in sorted(dict.fromkeys([*theirs, *ours]), key=lambda name: name == DETAILS):
        if name.startswith((RULE, *_ASKED)):
            continue
        if name not in ours:
            raise AnotherProgram(f"the {what} is of another program: it has `{name}`, and this has not")
        if name not in theirs:
            raise AnotherProgram(f"the {what} is of another program: it lacks `{name}`")
        if theirs[name] != ours[name]:
            raise AnotherProgram(
                f"the {what} is of another program: `{name}` was\n{theirs[name]}\nand is\n{ours[name]}"
            )


def _compare_rules(theirs: Mapping[str, str], ours: Mapping[str, str], what: str) -> None:
    """Refuses another set of rules: one that has changed, or else one that is missing or new."""
    gone = [theirs[name].partition("\n") for name in theirs if name.startswith(RULE) and name not in ours]
    new = [ours[name].partition("\n") for name in ours if name.startswith(RULE) and name not in theirs]
    for label, _, was in gone:
        now = next((text for other, _, text in new if _label(other) == _label(label)), None)
        if now is not None:
            meaning = f"was\n{was}\nand is\n{now}" if was != now else "has a type that is declared otherwise"
            raise AnotherProgram(f"the {what} is of another program: `{label}` {meaning}")
    for label, _, was in gone:
        raise AnotherProgram(f"the {what} is of another program: it has `{label}`, and this has not:\n{was}")
    for label, _, now in new:
        raise AnotherProgram(f"the {what} is of another program: it lacks `{label}`:\n{now}")


def _compare_asked(theirs: Mapping[str, str], ours: Mapping[str, str], what: str) -> None:
    """Refuses what was asked for other events, if that is why other rules run."""
    were, are = ({name for name in told if name.startswith(_ASKED)} for told in (theirs, ours))
    if were == are:
        return
    less = sorted({_label(theirs[name]) for name in were - are})
    more = sorted({_label(ours[name]) for name in are - were})
    why = f"it has not all of {_quoted(less)}" if less else f"it has all of {_quoted(more)}"
    raise AnotherProgram(
        f"the {what} is of a run that was asked for other events: {why}, from which follows what is stored "
        "there; ask for the same (`--emit`, `emit=`) as before"
    )


def _quoted(labels: Iterable[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


def _label(rule: str) -> str:
    """What a rule derives; several that derive the same are counted."""
    return rule.partition("#")[0]
