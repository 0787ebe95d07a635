"""This module makes the events of rules that are alike at once, where their heads only show variables and constants.

A thousand rules have a few answers each in a batch, and building each head on its own would cost a thousand times what
one costs. So the values that are shown are taken for all of them, each answer once, and then cut by rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ephemera.algebra.attributes import begin, end, position
from ephemera.algebra.nodes import Group, Imbed
from ephemera.base.time import LATEST
from ephemera.engine.operators.join_constants import MEMBER
from ephemera.kernels.columns import Batch, Column, constant, earliest, ints, latest
from ephemera.kernels.event_columns import BEGIN, END, Events, distinct
from ephemera.rules.nodes import Catalogue
from ephemera.syntax.nodes import Derive
from ephemera.terms.nodes import Bool, Number, Text, Var
from ephemera.terms.values import Value


class AlikeHeads:
    """The heads of rules that are alike, in the order of the rules."""

    def __init__(self, heads: Sequence[Group | Imbed], covers: Sequence[str], catalogue: Catalogue) -> None:
        derived = [one.head for one in heads if isinstance(one.head, Derive)]
        self._labels = [str(head.label) for head in derived]
        self._names = [catalogue.attributes(label) for label in self._labels]
        arguments = derived[0].arguments
        self._arity = len(arguments)
        self._shown = {position(k): a.name for k, a in enumerate(arguments) if isinstance(a, Var)}
        self._constants: list[dict[str, Value]] = [
            {position(k): a.value for k, a in enumerate(head.arguments) if isinstance(a, Number | Text | Bool)}
            for head in derived
        ]
        self._begins, self._ends = [begin(n) for n in covers], [end(n) for n in covers]

    def step(self, batch: Batch) -> list[tuple[int, Events]] | None:
        """The events of all tuples, each once, by the number of the rule; None if columns do not hold them."""
        first, last = earliest(batch, self._begins), latest(batch, self._ends)
        shown = {place: batch.columns.get(name) for place, name in self._shown.items()}
        values = {place: c for place, c in shown.items() if c is not None and c.kind != "any"}
        if len(values) < len(shown) or last.max() > LATEST or first.min() < -LATEST:
            return None
        columns = {BEGIN: ints(first), END: ints(last), **values, MEMBER: batch.columns[MEMBER]}
        (once,) = distinct([Events("", Batch(columns, len(batch)), self._arity, None)])
        whole = once.batch
        members = whole[MEMBER]
        if not (members[1:] >= members[:-1]).all():
            whole = whole.take(np.argsort(members, kind="stable"))
            members = whole[MEMBER]
        cuts = [0, *(np.flatnonzero(members[1:] != members[:-1]) + 1).tolist(), len(whole)]
        kept = [(name, c.values, c.kind) for name, c in whole.columns.items() if name != MEMBER]
        found: list[tuple[int, Events]] = []
        for start, stop, number in zip(cuts, cuts[1:], members[cuts[:-1]].tolist(), strict=False):
            own = {name: Column(of_all[start:stop], kind) for name, of_all, kind in kept}
            for place, value in self._constants[number].items():
                own[place] = constant(value, stop - start)
            events = Events(self._labels[number], Batch(own, stop - start), self._arity, self._names[number], True)
            found.append((number, events))
        return found
