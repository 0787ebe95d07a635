"""This module makes the events of rules that are alike at once, where columns hold all of them.

A thousand rules have a few answers each in a batch, and building each head on its own would cost a thousand times what
one costs. So one head is built for all of them, which shows the rule as its last value, and its events are cut by that.
Where a head has no value for some tuple, or columns do not vouch for all, each rule builds its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ephemera.algebra.attributes import position
from ephemera.algebra.nodes import Group, Imbed
from ephemera.algebra.truth import Tester
from ephemera.engine.operators.head import HeadBuilder
from ephemera.engine.operators.join_constants import MEMBER
from ephemera.kernels.columns import Batch, Column, constant
from ephemera.kernels.event_columns import Events
from ephemera.rules.nodes import Catalogue
from ephemera.syntax.nodes import Derive
from ephemera.terms.nodes import Bool, Number, Text, Var
from ephemera.terms.values import Value


class AlikeHeads:
    """The heads of rules that are alike, in the order of the rules; all are arrow heads."""

    def __init__(
        self, heads: Sequence[Group | Imbed], covers: Sequence[str], catalogue: Catalogue, tester: Tester
    ) -> None:
        derived = [one.head for one in heads if isinstance(one.head, Derive)]
        self._labels = [str(head.label) for head in derived]
        self._names = [catalogue.attributes(label) for label in self._labels]
        self._arity = len(derived[0].arguments)
        self._constants: list[dict[str, Value]] = [
            {position(k): a.value for k, a in enumerate(head.arguments) if isinstance(a, Number | Text | Bool)}
            for head in derived
        ]
        first = heads[0]
        if isinstance(first, Group):
            first = replace(first, by=(*first.by, MEMBER))
        whole = replace(derived[0], arguments=(*derived[0].arguments, Var(MEMBER)))
        self._builder = HeadBuilder(replace(first, head=whole), covers, catalogue, tester)

    @staticmethod
    def can(heads: Sequence[Group | Imbed]) -> bool:
        """Whether all are arrow heads."""
        return all(isinstance(one.head, Derive) for one in heads)

    def step(self, batch: Batch) -> list[tuple[int, Events]] | None:
        """The events of all tuples, each once, by the number of the rule; None if columns do not hold them."""
        found = self._builder.at_once(batch)
        if found is None:
            return None
        whole, member = found.batch, position(self._arity)
        members = whole[member]
        if not (members[1:] >= members[:-1]).all():
            whole = whole.take(np.argsort(members, kind="stable"))
            members = whole[member]
        cuts = [0, *(np.flatnonzero(members[1:] != members[:-1]) + 1).tolist(), len(whole)]
        kept = [(name, c.values, c.kind) for name, c in whole.columns.items() if name != member]
        made: list[tuple[int, Events]] = []
        for start, stop, number in zip(cuts, cuts[1:], members[cuts[:-1]].tolist(), strict=False):
            own = {name: Column(of_all[start:stop], kind) for name, of_all, kind in kept}
            for place, value in self._constants[number].items():
                own[place] = constant(value, stop - start)
            events = Events(self._labels[number], Batch(own, stop - start), self._arity, self._names[number], True)
            made.append((number, events))
        return made
