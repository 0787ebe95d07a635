"""This module gives the events and variables in the expression of a rule other names, which changes nothing else.

What lowering sorts by name is sorted again, so that rules that differ in names only are equal when they have the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ephemera.algebra.attributes import (
    Time,
    Variable,
    constant,
    event_of,
    expression_of,
    is_of_event,
    is_reference,
    is_stamp,
    moved,
    place_of,
    primitive,
    reference,
)
from ephemera.algebra.nodes import (
    Calendar,
    Collection,
    Detection,
    Gap,
    Group,
    Merge,
    RelativeTimer,
    Rename,
    Table,
)
from ephemera.algebra.scalar import Distance, InsideCalendar, LimitedDistance, Matches, SameEvent
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.tree import rebuild
from ephemera.terms.nodes import As, Name, Var

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Renaming:
    """Other names for the events and variables of a rule; what has none keeps its own."""

    events: Mapping[str, str]
    variables: Mapping[str, str]

    @property
    def is_idle(self) -> bool:
        """Whether every name stays as it is."""
        return all(old == new for names in (self.events, self.variables) for old, new in names.items())

    def back(self) -> Renaming:
        """The renaming that undoes this one."""
        return Renaming({v: k for k, v in self.events.items()}, {v: k for k, v in self.variables.items()})

    def event(self, name: str) -> str:
        """The name of an event, or of an input of an algebra expression, `d/1`."""
        if name in self.events or (inner := expression_of(name)) is None:
            return self.events.get(name, name)
        return primitive(self.event(inner[0]), inner[1])

    def variable(self, name: str) -> Variable:
        """The name of a variable, or of what stands for a constant in the pattern of an event, `#o#1`."""
        stands_in = place_of(name)
        if stands_in is not None:
            return constant(stands_in[1], self.event(stands_in[0]))
        return Variable(self.variables.get(name, name))

    def attribute(self, name: str) -> str:
        """The name of a stamp, a reference or a variable."""
        if is_stamp(name):
            return moved(name, self.event(event_of(name)))
        if is_reference(name):
            return reference(self.event(event_of(name)))
        return self.variable(name)

    def time(self, time: Time) -> Time:
        """The name of a stamp; moments stay."""
        return moved(time, self.event(event_of(time))) if is_stamp(time) else time

    def of(self, e: T) -> T:
        """An expression under the other names."""
        return e if self.is_idle else rebuild(e, self._change)

    def _sorted(self, names: Iterable[str]) -> tuple[Variable, ...]:
        return tuple(sorted(map(self.variable, names)))

    def _change(self, node: Any) -> Any:
        match node:
            case Var(name):
                return replace(node, name=self.variable(name))
            case As(variable):
                return replace(node, variable=self.variable(variable))
            case Name(name):
                return replace(node, name=self.event(name))
            case Rename(_, events, variables):
                named = tuple((old, self.event(new)) for old, new in events)
                return replace(node, events=named, variables=tuple((o, self.variable(n)) for o, n in variables))
            case Calendar(name):
                return replace(node, name=self.event(name))
            case Table(_, str(at)):
                return replace(node, at=self.event(at))
            case RelativeTimer(_, name, _, anchor):
                return replace(node, name=self.event(name), anchor=self.event(anchor))
            case Gap(_, name, first, last):
                return replace(node, name=self.event(name), first=self.event(first), last=self.event(last))
            case Merge(_, _, merged):
                return replace(node, events=tuple(map(self.event, merged)))
            case Collection(name, variables, binds):
                return Collection(self.event(name), self._sorted(variables), self._sorted(binds))
            case Group(_, by, own):
                times = tuple(self.attribute(a) for a in by if is_of_event(a))
                data = self._sorted(a for a in by if not is_of_event(a))
                return replace(node, by=(*times, *data), own=self._sorted(own))
            case Detection(name, _, _, _, shared):
                return replace(node, name=self.event(name), shared=self._sorted(shared))
            case Distance(later, earlier) | LimitedDistance(later, earlier):
                return replace(node, later=self.time(later), earlier=self.time(earlier))
            case SameEvent(left, right):
                return replace(node, left=self.event(left), right=self.event(right))
            case Matches(event, _, known):
                return replace(node, event=self.event(event), known=self._sorted(known))
            case InsideCalendar(events):
                return replace(node, events=tuple(map(self.event, events)))
            case _:
                return node
