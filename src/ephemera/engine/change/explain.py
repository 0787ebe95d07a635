"""This module says what a change from one program to another would do, before anybody makes it: `explain --change`.

It speaks of an engine that has run for long, so that all that may be forgotten is. In a young one less may be lacking.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ephemera.base.time import describe
from ephemera.engine.change.compared import Compared, compared
from ephemera.engine.change.kept_tuples import kept_by, longest_kept
from ephemera.engine.change.needs import Needs, needs_of
from ephemera.engine.change.redeclared import redeclared
from ephemera.physical.plan import Compiled, PhysicalPlan


def as_json(old: Compiled, new: Compiled) -> dict[str, Any]:
    """What becomes of each rule, what lacks, and what is kept then, as plain data."""
    both = compared(old, new)
    needs = needs_of(both, kept_by(old.physical, both.before))
    return {
        "declared": list(_declared(both)),
        "kept": list(both.rules_kept()),
        "removed": list(both.rules_removed()),
        "added": [
            {
                "rule": both.known_as([rule])[0],
                "exact_after": needs.exact_after(rule),
                "lacks": list(dict.fromkeys(lack.text() for lack in needs.of(rule))),
            }
            for rule in both.added
        ],
        "state": list(_state(both)),
    }


def as_text(old: Compiled, new: Compiled) -> str:
    """The same for people."""
    both = compared(old, new)
    needs = needs_of(both, kept_by(old.physical, both.before))
    lines = [f"declared {line}" for line in _declared(both)]
    lines += [f"kept     {rule}" for rule in both.rules_kept()]
    lines += [f"removed  {rule}" for rule in both.rules_removed()]
    lines += _added(both, needs)
    lines += [f"state    {line}" for line in _state(both)]
    return "\n".join(lines) or "nothing changes"


def _declared(both: Compared) -> Iterator[str]:
    return redeclared(both.old.rules.resolved.catalogue, both.new.rules.resolved.catalogue)


def _added(both: Compared, needs: Needs) -> Iterator[str]:
    for rule in dict.fromkeys(both.added):
        after = needs.exact_after(rule)
        when = "exact at once" if after == 0 and not needs.of(rule) else "not known to be exact at any time"
        if after:
            when = f"exact from {describe(after)} after the change on"
        yield f"added    {both.known_as([rule])[0]}, {when}"
        for text in dict.fromkeys(lack.text() for lack in needs.of(rule)):
            yield f"         {text}"


def _state(both: Compared) -> Iterator[str]:
    """What is kept of each type for another time than before, and what waits no longer."""
    was, now = _kept(both.old.physical), _kept(both.new.physical)
    for label in sorted({*was, *now}):
        before, after = was.get(label, 0), now.get(label, 0)
        if before == after:
            continue
        if not after and after is not None:
            yield f"what is kept of `{label}` goes"
        else:
            yield f"`{label}` is kept {_length(after)}, before {_length(before)}"
    removed = set(both.removed)
    for name, rule in both.old.physical.rules.items():
        gone = [m.name for m in both.old.physical.rewritten.members(name) if m.name in removed]
        if rule.attempts or rule.timers:
            for told in _names(both, gone):
                yield f"what waits in {told} goes"


def _names(both: Compared, rules: list[str]) -> tuple[str, ...]:
    names = both.rules_removed()
    numbers = {both.old.plan.points[rule].rule for rule in rules}
    return tuple(name for name in names if int(name.rpartition("rule ")[2].rstrip(")")) in numbers)


def _kept(physical: PhysicalPlan) -> dict[str, int | None]:
    """For each type how far back it is kept; None is forever."""
    found: dict[str, int | None] = {}
    for lane in physical.lanes.plans.values():
        for name, query in lane.queries.items():
            label = query.label or "any event"
            reach = longest_kept(lane.histories[name].needed)
            before = found.get(label, 0)
            found[label] = None if reach is None or before is None else max(reach, before, 0)
    return found


def _length(length: int | None) -> str:
    return "for ever" if length is None else f"for {describe(length)}" if length else "no longer than a step"
