"""This module holds the events that the oracle knows, found by label, and by a value where an atom says one.

It leaves out only what cannot match, so that recursion over many events can be followed; the matching is not its part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ephemera.rules.patterns import pattern_label
from ephemera.terms.events import Event
from ephemera.terms.nodes import Atom, Bool, Number, Pattern, Text, Var
from ephemera.terms.values import Key, Term, Value, key


class Facts:
    """Events, each once."""

    def __init__(
        self, events: Iterable[Event] = (), attributes: Callable[[str], Sequence[str] | None] = lambda _: None
    ) -> None:
        self._attributes = attributes
        self._all: dict[Event, Event] = {}
        self._by_label: dict[str, list[Event]] = {}
        self._by_value: dict[tuple[str, int], dict[Key, list[Event]]] = {}
        """For some labels and positions the events by what stands there."""
        for event in events:
            self.add(event)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._all)

    def add(self, event: Event) -> bool:
        """One more event; says whether it is new."""
        if event in self._all:
            return False
        self._all[event] = event
        label = event.term.label
        self._by_label.setdefault(label, []).append(event)
        for (indexed, position), events in self._by_value.items():
            if indexed == label:
                self._file(event, position, events)
        return True

    def asked(self, pattern: Pattern, known: Mapping[str, Value]) -> Sequence[Event]:
        """The events that a pattern may match, some of its variables being known."""
        label = pattern_label(pattern)
        if label is None:
            return list(self._all)
        name = str(label)
        if isinstance(pattern, Atom):
            for position, argument in enumerate(pattern.arguments):
                if isinstance(argument, Text | Number | Bool):
                    return self._with(name, position, argument.value)
                if isinstance(argument, Var) and argument.name in known:
                    return self._with(name, position, known[argument.name])
        return list(self._by_label.get(name, ()))

    def _with(self, label: str, position: int, value: Value) -> Sequence[Event]:
        if (label, position) not in self._by_value:
            found: dict[Key, list[Event]] = {}
            for event in self._by_label.get(label, ()):
                self._file(event, position, found)
            self._by_value[label, position] = found
        return list(self._by_value[label, position].get(key(value), ()))

    def _file(self, event: Event, position: int, events: dict[Key, list[Event]]) -> None:
        for value in dict.fromkeys(self._values(event.term, position)):
            events.setdefault(value, []).append(event)

    def _values(self, term: Term, position: int) -> list[Key]:
        """What may stand at a position of an event: a child, or what children of a declared name hold."""
        names = self._attributes(term.label)
        if names is None:
            return [key(child) for child in term.children[position : position + 1]]
        children = [c for c in term.children if isinstance(c, Term) and c.label == names[position]]
        return [key(v) for c in children for v in c.children] if children else [key(None)]
