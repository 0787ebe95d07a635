"""This module notes which declared attributes the JSON objects of events have, to tell which never came.

Keys vary from object to object, so one that is missing is null and no mistake. One that is missing in every event of
its type most likely is. Only events whose data is an object count; an array has all values by position. Types that no
rule uses do not count: they need not be read at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ephemera.base.suggest import meant_by
from ephemera.physical.plan import PhysicalPlan

_MOST = 100
"""So many keys that nothing declares are remembered of a type, to guess which was meant."""


class Keys:
    """What the events of each type had so far."""

    def __init__(self, plan: PhysicalPlan) -> None:
        catalogue, used = plan.catalogue, plan.rewritten.columns
        declared = {label: set(schema.names) for label, schema in catalogue.events.items() if schema.names}
        from_outside = [label for label in declared if label not in catalogue.derived]
        self._lacking = {label: declared[label] for label in from_outside if used is None or label in used}
        self._declared = {label: frozenset(names) for label, names in self._lacking.items()}
        self._counts = dict.fromkeys(self._lacking, 0)
        self._others: dict[str, dict[str, None]] = {label: {} for label in self._lacking}

    def note(self, event: Any) -> None:
        """An event, decoded."""
        label = event.get("event") if type(event) is dict or isinstance(event, Mapping) else None
        lacking = self._lacking.get(label) if isinstance(label, str) else None
        if not lacking or not isinstance(label, str):  # nothing is missing any more
            return
        data = event.get("data")
        if isinstance(data, Mapping):
            self._counts[label] += 1
            lacking.difference_update(data)
            if lacking and len(self._others[label]) < _MOST:
                self._others[label] |= dict.fromkeys(str(key) for key in data if key not in self._declared[label])
        elif isinstance(data, list | tuple):
            lacking.clear()

    def saw(self, label: str) -> None:
        """That events of a type had everything."""
        if label in self._lacking:
            self._lacking[label].clear()

    def told(self) -> dict[str, Any]:
        """The same as plain data, to be added to others."""
        return {
            label: [self._counts[label], sorted(names), list(self._others[label])]
            for label, names in self._lacking.items()
            if self._counts[label] or not names
        }

    def add(self, told: Mapping[str, Any]) -> None:
        """What was noted elsewhere."""
        for label, (count, lacking, others) in told.items():
            self._counts[label] += count
            self._lacking[label].intersection_update(lacking)
            self._others[label] |= dict.fromkeys(others)

    def notes(self) -> list[str]:
        """What to tell people: keys that were missing in all events of their type."""
        return [text for label in self._lacking if self._counts[label] for text in self._of_type(label)]

    def _of_type(self, label: str) -> Iterable[str]:
        events = f"all {self._counts[label]:,} events" if self._counts[label] > 1 else "the only event"
        for name in sorted(self._lacking[label]):
            meant = meant_by(name, list(self._others[label]))
            guess = f"; did you mean `{meant}`, which they have?" if meant is not None else ""
            yield f"{label}: `{name}` was missing in {events}{guess}"
