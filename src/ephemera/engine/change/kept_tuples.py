"""This module says what an engine keeps of events: by which patterns, how long, and as what other tuples it may serve.

Tuples of a pattern serve another of the same type if that asks for nothing which the first one does not know, and for
all else it asks the same or more: `order(i, v)` serves `order(i, "x")` and `order(i, _)`, but neither serves it. Whole
events serve any pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ephemera.algebra.attributes import EVENT, begin, end, is_constant
from ephemera.algebra.nodes import Match
from ephemera.algebra.scalar import Formula
from ephemera.analysis.nodes import ANY_LENGTH
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import find
from ephemera.engine.change.compared import Meanings
from ephemera.engine.operators.match import OCCURRENCE, Matcher
from ephemera.kernels.columns import UNBOUND, Batch, Column, Mask, constant, ints, stack
from ephemera.kernels.event_columns import BEGIN, END, REFERENCE, of_events
from ephemera.kernels.keys import joins
from ephemera.physical.nodes import Needed, Reader
from ephemera.physical.plan import PhysicalPlan
from ephemera.rewrite.optimize import Rewritten
from ephemera.rules.nodes import Catalogue
from ephemera.terms.nodes import Anonymous, AnyEvent, Atom, Bool, Null, Number, Pattern, Text, Var

Constant = Number | Text | Bool
Convert = Callable[[Batch], Batch]


@dataclass(frozen=True, slots=True)
class KeptTuples:
    """The tuples of a query, as a lane keeps them."""

    lane: frozenset[str]
    history: str
    """The query, by its own name."""
    stored: str
    """The same by its meaning."""
    label: str | None
    patterns: tuple[Pattern, ...]
    feeding: str | None
    """What its events are derived by."""
    needed: Needed
    """How long it keeps what."""
    tested: Formula | None
    """What it keeps only if."""
    known: frozenset[tuple[Any, ...]] | None
    """If it keeps only tuples with some constants: which ones, in the order of their places."""
    is_whole: bool
    """Whether it has the events themselves."""
    is_declared: bool
    """Whether its type is declared with attributes: those that the type gets later are null in these tuples."""

    @property
    def keeps_all(self) -> bool:
        """Whether it keeps all that its pattern matches."""
        return self.tested is None and self.known is None


def kept_by(physical: PhysicalPlan, meanings: Meanings) -> Iterator[KeptTuples]:
    """What the lanes of a physical plan keep."""
    rewritten = physical.rewritten
    for lane, plan in physical.lanes.plans.items():
        for name, query in plan.queries.items():
            yield KeptTuples(
                lane,
                name,
                rewritten.names.histories[name],
                query.label,
                query.patterns,
                _feeding(physical, meanings, name, query.label),
                plan.histories[name].needed,
                rewritten.tested.get(name),
                constants_of(rewritten, name),
                query.keeps_events,
                physical.catalogue.attributes(query.label or "") is not None,
            )


def _feeding(physical: PhysicalPlan, meanings: Meanings, query: str, label: str | None) -> str | None:
    point = physical.plan.points.get(query)
    return meanings.feeding(point) if point is not None else meanings.outside(label or "")


def constants_of(rewritten: Rewritten, query: str) -> frozenset[tuple[Any, ...]] | None:
    """The constants that rules which run as one ask a query for, in the order of their places."""
    if query not in rewritten.queries:
        return None
    rule, names = rewritten.queries[query]
    alike = rewritten.alike[rule]
    inside = {name for m in find(rewritten.plan.points[query].expression, Match) for name in _made(m.pattern)}
    chosen = [alike.names.index(names[name]) for name in sorted(inside, key=_number)]
    return frozenset(tuple(_told(row[k]) for k in chosen) for row in alike.rows)


def _made(pattern: Pattern) -> list[str]:
    """The variables of a pattern that stand for constants."""
    arguments = pattern.arguments if isinstance(pattern, Atom) else ()
    return [a.name for a in arguments if isinstance(a, Var) and is_constant(a.name)]


def _number(name: str) -> tuple[int, str]:
    return len(name), name


def _told(value: Any) -> tuple[str, Any]:
    """A constant with its kind: `true` is no 1."""
    return ("truth" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text", value)


# ---- patterns ------------------------------------------------------------------------------------------------


def with_constants(pattern: Pattern, values: Mapping[str, Constant]) -> Pattern:
    """A pattern of rules that run as one, with the constants of one of them."""
    if not isinstance(pattern, Atom):
        return pattern
    arguments = tuple(values.get(a.name, a) if isinstance(a, Var) else a for a in pattern.arguments)
    return Atom(pattern.label, arguments)


def serves(kept: KeptTuples, patterns: Sequence[Pattern]) -> bool:
    """Whether all that some patterns match is among some tuples, as far as they are kept."""
    if kept.tested is not None:
        return False
    if kept.is_whole and _is_any(kept.patterns):
        return True
    if kept.known is None and tuple(patterns) == kept.patterns:
        return True
    if len(patterns) != 1 or len(kept.patterns) != 1:
        return False
    own, asked = kept.patterns[0], patterns[0]
    if not isinstance(own, Atom) or not isinstance(asked, Atom) or own.label != asked.label:
        return False
    if _columns(own, asked, grows=kept.is_declared) is None:
        return False
    if kept.known is not None:
        wanted = []
        for name in sorted(_made(own), key=_number):
            place = next(k for k, a in enumerate(own.arguments) if isinstance(a, Var) and a.name == name)
            argument = asked.arguments[place]
            if not isinstance(argument, Constant):
                return False
            wanted.append(_told(argument.value))
        return tuple(wanted) in kept.known
    return all(not isinstance(a, Constant) or a == b for a, b in zip(own.arguments, asked.arguments, strict=False))


def _is_any(patterns: Sequence[Pattern]) -> bool:
    return len(patterns) == 1 and isinstance(patterns[0], AnyEvent)


def _columns(own: Atom, asked: Atom, *, grows: bool) -> list[tuple[int, Any]] | None:
    """The places at which a pattern asks for something, if the other one knows all of these.

    Of a type that `grows` it knows that attributes are null which came later.
    """
    if len(asked.arguments) < len(own.arguments) or (len(asked.arguments) > len(own.arguments) and not grows):
        return None
    names = [a.name for a in own.arguments if isinstance(a, Var)]
    if len(set(names)) < len(names) or any(
        not isinstance(a, Var | Constant | Anonymous) for a in (*own.arguments, *asked.arguments)
    ):
        return None
    known = {k for k, a in enumerate(own.arguments) if isinstance(a, Var | Constant)}
    known |= set(range(len(own.arguments), len(asked.arguments)))
    places: list[tuple[int, Any]] = [(k, a) for k, a in enumerate(asked.arguments) if not isinstance(a, Anonymous)]
    return places if all(k in known for k, _ in places) else None


def converted(kept: KeptTuples, patterns: Sequence[Pattern], *, whole: bool, catalogue: Catalogue) -> Convert | None:
    """How the tuples of one query become those of another, as far as they match; None if they cannot."""
    if whole and not kept.is_whole:
        return None
    if tuple(patterns) == kept.patterns:
        return (lambda batch: batch) if whole == kept.is_whole else _without_events
    if kept.is_whole and _is_any(kept.patterns):
        matcher = Matcher(tuple(patterns), catalogue, keeps_events=whole)
        return lambda batch: _matched(batch, matcher, catalogue)
    if len(patterns) != 1 or len(kept.patterns) != 1:
        return None
    own, asked = kept.patterns[0], patterns[0]
    if not isinstance(own, Atom) or not isinstance(asked, Atom) or own.label != asked.label:
        return None
    places = _columns(own, asked, grows=kept.is_declared)
    if places is None:
        return None
    return lambda batch: _by_places(batch, own, places, whole=whole)


def _without_events(batch: Batch) -> Batch:
    return Batch({name: c for name, c in batch.columns.items() if name != OCCURRENCE}, len(batch))


def _by_places(batch: Batch, own: Atom, places: Sequence[tuple[int, Any]], *, whole: bool) -> Batch:
    columns: dict[str, Column] = {name: batch.columns[name] for name in (BEGIN, END, REFERENCE)}
    if whole:
        columns[OCCURRENCE] = batch.columns[OCCURRENCE]
    mask: Mask = np.ones(len(batch), dtype=np.bool_)
    for place, argument in places:
        source = own.arguments[place] if place < len(own.arguments) else Null()
        if isinstance(source, Var) and source.name not in batch.columns:
            continue  # no rule asked for it, so it was not read
        values = batch.columns[source.name] if isinstance(source, Var) else constant(_value_of(source), len(batch))
        match argument:
            case Var(name) if name in columns:
                mask &= joins(columns[name], values)
            case Var(name):
                columns[name] = values
            case Text(value) | Number(value) | Bool(value):
                mask &= joins(values, constant(value, len(batch)))
            case Null():
                mask[:] = False
            case _:
                continue
    found = Batch(columns, len(batch))
    return found if mask.all() else found.take(mask)


def _value_of(argument: Any) -> Any:
    return None if isinstance(argument, Null) else argument.value


def _matched(batch: Batch, matcher: Matcher, catalogue: Catalogue) -> Batch:
    """The matches of whole events, which keep their references."""
    events = batch.columns[OCCURRENCE].tolist()
    references = dict(zip(events, batch[REFERENCE].tolist(), strict=True))
    found: list[Batch] = []
    for part in of_events(events, catalogue.attributes):
        numbered = part.batch.with_columns({REFERENCE: ints([references[event] for event in part.events()])})
        matched = matcher.match(type(part)(part.label, numbered, part.arity, part.names, part.is_set))
        if matched is not None:
            found.append(matched)
    return stack(found) if found else _without_events(batch).take(np.empty(0, dtype=np.int64))


def unread(kept: KeptTuples, batches: Iterable[Batch], wanted: Container[int]) -> bool:
    """Whether some tuples lack a value that is wanted of them, since nobody had asked for it when they came."""
    own = kept.patterns[0] if len(kept.patterns) == 1 else None
    if not isinstance(own, Atom):
        return False
    names = [a.name for k, a in enumerate(own.arguments) if isinstance(a, Var) and k in wanted]
    for batch in batches:
        for name in names:
            c = batch.columns.get(name)
            if c is None or (c.kind == "any" and any(value is UNBOUND for value in c.values)):
                return True
    return False


# ---- how long --------------------------------------------------------------------------------------------------


def covers(kept: Needed, asked: Reader, longest: int | None) -> bool:
    """Whether what is kept has all that a reader needs; events last no longer than so much, if that is known."""
    return kept is None or any(_covers(one, asked, longest) for one in kept)


def _covers(kept: Reader, asked: Reader, longest: int | None) -> bool:
    if kept.length != ANY_LENGTH and not kept.length.covers(asked.length):
        return False
    times = dict(asked.times)
    begins, ends = begin(EVENT), end(EVENT)
    for stamp, time in kept.times:
        if stamp in times and times[stamp] <= time:
            continue
        if stamp == ends and begins in times and times[begins] <= time:
            continue
        if stamp == begins and longest is not None and ends in times and times[ends] <= time - longest:
            continue
        return False
    return True


def reach_of(reader: Reader) -> int | None:
    """How far before now an event may have ended that a reader needs; None is any time."""
    return min((time for _, time in reader.times), default=None)


def longest_kept(kept: Needed) -> int | None:
    """How far back events are surely kept, by their ends; None is any time."""
    if kept is None:
        return None
    reaches = [reach_of(reader) for reader in kept if reader.length == ANY_LENGTH]
    if any(reach is None for reach in reaches):
        return None
    return max((reach for reach in reaches if reach is not None), default=0)
