"""This module hands answers to people and functions, in the driver and at least once, each with a key.

A batch that is run again after a crash delivers its answers again, with the same keys (`formats/answer_keys`). So
whoever remembers keys, or stores answers under them, has each answer once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TextIO, TypeAlias

from ephemera.engine.cluster.message import Answers, Shipment
from ephemera.formats.addresses import addresses
from ephemera.formats.answer_keys import RulePrints, key_of
from ephemera.spark.sinks.encode_answers import AnswerForm

Answer: TypeAlias = dict[str, Any]
"""An answer as its line of JSON says it, and its `key`."""
_SHOWN = 20
_WIDTH = 160


class Sink(Protocol):
    """Takes the answers of a batch; it may get them again."""

    def __call__(self, answers: Sequence[Answer], batch: int) -> None: ...


@dataclass(frozen=True)
class Delivery:
    """Unpacks the answers of a batch in the driver and hands them to a sink, by end and begin."""

    forms: Mapping[int, AnswerForm]
    rules: Mapping[int, RulePrints]
    sink: Sink
    texts: frozenset[int] = frozenset()
    """The programs whose answers write times as text."""
    fraction: Callable[[str], Any] = float
    """What fractions are read as: doubles, unless somebody wants every digit that was written."""

    def deliver(self, batch: int, told: Iterable[Shipment]) -> int:
        """The answers among what a last stage passed on; how many there are. A batch with none is not delivered."""
        found = [one for shipment in told if isinstance(shipment, Answers) for one in self._answers(shipment)]
        if found:
            found.sort(key=lambda pair: pair[0])
            self.sink([answer for _, answer in found], batch)
        return len(found)

    def _answers(self, answers: Answers) -> Iterator[tuple[tuple[int, int, str], Answer]]:
        form = self.forms[answers.program]
        events = form.events(answers)
        sent = addresses(events, form.columns.messages.get(answers.rule))
        rules = self.rules[answers.program]
        lines = form.lines(events, answers.rule, as_numbers=answers.program not in self.texts).to_pylist()
        for event, line, to in zip(events.events(), lines, sent, strict=True):
            key = key_of(rules.of(event.term.label, to), to, event)
            answer = {**json.loads(line, parse_float=self.fraction), **form.names, "key": key}
            yield (event.time.end, event.time.begin, key), answer


@dataclass(frozen=True, slots=True)
class EachAnswer:
    """Calls a function with one answer at a time."""

    function: Callable[[Answer], object]

    def __call__(self, answers: Sequence[Answer], batch: int) -> None:  # noqa: ARG002
        for answer in answers:
            self.function(answer)


@dataclass(frozen=True, slots=True)
class EachBatch:
    """Calls a function with all answers of a batch, and its number."""

    function: Callable[[list[Answer], int], object]

    def __call__(self, answers: Sequence[Answer], batch: int) -> None:
        self.function(list(answers), batch)


@dataclass(frozen=True, slots=True)
class Console:
    """Shows the first answers of each batch, one in a line, and how many more there are."""

    out: TextIO
    shown: int = _SHOWN
    width: int = _WIDTH

    def __call__(self, answers: Sequence[Answer], batch: int) -> None:
        count = len(answers)
        lines = [f"batch {batch}: {count:,} answer{'s' if count > 1 else ''}"]
        rows = [(_when(a), str(a["event"]), _data(a)) for a in answers[: self.shown]]
        when, label = (max(len(row[k]) for row in rows) for k in (0, 1))
        lines += [self._cut(f"  {row[0]:<{when}}  {row[1]:<{label}}  {row[2]}") for row in rows]
        if count > self.shown:
            lines.append(f"  … and {count - self.shown:,} more")
        self.out.write("".join(f"{line}\n" for line in lines))
        self.out.flush()

    def _cut(self, line: str) -> str:
        """A line that fits, and holds nothing that a terminal would obey."""
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
        return shown if len(shown) <= self.width else shown[: self.width - 1] + "…"


def _when(answer: Answer) -> str:
    time = answer["time"]
    return " … ".join(map(str, time)) if isinstance(time, list) else str(time)


def _data(answer: Answer) -> str:
    data = answer["term"] if "term" in answer else json.dumps(answer.get("data"), ensure_ascii=False)
    return f"{data}  to {answer['recipient']}" if "recipient" in answer else str(data)
