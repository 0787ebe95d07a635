"""This module makes what a stored join keeps: its tuples, as flat events, which travel and are kept as any.

Each has the interval that covers its events, and its stamps and variables by position. They are not compared: equal
ones are of different events, and both may matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ephemera.algebra.attributes import begin, end, position
from ephemera.algebra.nodes import Group, Imbed
from ephemera.base.errors import InternalError
from ephemera.kernels.columns import Batch, earliest, ints, latest
from ephemera.kernels.event_columns import BEGIN, END, Events
from ephemera.syntax.nodes import Derive
from ephemera.terms.events import Event
from ephemera.terms.nodes import Var
from ephemera.terms.values import Value


class TupleBuilder:
    """The operator that makes events of the tuples of a stored join."""

    def __init__(self, head: Group | Imbed, covers: Sequence[str]) -> None:
        if not isinstance(head.head, Derive):
            raise InternalError("engine", "a stored join has a head that shows its columns")
        self.head = head
        self._label = str(head.head.label)
        self._columns = [argument.name for argument in head.head.arguments if isinstance(argument, Var)]
        self._begins, self._ends = [begin(n) for n in covers], [end(n) for n in covers]

    def step(self, batch: Batch) -> list[Events]:
        """All tuples."""
        if not len(batch):
            return []
        times = {BEGIN: ints(earliest(batch, self._begins)), END: ints(latest(batch, self._ends))}
        values = {position(k): batch.columns[name] for k, name in enumerate(self._columns)}
        whole = Batch({**times, **values}, len(batch))
        return [Events(self._label, whole, len(self._columns), None, is_set=True)]

    def simple(self, row: Mapping[str, Any]) -> Event:
        """Never asked for: somebody reads what a join stores."""
        raise InternalError("engine", f"the join {self._label} was asked to show {dict(row)}")

    def take_undefined(self) -> list[tuple[Mapping[str, Value], str]]:
        """Nothing: what is only joined has a value."""
        return []

    def mark(self) -> Callable[[], None]:
        """There is nothing to keep in mind."""
        return lambda: None
