"""This module takes a step of an algebra expression row by row: figures 2 and 4 of the paper, for a few events.

An instance is when it starts, when it ends, and what is bound in it. For each value of the shared variables there is a
list of records for each slot (`algebra/detector`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, TypeAlias

from ephemera.algebra.detector import Detector
from ephemera.algebra.nodes import Composition, Detected, Limit, Never, Primitive
from ephemera.engine.operators.detect_state import BEGIN, END, SLOT
from ephemera.kernels.columns import UNBOUND
from ephemera.kernels.tail import Row, plain_key
from ephemera.terms.values import merged

Instance: TypeAlias = tuple[int, int, Mapping[str, Any]]
"""When it starts and ends, and its variables."""
Slots: TypeAlias = list[list[Instance]]
At: TypeAlias = Callable[[Slots, Mapping[int, Instance]], Instance | None]
"""What is picked of an expression at an instant, by what ends there; the slots go on."""

UNKEYED = object()
"""The key of values that have not come yet."""
_ENDS = itemgetter(1)


class RowStep:
    """The records of an expression as rows, and how they go on."""

    def __init__(self, plan: Detector) -> None:
        self._plan = plan
        self._limits = plan.limits
        self._marks = plan.marks
        self._shared = plan.shared
        self._count = 0
        self._at = self._compiled(plan.expression)
        self.states: dict[Any, Slots] = {}
        self._values: dict[Any, dict[str, Any]] = {}
        """For each key the values of the shared variables."""
        self._due: list[tuple[int, int, Any]] = []
        """For each key that can die when its first record does; a heap."""
        self._queued: dict[Any, None] = {}
        self._pushed = 0
        self.rows = 0
        """How many records there are."""

    # ---- rows in and out -----------------------------------------------------------------------------------

    def key_of(self, values: Mapping[str, Any]) -> Any:
        """What the values of the shared variables are told apart by."""
        shared = self._shared
        if len(shared) == 1:
            return plain_key(values[shared[0]])
        return tuple(plain_key(values[name]) for name in shared)

    def take_in(self, rows: Sequence[Row]) -> None:
        """Records that others have kept."""
        for row in rows:
            values = {n: v for n, v in row.items() if n not in (SLOT, BEGIN, END) and v is not UNBOUND}
            key = self.key_of(values) if all(n in values for n in self._shared) else UNKEYED
            self._values.setdefault(key, {n: values[n] for n in self._shared if n in values})
            self._state(key)[row[SLOT]].append((row[BEGIN], row[END], values))
            self.rows += 1
        for key, state in self.states.items():
            for slot in state:
                slot.sort(key=_ENDS)
            self._watch(key, state)

    def given(self, keys: Sequence[Any] | None = None, after: int | None = None) -> list[dict[str, Any]]:
        """The records, of all keys or of some, and all or only those that ended after a time."""
        return [
            {SLOT: number, BEGIN: begins, END: ends, **self._values[key], **values}
            for key in (self.states if keys is None else keys)
            for number, slot in enumerate(self.states.get(key, ()))
            for begins, ends, values in slot
            if after is None or ends > after
        ]

    def _state(self, key: Any) -> Slots:
        state = self.states.get(key)
        if state is None:
            state = self.states[key] = [[] for _ in self._limits]
        return state

    # ---- a step --------------------------------------------------------------------------------------------

    def step(
        self, occurrences: Mapping[Any, Mapping[int, dict[int, Instance]]], until: int
    ) -> tuple[list[Instance], list[Any], list[Any]]:
        """The instances that end in a step, the keys that it touched, and those of them that are new.

        `occurrences` are what is picked of each primitive, by key and end; those of `UNKEYED` count for all keys.
        """
        for_all = occurrences.get(UNKEYED, {})
        keys = [key for key in occurrences if key is not UNKEYED]
        new = [key for key in keys if key not in self.states]
        waiting = self.states.get(UNKEYED)
        for key in new:
            state = self._state(key)
            self._values[key] = self._key_values(occurrences[key])
            if waiting is not None:
                for mine, served in zip(state, waiting, strict=True):
                    mine.extend(served)
                    self.rows += len(served)
        if for_all:
            keys = list(dict.fromkeys([*keys, *(k for k in self.states if k is not UNKEYED), UNKEYED]))
            self._state(UNKEYED)
            self._values[UNKEYED] = {}
        found: list[Instance] = []
        for key in keys:
            own = occurrences.get(key, {}) if key is not UNKEYED else {}
            state = self.states[key]
            before = sum(map(len, state))
            for now in sorted({*own, *for_all}):
                here: Mapping[int, Instance] = {**for_all.get(now, {}), **own.get(now, {})}
                picked = self._at(state, here)
                if picked is not None and key is not UNKEYED:
                    found.append(picked)
            if self._marks and own:
                last = max(own)
                state[-1].append((last, last, {}))
            self._prune(key, state, until)
            self.rows += sum(map(len, state)) - before
            if not any(state):
                self._forget(key)
        self.expire(until)
        return found, keys, new

    def step_one(self, key: Any, p: int, one: Instance, until: int) -> Instance | None:
        """The same for one occurrence of one key."""
        state = self.states.get(key)
        if state is None:
            state = self.states[key] = [[] for _ in self._limits]
            self._values[key] = {name: one[2][name] for name in self._shared}
        before = 0
        for slot in state:
            before += len(slot)
        found = self._at(state, {p: one})
        self._prune(key, state, until)
        after = 0
        for slot in state:
            after += len(slot)
        self.rows += after - before
        if not after:
            self._forget(key)
        if self._due and self._due[0][0] <= until:
            self.expire(until)
        return found

    def _key_values(self, occurrences: Mapping[int, Mapping[int, Instance]]) -> dict[str, Any]:
        some = next(values for here in occurrences.values() for _, _, values in here.values())
        return {name: some[name] for name in self._shared}

    def expire(self, bound: int) -> None:
        """Drops what is dead."""
        while self._due and self._due[0][0] <= bound:
            key = heappop(self._due)[2]
            del self._queued[key]
            state = self.states.get(key)
            if state is not None:
                before = sum(map(len, state))
                self._prune(key, state, bound)
                self.rows += sum(map(len, state)) - before
                if not any(state):
                    self._forget(key)

    def _forget(self, key: Any) -> None:
        del self.states[key], self._values[key]

    def _prune(self, key: Any, state: Slots, until: int) -> None:
        for (label, within), kept in zip(self._limits, state, strict=True):
            if not kept:
                continue
            first = 0
            if label is not None:
                limit = until - label
                while first + 1 < len(kept) and kept[first + 1][1] <= limit:
                    first += 1
            if within is not None:
                while first < len(kept) and kept[first][0] + within <= until:
                    first += 1
            if first:
                del kept[:first]
        if key not in self._queued:
            self._watch(key, state)

    def _watch(self, key: Any, state: Slots) -> None:
        """When the first record of a key dies, if it does."""
        if key in self._queued:
            return
        deaths = [
            kept[0][0] + within
            for (_, within), kept in zip(self._limits, state, strict=True)
            if kept and within is not None
        ]
        if deaths:
            self._pushed += 1
            self._queued[key] = None
            heappush(self._due, (min(deaths), self._pushed, key))

    # ---- the operators -------------------------------------------------------------------------------------

    def _both(self, a: Instance, b: Instance) -> Instance:
        values = {**a[2], **b[2]}
        for name in self._shared:
            if name in a[2] and name in b[2]:
                one, other = a[2][name], b[2][name]
                if type(one) is not type(other) or type(one) is float:
                    values[name] = merged(one, other)
        return min(a[0], b[0]), max(a[1], b[1]), values

    def _next_slot(self) -> int:
        self._count += 1
        return self._count - 1

    def _compiled(self, e: Detected) -> At:
        match e:
            case Primitive(number, _):
                return lambda _, here: here.get(number)
            case Never():
                return lambda _, __: None
            case Limit(operand, length):
                inner = self._compiled(operand)

                def limited(slots: Slots, here: Mapping[int, Instance]) -> Instance | None:
                    one = inner(slots, here)
                    return one if one is not None and one[1] - one[0] <= length else None

                return limited
            case Composition(operator, left, right):
                one, other = self._compiled(left), self._compiled(right)
                made = {"|": self._either, "+": self._conjunction, "-": self._negation, ";": self._sequence}
                return made[operator](one, other)

    def _either(self, left: At, right: At) -> At:
        def either(slots: Slots, here: Mapping[int, Instance]) -> Instance | None:
            one, other = left(slots, here), right(slots, here)
            if one is None or other is None:
                return other if one is None else one
            return other if one[0] <= other[0] else one

        return either

    def _conjunction(self, left: At, right: At) -> At:
        mine, yours = self._next_slot(), self._next_slot()

        def conjunction(slots: Slots, here: Mapping[int, Instance]) -> Instance | None:
            one, other = left(slots, here), right(slots, here)
            ones, others = slots[mine], slots[yours]
            if one is not None and (not ones or ones[-1][0] < one[0]):
                ones.append(one)
            if other is not None and (not others or others[-1][0] < other[0]):
                others.append(other)
            if not ones or not others:
                return None
            if one is not None and (other is None or other[0] <= one[0]):
                return self._both(one, others[-1])
            return None if other is None else self._both(ones[-1], other)

        return conjunction

    def _negation(self, left: At, right: At) -> At:
        number = self._next_slot()

        def negation(slots: Slots, here: Mapping[int, Instance]) -> Instance | None:
            one, other = left(slots, here), right(slots, here)
            kept = slots[number]
            if other is not None and (not kept or kept[-1][0] < other[0]):
                kept.append((other[0], other[1], {}))
            return one if one is not None and (not kept or kept[-1][0] < one[0]) else None

        return negation

    def _sequence(self, left: At, right: At) -> At:
        number = self._next_slot()

        def sequence(slots: Slots, here: Mapping[int, Instance]) -> Instance | None:
            one, other = left(slots, here), right(slots, here)
            kept = slots[number]
            found: Instance | None = None
            if other is not None:
                place = bisect_left(kept, other[0], key=_ENDS)
                if place:
                    found = self._both(kept[place - 1], other)
            if one is not None and (not kept or kept[-1][0] < one[0]):
                kept.append(one)
            return found

        return sequence
