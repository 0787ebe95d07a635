"""This module tells what a stored state belongs to: a program in every detail that has a meaning, and what it runs on.

Layout and comments have none. Nor has where a source is read, in which format, or how many of its events are expected.
All else counts: what the plan computes, every rule, every declaration, the unit and the zone of times, and the names of
calendars. Whatever a program can declare one day counts, too, unless it is left out here.

The rows of tables and the days of calendars are data. They may change between two starts, which is told.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b
from typing import Any

from ephemera.algebra import explain
from ephemera.algebra.nodes import Plan
from ephemera.base.errors import EphemeraError
from ephemera.base.time import describe
from ephemera.engine.compiled import Compiled
from ephemera.rules.nodes import Catalogue, Ruleset, Schema, Source
from ephemera.rules.outcome import World

DETAILS = "the rules and declarations in every detail"


class AnotherProgram(EphemeraError):
    """A state that belongs to another program."""


class ChangedData(UserWarning):
    """Data that programs run on besides events are not what they were."""


def program_of(compiled: Compiled, world: World) -> dict[str, str]:
    """What the state of a program belongs to, by names, in words for people; the last one is a digest of everything."""
    return identity(compiled.rules, compiled.plan, world.calendars)


def identity(rules: Ruleset, plan: Plan, calendars: Iterable[str] = ()) -> dict[str, str]:
    """The same, from the parts of a program."""
    catalogue = rules.resolved.catalogue
    found = {name: explain.point_text(plan, point) for name, point in plan.points.items()}
    found["TIME UNIT"] = describe(catalogue.unit)
    found["TIME ZONE"] = catalogue.zone
    found |= {f"NAMESPACE {prefix}": uri for uri, prefix in catalogue.namespaces.prefixes.items()}
    found |= {f"EVENT {label}": _event(schema) for label, schema in catalogue.events.items()}
    found |= {f"TABLE {label}": f"columns {schema.attributes}" for label, schema in catalogue.tables.items()}
    found |= {f"STREAM {source.name}": _stream(source) for source in catalogue.sources}
    found |= {f"calendar {name}": "is given" for name in sorted(calendars)}
    found[DETAILS] = digest([rules.resolved.rules, _with_meaning(catalogue)])
    return found


def _event(schema: Schema) -> str:
    when = "begin" if schema.arrives_at_begin else "end"
    return f"attributes {schema.attributes}, known from its {when} on, lasts {schema.longest}"


def _stream(source: Source) -> str:
    carried = ", ".join(source.carries) or "nothing by name"
    idle = "never idle" if source.idle is None else f"idle after {describe(source.idle)}"
    times = ", ".join(source.time) or "as usual"
    return f"carries {carried}, watermark {describe(source.watermark)}, {idle}, times {times}"


def _with_meaning(catalogue: Catalogue) -> Catalogue:
    """What is declared, without what has no meaning."""
    return replace(
        catalogue,
        events={label: replace(schema, per_second=None) for label, schema in catalogue.events.items()},
        sources=tuple(replace(source, location=None, format=None) for source in catalogue.sources),
        table_locations={},
    )


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


def compare(theirs: Mapping[str, str], ours: Mapping[str, str], what: str) -> None:
    """Refuses what belongs to another program, with what differs."""
    for name in sorted(dict.fromkeys([*theirs, *ours]), key=lambda name: name == DETAILS):
        if name not in ours:
            raise AnotherProgram(f"the {what} is of another program: it has `{name}`, and this has not")
        if name not in theirs:
            raise AnotherProgram(f"the {what} is of another program: it lacks `{name}`")
        if theirs[name] != ours[name]:
            raise AnotherProgram(
                f"the {what} is of another program: `{name}` was\n{theirs[name]}\nand is\n{ours[name]}"
            )


# ---- digests -----------------------------------------------------------------------------------------------


def digest(value: object) -> str:
    """A short name for a tree of nodes, values, tuples and mappings: equal ones have the same, others have not."""
    hashed = blake2b(digest_size=16)
    for token in _tokens(value):
        text = token.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:%s" % (len(text), text))
    return hashed.hexdigest()


def _tokens(value: object) -> Iterator[str]:
    """What a tree consists of; how deep it is does not matter. The order of a mapping says nothing."""
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if is_dataclass(one) and not isinstance(one, type):
            own = [field.name for field in fields(one) if field.compare]
            yield f"{type(one).__name__} {len(own)}"
            waiting += [getattr(one, name) for name in reversed(own)]
        elif isinstance(one, Mapping):
            yield f"mapping {len(one)}"
            waiting += sorted(one.items(), key=lambda pair: repr(pair[0]), reverse=True)
        elif isinstance(one, tuple | list):
            yield f"several {len(one)}"
            waiting += one[::-1]
        elif isinstance(one, frozenset | set):
            yield f"set {len(one)}"
            waiting += sorted(map(digest, one), reverse=True)
        else:
            yield f"{type(one).__name__} {one!r}"
