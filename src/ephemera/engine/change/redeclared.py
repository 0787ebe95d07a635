"""This module reads the rules of a changed program by what was declared before, where that means the same.

A type may have got attributes behind those that it had. A rule that asks nothing of these means what the same rule
meant without them, so it is told by the declarations before. One that asks for them, or for events as they are, is
another rule. How late events may be, when a source is silent, and how many events are expected says nothing of rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ephemera.algebra.fingerprint import Print, fingerprint
from ephemera.algebra.nodes import Plan
from ephemera.base.time import describe
from ephemera.base.tree import find, rebuild
from ephemera.rules.nodes import Catalogue, NormalRule, Schema
from ephemera.terms.nodes import Anonymous, As, Atom, Var


def as_before(plan: Plan, prints: Mapping[str, Print], before: Catalogue) -> Mapping[str, Print]:
    """The fingerprints of rules as they were by other declarations, for rules that mean the same by them."""
    grown = {label: schema for label, schema in before.events.items() if _has_grown(schema, plan.catalogue)}
    if not grown:
        return prints
    catalogue = replace(plan.catalogue, events={**plan.catalogue.events, **grown})
    found = dict(prints)
    for name, point in plan.points.items():
        if name in found and point.normal is not None:
            normal = plan.normal[point.normal]
            labels = {str(atom.label) for atom in find(normal, Atom)} & grown.keys()
            if labels:
                found[name] = fingerprint(_narrowed(normal, grown), catalogue)
    return found


def _has_grown(old: Schema, catalogue: Catalogue) -> bool:
    new = catalogue.events.get(old.label)
    return (
        new is not None
        and old.attributes is not None
        and new.attributes is not None
        and len(new.attributes) > len(old.attributes)
    )


def _narrowed(normal: NormalRule, grown: Mapping[str, Schema]) -> NormalRule:
    """A rule without what it does not ask of attributes that are new: variables of which it speaks nowhere else."""
    named = Counter([*(v.name for v in find(normal, Var)), *(a.variable for a in find(normal, As))])

    def narrowed(node: Any) -> Any:
        if not isinstance(node, Atom) or (schema := grown.get(str(node.label))) is None:
            return node
        count = len(schema.names)
        is_same = all(isinstance(a, Anonymous) or _is_once(a, named) for a in node.arguments[count:])
        return replace(node, arguments=node.arguments[:count]) if is_same else node

    return rebuild(normal, narrowed)


def _is_once(argument: object, named: Mapping[str, int]) -> bool:
    return isinstance(argument, Var) and named[argument.name] == 1


def redeclared(old: Catalogue, new: Catalogue) -> Iterator[str]:
    """What is declared otherwise than before, and what becomes of that; what cannot be was refused."""
    for label, schema in old.events.items():
        now = new.events.get(label)
        if now is None:
            continue
        if _has_grown(schema, new):
            names = ", ".join(f"`{name}`" for name in now.names[len(schema.names) :])
            yield f"`{label}` has {names}, null in what has come before"
        if now.per_second != schema.per_second:
            yield f"`{label}` has another `RATE`: how rules are joined may change with it, and no answer"
    streams = {source.name: source for source in old.sources}
    for source in new.sources:
        was = streams.get(source.name)
        if was is not None and source.watermark != was.watermark:
            lengths = f"`WATERMARK {describe(source.watermark)}`, before {describe(was.watermark)}"
            yield f"`{source.name}` has {lengths}: it counts for what comes, and time does not go back"
        if was is not None and source.idle != was.idle:
            yield f"`{source.name}` has {_idle(source.idle)}, before {_idle(was.idle)}"


def _idle(length: int | None) -> str:
    return "no `IDLE`" if length is None else f"`IDLE {describe(length)}`"
