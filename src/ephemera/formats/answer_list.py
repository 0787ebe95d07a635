"""This module holds answers as people have them in hand: a list of objects, and for each event a table of Arrow.

The objects are those of JSON lines. The tables have the columns that `encode_arrow` names; a column has the type of its
values, else the one that the rules let expect, and what is of several kinds is JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, overload

import pyarrow as pa

from ephemera.base.suggest import meant_by
from ephemera.formats.encode_arrow import DATA, AnswerColumns
from ephemera.formats.json_events import BadEvent
from ephemera.rules.emitted import emitted_label
from ephemera.rules.nodes import Ruleset
from ephemera.rules.outcome import DeadLetter
from ephemera.rules.value_types import Times, Type, derived_types, union

_FEW, _SHOWN = 20, 3
"""So many answers are shown in full, and of more the first few."""
_ARROW: dict[Type, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "instant": pa.timestamp("us", tz="UTC"),
}


class Answers(list[dict[str, Any]]):
    """What a program answered: a list of objects, in the order of time, that is also a table for each event.

    >>> import ephemera
    >>> program = ephemera.compile("EVENT order(id: string, qty: int); large(i, q) <- o: order(i, q), q > 100;")
    >>> answers = program.run([{"event": "order", "time": 1, "data": ["a", 250]}])
    >>> answers
    [{'event': 'large', 'time': 1, 'data': ['a', 250]}]
    >>> answers["large"].to_pylist()
    [{'begin': 1, 'end': 1, 'i': 'a', 'q': 250}]
    >>> answers.to_arrow().column_names
    ['event', 'begin', 'end', 'i', 'q']
    """

    __slots__ = ("_as_numbers", "_names", "_rules", "dead_letters", "messages", "notes")

    def __init__(  # noqa: PLR0913 - what came of a run
        self,
        answers: Iterable[dict[str, Any]],
        rules: Ruleset,
        *,
        messages: Sequence[dict[str, Any]] = (),
        dead_letters: Sequence[DeadLetter] = (),
        notes: Sequence[str] = (),
        as_numbers: bool = True,
    ) -> None:
        """`Program.run` makes these; `as_numbers` says whether the input wrote times so."""
        super().__init__(answers)
        self._rules = rules
        self._names = AnswerColumns(rules)
        self._as_numbers = as_numbers
        self.messages = tuple(messages)
        """What RAISE rules would send."""
        self.dead_letters = tuple(dead_letters)
        """What could not be used, with the reason: bad events, and heads that had no value."""
        self.notes = tuple(notes)
        """What people should know of the run besides, as `run_all` has it."""

    @overload
    def __getitem__(self, which: SupportsIndex) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, which: slice) -> list[dict[str, Any]]: ...

    @overload
    def __getitem__(self, which: str) -> pa.Table: ...

    def __getitem__(self, which: SupportsIndex | slice | str) -> Any:
        """An answer by its number, or all of an event as a table: `begin`, `end`, and a column for each value."""
        if not isinstance(which, str):
            return super().__getitem__(which)
        if which not in self.events:
            meant = meant_by(which, self.events)
            guess = f"; did you mean `{meant}`?" if meant is not None else ""
            raise KeyError(f"no rule derives `{which}`{guess or '.'} There are {', '.join(self.events)}")
        return self._table([one for one in self if one["event"] == which], (which,)).drop_columns("event")

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events that the program derives, in the order of its text."""
        derived = self._rules.resolved.catalogue.derived
        named = (emitted_label(rule.head) for rule in self._rules.resolved.rules)
        heads = [name for name in named if name is not None and name in derived]
        return tuple(dict.fromkeys([*heads, *(one["event"] for one in self)]))

    def to_arrow(self) -> pa.Table:
        """All answers in one table: `event`, `begin`, `end`, and the columns of all events; messages are not in it."""
        return self._table(self, self.events)

    def to_pandas(self) -> Any:
        """The same for pandas; integers stay such where some are null."""
        return self.to_arrow().to_pandas(integer_object_nulls=True)

    def __repr__(self) -> str:
        if len(self) <= _FEW:
            return super().__repr__()
        counts = Counter(one["event"] for one in self)
        told = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
        first = "".join(f"\n  {one!r}" for one in super().__getitem__(slice(_SHOWN)))
        return f"<Answers: {len(self):,} ({told}), the first:{first}\n  …>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (list(self), self._rules, self.messages, self.dead_letters, self.notes, self._as_numbers)

    # ---- tables --------------------------------------------------------------------------------------------

    def _table(self, answers: Sequence[Mapping[str, Any]], events: Sequence[str]) -> pa.Table:
        times = [t if isinstance(t, list) else [t, t] for t in (one["time"] for one in answers)]
        numbers = self._as_numbers
        rows = [self._cells(one) for one in answers]
        expected = self._expected(events, numbers=numbers)
        names = dict.fromkeys([*expected, *(name for row in rows for name in row)])
        stamp: Type = "int" if numbers else "instant"
        return pa.table(
            {
                "event": pa.array([one["event"] for one in answers], pa.string()),
                "begin": _array([begin for begin, _ in times], stamp),
                "end": _array([end for _, end in times], stamp),
                **{name: _array([row.get(name) for row in rows], expected.get(name, "any")) for name in names},
            }
        )

    def _cells(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The values of an answer by column; a term that is not flat is JSON."""
        label, data = answer["event"], answer.get("data")
        if isinstance(data, list):
            return dict(zip(self._names.names(label, len(data)), data, strict=False))
        declared = self._rules.resolved.catalogue.attributes(label)
        if declared is not None and isinstance(data, dict) and data.keys() <= set(declared) and _is_flat(data):
            return dict(zip(self._names.names(label, None), map(data.get, declared), strict=True))
        return {DATA: json.dumps(data if "data" in answer else answer.get("term"), ensure_ascii=False)}

    def _expected(self, events: Sequence[str], *, numbers: bool) -> dict[str, Type]:
        """The columns of some events, and the types that the rules let expect."""
        named = AnswerColumns(self._rules, events if len(events) == 1 else (), messages=False).declared
        found: dict[str, Type] = {DATA: "string"} if DATA in named else {}
        for (label, arity), types in derived_types(self._rules, Times(numbers, numbers)).items():
            if label in events:
                for name, kind in zip(self._names.names(label, arity), types, strict=False):
                    found[name] = union(found.get(name, "nothing"), kind)
        return {name: found.get(name, "any") for name in [*named, *found]}


def _remade(  # noqa: PLR0913, PLR0917 - what answers are made of
    answers: list[dict[str, Any]], rules: Ruleset, messages: Any, dead_letters: Any, notes: Any, as_numbers: bool
) -> Answers:
    more: dict[str, Any] = {"messages": messages, "dead_letters": dead_letters, "notes": notes}
    return Answers(answers, rules, as_numbers=as_numbers, **more)


def letters_of(bad: Iterable[BadEvent], undefined: Iterable[DeadLetter]) -> list[DeadLetter]:
    """All that could not be used: bad events first, then heads that had no value."""
    return [*(DeadLetter(0, {}, one.reason, one.original) for one in bad), *undefined]


def _is_flat(data: Mapping[str, Any]) -> bool:
    return not any(isinstance(value, list | dict) for value in data.values())


def _array(values: Sequence[Any], expected: Type) -> pa.Array:
    """A column of the values' kind; of several kinds, of JSON."""
    kinds = {type(v) for v in values if v is not None}
    if not kinds:
        counted = "int" if expected == "time" else expected
        return pa.nulls(len(values), _ARROW.get(counted, pa.null()))
    if kinds == {str} and expected in ("time", "instant"):
        return pa.array(values, pa.string()).cast(_ARROW["instant"])
    if kinds <= {int, float} and (float in kinds or expected == "float") and _are_exact(values):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    if len(kinds) == 1 and kinds <= {bool, int, str}:
        return pa.array(values)
    return pa.array([None if v is None else json.dumps(v, ensure_ascii=False) for v in values], pa.string())


def _are_exact(values: Iterable[Any]) -> bool:
    """Whether whole numbers are the same as doubles."""
    return all(not isinstance(v, int) or float(v) == v for v in values)
